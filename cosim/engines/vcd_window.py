"""Of waves as VCD, those of a time alone."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

__all__ = ["VcdWindow"]

_VECTORS: Final = "bBrRsS"
"""Changes that begin with one of these have a blank before the signal's name; of the others a value is a character."""


class VcdWindow(io.TextIOBase):
    """A text file that a VCD writer writes its header to at once, then whole lines, and keeps the lines of a time.

    It begins with the values that all signals have by then.
    """

    def __init__(self, path: Path, begin: int, end: int) -> None:
        """From time BEGIN to before END, in the unit of the VCD."""
        self._file = path.open("w")
        self._begin, self._end = begin, end
        self._has_header = self._has_begun = self._is_over = False
        self._values: dict[str, str] = {}

    def write(self, text: str, /) -> int:
        """Take some lines."""
        if self._has_header:
            for line in text.splitlines():
                self._take(line)
        else:
            self._file.write(text)
            self._has_header = True
        return len(text)

    def close(self) -> None:
        """End the file."""
        self._file.close()
        super().close()

    def _take(self, line: str) -> None:
        if line.startswith("#"):
            time = int(line[1:])
            self._is_over = time >= self._end
            if time >= self._begin and not self._has_begun and not self._is_over:
                self._has_begun = True
                self._file.write("\n".join((line, "$dumpvars", *self._values.values(), "$end", "")))
                self._values.clear()
                return
        if self._has_begun:
            if not self._is_over:
                self._file.write(f"{line}\n")
        elif not line.startswith(("#", "$")):
            self._values[line.rpartition(" ")[2] if line[0] in _VECTORS else line[1:]] = line
