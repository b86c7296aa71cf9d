// A design around an exported switch of two ports: it counts the packets that leave by each port and end well.
`timescale 1ns / 1ps

module counted_switch (
  input clk,
  input rst,
  output resetting,
  input [1:0] up,
  input [1:0] narrow,
  output [1:0] offers_1x,
  output [1:0] offers_4x,
  input [63:0] node_guid,
  input [63:0] port_guid,
  input [511:0] description,
  input [31:0] rx_1_data,
  input [3:0] rx_1_k,
  input rx_1_valid,
  output [31:0] tx_1_data,
  output [3:0] tx_1_k,
  output tx_1_valid,
  input [31:0] rx_2_data,
  input [3:0] rx_2_k,
  input rx_2_valid,
  output [31:0] tx_2_data,
  output [3:0] tx_2_k,
  output tx_2_valid,
  input [23:0] bus_addr,
  input [31:0] bus_wdata,
  input bus_write,
  input bus_read,
  output [31:0] bus_rdata,
  output bus_rvalid,
  output reg [31:0] left_1,  // packets
  output reg [31:0] left_2
);

  ironband_switch switch (
    .clk(clk), .rst(rst), .resetting(resetting),
    .up(up), .narrow(narrow), .offers_1x(offers_1x), .offers_4x(offers_4x),
    .node_guid(node_guid), .port_guid(port_guid), .description(description),
    .rx_1_data(rx_1_data), .rx_1_k(rx_1_k), .rx_1_valid(rx_1_valid),
    .tx_1_data(tx_1_data), .tx_1_k(tx_1_k), .tx_1_valid(tx_1_valid),
    .rx_2_data(rx_2_data), .rx_2_k(rx_2_k), .rx_2_valid(rx_2_valid),
    .tx_2_data(tx_2_data), .tx_2_k(tx_2_k), .tx_2_valid(tx_2_valid),
    .bus_addr(bus_addr), .bus_wdata(bus_wdata), .bus_write(bus_write), .bus_read(bus_read),
    .bus_rdata(bus_rdata), .bus_rvalid(bus_rvalid)
  );

  localparam [7:0] SDP = 8'hfb, EGP = 8'hfd;
  reg data_1, data_2;        // the packet that leaves is one of data

  always @(posedge clk) begin
    if (tx_1_valid && tx_1_k[3]) data_1 <= tx_1_data[31:24] == SDP;
    if (tx_2_valid && tx_2_k[3]) data_2 <= tx_2_data[31:24] == SDP;
    if (tx_1_valid && tx_1_k[0] && tx_1_data[7:0] == EGP && data_1) left_1 <= left_1 + 1;
    if (tx_2_valid && tx_2_k[0] && tx_2_data[7:0] == EGP && data_2) left_2 <= left_2 + 1;
    if (rst) begin
      data_1 <= 0;
      data_2 <= 0;
      left_1 <= 0;
      left_2 <= 0;
    end
  end

endmodule
