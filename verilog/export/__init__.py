"""The switch as others take it away: Verilog with plain ports, a test bench in Verilog, documents, a FuseSoC core."""
