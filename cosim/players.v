// The players of a fabric's stimulus and the collectors of what it delivers; cosim/mail.py tells the files' formats.
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
