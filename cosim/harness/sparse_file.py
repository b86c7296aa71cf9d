"""Files that are read once while they grow: the disk space of what was read is given back."""

from __future__ import annotations

import ctypes

__all__ = ["give_back"]

_LIBC = ctypes.CDLL(None)
_LIBC.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
_KEEP_SIZE = 1
_PUNCH_HOLE = 2


def give_back(descriptor: int, begin: int, end: int) -> None:
    """Give back the disk space of bytes BEGIN to END - 1 of a file open for writing; they read as 0 from now on.

    On a file system that cannot do that, nothing happens.
    """
    _LIBC.fallocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, begin, end - begin)
