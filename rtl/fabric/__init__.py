"""A whole fabric in hardware: nodes, links, and ports for stimulus and trace (docs/architecture.md)."""
