"""The register bus, counters and the registers of a port (wire/registers.py)."""
