"""Congestion control agents of a fabric's ports: they hold what is set, and answer with it (IBTA vol 1, A10.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sm.mad_client import OutgoingMad
from sm.subnet import End
from tests.sm.sma_fabric import HOP_CYCLES, SmaFabric
from wire.codes import QP_GSI
from wire.congestion_control import CC_CLASS_VERSION, CC_MAD, CcAttribute
from wire.layout import Record
from wire.mad import MadMethod, mad_data, mad_response
from wire.node_info import NodeType


class Held(NamedTuple):
    """What a port was asked to hold."""

    end: End
    attribute: CcAttribute
    modifier: int
    data: bytes


class CcAgents:
    """All that a Subnet Manager's MADs come to, by LID; it gets all that leaves by QP1."""

    def __init__(self, fabric: SmaFabric) -> None:
        self.sets: list[Held] = []
        """In the order in which they came."""
        self.keys: set[int] = set()
        """CC_Keys of requests."""
        self.represses: list[tuple[OutgoingMad, Record]] = []
        """TrapRepresses that were sent, and their MADs."""
        self.status: Callable[[Held], int | None] = lambda held: 0
        """Of an answer; None for no answer."""
        self._fabric = fabric
        fabric.on_gmp = self._sent

    def of(self, end: End) -> list[Held]:
        """What a port was asked to hold, in order."""
        return [held for held in self.sets if held.end == end]

    def _sent(self, out: OutgoingMad) -> None:
        fabric = self._fabric
        origin = next(end for end, mads in fabric.managers.items() if mads is fabric.mads)
        # A MAD to the own port goes round within the adapter.
        own = fabric.nodes[origin.guid].ports[origin.port].lid
        end = origin if out.dlid == own else fabric.arrives(fabric.subnet.peer(origin).guid, out.dlid)
        request = CC_MAD.unpack(out.mad)
        if request.method == MadMethod.TRAP_REPRESS:
            self.represses.append((out, request))
            return
        assert (out.slid, out.qpn) == (own, QP_GSI)
        assert (request.class_version, request.method) == (CC_CLASS_VERSION, MadMethod.SET)
        if end is not None and not fabric.lose():
            fabric.at(5 * HOP_CYCLES, lambda: self._arrived(end, request))

    def _arrived(self, end: End, request: Record) -> None:
        node = self._fabric.nodes[end.guid]
        held = Held(end, CcAttribute(request.attribute_id), request.attribute_modifier, mad_data(request))
        if held.attribute is not CcAttribute.CLASS_PORT_INFO:
            is_switch = held.attribute is CcAttribute.SWITCH_CONGESTION_SETTING
            assert node.node.type is (NodeType.SWITCH if is_switch else NodeType.CA)
        self.sets.append(held)
        self.keys.add(request.cc_key)
        status = self.status(held)
        if status is None or self._fabric.lose():
            return
        answer = mad_response(request, held.data, status).pack()
        self._fabric.at(5 * HOP_CYCLES, lambda: self._fabric.mads.received(answer, self._fabric.now))
