"""A node's management agent: SMI, SMA, traps and PMA (docs/management.md)."""
