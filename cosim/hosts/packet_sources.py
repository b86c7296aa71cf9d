"""Where congestion control is on, what sends and gets packets without a transport.

It is an actor (`cosim.stimulus.run_spec.Actor`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from cosim.hosts.other_packets import OtherPackets, drawn
from cosim.scenario.congestion import Congestion
from cosim.scenario.scenario import Scenario
from cosim.stimulus.actors import Shared, drawn_until
from cosim.stimulus.flows import scenario_packets, scenario_streams
from cosim.stimulus.message_events import MessageEvent, MessageListener
from cosim.stimulus.packet import FIRST_QP, Packet
from cosim.topology.topology import Port, Topology
from verbs.arrived import Arrived, read_packet
from verbs.congestion_control.port_control import PortCongestionControl
from verbs.frame import Outgoing
from verbs.hosts import AHEAD_WORDS, REACTION_CYCLES
from verbs.incidents import Incident
from wire.codes import is_multicast_lid
from wire.opcodes import Opcode
from wire.packet import build
from wire.stimulus import Delivery, Post, Taking

__all__ = ["PacketSources"]


@dataclass(eq=False, slots=True)
class _Queue:
    """Packets of a stream that wait for their turn.

    Attributes:
        sl: of all of them.
        turn: when the last one had its turn, by the count of all turns.
    """

    sl: int
    packets: deque[Packet] = field(default_factory=deque)
    turn: int = 0


@dataclass(eq=False, slots=True)
class _Slot:
    """A VL of a host's port.

    Attributes:
        queues: by stream.
        notices: to be sent, with the cycles from which on they may be.
        room: words of the packets that were posted and not taken.
    """

    queues: dict[int, _Queue] = field(default_factory=dict)
    notices: dict[bytes, Packet] = field(default_factory=dict)
    room: deque[int] = field(default_factory=deque)


class PacketSources:
    """The hosts of a scenario that send and get packets without a transport, and what they do about congestion.

    A stream is a queue pair's, and they do what adapters do for such (docs/verbs.md): who gets a packet with FECN sends
    a notice with BECN back, and who gets that waits behind each packet of the stream. A host's streams of a VL take
    turns. What they do follows from what is delivered and taken alone, so every engine gets the same posts.

    Attributes:
        reach: the cycle up to which posts are known.
        posted: what they post.
    """

    def __init__(
        self, scenario: Scenario, congestion: Congestion, topology: Topology, start: int, tell: MessageListener
    ) -> None:
        """Packets are posted from cycle `start` on."""
        self.reach = 0
        self.posted: Shared[Post] = Shared()
        self._scenario = scenario
        self._topology = topology
        self._start = start
        self._tell = tell
        self._nodes = list(topology.fabric.nodes)
        self._streams = scenario_streams(scenario)
        self._packets = scenario_packets(scenario, topology, start, scenario.seed)
        self._next = next(self._packets, None)
        self._slots: dict[tuple[str, int], _Slot] = {}
        self._turns = 0
        self._queue = self.posted.queue()
        self._offered: deque[Packet] = deque()
        self._others: OtherPackets | None = None
        self._controls: dict[str, PortCongestionControl] = {}
        for node in topology.lids:
            self._controls[node] = PortCongestionControl(scenario.cycle_ns)
            self._controls[node].set(congestion.adapter_settings, 0)

    def beside(self, posted: Shared[Post]) -> None:
        """Transports post these at the same hosts."""
        self._others = OtherPackets(drawn(self.posted.queue()), posted.queue())

    # What acts.

    def until(self, finished: int) -> int:
        """How far the fabric may run: no farther than an answer to what it does may be due."""
        if finished < self.reach:
            # At the ends of others' steps nothing is done: what is posted does not depend on who manages the fabric.
            return self.reach
        self.reach = self._start if finished < self._start else finished + REACTION_CYCLES - 1
        while self._next is not None and self._next.cycle <= self.reach:
            packet, self._next = self._next, next(self._packets, None)
            queues = self._slot(packet.source, packet.slot).queues
            queues.setdefault(packet.flow, _Queue(self._streams[packet.flow].sl)).packets.append(packet)
        sent = [packet for place, slot in self._slots.items() for packet in self._sent(place[0], slot, finished + 1)]
        for packet in sorted(sent, key=attrgetter("cycle")):
            self.posted.append(packet.post(self._topology))
            self._offered.append(packet)
        return self.reach

    def posts_until(self, cycle: int) -> list[Post]:
        """Packets for CYCLE or before that were not given yet."""
        return drawn_until(self._queue, cycle)

    def delivered(self, delivery: Delivery) -> None:
        """Looks at a packet for what it tells of congestion."""
        packet = read_packet(delivery.data)
        if packet is None or is_multicast_lid(packet.dlid) or not (packet.fecn or packet.becn):
            return
        host, stream = self._nodes[delivery.node], self._stream_of(packet)
        if packet.opcode != Opcode.CNP:
            if packet.fecn and self._is_from(packet.slid, stream):
                self._answer(host, stream, packet, delivery.cycle + REACTION_CYCLES)
        elif packet.becn and self._is_from(packet.dlid, stream):
            self._controls[host].slow_down(FIRST_QP + stream, packet.sl, delivery.cycle)
            self._tell(MessageEvent(stream, delivery.cycle, host, Incident.BECN, psn=packet.psn))

    def taken(self, taking: Taking) -> None:
        """There is room for one more of the packets of a slot, if it was ours."""
        if self._others is not None and self._others.is_of_transport(taking):
            return
        slot = self._slots.get((self._nodes[taking.node], taking.slot))
        if slot is not None and slot.room:
            slot.room.popleft()

    # What is told of packets.

    def offered_until(self, cycle: int | None) -> Iterator[Packet]:
        """What was posted for CYCLE or before, or all, for who follows packets; notices are for no host there."""
        while self._offered and (cycle is None or self._offered[0].cycle <= cycle):
            yield self._offered.popleft()

    # How.

    def _slot(self, host: str, vl: int) -> _Slot:
        return self._slots.setdefault((host, vl), _Slot())

    def _sent(self, host: str, slot: _Slot, first: int) -> Iterator[Packet]:
        """What goes from cycle FIRST on, in so far as there is room, each with its cycle."""
        control = self._controls[host]
        while sum(slot.room) < AHEAD_WORDS:
            ready = {
                stream: max(queue.packets[0].cycle, control.free(FIRST_QP + stream, queue.sl))
                for stream, queue in slot.queues.items()
                if queue.packets
            }
            notice = next(iter(slot.notices.values()), None)
            cycles = [*ready.values(), self.reach + 1 if notice is None else notice.cycle]
            cycle = max(first, min(cycles))
            if cycle > self.reach:
                return
            if notice is not None and notice.cycle <= cycle:
                packet = slot.notices.pop(notice.data)
            else:
                of_turn = [slot.queues[stream] for stream in ready if ready[stream] <= cycle]
                queue = min(of_turn, key=attrgetter("turn"))
                self._turns += 1
                queue.turn = self._turns
                packet = queue.packets.popleft()
                control.sent(FIRST_QP + packet.flow, Outgoing(packet.data, queue.sl, 0), cycle)
            slot.room.append(packet.pkt_len)
            yield packet._replace(cycle=cycle)

    @staticmethod
    def _stream_of(packet: Arrived) -> int:
        """The stream of a packet, or of what a notice tells of: both queue pairs of an RDMA WRITE have its number."""
        return (packet.deth()[1] if packet.has_deth else packet.dest_qp) - FIRST_QP

    def _is_from(self, lid: int, stream: int) -> bool:
        """Whether there is such a stream, from this LID."""
        known = 0 <= stream < len(self._streams)
        return known and self._topology.lids[self._streams[stream].source] == lid

    def _answer(self, host: str, stream: int, packet: Arrived, cycle: int) -> None:
        """Sends a notice in cycle `cycle` or when there is room, unless one that says the same still waits."""
        vl = self._topology.vl(Port(host, 1), packet.sl)
        made = build(
            lrh={"vl": vl, "sl": packet.sl, "slid": packet.dlid, "dlid": packet.slid},
            bth={
                "opcode": Opcode.CNP,
                "mig_req": 1,
                "becn": 1,
                "p_key": self._scenario.p_key_of(self._streams[stream].flow, host),
                "dest_qp": FIRST_QP + stream,
            },
        )
        notice = Packet(stream, 0, cycle, host, None, vl, vl, made.data, "notice of congestion")
        self._slot(host, vl).notices.setdefault(made.data, notice)
