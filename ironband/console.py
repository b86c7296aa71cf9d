"""Where commands print."""

from __future__ import annotations

from rich import console

__all__ = ["Console"]


class Console(console.Console):
    """A reader that goes away is an error as in any other output: rich would end the process with status 1."""

    def on_broken_pipe(self) -> None:
        """Called while the error is handled."""
        raise
