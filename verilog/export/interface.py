"""The ports of the exported switch: their names, widths and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        direction: `input` or `output`.
        width: bits.
        meaning: one sentence.
        before: its name in the netlist that Amaranth makes of `rtl.switch.switch.Switch`.
    """

    name: str
    direction: str
    width: int
    meaning: str
    before: str


def interface(parameters: SwitchParameters, slots: TraceSlots) -> list[NetlistPort]:
    """The ports of a switch, those of the trace only if it has slots, in the order of the Verilog."""
    ports: list[NetlistPort] = []

    def add(name: str, direction: str, width: int, meaning: str, before: str = "") -> None:
        ports.append(NetlistPort(name, direction, width, meaning, before or name))

    add("clk", "input", 1, "clock; everything happens at its rising edge")
    add("rst", "input", 1, "reset, synchronous, active high")
    add("resetting", "output", 1, "the switch is being reset: by `rst`, and after it until its memories are restored")
    add("up", "input", parameters.ports, "bit p - 1: the link of port p is up (trained)")
    add("narrow", "input", parameters.ports, "bit p - 1: the link of port p came up as 1X; constant while it is up")
    for lanes in ("1x", "4x"):
        says = (
            f"bit p - 1: the link of port p may come up as {lanes.upper()}; as neither while it is asleep or disabled"
        )
        add(f"offers_{lanes}", "output", parameters.ports, says)
    for member, what in (
        ("node_guid", "NodeGUID, and SystemImageGUID"),
        ("port_guid", "PortGUID of port 0"),
        ("description", "NodeDescription, UTF-8, byte 0 in the highest bits, filled up with zero bytes"),
    ):
        width = IdentitySignature(is_switch=True).members[member].shape
        add(member, "input", width, f"what management reads as {what}; constant", f"identity__{member}")
    for number in range(1, parameters.ports + 1):
        for side, direction, what in (("rx", "input", "from"), ("tx", "output", "to")):
            for member, width, meaning in (
                ("data", 8 * LANES, f"row {what} the wires of port {number}: four symbols, lane 0 in bits 31:24"),
                ("k", LANES, "K bits of the row, lane 0 in bit 3; 1 marks a control symbol"),
                ("valid", 1, "there is a row in this cycle"),
            ):
                add(f"{side}_{number}_{member}", direction, width, meaning, f"{side}__{number - 1}__{member}")
    for member, direction, width, meaning in (
        ("addr", "input", ADDRESS_BITS, "register bus: word address, page in bits 23:16"),
        ("wdata", "input", DATA_BITS, "value to write"),
        ("write", "input", 1, "write in this cycle"),
        ("read", "input", 1, "read in this cycle"),
        ("rdata", "output", DATA_BITS, "value read, four cycles after `bus_read`"),
        ("rvalid", "output", 1, "`bus_rdata` answers a read"),
    ):
        add(f"bus_{member}", direction, width, meaning, f"bus__{member}")
    if slots:
        add("trace_valid", "output", len(slots), "bit i: slot i has a record in this cycle", "trace__valid")
    for slot in range(len(slots)):
        meaning = f"record of slot {slot}: words a..e of 32 bits, a lowest"
        add(f"trace_{slot}", "output", 32 * WORDS, meaning, f"trace__payload__{slot}")
    return ports
