"""From an input's buffer to an output: queues, matching, reading, the crossbar (docs/matching.md)."""
