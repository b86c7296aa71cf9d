"""Switches that several tests look at: to elaborate one takes longer than most of what is looked at."""

from wire.parameters import SwitchParameters

__all__ = ["SMALL", "SMALLEST"]

SMALL = SwitchParameters(ports=3, vls=2, mtu=256, buffer_blocks=12)
"""Entries of a table by port and VL lie a number of slots apart that is no power of two."""

SMALLEST = SwitchParameters(ports=2, vls=2, mtu=256, buffer_blocks=8, queueing="fifo", readers=1, lft_size=3)
"""Where the test bench of an export ends sooner."""
