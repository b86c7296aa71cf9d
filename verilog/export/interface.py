"""The ports of the exported switch: their names, widths and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rtl.management.identity import IdentitySignature
from wire.parameters import SwitchParameters
from wire.registers import ADDRESS_BITS, DATA_BITS
from wire.symbols import LANES
from wire.trace import WORDS, Kind

__all__ = ["NetlistPort", "TraceSlots", "interface"]

TraceSlots = Sequence[tuple[int, Kind]]
"""(port, kind of record) of each slot of the trace, port 0 being the switch itself; none if it is left out."""


@dataclass(frozen=True)
class NetlistPort:
    """A port.

    Attributes:
        name: in the exported Verilog.
        before: in the netlist that Amaranth makes of `rtl.switch.switch.Switch`.
        meaning: one sentence.
    """

    name: str
    before: str
    direction: Literal["input", "output"]
    width: int
    meaning: str


def interface(parameters: SwitchParameters, slots: TraceSlots) -> list[NetlistPort]:
    """The ports of a switch, those of the trace only if it has slots, in the order of the Verilog."""
    ports = [
        NetlistPort("clk", "clk", "input", 1, "clock; everything happens at its rising edge"),
        NetlistPort("rst", "rst", "input", 1, "reset, synchronous, active high"),
        NetlistPort("up", "up", "input", parameters.ports, "bit p - 1: the link of port p is up (trained)"),
        NetlistPort(
            "polling",
            "polling",
            "output",
            parameters.ports,
            "bit p - 1: port p wants its link up; 0 asleep or disabled",
        ),
    ]
    for member, what in (
        ("node_guid", "NodeGUID, and SystemImageGUID"),
        ("port_guid", "PortGUID of port 0"),
        ("description", "NodeDescription, UTF-8, byte 0 in the highest bits, filled up with zero bytes"),
    ):
        width = IdentitySignature().members[member].shape
        meaning = f"what management reads as {what}; constant"
        ports.append(NetlistPort(member, f"identity__{member}", "input", width, meaning))
    for number in range(1, parameters.ports + 1):
        for side, direction, what in (("rx", "input", "from"), ("tx", "output", "to")):
            rows = [
                ("data", 8 * LANES, f"row {what} the wires of port {number}: four symbols, lane 0 in bits 31:24"),
                ("k", LANES, "K bits of the row, lane 0 in bit 3; 1 marks a control symbol"),
                ("valid", 1, "there is a row in this cycle"),
            ]
            for member, width, meaning in rows:
                before = f"{side}__{number - 1}__{member}"
                ports.append(NetlistPort(f"{side}_{number}_{member}", before, _direction(direction), width, meaning))
    for member, direction, width, meaning in (
        ("addr", "input", ADDRESS_BITS, "register bus: word address, page in bits 23:16"),
        ("wdata", "input", DATA_BITS, "value to write"),
        ("write", "input", 1, "write in this cycle"),
        ("read", "input", 1, "read in this cycle"),
        ("rdata", "output", DATA_BITS, "value read, four cycles after `bus_read`"),
        ("rvalid", "output", 1, "`bus_rdata` answers a read"),
    ):
        ports.append(NetlistPort(f"bus_{member}", f"bus__{member}", _direction(direction), width, meaning))
    if slots:
        what = "bit i: slot i has a record in this cycle"
        ports.append(NetlistPort("trace_valid", "trace__valid", "output", len(slots), what))
        ports += (
            NetlistPort(
                f"trace_{slot}",
                f"trace__payload__{slot}",
                "output",
                32 * WORDS,
                f"record of slot {slot}: words a..e of 32 bits, a lowest",
            )
            for slot in range(len(slots))
        )
    return ports


def _direction(word: str) -> Literal["input", "output"]:
    return "input" if word == "input" else "output"
