"""Where something stands in topology files, and what is wrong there."""

from __future__ import annotations

from typing import NamedTuple

from toolchain.errors import UserError

__all__ = ["Place", "TopologyError", "Wrong"]


class TopologyError(UserError, ValueError):
    """A topology file that is wrong; the text is one line: file, line number, reason."""


class Wrong(ValueError):
    """The reason for which a line is wrong; who knows the line says where it stands."""


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int
    included_at: Place | None = None
    """The line that includes the file, if one does."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    def error(self, reason: object) -> TopologyError:
        """What is wrong here."""
        return TopologyError(f"{self}: {reason}{self._trail}")

    def seen_from(self, other: Place) -> str:
        """The same place in a message about another."""
        near = (self.file, self.included_at) == (other.file, other.included_at)
        return f"line {self.line}" if near else f"{self}{self._trail}"

    @property
    def _trail(self) -> str:
        return f" (included at {self.included_at})" if self.included_at else ""
