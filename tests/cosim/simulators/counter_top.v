// A clock of its own, an Amaranth counter, and a mail slot: packets come in by file, records go out by file.
// Python appends whole packets of 32-bit big-endian words to +packets, then raises `posted` to the words so far.
module counter_top #(parameter WORDS = 1024);
  reg clk = 0;
  reg [31:0] posted = 0;
  reg enable = 1;
  wire [31:0] count;
  reg [31:0] cycles = 0;
  reg [31:0] taken = 0;

  always #2 clk = ~clk;
  counter counter (.clk(clk), .rst(1'b0), .enable(enable), .count(count));

  reg [31:0] inbox [0:WORDS-1];
  reg [1023:0] path;
  integer packets = 0, trace = 0, got, index;
  initial begin
    if ($value$plusargs("packets=%s", path)) packets = $fopen(path, "rb");
    if ($value$plusargs("trace=%s", path)) trace = $fopen(path, "wb");
  end

  always @(posedge clk) begin
    cycles <= cycles + 1;
    if (posted != taken) begin
      got = $fread(inbox, packets, 0, posted - taken);
      for (index = 0; index < posted - taken; index = index + 1) $fwrite(trace, "%u", inbox[index]);
      $fwrite(trace, "%u%u", cycles, got);
      $fflush(trace);
      taken <= posted;
    end
  end
endmodule
