"""The Verilog around a simulated fabric, and the files by which Python speaks with it."""
