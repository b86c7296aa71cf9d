"""What surrounds the hardware in a simulation: trace outputs and the model of a link."""
