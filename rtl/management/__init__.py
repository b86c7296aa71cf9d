"""The register bus, a port's registers and its counters (docs/pipeline.md, section 10)."""
