"""What the command reports in one line: errors of what it was given and of the machine that it runs on."""

from __future__ import annotations

__all__ = ["UserError"]


class UserError(Exception):
    """The input or the machine is not as it must be; the first line of the text names what, where and why."""
