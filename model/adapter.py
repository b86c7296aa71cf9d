"""A channel adapter: a link port with a packet interface behind it (docs/pipeline.md, section 9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, LID_PERMISSIVE, VL15
from wire.crc import fingerprint
from wire.headers import LRH
from wire.packet import blocks_of_words
from wire.parameters import AdapterParameters
from wire.registers import Counter, NodeRegister
from wire.stimulus import Post
from wire.trace import Kind, Verdict, port_source

from .buffer import Buffer
from .content import Content
from .host_queue import HostQueue
from .kernel import DECIDE, Kernel
from .matcher import Matcher
from .packet import READ_TO_WIRE, Packet
from .packet_check import header_rejection
from .port import LinkPort
from .queues import VoqInput
from .registers import RegisterFile

__all__ = ["Adapter", "Delivery"]

_JOIN_LATENCY = 2
_HEADER_LATENCY = 3
"""Cycles from a packet's turn until its length is compared with NeighborMTU."""
_PKT_LEN_MAX = LRH["pkt_len"].max
_CYCLE_MASK = 0xFFFF_FFFF
_NO_VL = 0x0FFF_FFFF
_WORD_BYTES = 4
_SEND, _DELIVER = Kind.SEND, Kind.DELIVER


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


class _Stream:
    """The packets posted on one slot, in order; the first is the current one.

    Attributes:
        current: the current packet, None if there is none.
        n, need: its words and blocks.
        source: where the packets come from.
    """

    def __init__(self) -> None:
        self.current: Post | None = None
        self.n = 0
        self.need = 0
        self.source: Iterator[Post] = iter(())

    def advance(self) -> Post | None:
        """The next packet becomes current.

        Raises:
            ValueError: it is longer or shorter than a packet can be.
        """
        self.current = post = next(self.source, None)
        if post:
            size = len(post.data)
            self.n = n = size // _WORD_BYTES
            if n * _WORD_BYTES != size or not 1 <= n <= _PKT_LEN_MAX:
                raise ValueError(f"post of {size} bytes: expected 1..{_PKT_LEN_MAX} words of {_WORD_BYTES} bytes")
            self.need = blocks_of_words(n)
        return post


