"""Protection domains."""

from __future__ import annotations

from collections.abc import Sequence

from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.device import Context
from ironband.verbs.sge import SGE
from verbs.regions import Access

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

    def advise_mr(self, advise: int, flags: int, sg_list: Sequence[SGE]) -> None:
        """Nothing has to be fetched; the memory has to be there, and its keys to be of this domain."""
        with refusals("Failed to advise MR"):
            for sge in sg_list:
                place = self.context.adapter.keys.local(sge.lkey, sge.addr, sge.length, self.domain, Access.NONE)
                place.read(sge.length)

    @property
    def handle(self) -> int:
        """Its number in the adapter."""
        return self.domain.number
