"""The golden model: cycle-exact and event-driven, written from docs/pipeline.md and docs/management.md alone.

Each module cites the sections it follows. `model.fabric.Fabric` is the entry.
"""
