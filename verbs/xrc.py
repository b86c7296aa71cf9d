"""XRC: RC whose requests name the shared receive queue that they are for (IBTA vol 1, annex A14)."""

from __future__ import annotations

from dataclasses import replace

from verbs.arrived import Arrived
from verbs.fields import number32_bytes
from verbs.incoming import RefusedRequestError
from verbs.pair_state import PairState, XrcReceives
from verbs.rc_requester import RcRequester
from verbs.rc_responder import RcResponder
from verbs.send_work import SendWork
from wire.opcodes import Service

__all__ = ["XrcRequester", "XrcResponder"]


class XrcRequester(RcRequester):
    """Sends as RC does; credits are not counted, as with any shared receive queue."""

    def __init__(self, pair: PairState) -> None:
        super().__init__(pair, Service.XRC)

    def _prefix(self, work: SendWork) -> bytes:
        return number32_bytes(work.request.xrc_srq)


class XrcResponder(RcResponder):
    """Takes as RC does, with the protection domain and the completion queue of the shared receive queue."""

    def __init__(self, pair: PairState) -> None:
        super().__init__(pair, Service.XRC)
        self._targets: dict[XrcReceives, PairState] = {}

    def clear(self) -> None:
        """Forgets what it was doing."""
        super().clear()
        self._targets.clear()

    def _target_of(self, packet: Arrived) -> PairState:
        pair = self._pair
        found = pair.shared.get(packet.xrc_srq)
        if found is None or found.domain is not pair.xrc_domain:
            raise RefusedRequestError.invalid()
        if found not in self._targets:
            self._targets[found] = replace(pair, pd=found.queue.pd, receives=found.queue, recv_cq=found.cq)
        return self._targets[found]
