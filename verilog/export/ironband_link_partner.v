// The other end of a link, for simulation: speaks InfiniBand's link protocol with one port of a switch.
//
// It sends and checks flow control packets (LPCRC, FCTBS, FCCL), sends a data packet only if it has credits for the
// whole of it, and checks what comes: framing, PktLen, VL, VCRC, ICRC, and every byte. A packet is a UD SEND whose
// payload follows from its PSN, so that the receiver knows what it must be. Subnet management packets (SMPs) go to the
// switch itself: directed-route, one hop, on VL15, which needs no credits.
//
// Rows are 4X: 32 data bits and 4 K bits, lane 0 in the most significant byte and bit.

`timescale 1ns / 1ps

module ironband_link_partner #(
  parameter [15:0] LID = 1,
  parameter VLS = 1,                 // data VLs
  parameter MAX_WORDS = 520,         // the largest packet, as LRH.PktLen counts
  parameter [11:0] BUFFER_BLOCKS = 64,  // room for each VL, in blocks of 64 bytes
  parameter FCP_PERIOD = 200,        // cycles from one flow control packet of a VL to the next at most
  parameter ROUTES = 1               // LID l leads to port l, for l from 1 to this
) (
  input clk,
  input rst,
  input [31:0] cycle,                // the number of this cycle

  input [31:0] rx_data,              // from the switch
  input [3:0] rx_k,
  input rx_valid,
  output reg [31:0] tx_data,         // to the switch
  output reg [3:0] tx_k,
  output reg tx_valid,

  input normal,                      // 0: flow control packets say Op 1 (initialise), 1: Op 0 (normal)

  input send_valid,                  // a packet to send, held until taken
  input [1:0] send_smp,              // 0: of data; 1: Get(NodeInfo); 2: Set(LinearForwardingTable), send_psn the block
  input [23:0] send_psn,
  input [15:0] send_dlid,
  input [3:0] send_sl,
  input [10:0] send_words,           // LRH.PktLen, 8 and above
  output reg send_taken,             // for one cycle: that in which the packet's first row is on the wires

  output reg received,               // for one cycle: a data packet has ended
  output reg received_good,
  output reg [23:0] received_psn,
  output reg [15:0] received_slid,
  output reg [15:0] received_dlid,
  output reg [3:0] received_sl,
  output reg [10:0] received_words,
  output reg [31:0] received_at,     // the cycle in which its first row was on the wires

  output reg answered,               // for one cycle: the switch has answered an SMP
  output reg [511:0] answer,         // the attribute, byte 0 highest

  output reg [31:0] faults           // what was wrong so far; each is printed
);

  localparam [7:0] SDP = 8'hfb;      // K27.7, start of data packet
  localparam [7:0] SLP = 8'h5c;      // K28.2, start of link packet
  localparam [7:0] EGP = 8'hfd;      // K29.7, end of good packet
  localparam [7:0] UD_SEND_ONLY = 8'h64;
  localparam HEADER_BYTES = 28;      // LRH, BTH, DETH
  localparam SMP_WORDS = 72;         // with 256 bytes of MAD and the ICRC
  localparam SMP_DATA = HEADER_BYTES + 64;  // where the attribute begins
  localparam MAX_BYTES = 4 * MAX_WORDS + 2;  // LRH to VCRC

  // CRCs take the least significant bit of each byte first, and go out complemented, low byte first.
  function [15:0] vcrc_step(input [15:0] crc, input [7:0] data);
    integer bit_number;
    begin
      vcrc_step = crc ^ {8'h00, data};
      for (bit_number = 0; bit_number < 8; bit_number = bit_number + 1)
        vcrc_step = (vcrc_step >> 1) ^ (vcrc_step[0] ? 16'hd008 : 16'h0000);
    end
  endfunction

  function [31:0] icrc_step(input [31:0] crc, input [7:0] data);
    integer bit_number;
    begin
      icrc_step = crc ^ {24'h000000, data};
      for (bit_number = 0; bit_number < 8; bit_number = bit_number + 1)
        icrc_step = (icrc_step >> 1) ^ (icrc_step[0] ? 32'hedb88320 : 32'h00000000);
    end
  endfunction

  function [15:0] lpcrc(input [31:0] body);
    lpcrc = ~vcrc_step(vcrc_step(vcrc_step(vcrc_step(16'hffff, body[31:24]), body[23:16]), body[15:8]), body[7:0]);
  endfunction

  // Blocks of 64 bytes that a packet takes, LRH to VCRC.
  function [11:0] blocks(input [10:0] words);
    blocks = ({1'b0, words} + 12'd16) >> 4;
  endfunction

  // What a packet holds up to its ICRC.
  function [7:0] content(
    input integer index, input [3:0] vl, input [3:0] sl, input [15:0] dlid, input [15:0] slid, input [10:0] words,
    input [23:0] psn
  );
    case (index)
      // LRH: VL, LVer 0; SL, LNH 2 (IBA local); DLID; PktLen; SLID.
      0: content = {vl, 4'h0};
      1: content = {sl, 4'h2};
      2: content = dlid[15:8];
      3: content = dlid[7:0];
      4: content = {5'd0, words[10:8]};
      5: content = words[7:0];
      6: content = slid[15:8];
      7: content = slid[7:0];
      // BTH: OpCode; flags; P_Key; FECN, BECN; DestQP; AckReq; PSN.
      8: content = UD_SEND_ONLY;
      10, 11: content = 8'hff;
      16: content = 8'h00;
      15: content = 8'h02;
      17: content = psn[23:16];
      18: content = psn[15:8];
      19: content = psn[7:0];
      // DETH: Q_Key; reserved; SrcQP.
      27: content = 8'h02;
      default:
        if (index < HEADER_BYTES) content = 8'h00;
        else content = psn[7:0] * 8'd151 + slid[7:0] * 8'd29 + index[7:0] * 8'd7 + index[15:8];
    endcase
  endfunction

  // What an SMP holds up to its ICRC.
  integer lid;
  function [7:0] smp_content(input integer index, input [1:0] kind, input [23:0] block);
    case (index)
      // LRH: VL 15; SL 0, LNH 2; permissive LIDs.
      0: smp_content = 8'hf0;
      1: smp_content = 8'h02;
      2, 3, 6, 7: smp_content = 8'hff;
      5: smp_content = SMP_WORDS;
      // BTH: OpCode; P_Key; QP0.
      8: smp_content = UD_SEND_ONLY;
      10, 11: smp_content = 8'hff;
      // MAD: BaseVersion, MgmtClass, ClassVersion, Method; HopPointer, HopCount: it has left its own node.
      28, 30: smp_content = 8'h01;
      29: smp_content = 8'h81;
      31: smp_content = kind == 2 ? 8'h02 : 8'h01;
      34, 35: smp_content = 8'h01;
      // TransactionID; AttributeID; AttributeModifier; DrSLID, DrDLID: permissive.
      42: smp_content = {6'd0, kind};
      43: smp_content = block[7:0];
      45: smp_content = kind == 2 ? 8'h19 : 8'h11;
      51: smp_content = kind == 2 ? block[7:0] : 8'h00;
      60, 61, 62, 63: smp_content = 8'hff;
      // InitialPath: entry 1, by the only port.
      157: smp_content = 8'h01;
      default: begin
        lid = 64 * block + index - SMP_DATA;
        if (kind != 2 || index < SMP_DATA || index >= SMP_DATA + 64) smp_content = 8'h00;
        else smp_content = lid >= 1 && lid <= ROUTES ? lid[7:0] : 8'hff;
      end
    endcase
  endfunction

  // The ICRC does not cover what a switch may change: VL, FECN and BECN count as ones.
  function [7:0] masked(input integer index, input [7:0] data);
    case (index)
      0: masked = data | 8'hf0;
      12: masked = 8'hff;
      default: masked = data;
    endcase
  endfunction

  task fault;
    begin
      faults = faults + 1;
      $write("FAIL cycle %0d, port %0d: ", cycle, LID);
    end
  endtask

  // Packets and flow control packets out.

  reg [7:0] out [0:MAX_BYTES-1];
  integer out_words, out_row;        // the packet on the wires; no packet if out_row > out_words
  reg [31:0] link_end;               // second row of a link packet
  reg link_ending;
  reg [11:0] blocks_sent [0:VLS-1];  // FCTBS
  reg [11:0] limit_received [0:VLS-1];
  reg [11:0] limit [0:VLS-1];        // FCCL
  reg [11:0] blocks_received [0:VLS-1];
  reg [VLS-1:0] due;
  reg was_normal;
  integer timer;

  integer built;
  reg [15:0] out_vcrc;
  reg [31:0] out_icrc;
  reg [7:0] out_byte;
  task build(input [3:0] vl);
    begin
      out_words = send_smp != 0 ? SMP_WORDS : {21'd0, send_words};
      out_vcrc = 16'hffff;
      out_icrc = 32'hffffffff;
      for (built = 0; built < 4 * out_words; built = built + 1) begin
        if (built < 4 * out_words - 4) begin
          out_byte = send_smp != 0 ? smp_content(built, send_smp, send_psn)
                                   : content(built, vl, send_sl, send_dlid, LID, send_words, send_psn);
          out_icrc = icrc_step(out_icrc, masked(built, out_byte));
        end else begin
          out_byte = ~out_icrc[7:0];
          out_icrc = out_icrc >> 8;
        end
        out[built] = out_byte;
        out_vcrc = vcrc_step(out_vcrc, out_byte);
      end
      out[4 * out_words] = ~out_vcrc[7:0];
      out[4 * out_words + 1] = ~out_vcrc[15:8];
    end
  endtask

  wire [3:0] send_vl = send_sl % VLS;
  wire [11:0] credits_left = limit_received[send_vl] - blocks_sent[send_vl] - blocks(send_words);

  integer vl_sent;
  reg [31:0] link_body;
  reg [15:0] link_crc;
  task send_row;
    begin
      timer = timer + 1;
      if (timer == FCP_PERIOD || normal != was_normal) begin
        timer = 0;
        due = ~{VLS{1'b0}};
      end
      was_normal = normal;
      tx_valid <= 1;
      tx_data <= 32'h00000000;
      tx_k <= 4'b0000;
      if (link_ending) begin
        tx_data <= link_end;
        tx_k <= 4'b0001;
        link_ending = 0;
      end else if (out_row <= out_words) begin
        tx_data[31:24] <= out[4 * out_row - 1];
        tx_data[23:16] <= out[4 * out_row];
        tx_data[15:8] <= out[4 * out_row + 1];
        tx_data[7:0] <= out_row == out_words ? EGP : out[4 * out_row + 2];
        tx_k <= out_row == out_words ? 4'b0001 : 4'b0000;
        out_row = out_row + 1;
      end else if (due != 0) begin
        vl_sent = 0;
        while (!due[vl_sent]) vl_sent = vl_sent + 1;
        due[vl_sent] = 0;
        link_body = {3'b000, !normal, blocks_sent[vl_sent], vl_sent[3:0], limit[vl_sent]};
        link_crc = lpcrc(link_body);
        tx_data <= {SLP, link_body[31:8]};
        tx_k <= 4'b1000;
        link_end = {link_body[7:0], link_crc[7:0], link_crc[15:8], EGP};
        link_ending = 1;
      end else if (send_valid && !send_taken && (send_smp != 0 || credits_left <= 12'd2048)) begin
        build(send_vl);
        if (send_smp == 0) blocks_sent[send_vl] = blocks_sent[send_vl] + blocks(send_words);
        tx_data <= {SDP, out[0], out[1], out[2]};
        tx_k <= 4'b1000;
        out_row = 1;
        send_taken <= 1;
      end
    end
  endtask

  // Packets and flow control packets in.

  reg [7:0] in [0:MAX_BYTES];
  reg in_data, in_link;              // inside a packet
  integer in_bytes;
  reg [31:0] in_since;

  integer checked;
  reg [15:0] in_vcrc;
  reg [31:0] in_icrc;
  reg [10:0] in_words;
  reg [3:0] in_vl;
  task check_data;
    begin
      in_words = {in[4][2:0], in[5]};
      in_vl = in[0][7:4];
      received <= in_vl != 4'd15;
      received_at <= in_since;
      received_good <= 1;
      received_psn <= {in[17], in[18], in[19]};
      received_slid <= {in[6], in[7]};
      received_dlid <= {in[2], in[3]};
      received_sl <= in[1][7:4];
      received_words <= in_words;
      in_vcrc = 16'hffff;
      for (checked = 0; checked < in_bytes - 2; checked = checked + 1) in_vcrc = vcrc_step(in_vcrc, in[checked]);
      in_icrc = 32'hffffffff;
      for (checked = 0; checked < in_bytes - 6; checked = checked + 1)
        in_icrc = icrc_step(in_icrc, masked(checked, in[checked]));
      if (rx_data[7:0] != EGP) begin
        fault;
        $display("a packet ends with %h, expected EGP (%h)", rx_data[7:0], EGP);
        received_good <= 0;
      end else if (in_bytes < HEADER_BYTES + 6 || in_bytes != 4 * in_words + 2) begin
        fault;
        $display("a packet of %0d bytes, PktLen says %0d", in_bytes, 4 * in_words + 2);
        received_good <= 0;
      end else if (~in_vcrc != {in[in_bytes - 1], in[in_bytes - 2]}) begin
        fault;
        $display("VCRC %h, expected %h", {in[in_bytes - 1], in[in_bytes - 2]}, ~in_vcrc);
        received_good <= 0;
      end else if (~in_icrc != {in[in_bytes - 3], in[in_bytes - 4], in[in_bytes - 5], in[in_bytes - 6]}) begin
        fault;
        $display("ICRC is wrong, expected %h", ~in_icrc);
        received_good <= 0;
      end else if (in_vl == 4'd15) begin
        // Class, Method GetResp, the D bit and no error, the HopCount that it was sent with.
        if (in_words != SMP_WORDS || in[29] != 8'h81 || in[31] != 8'h81 || {in[32], in[33]} != 16'h8000
            || in[35] != 8'h01) begin
          fault;
          $display("an SMP of method %h, status %h", in[31], {in[32], in[33]});
        end else begin
          answered <= 1;
          for (checked = 0; checked < 64; checked = checked + 1)
            answer[511 - 8 * checked -: 8] <= in[SMP_DATA + checked];
        end
      end else if (in_vl != in[1][7:4] % VLS) begin
        fault;
        $display("VL %0d of a packet with SL %0d, expected %0d", in_vl, in[1][7:4], in[1][7:4] % VLS);
        received_good <= 0;
      end else begin
        for (checked = 0; checked < in_bytes - 6; checked = checked + 1)
          if (in[checked] != content(checked, in_vl, in[1][7:4], {in[2], in[3]}, {in[6], in[7]}, in_words,
                                     {in[17], in[18], in[19]})) begin
            fault;
            $display("byte %0d of a packet is %h", checked, in[checked]);
            received_good <= 0;
          end
      end
      if (in_vl < VLS) begin
        blocks_received[in_vl] = blocks_received[in_vl] + blocks(in_words);
        limit[in_vl] = limit[in_vl] + blocks(in_words);
        due[in_vl] = 1;
      end
    end
  endtask

  reg [31:0] in_body;
  task check_link;
    begin
      in_body = {in[0], in[1], in[2], in[3]};
      if (in_bytes != 6 || rx_data[7:0] != EGP || lpcrc(in_body) != {in[5], in[4]}) begin
        fault;
        $display("a damaged flow control packet %h", {in[0], in[1], in[2], in[3], in[4], in[5]});
      end else if (in_body[31:28] > 1 || in_body[15:12] >= VLS) begin
        fault;
        $display("a flow control packet with Op %0d, VL %0d", in_body[31:28], in_body[15:12]);
      end else begin
        limit_received[in_body[15:12]] = in_body[11:0];
        if (in_body[27:16] != blocks_received[in_body[15:12]]) begin
          fault;
          $display("FCTBS %0d of VL %0d, received %0d blocks", in_body[27:16], in_body[15:12],
                   blocks_received[in_body[15:12]]);
        end
      end
    end
  endtask

  task receive_row;
    if (!in_data && !in_link) begin
      if (rx_k == 4'b1000 && (rx_data[31:24] == SDP || rx_data[31:24] == SLP)) begin
        in_data = rx_data[31:24] == SDP;
        in_link = rx_data[31:24] == SLP;
        in[0] = rx_data[23:16];
        in[1] = rx_data[15:8];
        in[2] = rx_data[7:0];
        in_bytes = 3;
        in_since = cycle;
      end else if (rx_k !== 4'b0000) begin
        fault;
        $display("control symbols %b in %h outside packets", rx_k, rx_data);
      end
    end else if ((rx_k == 4'b0000 || rx_k == 4'b0001) && in_bytes + 3 <= MAX_BYTES) begin
      in[in_bytes] = rx_data[31:24];
      in[in_bytes + 1] = rx_data[23:16];
      in[in_bytes + 2] = rx_data[15:8];
      in_bytes = in_bytes + 3;
      if (rx_k == 4'b0000) begin
        in[in_bytes] = rx_data[7:0];
        in_bytes = in_bytes + 1;
      end else begin
        if (in_data) check_data;
        else check_link;
        in_data = 0;
        in_link = 0;
      end
    end else begin
      fault;
      $display("control symbols %b in %h inside a packet, or one that is too long", rx_k, rx_data);
      in_data = 0;
      in_link = 0;
    end
  endtask

  integer vl;
  always @(posedge clk) begin
    send_taken <= 0;
    received <= 0;
    answered <= 0;
    if (rst) begin
      tx_valid <= 0;
      out_words = 0;
      out_row = 1;
      link_ending = 0;
      timer = 0;
      was_normal = 0;
      due = ~{VLS{1'b0}};
      in_data = 0;
      in_link = 0;
      faults = 0;
      for (vl = 0; vl < VLS; vl = vl + 1) begin
        blocks_sent[vl] = 0;
        limit_received[vl] = 0;
        blocks_received[vl] = 0;
        limit[vl] = BUFFER_BLOCKS;
      end
    end else begin
      if (rx_valid === 1'b1) receive_row;
      else if (rx_valid !== 1'b0) begin
        fault;
        $display("rx_valid is %b", rx_valid);
      end
      send_row;
    end
  end
endmodule
