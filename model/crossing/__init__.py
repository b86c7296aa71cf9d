"""From an input's buffer to an output: queues and matching (docs/pipeline.md, sections 7 and 8)."""
