"""A channel adapter: a link port with a packet interface behind it (docs/pipeline.md, section 9)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, LID_PERMISSIVE, VL15
from wire.crc import fingerprint
from wire.headers import LRH
from wire.parameters import AdapterParameters
from wire.registers import Counter, NodeRegister
from wire.stimulus import Post
from wire.trace import Kind, Record, Verdict, port_source

from .buffer import Buffer
from .content import Content
from .kernel import DECIDE, UPDATE, Kernel
from .matcher import Matcher, Output
from .packet import DataTransmission, Packet
from .port import LinkPort
from .queues import VoqInput
from .registers import RegisterFile
from .transmit import READ_TO_WIRE

__all__ = ["Adapter", "Delivery"]

_JOIN_LATENCY = 2
_HEADER_LATENCY = 3
"""Cycles from a packet's turn until its length is compared with NeighborMTU."""
_PKT_LEN_MAX = LRH["pkt_len"].max
_CYCLE_MASK = 0xFFFF_FFFF


class Delivery(NamedTuple):
    """A packet that an adapter gave to its host.

    Attributes:
        cycle: of the last word; DELIVER is stamped with it.
        first: cycle of the first word.
        data: the bytes LRH..ICRC.
    """

    cycle: int
    first: int
    node: int
    slot: int
    data: bytes


class _HostOutput(Output):
    """The host's side of an adapter: 4X pace, no credits, no flow control."""

    def __init__(self, kernel: Kernel, matcher: Matcher, vls: int, deliver: Callable[[DataTransmission], None]) -> None:
        super().__init__(0, vls)
        self._kernel = kernel
        self._matcher = matcher
        self._deliver = deliver

    def room(self, slot: int) -> int | None:
        """A host needs no credits."""
        return None

    def grant(self, packet: Packet, reader: int) -> None:
        """Plan the reads of a packet granted in the current cycle (section 8.1)."""
        sending = DataTransmission(packet, packet.vl, self._kernel.now, self.pitch, reader)
        self._kernel.at(self._kernel.now + 1 + packet.n, UPDATE, self._read_last, sending)

    def grant_flow_control(self) -> None:
        """Never due: a host has no flow control flags."""
        raise AssertionError("a host has no flow control")

    def _read_last(self, sending: DataTransmission) -> None:
        now = self._kernel.now
        source = self._matcher.inputs[0]
        source.reader_available(sending.reader)
        self._matcher.output_available(0)
        source.buffer.ask(sending.reader, now + 1)
        self._kernel.at(now + READ_TO_WIRE, UPDATE, self._sent, sending)

    def _sent(self, sending: DataTransmission) -> None:
        self._deliver(sending)
        self._matcher.inputs[0].buffer.release(sending.reader, sending.packet)

    def head_shown(self) -> None:
        """A host has no PortXmitWait to count."""

    def rest(self) -> None:
        """A host has no PortXmitWait to count."""

    def stall(self, mask: int) -> None:
        """Heads of these slots wait, from the current cycle on."""
        self.open_slots = ~mask & (1 << self.vls + 1) - 1
        self._matcher.wake(1)


class _Stream:
    """The packets posted on one slot, in order; the first is the current one."""

    def __init__(self) -> None:
        self.current: Post | None = None
        self.source: Iterator[Post] = iter(())

    def advance(self) -> None:
        """The next packet becomes current."""
        self.current = next(self.source, None)


