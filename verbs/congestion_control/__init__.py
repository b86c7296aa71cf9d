"""Congestion control of a channel adapter's port (IBTA vol 1, annex A10)."""
