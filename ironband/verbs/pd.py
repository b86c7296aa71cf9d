"""Protection domains."""

from __future__ import annotations

from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.device import Context

__all__ = ["PD"]


class PD(PyverbsCM):
    """A protection domain.

    Attributes:
        context: whose it is.
        domain: the adapter's.
    """

    def __init__(self, creator: Context) -> None:
        super().__init__(creator)
        self.context = creator
        with refusals("Failed to allocate PD"):
            self.domain = creator.adapter.allocate_pd()
        self.made()

    def _end(self) -> None:
        self.context.adapter.deallocate_pd(self.domain)

    @property
    def handle(self) -> int:
        """Its number in the adapter."""
        return self.domain.number
