"""Area and clock of a switch on an FPGA, through Yosys and nextpnr."""
