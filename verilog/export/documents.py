"""What goes with an exported switch in words: the list of its ports, and the comment at the head of its Verilog."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from rtl.switch.switch import restoration_cycles
from verilog.export.interface import TraceSlots, interface
from verilog.export.switch_name import PARTNER, TEST_BENCH, TOP
from wire.codes import (
    LID_MULTICAST_MIN,
    LINK_WIDTHS,
    LinkWidth,
    PortPhysicalState,
    PortState,
    mtu_code,
    operational_vls,
)
from wire.flow_control import CREDIT_WINDOW
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.packet import BLOCK_BYTES
from wire.parameters import SwitchParameters, vl_arbitration_entries
from wire.registers import (
    COUNTER_WIDTHS,
    DATA_BITS,
    DETAIL_BITS,
    HIGH_OF_COUNTER,
    LEASE_SECOND_AT_RESET,
    LFT_PAGE,
    MFT_PAGE,
    PORT_RESET_VALUES,
    SL_TO_VL_PAGE,
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    Counter,
    Detail,
    NodeRegister,
    PacketCounter,
    PortRegister,
)
from wire.symbols import Control

__all__ = ["head_comment", "options", "ports_document"]

_NODE_REGISTERS = {
    NodeRegister.NUM_PORTS: "number of ports, read only",
    NodeRegister.LINEAR_FDB_TOP: "the highest LID that has a route; at reset the size of the table less one",
    NodeRegister.MULTICAST_FDB_TOP: "the highest LID in use of the multicast forwarding table; 0, at reset: all are",
    NodeRegister.DEFAULT_MULTICAST_PRIMARY: "port for multicast packets that this table has not; 255, at reset: none",
    NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY: "likewise, for those that came by that port",
    NodeRegister.LEASE_SECOND: f"cycles of one second of M_KeyLeasePeriod; at reset {LEASE_SECOND_AT_RESET:,}",
}
_PORT_REGISTERS = {
    PortRegister.STATE: "read: state of the port; write: "
    + ", ".join(f"{state:d} {state.name.title()}" for state in (PortState.DOWN, PortState.ARMED, PortState.ACTIVE)),
    PortRegister.WIDTH: f"{LinkWidth.X1:d} is 1X, {LinkWidth.X4:d} is 4X",
    PortRegister.NEIGHBOR_MTU: "MTU code 1..5 for 256..4096 bytes; larger packets are discarded",
    PortRegister.OPERATIONAL_VLS: "code 1..5 for 1, 2, 4, 8, 15 data VLs",
    PortRegister.FCP_THRESHOLD: "blocks of new credit beyond which a flow control packet goes before data",
    PortRegister.FCP_PERIOD: "cycles between two periodic flow control packets of a VL",
    PortRegister.FC_WATCHDOG: "cycles without a good flow control packet that count as an error",
    PortRegister.LINK_DOWN_TIMEOUT: "cycles that an Active port waits for its link to come back before it goes Down",
    PortRegister.TICK: "XMIT_WAIT counts in ticks of this + 1 cycles",
    PortRegister.LOCAL_PHY_ERRORS: "physical errors beyond which LOCAL_LINK_INTEGRITY_ERRORS moves",
    PortRegister.OVERRUN_ERRORS: "periods with overruns at which EXCESSIVE_BUFFER_OVERRUN_ERRORS moves",
    PortRegister.PHYSICAL_STATE: "read: PortPhysicalState; write: "
    + ", ".join(
        f"{state:d} {state.name.title()}"
        for state in (PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED)
    )
    + "; only a port in Polling has its bits of `offers_1x` and `offers_4x` set",
    PortRegister.EXTENDED_LOW: "lower half of the counter of which the upper was read last, or will be written next",
    PortRegister.LINK_WIDTH_ENABLED: "widths as which the link may come up: 1 is 1X, 2 is 4X, 3 or 255 both",
    PortRegister.LINK_DOWN_DEFAULT: "PHYSICAL_STATE when the link was lost: 1 Sleep, 2 Polling",
    PortRegister.VL_HIGH_LIMIT: "x 4096 bytes of the high list of VL arbitration for each low packet; 255: no limit",
}


def options(parameters: SwitchParameters, slots: TraceSlots) -> str:
    """The options of `ironband export` for these parameters."""
    given = [f"--{field.name.replace('_', '-')} {getattr(parameters, field.name)}" for field in fields(parameters)]
    return " ".join([*given, "--name", TOP, *(["--trace"] if slots else [])])


def head_comment(parameters: SwitchParameters, slots: TraceSlots, version: str) -> str:
    """Comment lines for the beginning of the Verilog."""
    buffers = f"{parameters.buffer_blocks} blocks of 64 bytes for each data VL of each port"
    lines = [
        f"{TOP}: an InfiniBand switch of {parameters.ports} ports.",
        "",
        f"Written by Ironband {version}: ironband export {options(parameters, slots)}",
        "SPDX-License-Identifier: Apache-2.0",
        "",
        f"Data VLs {parameters.vls}, MTU {parameters.mtu} bytes, {buffers},",
        f"queueing {parameters.queueing}, {parameters.forwarding}, forwarding table for {parameters.lft_size} LIDs.",
        "",
        "clk, rst         one clock, rising edge; reset synchronous, active high, at any time",
        "resetting        it is being reset: by rst, and then until its memories are restored",
        "up, narrow       bit p - 1: the link of port p is up; it came up as 1X",
        "offers_1x, offers_4x",
        "                 bit p - 1: the widths as which it may come up; none: the port is asleep or disabled",
        "node_guid, port_guid, description",
        "                 what management calls the switch: constants",
        "rx_<p>_*         rows of four symbols from the wires of port p: data, k, valid",
        "tx_<p>_*         rows to the wires of port p",
        "bus_*            register bus: port states, forwarding table, SL to VL, counters",
        *(["trace_*          records of what happened, for debugging"] if slots else []),
        "",
        f"{TOP}_ports.md tells each port, the registers, and how to bring the switch up.",
        "Names that begin with an underscore are parts of expressions. Names such as `header_dlid` that are only",
        "assigned are fields of `header`, to be seen in waves. Instances count from 0: port_0 is port 1.",
    ]
    return "\n".join(f"// {line}".rstrip() for line in lines) + "\n"


def ports_document(parameters: SwitchParameters, slots: TraceSlots, version: str) -> str:
    """The list of ports, in Markdown."""
    sections = [_introduction(parameters, slots, version), _ports(parameters, slots), _rows(), _bring_up(parameters)]
    sections.append(_registers(parameters))
    if slots:
        sections.append(_trace(slots))
    return "\n".join(sections)


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell) for cell in line)} |\n" for line in lines)


def _introduction(parameters: SwitchParameters, slots: TraceSlots, version: str) -> str:
    files = _table(
        ("file", ""),
        [
            (f"{TOP}.v", "the switch, Verilog-2005, all modules"),
            (f"{TEST_BENCH}.v", "self-checking test bench"),
            (f"{PARTNER}.v", "the other end of a link, used by the test bench"),
            (f"{TOP}.vlt", "Verilator's warnings that are waived, and why"),
            (f"{TOP}.core", "for FuseSoC: targets default, sim, lint, synth"),
            ("Makefile", "make sim, make waves, make lint, make verilate"),
            ("LICENSE", "Apache-2.0"),
        ],
    )
    return f"""\
