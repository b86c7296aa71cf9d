"""A channel adapter: a link port, a host and an agent (docs/pipeline.md, section 9)."""
