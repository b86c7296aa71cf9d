"""A node's management agent: its SMI, SMA, traps and PMA (docs/management.md)."""