# {TOP}

An InfiniBand switch of {parameters.ports} ports, written by Ironband {version}:

    ironband export {options(parameters, slots)}

{files}
## Try it

With Icarus Verilog and nothing else, `make sim` or

    iverilog -g2005 -Wall -s {TEST_BENCH} -o {TEST_BENCH}.vvp {TEST_BENCH}.v {PARTNER}.v {TOP}.v
    vvp -n {TEST_BENCH}.vvp

brings the switch up, sends packets from and to every port, checks each, prints one line a packet, and ends with a
line that begins with PASS or FAIL (exit status 0 or 1). `vvp -n {TEST_BENCH}.vvp +quiet` prints the last line only,
`vvp -n {TEST_BENCH}.vvp -fst +waves={TEST_BENCH}.fst` records waves.
"""


def _ports(parameters: SwitchParameters, slots: TraceSlots) -> str:
    rows = [(f"`{port.name}`", port.direction, port.width, port.meaning) for port in interface(parameters, slots)]
    return f"""\
## Ports

{_table(("port", "direction", "width", "meaning"), rows)}
One clock: a cycle is one symbol time of a 4X link (4 ns at SDR, 2 ns at DDR, 1 ns at QDR). `rst` is sampled at the
rising edge of `clk`: hold it high for one cycle or more after power-up, before the first packet. Memories (forwarding
and SL-to-VL tables, attributes, lists of free buffer) have their contents from power-up: `initial` blocks, which FPGA
tools put into the bitstream. Later `rst` may come at any time and be as short as a cycle. The switch makes it longer
until its memories are restored, a word a cycle, for {restoration_cycles(parameters):,} cycles, and says so by
`resetting`. Meanwhile no width is offered, and packets and bus accesses are not taken. In the first cycle without it
the switch is as at power-up. A single link is taken down by `up` or by its register STATE.
"""


def _rows() -> str:
    symbols = _table(
        ("symbol", "value", "stands"),
        [
            ("SDP", f"{Control.SDP:#04x}", "on lane 0, begins a data packet"),
            ("SLP", f"{Control.SLP:#04x}", "on lane 0, begins a link packet (flow control)"),
            ("EGP", f"{Control.EGP:#04x}", "on lane 3, ends a packet"),
            ("EBP", f"{Control.EBP:#04x}", "on lane 3, ends a packet that is marked bad"),
        ],
    )
    return f"""\