class Adapter(RegisterFile):
    """A channel adapter; `ports[0]` is its port 1.

    Attributes:
        ports: its link port.
    """

    checks_icrc = True
    dlid_counter = Counter.RCV_ERRORS

    def __init__(
        self, kernel: Kernel, parameters: AdapterParameters, node: int, on_deliver: Callable[[Delivery], None] | None
    ) -> None:
        vls = parameters.vls
        self._kernel = kernel
        self._node = node
        self._vls = vls
        self._lid = 0
        self._lmc = 0
        self._on_deliver = on_deliver
        # Host to link.
        outward = Matcher(kernel, 1, vls)
        port = LinkPort(kernel, self, port_source(node, 1), 0, vls, parameters.mtu, outward)
        self.ports = [port]
        outward.add_output(port.output)
        send_blocks = [parameters.send_blocks] * vls + [parameters.vl15_blocks]
        self._send_buffer = Buffer(kernel, send_blocks, 1, self._send_freed)
        self._from_host = VoqInput(0, outward, self._send_buffer, 1, 1, vls + 1)
        outward.inputs.append(self._from_host)
        port.output.inputs = outward.inputs
        self._streams = [_Stream() for _ in range(vls + 1)]
        self._send_ptr = 0
        self._idle_from = 0
        self._arbitrated_at = -1
        # Link to host.
        inward = Matcher(kernel, 1, vls)
        self.host = _HostOutput(kernel, inward, vls, self._deliver)
        inward.add_output(self.host)
        receive_blocks = [parameters.receive_blocks] * vls + [parameters.vl15_blocks]
        port.buffer = Buffer(kernel, receive_blocks, 1, port.freed)
        port.input = VoqInput(0, inward, port.buffer, 1, 1, vls + 1)
        inward.inputs.append(port.input)

    # What the port asks (sections 3.3 and 3.5).

    def joins_at_header(self) -> bool:
        """The host sees packets that are known to be good."""
        return False

    def dlid_good(self, packet: Packet) -> bool:
        """Row c: multicast, permissive on VL15, or one of the port's own."""
        dlid = packet.dlid
        if LID_MULTICAST_MIN <= dlid <= LID_MULTICAST_MAX:
            return True
        if dlid == LID_PERMISSIVE and packet.vl == VL15:
            return True
        return dlid >> self._lmc == self._lid >> self._lmc

    def relay(self, port: LinkPort, packet: Packet) -> Verdict:
        """Rows i and j: room in the receive buffer."""
        packet.slot = packet.slot_in
        if packet.need > port.buffer.free[packet.slot_in]:
            return Verdict.VL15_DROPPED if packet.vl == VL15 else Verdict.OVERRUN
        return Verdict.GOOD

    # Host to link.

    def post(self, slot: int, posts: Iterator[Post]) -> None:
        """Set where a slot's packets come from. It is asked for one packet at a time.

        Raises:
            ValueError: a slot that is not there; later, a packet of no words.
        """
        if not 0 <= slot <= self._vls:
            raise ValueError(f"post on slot {slot} of node {self._node}: expected 0..{self._vls}")
        stream = self._streams[slot]
        stream.source = posts
        if stream.current is None:
            self._next_packet(stream)

    def _next_packet(self, stream: _Stream) -> None:
        stream.advance()
        if stream.current:
            if not 1 <= len(stream.current.words) <= _PKT_LEN_MAX:
                raise ValueError(f"post of {len(stream.current.words)} words: expected 1..{_PKT_LEN_MAX}")
            self._arbitrate_at(max(stream.current.cycle, self._kernel.now))

    def _send_freed(self, _: int) -> None:
        self._arbitrate_at(self._kernel.now)

    def _arbitrate_at(self, cycle: int) -> None:
        """Something changes for the arbiter in a cycle; while it is busy, that can wait."""
        if cycle >= self._idle_from and cycle != self._arbitrated_at:
            self._arbitrated_at = cycle
            self._kernel.at(cycle, DECIDE, self._arbitrate)

    def _arbitrate(self, _: None) -> None:
        """The arbiter, in the current cycle a."""
        now = self._kernel.now
        if now < self._idle_from:
            return
        slots = self._vls + 1
        for turn in range(slots):
            slot = (self._send_ptr + turn) % slots
            post = self._streams[slot].current
            if post is None or post.cycle > now:
                continue
            packet = Packet()
            packet.set_length(len(post.words))
            if packet.need <= self._send_buffer.free[slot]:
                self._take(packet, post, slot)
                return

    def _take(self, packet: Packet, post: Post, slot: int) -> None:
        kernel = self._kernel
        now, n = kernel.now, packet.n
        packet.content = Content(struct.pack(f">{n}I", *post.words))
        data = packet.content.data
        packet.lver = data[0] & 0xF
        packet.sl = data[1] >> 4
        packet.lnh = data[1] & 3
        packet.dlid = data[2] << 8 | data[3]
        packet.irregular = int.from_bytes(data[4:6], "big") & _PKT_LEN_MAX != n
        packet.slot_in = packet.slot = slot
        self._send_buffer.take(packet)
        self._send_ptr = (slot + 1) % (self._vls + 1)
        kernel.record(Record(now + 1, self.ports[0].source, Kind.SEND, slot, n))
        kernel.at(now + _HEADER_LATENCY, DECIDE, self._measure, packet)
        kernel.at(now + 1 + n + _JOIN_LATENCY, UPDATE, self._from_host.join, packet)
        self._idle_from = now + 1 + n
        kernel.at(self._idle_from, UPDATE, self._taken, slot)

    def _measure(self, packet: Packet) -> None:
        packet.oversize = packet.n > self.ports[0].largest_out

    def _taken(self, slot: int) -> None:
        self._next_packet(self._streams[slot])
        self._arbitrate_at(self._kernel.now)

    # Link to host.

    def _deliver(self, sending: DataTransmission) -> None:
        packet = sending.packet
        now = self._kernel.now
        data = sending.content.with_vl(packet.vl)
        first = now - packet.n + 1
        self._kernel.record(
            Record(
                now,
                self.ports[0].source,
                Kind.DELIVER,
                packet.slot,
                packet.n,
                first & _CYCLE_MASK,
                fingerprint(data),
            )
        )
        if self._on_deliver:
            self._on_deliver(Delivery(now, first, self._node, packet.slot, data))

    # Registers (section 10).

    def read_node(self, page: int, offset: int) -> int:
        """Page 0."""
        if page == 0:
            if offset == NodeRegister.NUM_PORTS:
                return 1
            if offset == NodeRegister.LID:
                return self._lid
            if offset == NodeRegister.LMC:
                return self._lmc
        return 0

    def write_node(self, page: int, offset: int, value: int) -> None:
        """LID and LMC."""
        if page == 0:
            if offset == NodeRegister.LID and value <= 0xFFFF:
                self._lid = value
            elif offset == NodeRegister.LMC and value <= 7:
                self._lmc = value
