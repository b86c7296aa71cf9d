"""`[congestion]`: congestion control of all switches and hosts; docs/scenario.md describes every key."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, field_validator, model_validator

from cosim.scenario.tables import Table
from verbs.congestion_control.settings import TABLE_ENTRIES, AdapterSettings, SlEntry, TableEntry
from wire.codes import SERVICE_LEVELS
from wire.congestion_control import CCT_ENTRY, SWITCH_CONGESTION_SETTING, SwitchControl

__all__ = ["Congestion"]

_SHIFTS: Final = range(CCT_ENTRY["shift"].max + 1)
_MOST: Final = CCT_ENTRY["multiplier"].max
_FINEST: Final = 1 << _SHIFTS[-1]
_STEPS: Final = tuple(place / _FINEST for place in range(TABLE_ENTRIES))

_Byte = Annotated[int, Field(ge=0, le=0xFF)]
_Word = Annotated[int, Field(ge=0, le=0xFFFF)]


class Congestion(Table):
    """What switches mark, and how hosts that are told of it slow down."""

    switches: tuple[str, ...] | None = None
    """Those that mark; all if not given."""
    threshold: int = Field(default=8, ge=0, le=15)
    """From 15, when a port is soon congested, to 1; 0: never."""
    packet_size: _Byte = 0
    """Blocks of the smallest packet that is marked."""
    marking_rate: _Word = 0
    """Packets between two that are marked."""
    victims: Literal["hosts", "none"] = "hosts"
    """Ports that mark though they wait for credits: those to hosts, behind which no port can."""
    flows: Literal["queue_pairs", "sls"] = "queue_pairs"
    """What slows down; a stream of packets without a transport is a queue pair's."""
    ccti_timer: _Word = 32
    """x 1.024 us, after which a flow is an entry of the table faster; 0: never."""
    ccti_increase: _Byte = 2
    """Entries that it is slower by with each BECN."""
    ccti_min: int = Field(default=0, ge=0, lt=TABLE_ENTRIES)
    trigger_threshold: int = Field(default=0, ge=0, lt=TABLE_ENTRIES)
    table: tuple[float, ...] = _STEPS
    """Delays behind a packet, in multiples of its time on the link."""

    @field_validator("table")
    @classmethod
    def _entries(cls, table: tuple[float, ...]) -> tuple[float, ...]:
        if not 1 <= len(table) <= TABLE_ENTRIES:
            raise ValueError(f"{len(table)} entries: expected 1..{TABLE_ENTRIES}")
        for delay in table:
            if not 0 <= delay <= _MOST or delay * _FINEST % 1:
                raise ValueError(f"{delay:g}: expected 0..{_MOST}, in steps of 1/{_FINEST}")
            _entry(delay)
        return table

    @model_validator(mode="after")
    def _in_table(self) -> Congestion:
        for key in ("ccti_min", "trigger_threshold"):
            if getattr(self, key) >= len(self.table):
                raise ValueError(f"{key} {getattr(self, key)}: expected at most {len(self.table) - 1}, the last entry")
        return self

    def switch_setting(self, victims: int) -> bytes:
        """SwitchCongestionSetting, of a switch that has a bit for each port that marks as a victim too."""
        return SWITCH_CONGESTION_SETTING.pack(
            control_map=SwitchControl.VICTIM_MASK | SwitchControl.THRESHOLD | SwitchControl.MARKING_RATE,
            victim_mask=victims if self.victims == "hosts" else 0,
            threshold=self.threshold,
            packet_size=self.packet_size,
            marking_rate=self.marking_rate,
        )

    @property
    def adapter_settings(self) -> AdapterSettings:
        """What adapters go by."""
        entry = SlEntry(self.ccti_timer, self.ccti_increase, self.trigger_threshold, self.ccti_min)
        table = [_entry(delay) for delay in self.table]
        return AdapterSettings(
            by_sl=self.flows == "sls",
            entries=(entry,) * SERVICE_LEVELS,
            ccti_limit=len(table) - 1,
            table=(*table, *[TableEntry()] * (TABLE_ENTRIES - len(table))),
        )


def _entry(delay: float) -> TableEntry:
    """The entry for a delay, in multiples of a packet's time.

    Raises:
        ValueError: none is as large and as fine.
    """
    for shift in _SHIFTS:
        multiplier = delay * (1 << shift)
        if multiplier % 1 == 0 and multiplier <= _MOST:
            return TableEntry(shift, int(multiplier))
    raise ValueError(f"{delay:g}: expected at most {_MOST} / 2^n, in steps of 1 / 2^n")
