"""What goes through the states of a queue pair: queue pairs of all types, and end-to-end contexts."""

from __future__ import annotations

from typing import Final

from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.device import Context
from ironband.verbs.enums import ibv_qp_attr_mask, ibv_qp_state, ibv_qp_type
from ironband.verbs.qp_attributes import QPAttr, changes_of, mask_of_step
from verbs.queue_pair import QueuePair
from verbs.states import QpState

__all__ = ["StatefulPair"]

_STATES: Final = (ibv_qp_state.IBV_QPS_INIT, ibv_qp_state.IBV_QPS_RTR, ibv_qp_state.IBV_QPS_RTS)


class StatefulPair(PyverbsCM):
    """A queue pair, or an end-to-end context.

    Attributes:
        context: whose it is.
        queue_pair: the adapter's.
    """

    def __init__(self, context: Context, *owners: PyverbsCM) -> None:
        """Begins to make it; `has` ends that."""
        super().__init__(context, *owners)
        self.context = context
        self.queue_pair: QueuePair

    def has(self, queue_pair: QueuePair) -> None:
        """The adapter has made this."""
        self.queue_pair = queue_pair
        self.context.listen_to(self.qp_num)
        self.made()

    def _end(self) -> None:
        self.context.adapter.destroy_qp(self.queue_pair)
        self.context.forget(self.qp_num)
        self._clear()

    def _clear(self) -> None:
        """It goes to RESET, or ends."""

    @property
    def qp_num(self) -> int:
        """QPN."""
        return self.queue_pair.number

    @property
    def qp_type(self) -> int:
        """Of `ibv_qp_type`, or one of ours for RD."""
        kind = int(self.queue_pair.pair.kind)
        return ibv_qp_type(kind) if kind in set(ibv_qp_type) else kind

    @property
    def qp_state(self) -> int:
        """Of `ibv_qp_state`, as it is."""
        return ibv_qp_state(self.queue_pair.state)

    # States.

    def modify(self, qp_attr: QPAttr, comp_mask: int) -> None:
        """Sets what COMP_MASK of `ibv_qp_attr_mask` says."""
        self._modify(qp_attr, comp_mask, "Failed to modify QP")

    def _modify(self, attr: QPAttr, mask: int, what: str) -> None:
        self.check_open()
        pair = self.queue_pair
        with refusals(what):
            if mask & ibv_qp_attr_mask.IBV_QP_CUR_STATE and attr.cur_qp_state != pair.state:
                raise ValueError(f"it is in {pair.state.name}, not in {QpState(attr.cur_qp_state).name}")
            to = QpState(attr.qp_state) if mask & ibv_qp_attr_mask.IBV_QP_STATE else None
            pair.modify(to, **changes_of(attr, mask))
        if to is QpState.RESET:
            self._clear()

    def to_init(self, qp_attr: QPAttr) -> None:
        """RESET to INIT."""
        self._go(qp_attr, 0)

    def to_rtr(self, qp_attr: QPAttr) -> None:
        """To RTR, by way of INIT unless it is there."""
        self._go(qp_attr, 1)

    def to_rts(self, qp_attr: QPAttr) -> None:
        """To RTS, by way of INIT and RTR unless it is there."""
        self._go(qp_attr, 2)

    def _go(self, attr: QPAttr, last: int) -> None:
        before = self.qp_state
        first = _STATES.index(before) + 1 if before in _STATES[:last] else 0
        for state in _STATES[first : last + 1]:
            attr.qp_state = state
            name = QpState(state).name
            self._modify(attr, mask_of_step(self.qp_type, state), f"Failed to modify QP state to {name}")

    def query_attr(self) -> QPAttr:
        """All attributes as they are."""
        self.check_open()
        pair = self.queue_pair
        return QPAttr.of(pair.query(), self.qp_state, pair.capabilities)

    def __str__(self) -> str:
        shown = (
            ("QP type", self.queue_pair.pair.kind.name),
            ("  number", self.qp_num),
            ("  state", QpState(self.qp_state).name),
        )
        return "".join(f"{name:22}: {value:<20}\n" for name, value in shown)
