"""The `ironband` command, and Ironband in Python (docs/library.md)."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ironband.library import (
        Arrival,
        Differs,
        Fabric,
        FabricRun,
        Kind,
        NothingCame,
        SwitchParameters,
        UserError,
        export_switch,
        find_topology,
        packaged_topologies,
        read_topology,
        run_cocotb,
    )

__all__ = [
    "Arrival",
    "Differs",
    "Fabric",
    "FabricRun",
    "Kind",
    "NothingCame",
    "SwitchParameters",
    "UserError",
    "export_switch",
    "find_topology",
    "main",
    "packaged_topologies",
    "read_topology",
    "run_cocotb",
]

_BAD_USE = 2
_INTERRUPTED = 130
_AGAIN_SECONDS = 0.001


def __getattr__(name: str) -> Any:
    """The names of `ironband.library`, imported when one is first asked for: the command does without them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ironband import library

    return getattr(library, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status.

    0 held, 1 a check failed, 2 bad use or input with one line on standard error, 130 interrupted.
    """
    if sys.stderr is None:
        # Closed; what is said of errors has nowhere to go.
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        print("ironband: standard output is closed", file=sys.stderr)
        return _BAD_USE
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        # Otherwise we are to outlive our terminal.
        signal.signal(signal.SIGHUP, _end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Otherwise we run where interrupts are ignored, such as a shell's background.
        signal.signal(signal.SIGINT, _end)
    try:
        # Imported in here so that an interrupt meanwhile ends quietly too.
        from ironband.group import run_command

        status = run_command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("ironband: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone.
        _drop_output()
        return _BAD_USE
    except OSError as error:
        # A full disk, most often.
        _drop_output()
        where = f"{error.filename}: " if error.filename else ""
        print(f"ironband: {where}{error.strerror or error}", file=sys.stderr)
        return _BAD_USE
    return status


def _drop_output() -> None:
    """What is buffered has nowhere to go, and Python would try once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(number: int, frame: FrameType | None) -> None:
    """End as on any exception, so that what was started is ended and what is half written is removed."""
    # Amaranth and asyncio warn of what is dropped unfinished, and what was only half made may fail as it is dropped.
    warnings.simplefilter("ignore")

    def dropped(what: sys.UnraisableHookArgs) -> None:
        # Python drops what is raised in a finalizer, our end too, which comes once more as soon as that is over.
        if issubclass(what.exc_type, KeyboardInterrupt | SystemExit):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)

    signal.signal(signal.SIGALRM, lambda _alarm, frame: _end(number, frame))
    sys.unraisablehook = dropped
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)
