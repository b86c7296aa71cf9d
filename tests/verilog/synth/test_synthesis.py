"""A synthesis held if the design fits and reaches its clock."""

from .examples import synthesis


def test_a_clock_below_the_target_is_a_failed_check():
    assert synthesis(62.5).held
    assert not synthesis(62.4).held


def test_what_does_not_fit_is_a_failed_check():
    assert not synthesis(0, too_much="272 block RAMs, LFE5U-85 has 208").held