class Adapter(RegisterFile):
    """A channel adapter; `ports[0]` is its port 1.

    Attributes:
        ports: its link port.
    """

    checks_icrc = True
    joins_at_header = False
    dlid_counter = Counter.RCV_ERRORS

    def __init__(
        self, kernel: Kernel, parameters: AdapterParameters, node: int, on_deliver: Callable[[Delivery], None] | None
    ) -> None:
        vls = parameters.vls
        self._kernel = kernel
        self._node = node
        self._source = port_source(node, 1)
        self._vls = vls
        self._lid = 0
        self._lmc = 0
        self._on_deliver = on_deliver
        # Host to link.
        outward = Matcher(kernel, 1, vls)
        port = LinkPort(kernel, self, self._source, 0, vls, parameters.mtu, outward)
        self.ports = [port]
        outward.add_output(port.output)
        send_blocks = [parameters.send_blocks] * vls + [parameters.vl15_blocks]
        self._send_buffer = Buffer(send_blocks, self._arbitrate_at)
        self._from_host = VoqInput(0, outward, self._send_buffer, 1, 1, vls + 1)
        outward.inputs.append(self._from_host)
        port.output.inputs = outward.inputs
        self._streams = [_Stream() for _ in range(vls + 1)]
        self._send_ptr = 0
        self._idle_from = 0
        self._arbitrated_at = -1
        self._taking: Packet | None = None
        # Link to host.
        receive_blocks = [parameters.receive_blocks] * vls + [parameters.vl15_blocks]
        port.buffer = Buffer(receive_blocks, port.flow.announcement_changes_at)
        port.input = self.host = HostQueue(kernel, port.buffer, vls, self._deliver)

    # What the port asks (sections 3.3 and 3.5).

    def rejection(self, port: LinkPort, packet: Packet) -> Verdict:
        """Rows a to e, i and j."""
        rejection = header_rejection(packet, self._is_mine(packet), port.largest, port.operational)
        packet.slot = packet.slot_in
        if not rejection and packet.need > port.buffer.free[packet.slot_in]:
            return Verdict.VL15_DROPPED if packet.vl == VL15 else Verdict.OVERRUN
        return rejection

    def _is_mine(self, packet: Packet) -> bool:
        """Row c: multicast, permissive on VL15, or one of the port's own."""
        dlid = packet.dlid
        if dlid >> self._lmc == self._lid >> self._lmc or LID_MULTICAST_MIN <= dlid <= LID_MULTICAST_MAX:
            return True
        return dlid == LID_PERMISSIVE and packet.vl == VL15

    # Host to link.

    def post(self, slot: int, posts: Iterator[Post]) -> None:
        """Set where a slot's packets come from. It is asked for one packet at a time.

        Raises:
            ValueError: a slot that is not there; later, a packet of no length that can be.
        """
        if not 0 <= slot <= self._vls:
            raise ValueError(f"post on slot {slot} of node {self._node}: expected 0..{self._vls}")
        stream = self._streams[slot]
        stream.source = posts
        if stream.current is None:
            self._advance(stream)

    def _advance(self, stream: _Stream) -> None:
        """The next packet is current."""
        post = stream.advance()
        if post:
            self._arbitrate_at(max(post.cycle, self._kernel.now))

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
        buffer = self._send_buffer
        if buffer.next_return <= now:
            buffer.settle(now)
        slots = self._vls + 1
        for turn in range(slots):
            slot = (self._send_ptr + turn) % slots
            stream = self._streams[slot]
            post = stream.current
            if post and post.cycle <= now and stream.need <= buffer.free[slot]:
                self._take(post.data, slot, stream.n, stream.need)
                return

    def _take(self, data: bytes, slot: int, n: int, need: int) -> None:
        """Take a packet from the current cycle a on."""
        kernel = self._kernel
        now = kernel.now
        self._taking = packet = Packet(0, int.from_bytes(data[:4], "big") & _NO_VL, n, need)
        packet.content = Content(data)
        packet.irregular = n == 1 or (data[4] << 8 | data[5]) & _PKT_LEN_MAX != n
        packet.input = packet.output = 0
        packet.slot_in = packet.slot = slot
        packet.oversize = n > self.ports[0].largest_out
        self._send_buffer.free[slot] -= need
        self._send_ptr = (slot + 1) % (self._vls + 1)
        kernel.record((now + 1, self._source, _SEND, slot, n, 0, 0, 0))
        self._idle_from = idle_from = now + 1 + n
        self._from_host.join(packet, idle_from + _JOIN_LATENCY)
        kernel.at(idle_from, DECIDE, self._taken, slot)

    def largest_out_changed(self) -> None:
        """Of a packet that is being taken, the length is compared in cycle a+3."""
        packet = self._taking
        if packet and self._kernel.now <= self._idle_from - 1 - packet.n + _HEADER_LATENCY:
            packet.oversize = packet.n > self.ports[0].largest_out

    def _taken(self, slot: int) -> None:
        """The last word was taken in the cycle before."""
        following = self._streams[slot].advance()
        if following and following.cycle > self._kernel.now:
            self._arbitrate_at(following.cycle)
        self._arbitrate(None)

    # Link to host.

    def _deliver(self, packet: Packet) -> None:
        """The last word is on the host's wires three cycles later."""
        last = self._kernel.now + READ_TO_WIRE
        assert packet.content is not None
        data = packet.content.with_vl(packet.vl)
        first = last - packet.n + 1
        self._kernel.record(
            (last, self._source, _DELIVER, packet.slot, packet.n, first & _CYCLE_MASK, fingerprint(data), 0)
        )
        if self._on_deliver:
            self._on_deliver(Delivery(last, first, self._node, packet.slot, data))

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
