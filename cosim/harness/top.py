"""The Verilog top around a fabric: clock, reset, players of the stimulus, and the writer of the trace.

Python sees only a few registers of it (`PUBLIC`). It posts stimulus by files (cosim/harness/stream_files.py), says
by `stop` up to which cycle the clock may run, and sleeps until the clock has paused there. Or it lets the clock run
forever and wakes for deliveries and register reads.

| register | written by | |
|---|---|---|
| `stop` | Python | the clock pauses in this cycle, every record of the cycles before it being in the file |
| `paused` | the top | the clock is at `stop` |
| `posted` | Python | packets in each stream's file, 32 bits each, stream 0 lowest; then entries in each wire's file |
| `taken` | the top | what was read of each of these files, in the same form |
| `controls_posted` | Python | operations in the control file |
| `eager` | Python | make each delivery and record readable at once |
| `delivered` | the top | counts cycles in which packets were delivered |
| `controls_given` | the top | counts operations given |
| `reads`, `read_data` | the top | counts register reads answered; the last answer |
| `cycle` | the top | the cycle, 64 bits |
| `records` | the top | counts cycles with records in the trace |
| `rx_<i>_*` | Python | the row into open port i, on the wires from the next cycle on |
| `tx_<i>_*` | the top | the row out of open port i |

The open ports of a part of a fabric are not Python's: the rows into them are played, and those out of them compared
with what should be there (`ironband_wire` in cosim/harness/players.v).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import groupby

from cosim.harness.stream_files import CONTROL_FILE, DELIVERY_FILE, IDENTITY_FIELDS, IDENTITY_FILE, TAP_FILE, TRACE_FILE
from rtl.fabric.ports import FabricPorts
from wire.codes import LINK_WIDTHS
from wire.crc import ICRC_POLY_REFLECTED
from wire.row_crc import PERIOD, ROW_BYTES, VALID
from wire.symbols import IDLE_PERIOD, LANES
from wire.trace import Kind, link_source, port_source

__all__ = ["CYCLE_NS", "NO_DELIVERIES", "PUBLIC", "ROWS_PERIOD", "TOP", "begin_ns", "harness", "sources"]

TOP = "ironband_top"
CYCLE_NS = 4

PUBLIC = (
    "stop",
    "paused",
    "posted",
    "taken",
    "controls_posted",
    "eager",
    "delivered",
    "controls_given",
    "reads",
    "read_data",
    "cycle",
    "records",
    "clk",
    "rx_*",
    "tx_*",
)
"""Names in the top that Python reads or writes."""

NO_DELIVERIES = "no_deliveries"
"""Plusarg of a simulation that is to keep no packets, only their records."""

ROWS_PERIOD = "rows_period"
"""Plusarg of a simulation with ROWS records: cycles of a period."""

_PLAYERS = "players.v"
_ROW_BITS = (("data", "[31:0]"), ("k", "[35:32]"), ("valid", "[36]"))

_TEMPLATE = """\
// Written by cosim/harness/top.py.
module {TOP};
  reg clk = 0;
  reg [1:0] reset = 2'b11;
  reg [63:0] cycle = 0;
  wire [63:0] next_cycle = reset != 0 ? 64'd0 : cycle + 64'd1;

  // What Python sees.
  reg [63:0] stop = 0;
  reg paused = 1;
  reg [32*{PLAYERS}-1:0] posted = 0;
  wire [32*{PLAYERS}-1:0] taken;
  reg [31:0] controls_posted = 0;
  reg eager = 0;
  reg [31:0] delivered = 0;
  reg [31:0] controls_given = 0;
  reg [31:0] reads = 0;
  reg [31:0] read_data = 0;
  reg [31:0] records = 0;

  integer control_file = 0, delivery_file = 0, tap_file = 0, trace_file, got;
  initial begin
    if (!$test$plusargs("{NO_DELIVERIES}")) delivery_file = $fopen("{DELIVERY_FILE}", "wb");
    trace_file = $fopen("{TRACE_FILE}", "wb");
  end

  // The clock, and where it pauses.
  initial forever begin
    while (cycle == stop) begin
      if (delivery_file != 0) $fflush(delivery_file);
      if (tap_file != 0) $fflush(tap_file);
      $fflush(trace_file);
      paused = 1;
      wait (cycle != stop);
      paused = 0;
    end
    #{HALF_NS} clk = 1;
    #{HALF_NS} clk = 0;
  end

  always @(posedge clk) begin
    reset <= reset >> 1;
    cycle <= next_cycle;
  end

  // Control operations: one a cycle, in the cycle it was posted for or as soon as it is there.
  reg control_valid = 0, control_held = 0;
  reg [3:0] control_operation = 0;
  reg [15:0] control_target = 0;
  reg [127:0] control_args = 0;
  reg [31:0] controls_taken = 0;
  reg [223:0] control;
  wire read_valid;
  wire [31:0] read_value;
  always @(posedge clk) begin
    if (!control_held && controls_taken != controls_posted) begin
      if (control_file == 0) control_file = $fopen("{CONTROL_FILE}", "rb");
      got = $fread(control, control_file);
      controls_taken = controls_taken + 1;
      control_held = 1;
    end
    control_valid <= 0;
    if (control_held && !reset[1] && control[223:160] <= next_cycle) begin
      control_valid <= 1;
      control_operation <= control[147:144];
      control_target <= control[143:128];
      control_args <= control[127:0];
      control_held = 0;
      controls_given <= controls_given + 1;
    end
    if (read_valid) begin
      reads <= reads + 1;
      read_data <= read_value;
    end
  end

  // Packets in.
{STREAM_PLAYERS}
  // Packets out.
{HOSTS}  always @(posedge clk) if ({ANY_LAST}) delivered <= delivered + 1;

  // The trace: records of a cycle in the order of their slots.
  wire [{TRACE_SLOTS}-1:0] trace_valid;
{TRACE_WIRES}{ROWS}  always @(posedge clk) if (reset == 0) begin
{ROWS_ENTER}    if ({TRACE_CONDITION}) begin
{TRACE_WRITES}      if (eager) $fflush(trace_file);
      records <= records + 1;
    end
  end