## Rows

The switch has the link layer; 8b/10b, lane alignment and training are the physical layer's, which sits between
these ports and the wires. A row is four symbols as they come from the 8b/10b decoder, one of each lane: lane 0 in
`data[31:24]` and `k[3]`, lane 3 in `data[7:0]` and `k[0]`. K symbols:

{symbols}
Row 0 of a packet holds SDP and bytes 0..2, row r bytes 4r - 1..4r + 2, the last row the last byte, VCRC and EGP.
Rows between packets are idle data and passed over. A 4X port has a row in every cycle; a 1X port (register WIDTH)
has one in every fourth, the four symbols that its lane brought, and drives `valid` in those cycles only.
"""


def _bring_up(parameters: SwitchParameters) -> str:
    armed, active = int(PortState.ARMED), int(PortState.ACTIVE)
    announced = "" if parameters.buffer_blocks <= CREDIT_WINDOW else f" (and announces {CREDIT_WINDOW} at most)"
    return f"""\
## Bring it up

A Subnet Manager does this with SMPs, which the switch's own management agent answers. By hand, over the register bus:

1. Reset, then `up` to 1 for links that are trained. Their ports go from Down to Initialize and send flow control
   packets with Op 1 (initialise) for every VL. Nothing but management packets (VL15) is received.
2. Write the forwarding table, for every LID its output port: `0x{LFT_PAGE:02x}0000 + LID`. Packets for a LID without
   an entry ({LFT_NO_ROUTE}) are refused and counted.
3. Write {armed} (Armed) to STATE of each port. It now sends flow control packets with Op 0 (normal), and so must the
   other end of the link: a packet with Op 1 takes an Armed or Active port down.
4. When such packets have crossed in both directions, write {active} (Active). Data packets flow as far as the credits
   reach that the other end announces.

