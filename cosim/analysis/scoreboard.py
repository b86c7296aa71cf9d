"""End to end: what hosts receive is what hosts sent, in order, once, unchanged.

Independent of the golden model: it knows only the packets that were posted and those that came out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cosim.analysis.observer import Observer
from cosim.stimulus.packet import Packet, slot_of_vl
from cosim.topology.topology import Topology
from wire.codes import LNH
from wire.headers import BTH, GRH, LRH
from wire.packet import WORD_BYTES
from wire.parameters import node_text
from wire.stimulus import Delivery

__all__ = ["DeliveryCheck", "Fault", "Follower"]

_Content = tuple[str, bytes]

_FECN: Final = 1 << 7
_FECN_PLACES: Final[dict[int, int]] = {
    LNH.IBA_LOCAL: LRH.size_bytes + BTH["fecn"].offset_bits // 8,
    LNH.IBA_GLOBAL: LRH.size_bytes + GRH.size_bytes + BTH["fecn"].offset_bits // 8,
}
"""The byte that it is the first bit of, by LNH."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A delivery that should not have been: when, where and what is wrong with it."""

    cycle: int
    host: str
    text: str

    def __str__(self) -> str:
        return f"cycle {self.cycle}, {node_text(self.host)}: {self.text}"


class Follower(Protocol):
    """Learns what becomes of packets."""

    def delivered(self, packet: Packet, cycle: int) -> None:
        """The packet arrived as it should."""

    def lost(self, packet: Packet) -> None:
        """A later packet of its flow arrived first."""


class DeliveryCheck(Observer):
    """Follows the deliveries of a run.

    Packets of one flow to one destination arrive in order: one that a later one overtakes is lost. Only packets
    in flight are held. A multicast packet is one for each host that should get it.

    Attributes:
        delivered: packets that arrived as they should.
        lost: packets that were overtaken.
        fault_count: deliveries that should not have been.
        faults: the first of them.
    """

    KEPT_FAULTS = 20

    def __init__(
        self,
        topology: Topology,
        followers: Sequence[Follower] = (),
        *,
        managed: bool = False,
        left_out: Callable[[bytes], bool] | None = None,
        misses_multicast: bool = False,
    ) -> None:
        """`managed`: packets on VL15 are a Subnet Manager's, not looked at. Nor are those that are `left_out`.

        `misses_multicast`: hosts may get a multicast packet, but one that does not has lost nothing.
        """
        self._misses_multicast = misses_multicast
        self._left_out = left_out
        self._followers = followers
        self._managed = managed
        self._topology = topology
        self._hosts = list(topology.fabric.nodes)
        self._under_way: dict[_Content, Packet] = {}
        self._flows: dict[tuple[int, str], deque[_Content]] = {}
        self.delivered = 0
        self.lost = 0
        self.fault_count = 0
        self.faults: list[Fault] = []

    @property
    def under_way(self) -> int:
        """Packets offered, not delivered and not known to be lost."""
        return sum(not self._may_miss(packet) for packet in self._under_way.values())

    def offer(self, packet: Packet) -> None:
        """Expect a packet, if it is one that should arrive."""
        for one in packet.each:
            assert one.destination is not None
            content = _content(one.destination, one.data)
            self._under_way[content] = one
            self._flows.setdefault((one.flow, one.destination), deque()).append(content)

    def deliver(self, delivery: Delivery) -> None:
        """Check one delivery."""
        host = self._hosts[delivery.node]
        if self._managed and delivery.slot == self._topology.fabric.nodes[host].vls:
            return
        if self._left_out is not None and self._left_out(delivery.data):
            return
        content = _content(host, delivery.data)
        packet = self._under_way.get(content)
        if packet is None or packet.cycle > delivery.cycle:
            words = len(delivery.data) // WORD_BYTES
            text = f"got a packet of {words} words that is changed, not meant for it, late or a second one"
            self._fault(Fault(delivery.cycle, host, f"{text}: {delivery.data[:8].hex(' ', WORD_BYTES)} ..."))
            return
        del self._under_way[content]
        waiting = self._flows[packet.flow, host]
        while (first := waiting.popleft()) != content:
            overtaken = self._under_way.pop(first)
            self.lost += not self._may_miss(overtaken)
            for follower in self._followers:
                follower.lost(overtaken)
        self.delivered += 1
        for follower in self._followers:
            follower.delivered(packet, delivery.cycle)
        slot = slot_of_vl(packet.final_vl, self._topology.fabric.nodes[host].vls)
        if delivery.slot != slot:
            self._fault(Fault(delivery.cycle, host, f"got a packet on slot {delivery.slot}, expected {slot}"))

    def _may_miss(self, packet: Packet) -> bool:
        return self._misses_multicast and packet.is_multicast

    def _fault(self, fault: Fault) -> None:
        self.fault_count += 1
        if len(self.faults) < self.KEPT_FAULTS:
            self.faults.append(fault)


def _content(host: str, data: bytes) -> _Content:
    """Where a packet goes and what it holds, but for LRH.VL and FECN, which switches rewrite."""
    content = bytearray(data)
    content[0] &= 0x0F
    place = _FECN_PLACES.get(LRH["lnh"].read(data))
    if place is not None and place < len(content):
        content[place] &= ~_FECN
    return host, bytes(content)
