"""Which files decide what a record of each kind holds: where a reader begins who mends a difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from wire.trace import Kind

__all__ = ["DECIDED_BY"]

_RECEIVED: Final = ("link/receive.py", "link/packet_check.py")
_MATCHED: Final = ("crossing/matcher.py", "crossing/eligibility.py", "crossing/reader.py", "link/transmit.py")
_MODEL_MATCHED: Final = ("crossing/matcher.py", "crossing/queues.py", "link/eligibility.py", "link/transmit.py")
_AGENT: Final = ("management/agent.py", "management/agent_port.py")


def _files(rtl: tuple[str, ...], model: tuple[str, ...]) -> tuple[str, ...]:
    return (*(f"rtl/{file}" for file in rtl), *(f"model/{file}" for file in model))


DECIDED_BY: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.RX_DATA: _files((*_RECEIVED, "switch/route.py"), (*_RECEIVED, "link/acceptance.py", "switch.py")),
    Kind.RX_FCP: _files(("link/receive.py", "link/flow_control.py"), ("link/receive.py", "link/flow_control.py")),
    Kind.STATE: _files(("link/port_state.py",), ("link/port_state.py",)),
    Kind.SCRAP: _files(("crossing/reader.py", "crossing/crossbar.py"), ("link/transmit.py", "management/port_zero.py")),
    Kind.TX_DATA: _files(_MATCHED, _MODEL_MATCHED),
    Kind.TX_FCP: _files(("link/flow_control.py", "link/transmit.py"), ("link/flow_control.py", "link/transmit.py")),
    Kind.TX_DISCARD: _files(
        (*_MATCHED[:2], "crossing/time_limits.py"), (*_MODEL_MATCHED[:3], "link/time_limits.py", "link/life_time.py")
    ),
    Kind.SEND: _files(("adapter/adapter.py", *_AGENT), ("crossing/send_arbiter.py", "management/port_zero.py")),
    Kind.DELIVER: _files(("adapter/adapter.py", *_AGENT), ("adapter.py", "management/port_zero.py")),
    Kind.INJECT: _files(("fabric/link.py",), ("link/link.py",)),
    Kind.BUS_READ: _files(
        (
            *(f"registers/{name}.py" for name in ("bus", "port_access", "port_registers", "counters")),
            "switch/tables.py",
        ),
        ("management/register_bus.py", "link/counters.py"),
    ),
    Kind.ROWS: _files(("link/transmit.py", "fabric/link.py"), ("link/row_sums.py", "link/transmit.py")),
}
"""Of what is written into a trace of RTL and of the model; the records of `play` are not among them."""
