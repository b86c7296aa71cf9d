"""Multicast: groups, their trees, and the tables that lead their packets (IBTA vol 1, 10.5 and 14.2.5.12)."""
