"""Points for a picture, as many as it needs, of a series of any length."""

from __future__ import annotations

from typing import Final

import numpy as np

from capture.records import Integers

__all__ = ["Thinned"]

_MOST: Final = 20_000


class Thinned:
    """Keeps every point while there are few, then every second, every fourth, and so on."""

    def __init__(self) -> None:
        self._times: list[Integers] = []
        self._values: list[Integers] = []
        self._kept = 0
        self._every = 1
        self._skip = 0
        """How many of the next points are not kept."""

    def add(self, time_ns: Integers, value: Integers) -> None:
        """Take more points, later ones."""
        times, values = time_ns[self._skip :: self._every], value[self._skip :: self._every]
        self._skip = (self._skip - len(time_ns)) % self._every
        if not len(times):
            return
        # Copies, that do not hold on to all the others.
        self._times.append(times.copy())
        self._values.append(values.copy())
        self._kept += len(times)
        if self._kept > _MOST:
            times, values = self.points()
            self._times, self._values = [times[::2].copy()], [values[::2].copy()]
            self._skip += self._every if self._kept % 2 else 0
            self._every *= 2
            self._kept = len(self._times[0])

    def points(self) -> tuple[Integers, Integers]:
        """Times and values."""
        nothing = np.zeros(0, np.int64)
        return np.concatenate([nothing, *self._times]), np.concatenate([nothing, *self._values])
