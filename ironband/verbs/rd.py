"""Reliable datagrams: queue pairs that send to many, by way of end-to-end contexts. Pyverbs does not have them."""

from __future__ import annotations

from ironband.verbs.base import refusals
from ironband.verbs.qp_attributes import QPAttr
from ironband.verbs.reliable_domain import QPT_RD, RDD
from ironband.verbs.stateful_pair import StatefulPair

__all__ = ["EEC", "QPT_RD", "RDD"]


class EEC(StatefulPair):
    """An end-to-end context: it is connected to another as a queue pair of RC is, and carries one message at a time."""

    def __init__(self, rdd: RDD, attr: QPAttr | None = None) -> None:
        """With ATTR it goes to INIT."""
        super().__init__(rdd.context, rdd)
        with refusals("Failed to create EEC"):
            self.has(rdd.context.adapter.create_eec(rdd.domain))
        if attr is not None:
            self.to_init(attr)

    @property
    def eec_num(self) -> int:
        """What its peer calls it."""
        return self.qp_num
