"""Captures: what was on links, packet by packet, in files that Wireshark reads; written, read, checked, told."""
