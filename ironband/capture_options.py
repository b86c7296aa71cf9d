"""The options that say what is captured while something is simulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ironband.common import STDOUT, alone, input_errors
from toolchain.atomic_files import output_file

__all__ = ["capture_options"]

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _of_a_format(context: click.Context, parameter: click.Parameter, target: str | None) -> str | None:
    """Whether a capture can be written is known before the fabric is, and before all that simulates is imported."""
    if target is not None:
        from capture.formats import capture_format

        with input_errors():
            capture_format(target, ())
            if target != STDOUT:
                output_file(Path(target))
    return alone(context, parameter, target)


_CAPTURE: Final = click.option(
    "--capture",
    "capture_file",
    metavar="FILE|-",
    callback=_of_a_format,
    help="Write what passes the links to FILE (.pcapng, .pcap, .erf), or in place of the text to standard output.",
)
_AT: Final = click.option(
    "--capture-at",
    multiple=True,
    metavar="PORT",
    help="Only the link at PORT, NODE[PORT] or HOST; only what it sends with PORT:out, gets with PORT:in; what its "
    "host captures with PORT:host. Repeatable.",
)


def capture_options(command: _Command) -> _Command:
    """`--capture` and `--capture-at`, as arguments `capture_file` and `capture_at`."""
    return _CAPTURE(_AT(command))
