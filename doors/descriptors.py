"""How many files the server may have open: some are always free, for what is open for a moment only."""

from __future__ import annotations

import errno
import os
import resource
from typing import Final

__all__ = ["FEW_SPARE", "MANY_SPARE", "NoRoom", "check_room", "kept"]

MANY_SPARE: Final = 32
"""That programs leave free."""

FEW_SPARE: Final = 16
"""That lines for the laboratory leave free."""


class NoRoom(Exception):
    """A descriptor that cannot be kept; the text says why."""


def check_room(descriptor: int, spare: int) -> None:
    """Check that a descriptor can be kept open: the system gives out the least that is free.

    Raises:
        NoRoom: fewer than SPARE would be left.
    """
    most, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptor >= most - spare:
        raise NoRoom(f"too many files are open here, expected at most {most} (ulimit -n)")


def kept(descriptor: int) -> int:
    """A descriptor that is kept open for a program; it is closed if it cannot be.

    Raises:
        OSError: that too many files are open.
    """
    try:
        check_room(descriptor, MANY_SPARE)
    except NoRoom as error:
        os.close(descriptor)
        raise OSError(errno.EMFILE, str(error)) from None
    return descriptor
