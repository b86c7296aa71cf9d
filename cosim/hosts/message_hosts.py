"""The hosts of a scenario that have messages to send or to get: an actor (`cosim.stimulus.run_spec.Actor`)."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from cosim.hosts.message_connection import HostEnd, MessageConnection
from cosim.hosts.other_packets import OtherPackets, drawn
from cosim.hosts.packet_sources import PacketSources
from cosim.hosts.verbs_carrier import VerbsCarrier
from cosim.scenario.scenario import Scenario
from cosim.stimulus.actors import Shared
from cosim.stimulus.flows import Arrivals, MessageStream, message_streams, scenario_packets, scenario_streams
from cosim.stimulus.message_events import MessageEvent, MessageListener, MessageStep
from cosim.stimulus.packet import FIRST_TRANSPORT_QP, Packet, is_of_transport
from cosim.topology.topology import Port as FabricPort
from cosim.topology.topology import Topology
from verbs.adapter import Adapter
from verbs.aeth import AckKind, ack_kind
from verbs.hosts import VerbsPort
from verbs.port import Port
from verbs.psn import PSN_WINDOW, psn_add, psn_after
from wire.codes import SERVICE_LEVELS
from wire.headers import AETH, BTH, LRH
from wire.mad_packet import is_for_management
from wire.opcodes import Opcode, Operation, Service
from wire.packet import WORD_BYTES
from wire.parameters import adapter_port
from wire.stimulus import Delivery, Post, Taking

__all__ = ["MessageHosts"]

_OPERATION_BITS: Final = 0x1F
_ANSWERS: Final = {AckKind.ACK: "ACK", AckKind.NAK: "NAK", AckKind.RNR_NAK: "RNR NAK"}
_RESPONSES: Final = (
    Operation.RDMA_READ_RESPONSE_FIRST,
    Operation.RDMA_READ_RESPONSE_MIDDLE,
    Operation.RDMA_READ_RESPONSE_LAST,
    Operation.RDMA_READ_RESPONSE_ONLY,
    Operation.ATOMIC_ACKNOWLEDGE,
)


class MessageHosts:
    """Adapters with queue pairs for all streams of messages of a scenario, and their consumers.

    What they do follows from what is delivered and taken alone, so every engine gets the same posts.
    """

    def __init__(self, scenario: Scenario, topology: Topology, start: int, tell: MessageListener) -> None:
        """Messages are posted from cycle `start` on."""
        self.reach = 0
        self._start = start
        self._scenario = scenario
        self._nodes = list(topology.fabric.nodes)
        self._topology = topology
        self._carrier = VerbsCarrier(consume=self._consume)
        self._queue = self._carrier.posted.queue()
        self._connections: list[MessageConnection] = []
        self._streams: dict[tuple[int, int, int], int] = {}
        """By the node that sends packets, and the LID and the number of the queue pair that they go to: parts of a
        fabric that have no link may have the same LIDs."""
        self._receiving: dict[tuple[int, int], int] = {}
        """By node and number of its queue pair."""
        self._ends: dict[str, HostEnd] = {}
        self._others: OtherPackets | None = None
        if scenario.packet_flows:
            packets = scenario_packets(scenario, topology, start, scenario.seed)
            posts = (packet.post(topology) for packet in packets)
            self._others = OtherPackets(posts, self._carrier.posted.queue())
        self._unsent: dict[int, int] = {}
        """By stream, the PSN after those of its requests that were offered."""
        self._tell = tell
        self._first = len(scenario_streams(scenario))
        for number, stream in enumerate(message_streams(scenario), self._first):
            connection = self._connect(number, stream, tell)
            self._connections.append(connection)
            source, destination = (topology.index[node] for node in (stream.source, stream.destination))
            for at, far, queue_pair in (
                (source, destination, connection.sender),
                (destination, source, connection.receiver),
            ):
                self._streams[far, queue_pair.pair.port.lid, queue_pair.number] = number
                self._receiving[at, queue_pair.number] = number

    def _connect(self, number: int, stream: MessageStream, tell: MessageListener) -> MessageConnection:
        topology, scenario, flow = self._topology, self._scenario, stream.flow
        path_mtu = stream.path_mtu(topology)
        random = Random(f"{scenario.seed}/messages/{number}")
        return MessageConnection(
            number,
            stream,
            (self._end(stream.source), self._end(stream.destination)),
            path_mtu,
            Arrivals(flow, self._start, self._start + scenario.cycles, random),
            flow.rows(path_mtu) * topology.pace(FabricPort(stream.source, 1)),
            scenario.cycle_ns,
            tell,
        )

    def _end(self, node: str) -> HostEnd:
        """The port of an adapter that a node of the fabric is; the adapter is made when the first one is asked for."""
        if node not in self._ends:
            self._add_adapter(adapter_port(node)[0])
        return self._ends[node]

    def _add_adapter(self, host: str) -> None:
        topology, scenario = self._topology, self._scenario
        nodes = [node for node in scenario.adapters if adapter_port(node)[0] == host]
        places = [FabricPort(node, 1) for node in nodes]
        has_link = [topology.far_end(place) is not None for place in places]
        ports = [
            Port(topology.lids[node], mtu=topology.mtu(place)) if linked else Port(0)
            for node, place, linked in zip(nodes, places, has_link, strict=True)
        ]
        adapter = Adapter(ports, cycle_ns=scenario.cycle_ns, first_qp=FIRST_TRANSPORT_QP)
        if scenario.congestion is not None:
            for control in adapter.congestion_control:
                control.set(scenario.congestion.adapter_settings, 0)
        pd = adapter.allocate_pd()
        for number, (node, place, linked) in enumerate(zip(nodes, places, has_link, strict=True), 1):
            self._ends[node] = HostEnd(node, adapter, pd, number)
            if linked:
                sl_to_vl = [topology.vl(place, sl) for sl in range(SERVICE_LEVELS)]
                vls = topology.fabric.nodes[node].vls
                self._carrier.hosts.add(VerbsPort(topology.index[node], adapter, number, vls, sl_to_vl))

    def beside(self, sources: PacketSources) -> None:
        """These post the packets of flows without a transport; each knows the other's."""
        self._others = OtherPackets(drawn(sources.posted.queue()), self._carrier.posted.queue())
        sources.beside(self.posted)

    # What acts.

    @property
    def posted(self) -> Shared[Post]:
        """What they post."""
        return self._carrier.posted

    def until(self, finished: int) -> int:
        """How far the fabric may run: not beyond what a consumer is to do."""
        if finished < self.reach:
            # At the ends of others' steps nothing is done: where messages go does not depend on who manages the fabric.
            return self.reach
        reach = self._carrier.until(finished)
        due = [self._start] if finished < self._start else [one.due for one in self._connections]
        self.reach = min([reach, *(cycle for cycle in due if cycle is not None and cycle > finished)])
        return self.reach

    def posts_until(self, cycle: int) -> list[Post]:
        """Packets for CYCLE or before that were not given yet."""
        return self._carrier.posts_until(cycle)

    def delivered(self, delivery: Delivery) -> None:
        """Hands a packet to the transport that it is for; it should be at its host."""
        data = delivery.data
        if not is_of_transport(data):
            if is_for_management(data):
                self._carrier.delivered(delivery)
            return
        host, dlid = self._nodes[delivery.node], LRH["dlid"].read(data)
        stream = self._receiving.get((delivery.node, BTH["dest_qp"].read(data, LRH.size_bytes)))
        if stream is None or self._topology.lids.get(host) != dlid:
            text = f"got a packet that is for LID {dlid}: {data[:8].hex(' ', WORD_BYTES)} ..."
            self._tell(MessageEvent(stream or self._first, delivery.cycle, host, MessageStep.WRONG, text=text))
        self._carrier.delivered(delivery)

    def taken(self, taking: Taking) -> None:
        """Tells the transport whose packet it was."""
        if self._others is None or self._others.is_of_transport(taking):
            self._carrier.taken(taking)

    def _consume(self, finished: int) -> bool:
        if finished >= self._start:
            for connection in self._connections:
                connection.act(finished)
        return True

    # What is told of packets.

    def offered_until(self, cycle: int | None) -> Iterable[Packet]:
        """What was posted for CYCLE or before, or all, for who follows packets: by stream and PSN.

        What adapters answer to management is of no stream.
        """
        queue = self._queue
        while queue and (cycle is None or queue[0].cycle <= cycle):
            post = queue.popleft()
            if is_of_transport(post.data):
                yield self._packet(post)

    def _packet(self, post: Post) -> Packet:
        data = post.data
        stream = self._streams[post.node, LRH["dlid"].read(data), BTH["dest_qp"].read(data, LRH.size_bytes)]
        psn = BTH["psn"].read(data, LRH.size_bytes)
        title = self._title(stream, data, psn)
        return Packet(stream, psn, post.cycle, self._nodes[post.node], None, post.slot, post.slot, data, title)

    def _title(self, stream: int, data: bytes, psn: int) -> str:
        """What a story calls a packet."""
        opcode = BTH["opcode"].read(data, LRH.size_bytes)
        operation = opcode & _OPERATION_BITS
        if opcode >> 5 == Service.RC and operation == Operation.ACKNOWLEDGE:
            kind = ack_kind(AETH["syndrome"].read(data, LRH.size_bytes + BTH.size_bytes))
            return f"{'answer' if kind is None else _ANSWERS[kind]} PSN {psn}"
        if opcode == Opcode.CNP:
            return "notice of congestion"
        if opcode >> 5 == Service.RC and operation in _RESPONSES:
            return f"response PSN {psn}"
        if 0 < psn_after(self._unsent.get(stream, 0), psn) <= PSN_WINDOW:
            return f"PSN {psn} again"
        self._unsent[stream] = psn_add(psn, 1)
        return f"PSN {psn}"