`{TEST_BENCH}.v` does this, `{PARTNER}.v` is the other end. Between SLP and EGP a flow control packet
holds Op (4 bits), FCTBS (12), VL (4), FCCL (12) and LPCRC (16). FCTBS is the number of blocks of 64 bytes sent on the
VL, FCCL the number up to which the other end may send, both modulo 4096 and counted from Initialize on. A packet of
PktLen words takes ceil((4 PktLen + 2) / 64) blocks. This switch has room for {parameters.buffer_blocks} of them
for each data VL of each port{announced}.
"""


def _registers(parameters: SwitchParameters) -> str:
    last = parameters.ports
    node = [(f"`{register:#08x}`", register.name, meaning) for register, meaning in _NODE_REGISTERS.items()]
    first = PORT_RESET_VALUES | {
        PortRegister.STATE: int(PortState.DOWN),
        PortRegister.WIDTH: int(LinkWidth.X4),
        PortRegister.NEIGHBOR_MTU: int(mtu_code(parameters.mtu)),
        PortRegister.OPERATIONAL_VLS: operational_vls(parameters.vls),
        PortRegister.FCP_THRESHOLD: parameters.mtu // BLOCK_BYTES,
        PortRegister.PHYSICAL_STATE: int(PortPhysicalState.POLLING),
        PortRegister.EXTENDED_LOW: 0,
        PortRegister.LINK_WIDTH_ENABLED: LINK_WIDTHS,
        PortRegister.LINK_DOWN_DEFAULT: int(PortPhysicalState.POLLING),
        PortRegister.VL_HIGH_LIMIT: 0,
    }
    entries = vl_arbitration_entries(parameters.vls)
    port = [
        (f"`0x{register:02x}`", register.name, first[register], meaning)
        for register, meaning in _PORT_REGISTERS.items()
        if entries or register != PortRegister.VL_HIGH_LIMIT
    ]
    counters = [(f"`0x{counter:02x}`", counter.name, COUNTER_WIDTHS[counter]) for counter in Counter]
    counters += [(f"`0x{counter:02x}`", counter.name, DATA_BITS) for counter in PacketCounter]
    details = [(f"`0x{detail:02x}`", detail.name, DETAIL_BITS) for detail in Detail]
    highs = [(f"`0x{high:02x}`", high.name, counter.name) for counter, high in HIGH_OF_COUNTER.items()]
    tables = [
        (
            f"`0x{LFT_PAGE:02x}0000 + LID`",
            f"8 bits, LID < {parameters.lft_size}",
            f"output port of a LID; {LFT_NO_ROUTE} (at power-up) is none",
        ),
        (
            f"`0x{MFT_PAGE:02x}0000 + q * 0x10000 + LID - 0x{LID_MULTICAST_MIN:x}`",
            f"16 bits, LID < 0x{LID_MULTICAST_MIN + parameters.mft_size:x}; reads 0",
            "ports 16 q (lowest bit) to 16 q + 15 of a multicast LID; at power-up none",
        ),
        (
            f"`0x{SL_TO_VL_PAGE:02x}0000 + (i - 1) * 0x10000 + o * 16 + SL`",
            "4 bits",
            f"VL of packets from port i to port o; at power-up SL modulo {parameters.vls}",
        ),
    ]
    if entries:
        tables += [
            (
                f"`p * 0x10000 + 0x{first_entry:02x} + e`",
                f"12 bits, e < {entries}; reads 0",
                f"VL << 8 and weight (x 64 bytes) of entry e of port p's {name} list of VL arbitration",
            )
            for name, first_entry in (("low", VL_ARBITRATION_LOW), ("high", VL_ARBITRATION_HIGH))
        ]
    states = ", ".join(f"{state:d} {state.name}" for state in PortState if state)
    return f"""\
## Registers

32-bit words with 24-bit word addresses, page in bits 23:16. `bus_write` or `bus_read` is given for one cycle, one
access a cycle; a read answers four cycles later with `bus_rvalid`. What is not allowed is ignored; what is not
defined reads 0.

The switch itself:

{_table(("address", "register", "meaning"), node)}
Port p at `p * 0x10000 + offset`, p = 1..{last}; states are {states}:

{_table(("offset", "register", "at reset", "meaning"), port)}
Counters of port p, likewise. They stop at all ones; a write sets them. XMIT_DATA and RCV_DATA are in words of 4 bytes.

{_table(("offset", "counter", "bits"), counters + details)}
Of these, the counters of data and packets have 64 bits: their registers above stop at all ones, and a write to one sets
all 64. A read of one of the upper halves below keeps the lower half in EXTENDED_LOW, to be read next; a write of one
sets the whole counter, with EXTENDED_LOW, written before, as its lower half.

{_table(("offset", "upper half", "of"), highs)}
Tables:

{_table(("address", "entry", "meaning"), tables)}"""


def _trace(slots: TraceSlots) -> str:
    rows = [(slot, port, kind.name) for slot, (port, kind) in enumerate(slots)]
    return f"""
## Trace

Slot i of the trace is bit i of `trace_valid` and `trace_<i>`: words a..e of 32 bits, a lowest, as `wire/trace.py` of
Ironband has them for each kind.

{_table(("slot", "port", "kind"), rows)}"""
