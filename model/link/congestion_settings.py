"""SwitchCongestionSetting: when a switch's ports mark packets (docs/management.md, section 7)."""

from typing import Final

from wire.congestion_control import SWITCH_CONGESTION_SETTING, SwitchControl
from wire.layout import Layout

from .congestion_words import CongestionWords, word_of_data

__all__ = ["CongestionSettings"]


def _words(layout: Layout, name: str) -> range:
    """Those of a field."""
    field = layout[name]
    return range(field.offset_bits // 32, -(-field.end_bits // 32))


_CONTROLLED: Final[dict[int, int]] = {
    word: control.value
    for name, control in (
        ("victim_mask", SwitchControl.VICTIM_MASK),
        ("threshold", SwitchControl.THRESHOLD),
        ("marking_rate", SwitchControl.MARKING_RATE),
    )
    for word in _words(SWITCH_CONGESTION_SETTING, name)
}
"""The bit of Control_Map that has to be 1 where a word is written."""
_THRESHOLD_WORD: Final[int] = _words(SWITCH_CONGESTION_SETTING, "threshold")[0]
_THRESHOLD_BITS: Final = word_of_data(SWITCH_CONGESTION_SETTING.pack(threshold=15), _THRESHOLD_WORD)


class CongestionSettings(CongestionWords):
    """A switch's; its ports may have others, for which registers CONGESTION are.

    Attributes:
        blocks: of the buffer of a VL at one input.
        is_used: a threshold has been given: packets granted from then on may be marked.
    """

    def __init__(self, ports: int, blocks: int) -> None:
        writable = {
            "control_map": sum(SwitchControl),
            "victim_mask": (1 << ports + 1) - 2,
            "threshold": SWITCH_CONGESTION_SETTING["threshold"].max,
            "packet_size": SWITCH_CONGESTION_SETTING["packet_size"].max,
            "marking_rate": SWITCH_CONGESTION_SETTING["marking_rate"].max,
        }
        super().__init__(SWITCH_CONGESTION_SETTING, writable)
        self.blocks = blocks
        self.is_used = False

    def given(self, word: int, value: int) -> None:
        """A write of a word is given in the current cycle."""
        if word == _THRESHOLD_WORD and value & _THRESHOLD_BITS:
            self.is_used = True

    def write(self, word: int, value: int) -> None:
        """A word is written, visible in the current cycle, if Control_Map says so."""
        control = _CONTROLLED.get(word, 0)
        if self.record.control_map & control == control:
            super().write(word, value)
