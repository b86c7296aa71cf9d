"""The link layer of a port (IBTA vol 1, chapter 7; docs/pipeline.md, sections 2 to 8)."""
