// The players of a fabric's stimulus and the collectors of what it delivers; cosim/harness/stream_files.py has the files' formats.
// All of them read and write their files inside the clock edge, so Python is asleep meanwhile.

// Plays the packets of one stream out of its file send.<index>.bin.
//   posted: packets that are in the file; only those are read.
//   taken: packets read so far.
// The packet after the current one is current from the cycle after its last word was taken, and valid from the
// cycle it was posted for.
module ironband_stream (
    input clk,
    input [15:0] index,
    input [63:0] next_cycle,
    input [31:0] posted,
    output reg [31:0] taken,
    output reg valid,
    output reg [10:0] length,
    output reg [31:0] data,
    input ready
);
  reg [31:0] words [0:2047];
  reg [95:0] head;
  reg [10:0] at;
  reg held;
  reg [8*32-1:0] name;
  integer file, got;

  initial begin
    {valid, length, data, taken, at, held, head} = 0;
    for (got = 0; got < 2048; got = got + 1) words[got] = 0;
    file = 0;
  end

  always @(posedge clk) begin
    if (ready) begin
      at = at + 11'd1;
      if (at == length) held = 0;
    end
    if (!held && taken != posted) begin
      if (file == 0) begin
        $sformat(name, "send.%0d.bin", index);
        file = $fopen(name, "rb");
      end
      got = $fread(head, file);
      got = $fread(words, file, 0, head[10:0]);
      taken = taken + 1;
      at = 0;
      held = 1;
    end
    if (ready || !valid) begin
      valid <= held && head[95:32] <= next_cycle;
      length <= head[10:0];
      data <= words[at];
    end
  end
endmodule

// Collects the packets that one adapter delivers, and writes each to the delivery file with its last word.
//   file: the delivery file; 0 if nobody wants the packets.
//   eager: make each packet readable at once; otherwise whoever pauses the clock flushes the file.
module ironband_host (
    input clk,
    input [31:0] file,
    input eager,
    input [63:0] cycle,
    input [15:0] node,
    input valid,
    input [31:0] data,
    input first,
    input last,
    input [3:0] slot
);
  localparam CHUNK = 16;
  reg [32*CHUNK-1:0] chunks [0:2048/CHUNK-1];
  reg [10:0] count;
  integer i;

  initial count = 0;

  always @(posedge clk) if (valid && file != 0) begin
    if (first) count = 0;
    chunks[count / CHUNK][32 * (count % CHUNK) +: 32] = data;
    count = count + 11'd1;
    if (last) begin
      $fwrite(file, "%u", {21'd0, count, 12'd0, slot, node, cycle});
      for (i = 0; i < count; i = i + CHUNK) $fwrite(file, "%u", chunks[i / CHUNK]);
      if (eager) $fflush(file);
    end
  end
endmodule

// Plays what is on the wires of a port: its rows, and the widths that it offers; out of its file wire.<index>.bin, of whose
// entries each says what there is in its cycle, and what follows: idle rows, and how often.
//   cycle: the cycle whose row is played; it is on `played` in the next, K symbols and so on above its data.
//   posted: entries that are in the file; only those are read.
//   taken: entries read so far.
//   compare: `seen` should be the same in this cycle; the first that is not goes into the trace.
module ironband_wire #(
    parameter IDLE_ROWS = 1,
    parameter [31:0] ROW_KIND = 0
) (
    input clk,
    input running,
    input [15:0] index,
    input [63:0] cycle,
    input [31:0] posted,
    output reg [31:0] taken,
    output reg [38:0] played,
    input compare,
    input [38:0] seen,
    input [31:0] source,
    input [31:0] trace_file
);
  reg [7:0] idle [0:IDLE_ROWS-1];
  reg [127:0] entry;
  reg held, given, valid, parted;
  reg [1:0] offers, pace, phase;
  reg [10:0] at;
  reg [38:0] row;
  reg [8*32-1:0] name;
  integer file, got;

  initial begin
    {taken, held, given, valid, parted, pace, phase, at, entry, row} = 0;
    offers = 3;
    played = {2'd3, 37'd0};
    file = $fopen("idle.bin", "rb");
    got = $fread(idle, file);
    $fclose(file);
    $sformat(name, "wire.%0d.bin", index);
    file = $fopen(name, "rb");
  end

  always @(posedge clk) if (running) begin
    if (!held && taken != posted) begin
      got = $fread(entry, file);
      taken = taken + 1;
      held = 1;
    end
    phase = phase + 2'd1;
    at = at == IDLE_ROWS - 1 ? 11'd0 : at + 11'd1;
    given = 0;
    if (held && entry[127:64] == cycle) begin
      {phase, offers, pace, given} = entry[62:56];
      at = entry[42:32];
      held = 0;
    end
    valid = pace == 1 || pace == 2 && phase == 0;
    row = {offers, valid, given ? {entry[51:48], entry[31:0]} : {4'd0, {4{idle[at]}}}};
    played <= row;
    if (compare && !parted && (seen[38:36] != row[38:36] || valid && seen[35:0] != row[35:0])) begin
      parted = 1;
      $fwrite(trace_file, "%u", {
          32'd0, {25'd0, row[38:32]}, row[31:0], {25'd0, seen[38:32]}, seen[31:0], ROW_KIND, source, cycle});
    end
  end
endmodule

// Writes what enters one direction of a link: the rows of packets, from a start delimiter on until an end delimiter, and
// every other row with a K symbol.
module ironband_tap (
    input clk,
    input running,
    input [15:0] index,
    input [63:0] cycle,
    input [36:0] row,
    input [31:0] file
);
  localparam [7:0] SDP = 8'hFB, SLP = 8'h5C, EGP = 8'hFD, EBP = 8'hFE;
  reg in_packet;

  initial in_packet = 0;

  always @(posedge clk) if (running && row[36]) begin
    if (row[35:32] == 4'b1000 && (row[31:24] == SDP || row[31:24] == SLP)) in_packet = 1;
    if (in_packet || row[35:32] != 0) $fwrite(file, "%u", {12'd0, row[35:32], index, row[31:0], cycle});
    if (row[35:32] == 4'b0001 && (row[7:0] == EGP || row[7:0] == EBP)) in_packet = 0;
  end
endmodule
