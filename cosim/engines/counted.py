"""Which counters of ports have counted in a run of the watched golden model (`cosim.engines.decisions`).

What a counter shows may have been written to it, by the bus or by a Set. It has counted if a read, by either of them,
shows more than was written last, or than 0 after reset. Port 0 has no counters. Of those that each data VL has it is
enough that one VL's has: how many VLs there are is a node's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, NamedTuple, get_args

from cosim.engines import decisions
from model.link.counters import COUNTED_WIDTHS, Counted, Counters
from model.link.port import LinkPort
from model.link.transmit import LinkOutput
from wire.codes import VL15
from wire.parameters import FabricParameters, SwitchParameters
from wire.pma import PMA_VL_XMIT_WAIT
from wire.registers import DATA_BITS, Counter, Detail, PortRegister
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


class _ByVl(NamedTuple):
    """A counter of a VL.

    Attributes:
        name: what those of all data VLs are counted as; VL15's has its own.
        slot: the VL's.
    """

    name: str
    slot: int


_VL_XMIT_WAIT: Final = "VL_XMIT_WAIT"
_VL15_XMIT_WAIT: Final = "VL15_XMIT_WAIT"
_UPDATE_ERRORS: Final = PortRegister.FLOW_CTL_UPDATE_ERRORS.name
_BY_VL: Final = (_VL_XMIT_WAIT, _VL15_XMIT_WAIT, _UPDATE_ERRORS)

_Register = Counted | _ByVl

COUNTERS: Final = frozenset(
    PortCounter(node, name)
    for node in get_args(Kind)
    for name in (
        *(register.name for register in COUNTED_WIDTHS if node == "switch" or register not in _OF_SWITCHES),
        *_BY_VL,
    )
)
"""Those that can count."""


@dataclass
class _Watch:
    """Of a port's counters.

    Attributes:
        port: of which this is; held, so that no other parts get the identity of its.
        node: the place of its node in the fabric.
        written: what was written to them last.
        counted: names of those that have been read to have counted.
    """

    port: LinkPort
    node: int
    written: dict[_Register, int] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)

    def shows(self, register: _Register, value: int) -> None:
        """A read of one of them."""
        if value > self.written.get(register, 0):
            self.counted.add(register.name)


_watches: Final[dict[int, _Watch]] = {}
"""By the identity of counters and of outputs: of all nodes since `watch_anew`, also of those that a reset has ended."""


def watch_anew() -> None:
    """None has counted yet. To be called before the fabric is made."""
    _watch_counters()
    _watches.clear()


def counted(parameters: FabricParameters) -> frozenset[PortCounter]:
    """Those that have counted in a watched fabric with these parameters."""
    kinds: list[Kind] = [
        "switch" if isinstance(node, SwitchParameters) else "adapter" for node in parameters.nodes.values()
    ]
    return frozenset(PortCounter(kinds[watch.node], name) for watch in _watches.values() for name in watch.counted)


@cache
def _watch_counters() -> None:
    """From now on."""
    decisions.fabric_class()
    port: Any = sys.modules[f"{decisions.NAME}.link.port"].LinkPort
    port.__init__ = _noting(port.__init__)
    watched: Any = sys.modules[f"{decisions.NAME}.link.counters"].Counters
    watched.read, watched.read_whole = map(_read, (watched.read, watched.read_whole))
    watched.write = _written(watched.write, COUNTED_WIDTHS)
    watched.write_atomically = _written(watched.write_atomically, dict.fromkeys(COUNTED_WIDTHS, 2 * DATA_BITS))
    watched.read_flow_ctl_update_errors = _update_errors_read(watched.read_flow_ctl_update_errors)
    watched.write_flow_ctl_update_errors = _update_errors_written(watched.write_flow_ctl_update_errors)
    output: Any = sys.modules[f"{decisions.NAME}.link.transmit"].LinkOutput
    output.read_vl_xmit_wait = _vl_xmit_wait_read(output.read_vl_xmit_wait)
    output.write_vl_xmit_wait = _vl_xmit_wait_written(output.write_vl_xmit_wait)


def _noting(make: Callable[..., None]) -> Callable[..., None]:
    """What makes a port, which has its counters."""

    def made(port: LinkPort, *given: Any) -> None:
        make(port, *given)
        node, _port = port_of_source(port.status.source)
        _watches[id(port.status.counters)] = _watches[id(port.output)] = _Watch(port, node)

    return made


def _read(read: Callable[[Counters, int, Counted], int]) -> Callable[[Counters, int, Counted], int]:
    """A read that is looked at."""

    def looked_at(counters: Counters, cycle: int, register: Counted) -> int:
        shown = read(counters, cycle, register)
        _watches[id(counters)].shows(register, shown)
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


def _update_errors_read(read: Callable[[Counters], int]) -> Callable[[Counters], int]:
    """A read of all VLs' that is looked at."""

    def looked_at(counters: Counters) -> int:
        shown = read(counters)
        for vl, errors in enumerate(_by_vl(shown)):
            _watches[id(counters)].shows(_ByVl(_UPDATE_ERRORS, vl), errors)
        return shown

    return looked_at


def _update_errors_written(write: Callable[[Counters, int, int], None]) -> Callable[[Counters, int, int], None]:
    """A write for the VLs of a mask that is looked at."""

    def looked_at(counters: Counters, value: int, chosen: int) -> None:
        write(counters, value, chosen)
        for vl, errors in enumerate(_by_vl(value)):
            if chosen >> vl & 1:
                _watches[id(counters)].written[_ByVl(_UPDATE_ERRORS, vl)] = errors

    return looked_at


def _by_vl(errors: int) -> list[int]:
    """What FLOW_CTL_UPDATE_ERRORS has of each VL."""
    return [errors >> DATA_BITS - 2 - 2 * vl & 3 for vl in range(VL15)]


def _vl_xmit_wait(output: LinkOutput, slot: int) -> tuple[_Watch, _ByVl]:
    """The counter of a slot, and the watch of its port's."""
    watch = _watches[id(output)]
    is_data = slot < watch.port.status.vls
    return watch, _ByVl(_VL_XMIT_WAIT if is_data else _VL15_XMIT_WAIT, slot)


def _vl_xmit_wait_read(read: Callable[[LinkOutput, int], int]) -> Callable[[LinkOutput, int], int]:
    """A read of a slot's that is looked at."""

    def looked_at(output: LinkOutput, slot: int) -> int:
        shown = read(output, slot)
        watch, register = _vl_xmit_wait(output, slot)
        watch.shows(register, shown)
        return shown

    return looked_at


def _vl_xmit_wait_written(write: Callable[[LinkOutput, int, int], None]) -> Callable[[LinkOutput, int, int], None]:
    """A write of a slot's that is looked at; a value that is too large changes nothing."""

    def looked_at(output: LinkOutput, slot: int, value: int) -> None:
        write(output, slot, value)
        if value <= PMA_VL_XMIT_WAIT[0].max:
            watch, register = _vl_xmit_wait(output, slot)
            watch.written[register] = value

    return looked_at
