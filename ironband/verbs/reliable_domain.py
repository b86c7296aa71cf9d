"""Domains of reliable datagrams, which pyverbs does not have."""

from __future__ import annotations

from typing import Final

from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.device import Context
from verbs.states import QpType

__all__ = ["QPT_EEC", "QPT_RD", "RDD"]

QPT_RD: Final = int(QpType.RD)
"""Of queue pairs of RD, a type that the C interface has no number for."""

QPT_EEC: Final = int(QpType.EEC)


class RDD(PyverbsCM):
    """A domain: its queue pairs send by way of its end-to-end contexts.

    Attributes:
        context: whose it is.
        domain: the adapter's.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.context = context
        with refusals("Failed to allocate RDD"):
            self.domain = context.adapter.allocate_rdd()
        self.made()

    def _end(self) -> None:
        self.context.adapter.deallocate_rdd(self.domain)
