"""Which counters of ports have counted in a run of the watched golden model (`cosim.engines.decisions`).

What a counter shows may have been written to it, by the bus or by a Set. It has counted if a read, by either of them,
shows more than was written last, or than 0 after reset. Port 0 has no counters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, NamedTuple, get_args

from cosim.engines import decisions
from model.link.counters import COUNTED_WIDTHS, Counted, Counters
from model.link.port_status import PortStatus
from wire.parameters import FabricParameters, SwitchParameters
from wire.registers import DATA_BITS, Counter, Detail
from wire.trace import port_of_source

__all__ = ["COUNTERS", "PortCounter", "counted", "watch_anew"]

Kind = Literal["switch", "adapter"]


class PortCounter(NamedTuple):
    """A counter of the ports of a kind of node.

    Attributes:
        node: the kind.
        name: the counter's, as in `wire.registers`.
    """

    node: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.node} {self.name}"


_OF_SWITCHES: Final = frozenset(
    (
        *(Counter.RCV_SWITCH_RELAY_ERRORS, Detail.DLID_MAPPING_ERRORS, Detail.VL_MAPPING_ERRORS, Detail.LOOPING_ERRORS),
        *(Counter.XMIT_CONSTRAINT_ERRORS, Counter.RCV_CONSTRAINT_ERRORS, Detail.P_KEY_VIOLATIONS),
        *(Detail.LIFE_TIME_DISCARDS, Detail.HOQ_LIFE_DISCARDS),
    )
)
"""What adapters never count: they relay nothing, and have no P_Key checks and no time limits on the way out."""

COUNTERS: Final = frozenset(
    PortCounter(node, register.name)
    for node in get_args(Kind)
    for register in COUNTED_WIDTHS
    if node == "switch" or register not in _OF_SWITCHES
)
"""Those that can count."""


@dataclass
class _Watch:
    """Of a port's counters.

    Attributes:
        counters: of which this is; held, so that no others get their identity.
        node: the place of theirs in the fabric.
        written: what was written to them last.
        counted: those that have been read to have counted.
    """

    counters: Counters
    node: int
    written: dict[Counted, int] = field(default_factory=dict)
    counted: set[Counted] = field(default_factory=set)


_watches: Final[dict[int, _Watch]] = {}
"""By the identity of the counters: of all nodes since `watch_anew`, also of those that a reset has ended."""


def watch_anew() -> None:
    """None has counted yet. To be called before the fabric is made."""
    _watch_counters()
    _watches.clear()


def counted(parameters: FabricParameters) -> frozenset[PortCounter]:
    """Those that have counted in a watched fabric with these parameters."""
    kinds: list[Kind] = [
        "switch" if isinstance(node, SwitchParameters) else "adapter" for node in parameters.nodes.values()
    ]
    return frozenset(
        PortCounter(kinds[watch.node], register.name) for watch in _watches.values() for register in watch.counted
    )


@cache
def _watch_counters() -> None:
    """From now on."""
    decisions.fabric_class()
    status: Any = sys.modules[f"{decisions.NAME}.link.port_status"].PortStatus
    status.__init__ = _noting(status.__init__)
    watched: Any = sys.modules[f"{decisions.NAME}.link.counters"].Counters
    watched.read, watched.read_whole = map(_read, (watched.read, watched.read_whole))
    watched.write = _written(watched.write, COUNTED_WIDTHS)
    watched.write_atomically = _written(watched.write_atomically, dict.fromkeys(COUNTED_WIDTHS, 2 * DATA_BITS))


def _noting(make: Callable[..., None]) -> Callable[..., None]:
    """What makes a port's status, which has its counters."""

    def made(status: PortStatus, *given: Any) -> None:
        make(status, *given)
        node, _port = port_of_source(status.source)
        _watches[id(status.counters)] = _Watch(status.counters, node)

    return made


def _read(read: Callable[[Counters, int, Counted], int]) -> Callable[[Counters, int, Counted], int]:
    """A read that is looked at."""

    def looked_at(counters: Counters, cycle: int, register: Counted) -> int:
        shown = read(counters, cycle, register)
        watch = _watches[id(counters)]
        if shown > watch.written.get(register, 0):
            watch.counted.add(register)
        return shown

    return looked_at


def _written(
    write: Callable[[Counters, int, Counted, int], None], bits: Mapping[Counted, int]
) -> Callable[[Counters, int, Counted, int], None]:
    """A write that is looked at; a value of more BITS changes nothing."""

    def looked_at(counters: Counters, cycle: int, register: Counted, value: int) -> None:
        write(counters, cycle, register, value)
        if not value >> bits[register]:
            _watches[id(counters)].written[register] = value

    return looked_at
