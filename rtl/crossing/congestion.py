"""Which packets an output of a switch marks for congestion (docs/pipeline.md, section 7.3)."""

from itertools import pairwise
from typing import Final

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.arrivals import arrived_layout
from rtl.crossing.buffer import LUT_RAM
from rtl.link.row import HEAD_BITS, lrh_field
from rtl.link.transmit import SendRow
from rtl.registers.marking import MarkingSettings, PortMarking
from rtl.restoration import restored_write_port
from rtl.widths import MARKING_RATE_BITS, THRESHOLD_BITS, need_bits
from wire.codes import LID_MULTICAST_MIN, LNH
from wire.parameters import SwitchParameters

__all__ = ["Congestion"]

_THRESHOLDS: Final = 1 << THRESHOLD_BITS
_BYTE_BITS: Final = 8


def _marking_limits(blocks: int, most: int) -> list[int]:
    """By threshold, what the blocks that wait have to exceed, a VL's buffer having so many; 0: none up to MOST do."""
    return [most, *(blocks * (_THRESHOLDS - threshold) // _THRESHOLDS for threshold in range(1, _THRESHOLDS))]


class Congestion(wiring.Component):
    """One output, a port's.

    A packet's blocks are known here where its row 0 comes, at g+3 = x_0 + 2. Nothing else is granted before, so all
    that it meets, also what waits, is as much behind.

    Args:
        inputs: that may send to it.

    Members:
        arrived: see `Arrivals`.
        available: the output takes a grant in this cycle. `starving`: mask of the data VLs for which a head has not the
            credits.
        granted, slot: a packet was granted two cycles ago, on this slot, one-hot.
        own, common, victim: what has been set: the port's, all ports', the port's bit of Victim_Mask.
        send, scrapped: rows in cycle x_r + 2; a packet is scrapped, in x_0 + 2, and its row 0 is in `send`, not valid.
        charged: the packet whose row 0 was here in the cycle before begins to be sent, on a data VL. `marks`: it is
            marked. The next one's row 0 is not here yet.
    """

    def __init__(self, parameters: SwitchParameters, inputs: int) -> None:
        self.parameters = parameters
        self.vls = parameters.vls
        super().__init__(
            {
                "arrived": In(arrived_layout(inputs, self.vls, parameters.mtu)),
                "available": In(1),
                "starving": In(self.vls),
                "granted": In(1),
                "slot": In(self.vls + 1),
                "own": In(PortMarking),
                "common": In(MarkingSettings),
                "victim": In(1),
                "send": In(SendRow),
                "scrapped": In(1),
                "charged": In(1),
                "marks": Out(1),
            }
        )
        self._need_bits = need_bits(parameters.mtu)
        # An SL may have all VLs that a packet comes in on leave on the same.
        self._most = (1 << (inputs * self.vls * parameters.buffer_blocks).bit_length()) - 1

    def elaborate(self, platform: object) -> Module:
        """Settings, the packet, how many wait behind it, whether it had to wait for credits, whose turn it is."""
        m = Module()
        send = self.send
        settings = Signal(MarkingSettings)
        m.d.comb += settings.eq(Mux(self.own.valid, self.own.settings, self.common))

        head = send.data[:HEAD_BITS]
        multicast = Signal()
        m.d.comb += multicast.eq(head[:_BYTE_BITS] >= LID_MULTICAST_MIN >> _BYTE_BITS)
        begins = (send.valid & send.first) | self.scrapped
        crowded = self._is_crowded(m, begins & ~multicast, settings.threshold)
        has_bth = lrh_field(head, "lnh") >= LNH.IBA_LOCAL
        waited = self._has_waited(m)
        enough = send.need >= settings.packet_size
        eligible = Signal()  # from here on in the cycle after, when it is known whether it is charged
        m.d.sync += eligible.eq(crowded & ~multicast & has_bth & enough & (self.victim | ~waited))
        self._take_turns(m, eligible & self.charged, settings.marking_rate)
        return m

    def _is_crowded(self, m: Module, leaves: Value, threshold: Value) -> Value:
        """Counts the blocks that wait; more than a limit are left, if a packet leaves."""
        arrived, slot = self.arrived, self.send.slot
        waiting = [Signal(range(self._most + 1), name=f"waiting_{vl}") for vl in range(self.vls)]
        left = Signal.like(waiting[0], name="left")  # of the VL that the packet leaves on
        limits = _marking_limits(self.parameters.buffer_blocks, self._most)
        limit = Signal.like(waiting[0], name="limit", init=limits[0])
        m.d.sync += limit.eq(Array(limits)[threshold])
        need = self.send.need[: self._need_bits]
        m.d.comb += left.eq(Array(waiting)[slot] - need)
        with m.If(arrived.some | leaves):
            for vl, blocks in enumerate(waiting):
                m.d.sync += blocks.eq(Mux(leaves & (slot == vl), left, blocks) + arrived.blocks[vl])
        return limit < left

    def _has_waited(self, m: Module) -> Signal:
        """The packet granted last had to wait for credits."""
        starved, waited = Signal(self.vls), Signal()
        now = Signal(self.vls)
        before = [Signal(self.vls, name=f"starved_{ago}") for ago in (1, 2)]
        m.d.comb += now.eq(starved & ~Mux(self.granted, self.slot[: self.vls], 0))
        m.d.sync += starved.eq(now | Mux(self.available, self.starving, 0))
        m.d.sync += [later.eq(earlier) for earlier, later in pairwise([now, *before])]
        with m.If(self.granted):
            m.d.sync += waited.eq((before[-1] & self.slot).any())
        return waited

    def _take_turns(self, m: Module, eligible: Value, rate_before: Value) -> None:
        """A countdown for each VL, of which one counts at a time, a cycle behind the settings."""
        slot, rate = Signal.like(self.send.slot), Signal(MARKING_RATE_BITS)
        m.d.sync += [slot.eq(self.send.slot), rate.eq(rate_before)]
        m.submodules.countdowns = countdowns = Memory(
            shape=MARKING_RATE_BITS, depth=max(2, self.vls), init=[], attrs=LUT_RAM
        )
        left = countdowns.read_port(domain="comb")
        write = restored_write_port(m, countdowns, lambda _: 0)
        # One turn less, or, where none are left, the sign of that.
        following = left.data - 1
        m.d.comb += [
            left.addr.eq(slot),
            write.addr.eq(slot),
            write.data.eq(Mux(following[-1], rate, following)),
            write.en.eq(eligible),
            self.marks.eq(eligible & following[-1]),
        ]
