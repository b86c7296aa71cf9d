"""How a synthesis is reported."""

from ironband.synth_report import describe

from .examples import synthesis


def test_a_clock_below_the_target_is_told():
    assert "clock 62.4 MHz; 62.5 MHz NOT reached" in list(describe(synthesis(62.4)))


def test_what_does_not_fit_is_told_last():
    full = synthesis(0, too_much="272 block RAMs, LFE5U-85 has 208")
    assert list(describe(full))[-1] == "does not fit: 272 block RAMs, LFE5U-85 has 208"


def test_wires_that_are_missing_are_told_last():
    *_, clock, wires = describe(synthesis(59.54, conflicts=4_119))
    assert clock == "clock 59.5 MHz, estimated of cells as placed; 62.5 MHz NOT reached"
    assert wires == "NOT routed: at best 4,119 wires were left to two nets"
