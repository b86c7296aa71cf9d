"""Congestion control as OpenSM's options file has it: what switches and adapters are to hold (IBTA vol 1, A10.4.3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from sm.options_file import UNSET, OptionsError, number, options
from wire.codes import SERVICE_LEVELS
from wire.congestion_control import (
    CA_CONGESTION_ENTRY,
    CA_CONGESTION_SETTING,
    CCT_ENTRY,
    CONGESTION_CONTROL_TABLE,
    SWITCH_CONGESTION_SETTING,
)
from wire.layout import Layout, Record

__all__ = ["CongestionOptions", "parse_congestion_options"]

_BLOCK: Final = 64
"""Entries of a block of CongestionControlTable."""
_MOST_DELAYS: Final = 128
"""Entries of `cc_cct` that OpenSM takes."""
_MASK: Final = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,64})")

_SWITCH: Final = {
    "control_map": "control_map",
    "victim_mask": "victim_mask",
    "credit_mask": "credit_mask",
    "threshold": "threshold",
    "packet_size": "packet_size",
    "credit_starvation_threshold": "cs_threshold",
    "credit_starvation_return_delay": "cs_return_delay",
    "marking_rate": "marking_rate",
}
"""Fields of SwitchCongestionSetting by the options `cc_sw_cong_setting_...`."""
_ADAPTER: Final = ("port_control", "control_map")
"""Fields of CACongestionSetting with the names of the options `cc_ca_cong_setting_...`."""
_ENTRY: Final = ("ccti_timer", "ccti_increase", "trigger_threshold", "ccti_min")
"""Fields of its entries, likewise."""


@dataclass(frozen=True)
class CongestionOptions:
    """What the ports of a subnet are to hold."""

    cc_key: int
    """Of every request; none is set by it."""
    switch: Record
    """SwitchCongestionSetting of every switch."""
    adapter: Record
    """CACongestionSetting of every port of a channel adapter."""
    table: tuple[Record, ...]
    """Blocks of CongestionControlTable of every such port, from 0 on."""


def parse_congestion_options(text: str, name: str) -> CongestionOptions | None:
    """The options `congestion_control`, `cc_key`, `cc_sw_cong_setting_...`, `cc_ca_cong_setting_...` and `cc_cct`.

    What a file does not say is 0, as OpenSM has it; None unless `congestion_control` is TRUE.

    Raises:
        OptionsError: a value is not allowed.
    """
    reader = _Reader()
    for line, option, value in options(text):
        try:
            reader.take(option, value)
        except ValueError as error:
            raise OptionsError(f"{name}:{line}: {option}: {error}") from None
    return reader.found if reader.is_wanted else None


class _Reader:
    """Options taken one after the other."""

    def __init__(self) -> None:
        self.is_wanted = False
        self._cc_key = 0
        self._switch: dict[str, int] = {}
        self._adapter: dict[str, int] = {}
        self._entries = [CA_CONGESTION_ENTRY.record() for _sl in range(SERVICE_LEVELS)]
        self._delays: list[int] = []
        self._takes: dict[str, Callable[[str], None]] = {
            "congestion_control": self._take_wanted,
            "cc_key": self._take_key,
            "cc_cct": self._take_delays,
        }
        for option, field in _SWITCH.items():
            self._takes[f"cc_sw_cong_setting_{option}"] = partial(self._take_switch, field)
        for field in _ADAPTER:
            self._takes[f"cc_ca_cong_setting_{field}"] = partial(self._take_adapter, field)
        for field in _ENTRY:
            self._takes[f"cc_ca_cong_setting_{field}"] = partial(self._take_entry, field)

    @property
    def found(self) -> CongestionOptions:
        """All that was taken."""
        entries = {f"entry{sl}": CA_CONGESTION_ENTRY.to_int(entry) for sl, entry in enumerate(self._entries)}
        return CongestionOptions(
            cc_key=self._cc_key,
            switch=SWITCH_CONGESTION_SETTING.record(**self._switch),
            adapter=CA_CONGESTION_SETTING.record(**self._adapter, **entries),
            table=_blocks(self._delays),
        )

    def take(self, option: str, value: str) -> None:
        """Takes an option; others are OpenSM's own affair, and passed over.

        Raises:
            ValueError: the value is not allowed.
        """
        if option in self._takes:
            self._takes[option](value)

    def _take_wanted(self, value: str) -> None:
        if value not in ("TRUE", "FALSE"):
            raise ValueError(f"{value}: expected TRUE or FALSE")
        self.is_wanted = value == "TRUE"

    def _take_key(self, value: str) -> None:
        self._cc_key = number(value, 0, (1 << 64) - 1)

    def _take_delays(self, value: str) -> None:
        delays = [] if value == UNSET else [_delay(one.strip()) for one in value.split(",")]
        if len(delays) > _MOST_DELAYS:
            raise ValueError(f"{len(delays)} entries, expected at most {_MOST_DELAYS}")
        self._delays = delays

    def _take_switch(self, field: str, value: str) -> None:
        if field.endswith("_mask"):
            self._switch[field] = _mask(value)
        elif field == "cs_return_delay":
            self._switch[field] = _delay(value)
        else:
            self._switch[field] = _fitting(SWITCH_CONGESTION_SETTING, field, value)

    def _take_adapter(self, field: str, value: str) -> None:
        self._adapter[field] = _fitting(CA_CONGESTION_SETTING, field, value)

    def _take_entry(self, field: str, value: str) -> None:
        match value.split():
            case [sl_text, text]:
                sl = number(sl_text, 0, SERVICE_LEVELS - 1)
                self._entries[sl] = self._entries[sl].replace(**{field: _fitting(CA_CONGESTION_ENTRY, field, text)})
            case _:
                raise ValueError(f"{value}: expected an SL and a value")


def _blocks(delays: list[int]) -> tuple[Record, ...]:
    """The table in blocks. Without a second entry it is 0, as OpenSM has it, and CCTI_Limit too."""
    limit = max(0, len(delays) - 1)
    return tuple(
        CONGESTION_CONTROL_TABLE.record(
            ccti_limit=limit,
            **{f"entry{index}": delay for index, delay in enumerate(delays[first : first + _BLOCK]) if limit},
        )
        for first in range(0, limit + 1, _BLOCK)
    )


def _fitting(layout: Layout, field: str, text: str) -> int:
    return number(text, 0, (1 << layout[field].width) - 1)


def _mask(text: str) -> int:
    match = _MASK.fullmatch(text)
    if match is None:
        raise ValueError(f"{text}: expected up to 64 hexadecimal digits")
    return int(match[1], 16)


def _delay(text: str) -> int:
    """An entry of the table, `SHIFT:MULTIPLIER`."""
    shift, colon, multiplier = text.partition(":")
    if not colon:
        raise ValueError(f"{text}: expected SHIFT:MULTIPLIER")
    return CCT_ENTRY.to_int(
        shift=_fitting(CCT_ENTRY, "shift", shift), multiplier=_fitting(CCT_ENTRY, "multiplier", multiplier)
    )
