"""A port's link layer and the cable to the next (docs/pipeline.md, sections 2 to 6)."""
