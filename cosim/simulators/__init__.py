"""Verilog simulators: found, built and run."""
