"""A synthesis held if the design fits and reaches its clock."""

from .examples import synthesis


def test_a_clock_below_the_target_is_a_failed_check():
    assert synthesis(62.5).held
    assert not synthesis(62.4).held


def test_what_does_not_fit_is_a_failed_check():
    assert not synthesis(0, too_much="272 block RAMs, LFE5U-85 has 208").held


def test_what_cannot_be_routed_is_a_failed_check():
    assert not synthesis(90, conflicts=4_119).held


def test_an_estimate_holds_if_nobody_asked_for_wires():
    assert synthesis(62.5, conflicts=None, until="placement").held
    assert not synthesis(62.4, conflicts=None, until="placement").held
