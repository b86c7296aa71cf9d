"""A node's management agent: its Subnet Management Interface and Agent, and its traps (docs/management.md)."""
