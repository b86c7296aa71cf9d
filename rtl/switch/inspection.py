"""Partitions of a multicast packet's copies, where ports check what leaves (docs/pipeline.md, section 3.8)."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.buffer import memory_by_block
from rtl.crossing.others import place_for
from rtl.crossing.queueing import InspectionSignature
from rtl.management.told_events import WrongPKey
from rtl.rotation import behind, first_from
from rtl.switch.p_key_tables import P_KEY_BITS
from rtl.widths import SL_BITS

__all__ = ["GuardedPacket", "Inspection"]

GuardedPacket = data.StructLayout(
    {"raw": 1, "has_p_key": 1, "p_key": P_KEY_BITS, "slid": 16, "dlid": 16, "sl": SL_BITS}
)
"""What there is to know of a packet to inspect it, and to tell of it if a copy may not leave."""

_PACKET_FIELDS = ("slid", "dlid", "sl", "p_key")


class Inspection(wiring.Component):
    """Inspects the guarded packets of one input, one at a time, by one port's table after the other.

    Copies go to the other ports (see `rtl.crossing.others`), so what its own port's table says is not looked at.

    Args:
        ports, vls: of the switch.
        block_bits, blocks: of the input's buffer: bits of a block's number, and how many there are.

    Members:
        join, first, packet: a guarded packet joins its queue (cycle e), its first block.
        own: the number of the input, and of its port's table.
        queues: where it waits.
        outbound, raw_outbound: masks of the ports that check P_Keys and raw packets on departure, as visible.
        free: the input's tables may be looked into in this cycle. `table_number`, `p_key`: in which, and what for.
            `has`: it is there, in the cycle after.
        wrong: a copy is rejected for its P_Key, in cycle l_j + 2; the rest is here in the next, and with it
            `rejected_at`, a mask of the port, of the others; 0 if none is.
    """

    def __init__(self, ports: int, vls: int, block_bits: int, blocks: int) -> None:
        self.ports = ports
        self.vls = vls
        self.blocks = blocks
        super().__init__(
            {
                "join": In(1),
                "first": In(block_bits),
                "packet": In(GuardedPacket),
                "own": In(range(ports)),
                "queues": In(InspectionSignature(block_bits, ports - 1, vls)),
                "outbound": In(ports),
                "raw_outbound": In(ports),
                "free": In(1),
                "table_number": Out(range(ports)),
                "p_key": Out(P_KEY_BITS),
                "has": In(1),
                "wrong": Out(WrongPKey),
                "rejected_at": Out(ports - 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Choose a packet (b), fetch it, look into the tables (l_1 to l_P), say what was found."""
        m = Module()
        queues = self.queues
        m.submodules.packets = packets = Memory(
            shape=GuardedPacket, depth=self.blocks, init=[], attrs=memory_by_block(self.blocks)
        )
        write, read = packets.write_port(), packets.read_port()
        m.d.comb += [
            write.addr.eq(self.first),
            write.data.eq(self.packet),
            write.en.eq(self.join),
            read.addr.eq(queues.first),
        ]

        # Cycle b: which packet.
        busy, fetched, ends = Signal(), Signal(), Signal()
        queue, to = Signal(self.vls), Signal(self.ports - 1, reset_less=True)
        begins = Mux(busy, 0, first_from(m, queues.waiting, behind(m, queue)))
        m.d.comb += queues.queue.eq(begins)
        m.d.sync += fetched.eq(begins.any())
        with m.If(begins.any()):
            m.d.sync += [queue.eq(begins), to.eq(queues.to), busy.eq(1)]
        with m.Elif(ends):
            m.d.sync += busy.eq(0)

        # From b + 2 on: one table after the other. From there on `packet` is the one that is inspected.
        packet, port = Signal(GuardedPacket, reset_less=True), self.table_number
        looking, looked, is_last, enforced = Signal(), Signal(), Signal(reset_less=True), Signal(reset_less=True)
        of_port = Signal(range(self.ports), reset_less=True)
        looks = looking & self.free
        last = port == self.ports - 1
        m.d.sync += [
            looked.eq(looks),
            is_last.eq(last),
            of_port.eq(port),
            enforced.eq((port != self.own) & Mux(packet.raw, self.raw_outbound, self.outbound).bit_select(port, 1)),
        ]
        with m.If(fetched):
            m.d.sync += [packet.eq(read.data), looking.eq(1), port.eq(0)]
        with m.Elif(looks):
            m.d.sync += [looking.eq(~last), port.eq(Mux(last, 0, port + 1))]
        m.d.comb += self.p_key.eq(packet.p_key)

        # The cycle after each: what is found.
        rejected, before = queues.rejected, Signal(self.ports - 1)
        is_rejected, place = Signal(), (Const(1) << place_for(self.own, of_port))[: self.ports - 1]
        m.d.comb += [
            is_rejected.eq(looked & enforced & ~(packet.has_p_key & self.has)),
            rejected.eq(before | Mux(is_rejected, place, 0)),
            ends.eq(looked & is_last),
            queues.inspected.eq(Mux(ends, queue, 0)),
        ]
        told_of, at = Signal.like(of_port, reset_less=True), Signal(self.ports - 1)
        m.d.sync += [
            before.eq(Mux(fetched, 0, rejected)),
            at.eq(Mux(is_rejected & packet.has_p_key, place & to, 0)),
            told_of.eq(of_port),
            self.rejected_at.eq(at),
            self.wrong.port.eq(told_of + 1),
        ]
        m.d.comb += self.wrong.valid.eq(at.any())
        m.d.comb += [self.wrong[name].eq(packet[name]) for name in _PACKET_FIELDS]
        return m