{OPEN_PORTS}{IDENTITIES}{TAPS}
  fabric fabric (
    .clk(clk), .rst(reset != 0),
{CONNECTIONS}
  );
endmodule
"""


def begin_ns(cycle: int) -> int:
    """When a cycle begins: cycle 0 with the second rising edge of the clock, at which reset ends."""
    return CYCLE_NS * (cycle + 1) + CYCLE_NS // 2


def harness(ports: FabricPorts) -> str:
    """Verilog of the top around a module `fabric` with these ports.

    Raises:
        ValueError: the fabric has no trace, or neither an adapter nor an open port, so there is nothing to run.
    """
    lasts = " || ".join(f"recv_{i}_valid && recv_{i}_last" for i in range(len(ports.hosts)))
    inputs = len(ports.hosts) + len(ports.open)
    if not inputs or not ports.trace:
        raise ValueError(f"a fabric with {inputs} ways in, {len(ports.trace)} trace slots: expected some")
    return (
        _TEMPLATE.replace("{TOP}", TOP)
        .replace("{HALF_NS}", str(CYCLE_NS // 2))
        .replace("{CONTROL_FILE}", CONTROL_FILE)
        .replace("{DELIVERY_FILE}", DELIVERY_FILE)
        .replace("{TRACE_FILE}", TRACE_FILE)
        .replace("{NO_DELIVERIES}", NO_DELIVERIES)
        .replace("{PLAYERS}", str(len(ports.streams) + 2 * len(ports.open)))
        .replace("{TRACE_SLOTS}", str(len(ports.trace)))
        .replace("{STREAM_PLAYERS}", "".join(_stream_players(ports)))
        .replace("{HOSTS}", "".join(_hosts(ports)))
        .replace("{ANY_LAST}", lasts or "1'b0")
        .replace("{TRACE_WIRES}", "".join(f"  wire [159:0] trace_{i};\n" for i in range(len(ports.trace))))
        .replace("{ROWS}", "".join(_row_crcs(ports)))
        .replace("{ROWS_ENTER}", "".join(_rows_enter(ports)))
        .replace("{TRACE_CONDITION}", "trace_valid != 0 || period_ends" if ports.entered else "trace_valid != 0")
        .replace("{TRACE_WRITES}", "".join(_trace_writes(ports)))
        .replace("{OPEN_PORTS}", "".join(_played_ports(ports) if ports.identities else _driven_ports(ports)))
        .replace("{IDENTITIES}", _identities(ports) if ports.identities else "")
        .replace("{TAPS}", "".join(_taps(ports)))
        .replace("{CONNECTIONS}", ",\n".join(f"    .{port}({net})" for port, net in _connections(ports)))
    )


def sources(ports: FabricPorts, fabric: str) -> dict[str, str]:
    """All Verilog of a simulation, by file name, for the Verilog text of its module `fabric`."""
    players = resources.files("cosim.harness").joinpath(_PLAYERS).read_text()
    return {"fabric.v": fabric, _PLAYERS: players, f"{TOP}.v": harness(ports)}


def _stream_players(ports: FabricPorts) -> Iterator[str]:
    for i, (node, slot) in enumerate(ports.streams):
        yield f"""\
  wire send_{i}_valid, send_{i}_ready;
  wire [10:0] send_{i}_length;
  wire [31:0] send_{i}_data;
  ironband_stream node{node}_slot{slot}_stream (
    .clk(clk), .index(16'd{i}), .next_cycle(next_cycle), .posted(posted[{32 * i} +: 32]),
    .taken(taken[{32 * i} +: 32]),
    .valid(send_{i}_valid), .length(send_{i}_length), .data(send_{i}_data), .ready(send_{i}_ready)
  );
"""


def _hosts(ports: FabricPorts) -> Iterator[str]:
    for i, node in enumerate(ports.hosts):
        yield f"""\
  wire recv_{i}_valid, recv_{i}_first, recv_{i}_last;
  wire [31:0] recv_{i}_data;
  wire [3:0] recv_{i}_slot;
  ironband_host node{node}_host (
    .clk(clk), .file(delivery_file), .eager(eager), .cycle(cycle), .node(16'd{node}),
    .valid(recv_{i}_valid), .data(recv_{i}_data), .first(recv_{i}_first), .last(recv_{i}_last), .slot(recv_{i}_slot)
  );
"""


def _trace_writes(ports: FabricPorts) -> Iterator[str]:
    """A write for each slot, grouped by source so that a cycle without a record there costs one test.

    Of the kinds of a link's direction ROWS is the last.
    """
    entered = {link_source(*direction): index for index, direction in enumerate(ports.entered)}
    for source, slots in groupby(enumerate(ports.trace), key=lambda slot: slot[1][0]):
        members = [(index, kind) for index, (_, kind) in slots]
        low, count = members[0][0], len(members)
        yield f"      if (trace_valid[{low} +: {count}] != 0) begin\n"
        for index, kind in members:
            record = f"{{trace_{index}, 32'd{kind}, 32'd{source}, cycle}}"
            yield f'        if (trace_valid[{index}]) $fwrite(trace_file, "%u", {record});\n'
        yield "      end\n"
        if source in entered:
            crc = f"crc_{entered[source]}"
            yield f"      if (period_ends) begin\n        {crc} = ~{crc};\n"
            row = f"entered_{entered[source]}"
            last = f"{row}[36] ? {{27'd0, {row}}} : 64'd0"
            record = f"{{64'd0, {last}, {crc}, 32'd{Kind.ROWS}, 32'd{source}, cycle}}"
            yield f'        $fwrite(trace_file, "%u", {record});\n        {crc} = ~32\'d0;\n      end\n'


_ROW_CRC = """\
  // The CRC of the rows that enter each direction of a link in a period (wire/row_crc.py).
  // crc_table[256 * n + b]: byte b, followed by n bytes of 0.
  reg [31:0] crc_table [0:{ROW_BYTES}*256-1];
  integer crc_byte, crc_bit;
  reg [31:0] crc_entry;
  initial for (crc_byte = 0; crc_byte < {ROW_BYTES} * 256; crc_byte = crc_byte + 1) begin
    crc_entry = crc_byte < 256 ? crc_byte : crc_table[crc_byte - 256];
    for (crc_bit = 0; crc_bit < 8; crc_bit = crc_bit + 1)
      crc_entry = crc_entry[0] ? crc_entry >> 1 ^ 32'd{POLYNOMIAL} : crc_entry >> 1;
    crc_table[crc_byte] = crc_entry;
  end
  function [31:0] crc_after(input [31:0] crc, input [36:0] row);
    reg [31:0] first;
    begin
      first = crc ^ (row[36] ? {row[15:8], row[23:16], row[31:24], 4'd{VALID}, row[35:32]} : 32'd0);
      crc_after = crc_table[1024 + first[7:0]] ^ crc_table[768 + first[15:8]] ^ crc_table[512 + first[23:16]]
          ^ crc_table[256 + first[31:24]] ^ crc_table[row[36] ? row[7:0] : 8'd0];
    end
  endfunction
  reg [63:0] period = {PERIOD};
  initial got = $value$plusargs("{ROWS_PERIOD}=%d", period);
  wire period_ends = (cycle & period - 1) == period - 1;
"""


def _row_crcs(ports: FabricPorts) -> Iterator[str]:
    """What takes rows into their CRCs."""
    if not ports.entered:
        return
    yield (
        _ROW_CRC.replace("{ROW_BYTES}", str(ROW_BYTES))
        .replace("{POLYNOMIAL}", str(ICRC_POLY_REFLECTED))
        .replace("{VALID}", str(VALID >> LANES))
        .replace("{PERIOD}", str(PERIOD))
        .replace("{ROWS_PERIOD}", ROWS_PERIOD)
    )
    for i in range(len(ports.entered)):
        yield f"  wire [36:0] entered_{i};\n  reg [31:0] crc_{i} = ~32'd0;\n"


def _rows_enter(ports: FabricPorts) -> Iterator[str]:
    for i in range(len(ports.entered)):
        yield f"    crc_{i} = crc_after(crc_{i}, entered_{i});\n"


def _driven_ports(ports: FabricPorts) -> Iterator[str]:
    """Open ports whose rows Python drives; what is there at the other end offers all widths."""
    for i, (node, port) in enumerate(ports.open):
        yield f"""\
  // Node {node}, port {port}.
  reg [31:0] rx_{i}_data = 0;
  reg [3:0] rx_{i}_k = 0;
  reg rx_{i}_valid = 0;
  wire [31:0] tx_{i}_data;
  wire [3:0] tx_{i}_k;
  wire tx_{i}_valid;
"""


def _played_ports(ports: FabricPorts) -> Iterator[str]:
    """Open ports of a part of a fabric, with players on both sides of each."""
    for i, (node, port) in enumerate(ports.open):
        name = f"node{node}_port{port}"
        yield f"""\
  wire [38:0] into_{i}, from_{i};
{_wire_player(ports, f"{name}_rx", 2 * i, output=f"into_{i}")}\
{_wire_player(ports, f"{name}_tx", 2 * i + 1, source=port_source(node, port), seen=f"from_{i}")}\
"""


def _wire_player(
    ports: FabricPorts, name: str, index: int, *, output: str = "", source: int = 0, seen: str = ""
) -> str:
    """What plays a wire, or compares it if it is seen."""
    doorbell = 32 * (len(ports.streams) + index)
    return f"""\
  ironband_wire #(.IDLE_ROWS({IDLE_PERIOD}), .ROW_KIND({Kind.ROW})) {name} (
    .clk(clk), .running(reset == 0), .index(16'd{index}), .cycle(cycle),
    .posted(posted[{doorbell} +: 32]), .taken(taken[{doorbell} +: 32]), .played({output}),
    .compare(1'b{bool(seen):d}), .seen({seen or "39'd0"}), .source(32'd{source}), .trace_file(trace_file)
  );
"""


def _identities(ports: FabricPorts) -> str:
    width = sum(IDENTITY_FIELDS.values())
    registers = "".join(f"  reg [{width - 1}:0] identity_{i};\n" for i in range(ports.identities))
    reads = "".join(f"    got = $fread(identity_{i}, identity_file);\n" for i in range(ports.identities))
    return f"""\
  // Who the nodes are.
  integer identity_file;
{registers}  initial begin
    identity_file = $fopen("{IDENTITY_FILE}", "rb");
{reads}  end
"""


def _taps(ports: FabricPorts) -> Iterator[str]:
    if ports.taps:
        yield f"""\
  // What enters links.
  initial tap_file = $fopen("{TAP_FILE}", "wb");
"""
    for i, (link, direction) in enumerate(ports.taps):
        yield f"""\
  wire [36:0] tap_{i};
  ironband_tap link{link}_direction{direction}_tap (
    .clk(clk), .running(reset == 0), .index(16'd{i}), .cycle(cycle), .row(tap_{i}), .file(tap_file)
  );
"""


def _connections(ports: FabricPorts) -> Iterable[tuple[str, str]]:
    """Port and net names: those that Amaranth gives to `rtl.fabric.ports.FabricSignature`, and ours."""
    for member in ("valid", "operation", "target", "args"):
        yield f"control__{member}", f"control_{member}"
    yield "control__rvalid", "read_valid"
    yield "control__rdata", "read_value"
    for i in range(len(ports.streams)):
        for member in ("valid", "length", "data", "ready"):
            yield f"send__{i}__{member}", f"send_{i}_{member}"
    for i in range(len(ports.hosts)):
        for member in ("valid", "data", "first", "last", "slot"):
            yield f"recv__{i}__{member}", f"recv_{i}_{member}"
    yield "trace_valid", "trace_valid"
    for i in range(len(ports.trace)):
        yield f"trace__{i}", f"trace_{i}"
    for i in range(len(ports.open)):
        if ports.identities:
            for member, bits in _ROW_BITS:
                yield f"rx__{i}__{member}", f"into_{i}{bits}"
                yield f"tx__{i}__{member}", f"from_{i}{bits}"
            yield f"offered__{i}", f"into_{i}[38:37]"
            yield f"offers__{i}", f"from_{i}[38:37]"
        else:
            for member in ("data", "k", "valid"):
                yield f"rx__{i}__{member}", f"rx_{i}_{member}"
                yield f"tx__{i}__{member}", f"tx_{i}_{member}"
            yield f"offered__{i}", f"2'd{LINK_WIDTHS}"
            yield f"offers__{i}", ""
    for i in range(len(ports.taps)):
        for member, bits in _ROW_BITS:
            yield f"tap__{i}__{member}", f"tap_{i}{bits}"
    for i in range(len(ports.entered)):
        for member, bits in _ROW_BITS:
            yield f"entered__{i}__{member}", f"entered_{i}{bits}"
    for i in range(ports.identities):
        low = sum(IDENTITY_FIELDS.values())
        for member, width in IDENTITY_FIELDS.items():
            low -= width
            yield f"identity__{i}__{member}", f"identity_{i}[{low} +: {width}]"
