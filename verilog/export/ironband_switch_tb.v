// A self-checking test bench of ironband_switch: asks its management agent what it is and gives it a forwarding table,
// brings it up over its register bus as its list of ports tells, sends packets from every port and to every port, and checks
// each. The last line printed begins with PASS or FAIL.
//
//   iverilog -g2005 -s ironband_switch_tb -o switch_tb ironband_switch_tb.v ironband_link_partner.v ironband_switch.v
//   vvp -n switch_tb
//
// Plusargs: +waves=FILE records waves, VCD or with `vvp -n switch_tb -fst` FST; +quiet prints no line for a packet.

`timescale 1ns / 1ps

module ironband_switch_tb;
  // The switch.
{PARAMETERS}
  // Its registers: word addresses, `page << 16 | offset`; page p is port p's.
{REGISTERS}
  // States of a port.
{STATES}
  // Fields of NodeInfo: their highest bits. Byte 0 of an attribute is bits 511:504.
{NODE_INFO}
  // The host at port p has LID p, if the forwarding table has an entry for it.
  localparam HOSTS = LFT_SIZE - 1 < PORTS ? LFT_SIZE - 1 : PORTS;
  localparam HEADER_WORDS = 8;       // LRH, BTH, DETH, ICRC
  localparam MAX_WORDS = HEADER_WORDS + MTU / 4;
  localparam MAX_BLOCKS = (4 * MAX_WORDS + 2 + 63) / 64;
  localparam FCP_PERIOD = 200 + 2 * VLS;
  localparam ROUNDS = 3;             // with all ports sending at once
  localparam MAX_PACKETS = PORTS * (2 * ROUNDS + 1);
  localparam PATIENCE = 1000 + 8 * MAX_WORDS;  // cycles without any arrival
  localparam CLOCK_NS = 4;           // one row of a 4X SDR link
  localparam GET_NODE_INFO = 1, SET_FORWARDING_TABLE = 2;

  reg clk = 0;
  reg rst = 1;
  reg [31:0] cycle = 0;
  always #(CLOCK_NS / 2) clk = ~clk;
  always @(posedge clk) cycle <= cycle + 1;

  // The switch.

  reg [PORTS-1:0] up = 0;
  wire [PORTS-1:0] offers_1x, offers_4x;
  wire [PORTS-1:0] narrow = 0;
  wire resetting;
  wire [63:0] node_guid = 64'h1, port_guid = 64'h1;
  wire [511:0] description = {"Ironband switch", 392'd0};
  reg [23:0] bus_addr = 0;
  reg [31:0] bus_wdata = 0;
  reg bus_write = 0, bus_read = 0;
  wire [31:0] bus_rdata;
  wire bus_rvalid;
  wire [32*PORTS-1:0] rx_data, tx_data;
  wire [4*PORTS-1:0] rx_k, tx_k;
  wire [PORTS-1:0] rx_valid, tx_valid;

  ironband_switch dut (
{CONNECTIONS}
  );

  // The packets, numbered by their PSN, in the order in which a port sends its own. Those below `released` may go.

  reg [15:0] packet_from [0:MAX_PACKETS-1];
  reg [15:0] packet_to [0:MAX_PACKETS-1];
  reg [3:0] packet_sl [0:MAX_PACKETS-1];
  reg [10:0] packet_words [0:MAX_PACKETS-1];
  reg [31:0] packet_sent_at [0:MAX_PACKETS-1];
  reg packet_done [0:MAX_PACKETS-1];
  integer packets = 0, released = 0, arrived = 0, passed = 0, failures = 0;
  integer last_arrival = 0;
  integer latency, least_latency = 32'h7fffffff, most_latency = 0;
  reg quiet = 0;

  task automatic arrive(
    input [15:0] at, input good, input [23:0] psn, input [15:0] slid, input [15:0] dlid, input [3:0] sl,
    input [10:0] words, input [31:0] since
  );
    integer other;
    reg right;
    begin
      right = good;
      last_arrival = cycle;
      if ({8'd0, psn} >= released || packet_from[psn] != slid || packet_to[psn] != dlid || packet_sl[psn] != sl
          || packet_words[psn] != words) begin
        right = 0;
        $display("FAIL cycle %0d, port %0d: nobody sent packet %0d from %0d to %0d", cycle, at, psn, slid, dlid);
      end else begin
        if (dlid != at) begin
          right = 0;
          $display("FAIL cycle %0d, port %0d: packet %0d is for port %0d", cycle, at, psn, dlid);
        end
        if (packet_done[psn]) begin
          right = 0;
          $display("FAIL cycle %0d, port %0d: packet %0d came twice", cycle, at, psn);
        end else arrived = arrived + 1;
        packet_done[psn] = 1;
        for (other = 0; other < psn; other = other + 1)
          if (!packet_done[other] && packet_from[other] == slid && packet_to[other] == dlid
              && packet_sl[other] % VLS == sl % VLS) begin
            right = 0;
            $display("FAIL cycle %0d, port %0d: packet %0d overtook packet %0d", cycle, at, psn, other);
          end
        latency = since - packet_sent_at[psn];
        if (latency < least_latency) least_latency = latency;
        if (latency > most_latency) most_latency = latency;
        if (!quiet || !right)
          $display("%0s cycle %0d, %0d ns: packet %0d, port %0d to port %0d, VL %0d, %0d bytes, crossed in %0d cycles",
                   right ? "pass" : "FAIL", cycle, $time, psn, slid, at, sl % VLS, 4 * (words - HEADER_WORDS), latency);
      end
      if (right) passed = passed + 1;
      else failures = failures + 1;
    end
  endtask

  // The host at each port.

  integer smp_port = 0;              // the one that has an SMP to send; none if 0
  reg [1:0] smp_kind = 0;
  reg [23:0] smp_block = 0;
  reg smp_answered = 0;
  reg [511:0] smp_answer;
  reg normal = 0;
  wire [32*PORTS-1:0] faults;
  genvar p;
  generate
    for (p = 1; p <= PORTS; p = p + 1) begin : port
      integer next = 0;
      reg send_valid = 0;
      wire asks = smp_port == p;
      wire send_taken, received, received_good;
      wire [23:0] received_psn;
      wire [15:0] received_slid, received_dlid;
      wire [3:0] received_sl;
      wire [10:0] received_words;
      wire [31:0] received_at;
      wire answered;
      wire [511:0] answer;

      ironband_link_partner #(
        .LID(p), .VLS(VLS), .MAX_WORDS(MAX_WORDS), .BUFFER_BLOCKS(2 * MAX_BLOCKS), .FCP_PERIOD(FCP_PERIOD),
        .ROUTES(HOSTS)
      ) host (
        .clk(clk), .rst(resetting), .cycle(cycle),
        .rx_data(tx_data[32*(p-1) +: 32]), .rx_k(tx_k[4*(p-1) +: 4]), .rx_valid(tx_valid[p-1]),
        .tx_data(rx_data[32*(p-1) +: 32]), .tx_k(rx_k[4*(p-1) +: 4]), .tx_valid(rx_valid[p-1]),
        .normal(normal),
        .send_valid(asks || send_valid), .send_smp(asks ? smp_kind : 2'd0), .send_psn(asks ? smp_block : next[23:0]),
        .send_dlid(packet_to[next]), .send_sl(packet_sl[next]),
        .send_words(packet_words[next]), .send_taken(send_taken),
        .received(received), .received_good(received_good), .received_psn(received_psn),
        .received_slid(received_slid), .received_dlid(received_dlid), .received_sl(received_sl),
        .received_words(received_words), .received_at(received_at), .answered(answered), .answer(answer),
        .faults(faults[32*(p-1) +: 32])
      );

      always @(posedge clk) begin
        if (send_taken && asks) smp_port = 0;
        else if (send_taken) begin
          packet_sent_at[next] = cycle;
          next = next + 1;
        end
        if (answered) begin
          smp_answered = 1;
          smp_answer = answer;
        end
        if (resetting) next = 0;
        while (next < released && packet_from[next] != p) next = next + 1;
        send_valid <= next < released;
        if (received)
          arrive(p, received_good, received_psn, received_slid, received_dlid, received_sl, received_words,
                 received_at);
      end
    end
  endgenerate

  // What follows acts at the falling edge, where nothing else does.

  // The register bus: an access takes one cycle, the answer to a read comes four cycles later.

  task write(input [23:0] address, input [31:0] value);
    begin
      bus_addr = address;
      bus_wdata = value;
      bus_write = 1;
      @(negedge clk);
      bus_write = 0;
    end
  endtask

  reg [31:0] value_read;
  task read(input [23:0] address);
    begin
      bus_addr = address;
      bus_read = 1;
      @(negedge clk);
      bus_read = 0;
      @(negedge clk);
      while (!bus_rvalid) @(negedge clk);
      value_read = bus_rdata;
    end
  endtask

  function [23:0] of_port(input integer number, input [15:0] register);
    of_port = {number[7:0], register};
  endfunction

  task expect_register(input [23:0] address, input [31:0] value);
    begin
      read(address);
      if (value_read !== value) begin
        failures = failures + 1;
        $display("FAIL cycle %0d: register %h reads %0d, expected %0d", cycle, address, value_read, value);
      end
    end
  endtask

  // Management.

  integer asked [1:PORTS];           // SMPs of each port
  task ask(input integer from, input [1:0] kind, input [23:0] block);
    begin
      asked[from] = asked[from] + 1;
      smp_answered = 0;
      smp_kind = kind;
      smp_block = block;
      smp_port = from;
      last_arrival = cycle;
      while (!smp_answered && cycle - last_arrival < PATIENCE) @(negedge clk);
      if (!smp_answered) begin
        failures = failures + 1;
        $display("FAIL cycle %0d, port %0d: the switch does not answer", cycle, from);
      end
    end
  endtask

  // NodeInfo: a switch, its number of ports and GUIDs, and the port that asked.
  task ask_what_it_is(input integer from);
    begin
      ask(from, GET_NODE_INFO, 0);
      if (smp_answer[NODE_TYPE -: 8] !== 8'd2 || smp_answer[NUM_PORTS_FIELD -: 8] !== PORTS
          || smp_answer[NODE_GUID -: 64] !== node_guid || smp_answer[PORT_GUID -: 64] !== port_guid
          || smp_answer[LOCAL_PORT_NUM -: 8] !== from[7:0]) begin
        failures = failures + 1;
        $display("FAIL cycle %0d, port %0d: NodeInfo is %h", cycle, from, smp_answer[511 -: 320]);
      end else if (!quiet)
        $display("pass cycle %0d, %0d ns: port %0d asked, a switch of %0d ports, GUID %h", cycle, $time, from,
                 smp_answer[NUM_PORTS_FIELD -: 8], smp_answer[NODE_GUID -: 64]);
    end
  endtask

  // Traffic.

  task packet(input integer from, input integer to, input integer sl, input integer payload_bytes);
    if (from != to && to <= HOSTS) begin
      packet_from[packets] = from;
      packet_to[packets] = to;
      packet_sl[packets] = sl;
      packet_words[packets] = HEADER_WORDS + payload_bytes / 4;
      packet_done[packets] = 0;
      packets = packets + 1;
    end
  endtask

  function integer payload(input integer number);
    case (number % 5)
      0: payload = 256;
      1: payload = 0;
      2: payload = 60;
      3: payload = 128;
      default: payload = number % 3 == 0 ? MTU : 4;
    endcase
  endfunction

  task let_go;
    begin
      last_arrival = cycle;
      released = packets;
      while (arrived < released && cycle - last_arrival < PATIENCE) @(negedge clk);
    end
  endtask

  task phase(input [8*40-1:0] name);
    if (!quiet) $display("%0s", name);
  endtask

  reg [8*256-1:0] waves;
  integer number, round, sum;

  // From reset to the last packet, and what was counted.
  task live; begin
    // Links up: the ports go to Initialize and exchange flow control packets with Op 1.
    @(negedge clk) up = offers_1x & offers_4x;
    repeat (8) @(negedge clk);
    expect_register(NUM_PORTS, PORTS);
    for (number = 1; number <= HOSTS; number = number + 1) expect_register(LFT | number[23:0], NO_ROUTE);

    phase("what the switch is");
    for (number = 1; number <= PORTS; number = number + 1) asked[number] = 0;
    ask_what_it_is(1);
    ask_what_it_is(PORTS);

    // The forwarding table: LID p to port p, 64 of them in an SMP.
    write(LINEAR_FDB_TOP, HOSTS);
    for (number = 0; number <= HOSTS / 64; number = number + 1) ask(1, SET_FORWARDING_TABLE, number[23:0]);
    for (number = 1; number <= HOSTS; number = number + 1) expect_register(LFT | number[23:0], number);

    // Armed, once no packet with Op 1 is under way; Active, once packets with Op 0 have crossed.
    normal = 1;
    repeat (64) @(negedge clk);
    for (number = 1; number <= PORTS; number = number + 1) begin
      expect_register(of_port(number, STATE), INITIALIZE);
      write(of_port(number, STATE), ARMED);
    end
    repeat (2 * FCP_PERIOD) @(negedge clk);
    for (number = 1; number <= PORTS; number = number + 1) write(of_port(number, STATE), ACTIVE);
    repeat (4) @(negedge clk);
    for (number = 1; number <= PORTS; number = number + 1) expect_register(of_port(number, STATE), ACTIVE);

    phase("one packet at a time, the switch idle");
    for (number = 1; number <= PORTS; number = number + 1) begin
      packet(number, number % PORTS + 1, number, number == 1 ? MTU : payload(number));
      let_go;
    end

    phase("all ports at once");
    for (round = 1; round <= ROUNDS; round = round + 1)
      for (number = 1; number <= PORTS; number = number + 1)
        packet(number, (number - 1 + round) % HOSTS + 1, number + round, payload(number + round));
    let_go;

    phase("all ports to port 1");
    for (number = 1; number <= PORTS; number = number + 1) packet(number, 1, number, payload(0));
    let_go;

    // What has not come, and what the switch counted.
    for (number = 0; number < packets; number = number + 1)
      if (!packet_done[number]) begin
        failures = failures + 1;
        $display("FAIL cycle %0d: packet %0d from port %0d to port %0d did not come", cycle, number,
                 packet_from[number], packet_to[number]);
      end
    for (number = 1; number <= PORTS; number = number + 1) begin
      sum = asked[number];
      for (round = 0; round < packets; round = round + 1) if (packet_from[round] == number) sum = sum + 1;
      expect_register(of_port(number, RCV_PKTS), sum);
      sum = asked[number];
      for (round = 0; round < packets; round = round + 1) if (packet_to[round] == number) sum = sum + 1;
      expect_register(of_port(number, XMIT_PKTS), sum);
      expect_register(of_port(number, RCV_ERRORS), 0);
      failures = failures + faults[32*(number-1) +: 32];
    end
  end endtask

  // A burst that nobody waits for, and in its midst a reset of one cycle, which the switch makes longer.
  task interrupt; begin
    for (round = 1; round < ROUNDS; round = round + 1)
      for (number = 1; number <= PORTS; number = number + 1) packet(number, round % HOSTS + 1, number, MTU);
    released = packets;
    repeat (100) @(negedge clk);
    rst = 1;
    up = 0;
    @(negedge clk);
    rst = 0;
    {packets, released, arrived, passed} = 0;
    normal = 0;
    while (resetting) @(negedge clk);
  end endtask

  initial begin
    quiet = $test$plusargs("quiet");
    if ($value$plusargs("waves=%s", waves)) begin
      $dumpfile(waves);
      $dumpvars(0, ironband_switch_tb);
    end

    repeat (4) @(negedge clk);
    rst = 0;
    live;
    // A switch that is wrong from power up has nothing to show after a reset.
    if (failures == 0) begin
      phase("a burst, and a reset in it");
      interrupt;
      live;
    end

    if (failures == 0 && passed == packets) begin
      $display("PASS: %0d of %0d packets crossed %0d ports, latency %0d to %0d cycles, %0d cycles", passed, packets,
               PORTS, least_latency, most_latency, cycle);
      $finish;
    end else begin
      $display("FAIL: %0d of %0d packets crossed %0d ports, %0d failures, %0d cycles", passed, packets, PORTS, failures,
               cycle);
`ifdef __ICARUS__
      $finish_and_return(1);
`else
      $stop;
`endif
    end
  end
endmodule
