"""The `ironband` command."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

__all__ = ["main"]

_HELD = 0
_BAD_USE = 2
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status.

    0 held, 1 a check failed, 2 bad use or input with one line on standard error, 130 interrupted.
    """
    signal.signal(signal.SIGTERM, _terminated)
    try:
        # Imported in here so that an interrupt meanwhile ends quietly too.
        from cosim.cli.main import run_command

        status = run_command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("ironband: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; what is buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BAD_USE
    return status


def _terminated(number: int, frame: FrameType | None) -> None:
    """End as on any exception, so that what was started is ended and what is half written is removed."""
    sys.exit(128 + number)
