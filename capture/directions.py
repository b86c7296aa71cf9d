"""Names of the directions that a capture has: from which port of a link to which, or what a host captured."""

from __future__ import annotations

from typing import Final

__all__ = ["ARROW", "HOST", "ends", "is_of_host", "opposite"]

ARROW: Final = " -> "
"""Between the two ends in the name of a direction."""

HOST: Final = " host"
"""Behind the port in the name of what a host captured."""


def ends(direction: str) -> tuple[str, str] | None:
    """From where a direction leads to where, if its name says so."""
    source, arrow, destination = direction.partition(ARROW)
    return (source, destination) if arrow else None


def opposite(direction: str) -> str | None:
    """The name of the other direction of the same link, if this one says its ends."""
    found = ends(direction)
    return ARROW.join(reversed(found)) if found else None


def is_of_host(direction: str) -> bool:
    """Whether it is what a host captured, and not a direction of a link."""
    return direction.endswith(HOST)
