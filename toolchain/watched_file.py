"""A file that was read, and what has become of it since."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Final

__all__ = ["WatchedFile"]

_AS_READ: Final = "is as it was again"
_OTHER: Final = "has changed"
_GONE: Final = "is gone"


class WatchedFile:
    """What it held, and whether it still does.

    Attributes:
        path: where it is.
        data: what was read.
    """

    def __init__(self, path: Path) -> None:
        """Reads it.

        Raises:
            OSError: it cannot be read.
        """
        self.path = path
        with path.open("rb") as file:
            held = os.fstat(file.fileno())
            self.data = file.read()
        self._watched = stat.S_ISREG(held.st_mode)
        self._stamp = _stamp(held)
        self._digest = sha256(self.data).digest()
        self._state = _AS_READ

    def change(self) -> str:
        """What has become of it since this was asked last, in words; empty if nothing."""
        state = self._look() if self._watched else _AS_READ
        if state == self._state:
            return ""
        self._state = state
        return state

    def _look(self) -> str:
        try:
            stamp = _stamp(self.path.stat())
            if stamp == self._stamp:
                return self._state
            state = _AS_READ if sha256(self.path.read_bytes()).digest() == self._digest else _OTHER
        except OSError:
            self._stamp = ()
            return _GONE
        self._stamp = stamp
        return state


def _stamp(held: os.stat_result) -> tuple[int, ...]:
    """What changes when the file does."""
    return held.st_dev, held.st_ino, held.st_size, held.st_mtime_ns
