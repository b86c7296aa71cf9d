"""Verilog of a design: emitted for simulators, exported for people, synthesised."""
