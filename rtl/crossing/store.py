"""The packets of one input: their buffer, their queues and the readers that take them out."""

from collections.abc import Sequence
from typing import Any, Literal

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.acceptance import Acceptance
from rtl.crossing.arrivals import joining_layout
from rtl.crossing.buffer import Buffer, FillSignature, block_bits
from rtl.crossing.causes import CAUSE_BITS, cause_of, reason_of
from rtl.crossing.copies import CopyReturns
from rtl.crossing.descriptions import Descriptions, description_layout
from rtl.crossing.fifo import FifoQueues
from rtl.crossing.queueing import HeadsSignature, InspectionSignature, copies_layout, routed_layout
from rtl.crossing.reader import PassingRow, Reader, fate_layout, job_layout
from rtl.crossing.time_limits import LifeClock
from rtl.crossing.voq import VirtualOutputQueues
from rtl.rotation import any_of, lowest, select
from rtl.widths import LENGTH_BITS, NEED_BITS, length_bits, need_bits
from wire.trace import Discard

__all__ = ["InputSignature", "PacketStore"]


class InputSignature(wiring.Signature):
    """An input of the crossing, seen from it. Its outputs are those that it may send to (see `rtl.crossing.others`).

    Members:
        phase: the cycle modulo 4.
        heads: what the heads of its queues ask for and get; outputs make it offers only if it is available: if more of
            its readers are free than it accepts offers, none or one. What they are told of outputs is what it will be
            in the next cycle: it comes from far, and each input has registers of its own for it, somewhere on the way.
        joining: a packet joins one of its queues (cycle e).
        offers: mask of the outputs that made it an offer in the cycle before (this is g+1).
        accepted: one-hot, that whose offer it accepts; it does accept one if there are any.
        causes: of each output that needs credits, why what it offered in the cycle before is swallowed.
        wide: mask of 4X outputs.
        some_free, several_free: one of its readers is free, and more than one.
        busy: mask of the outputs being served.
        holds: mask of the outputs that are not available because of that, from x_0 + 1 on.
        to_output, rows: of each reader, see `Reader`.
        outlived: the packet whose row 0 crosses in this cycle (x_0 + 1) has outlived its life time, and is swallowed.
    """

    def __init__(self, outputs: int, credited: int, vls: int, readers: int, need_bits: int) -> None:
        super().__init__(
            {
                "phase": In(2),
                "heads": Out(HeadsSignature(outputs, credited, vls, need_bits)),
                "joining": Out(joining_layout(outputs)),
                "offers": In(outputs),
                "accepted": Out(outputs),
                "causes": In(data.ArrayLayout(CAUSE_BITS, credited)),
                "wide": In(outputs),
                "some_free": Out(1, init=1),
                "several_free": Out(1, init=readers > 1),
                "busy": Out(outputs),
                "holds": Out(outputs),
                "to_output": Out(outputs).array(readers),
                "rows": Out(PassingRow).array(readers),
                "outlived": Out(1),
            }
        )


class PacketStore(wiring.Component):
    """Buffer, queues and readers of one input.

    Args:
        pools: the buffer's blocks of each slot, the data VLs' first.
        outputs: how many it may send to.
        credited: how many of them, from the first on, need credits.
        mtu: in bytes; larger packets are oversize, if there are such.
        queueing, readers: see `wire.parameters.SwitchParameters`.
        one_each: there is never more than one packet of a data VL, and none is oversize (with `voq`).
        any_length: there may be packets that are larger than the MTU allows.
        aging: its packets have a life time, on their way to outputs that need credits.
        multicast: packets may have several copies.

    Members:
        fill: packets to be stored.
        join, packet: a packet joins its queue (cycle e); the one written last. Where there are copies,
            `first`: its first block, and `has_copies`, `copies`, `inspection`: see `QueueingSignature`.
        crossing: how they leave.
        clock: of life time.
    """

    def __init__(
        self,
        pools: Sequence[int],
        outputs: int,
        credited: int,
        mtu: int,
        queueing: Literal["voq", "fifo"] = "voq",
        readers: int = 1,
        one_each: bool = False,
        any_length: bool = False,
        aging: bool = False,
        multicast: bool = False,
    ) -> None:
        self.pools = tuple(pools)
        self.outputs = outputs
        self.credited = credited
        self.vls = len(self.pools) - 1
        self.queueing = queueing
        self.readers = readers
        self.one_each = one_each
        self.aging = aging
        self.multicast = multicast
        self.block_bits = block_bits(self.pools)
        self.need_bits = need_bits(mtu)
        bits = (NEED_BITS, LENGTH_BITS) if any_length else (self.need_bits, length_bits(mtu))
        self.description = description_layout(self.vls, *bits)
        copies = {
            "has_copies": In(1),
            "copies": In(copies_layout(outputs, credited, self.vls)),
            "inspection": Out(InspectionSignature(self.block_bits, credited, self.vls)),
            "first": Out(self.block_bits),
        }
        super().__init__(
            {
                **(copies if multicast else {}),
                "fill": In(FillSignature(len(self.pools))),
                "join": In(1),
                "packet": In(routed_layout(outputs)),
                "crossing": Out(InputSignature(outputs, credited, self.vls, readers, self.need_bits)),
                **({"clock": In(LifeClock)} if aging else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Buffer, queues, readers, release."""
        m = Module()
        crossing = self.crossing
        m.submodules.buffer = buffer = Buffer(self.pools, self.readers, stamped=self.aging)
        connect(m, flipped(self.fill), buffer.fill)

        kind = VirtualOutputQueues if self.queueing == "voq" else FifoQueues
        shape = (self.block_bits, buffer.blocks, self.outputs, self.credited, self.vls, self.need_bits)
        m.submodules.queues = kind(*shape, one_each=self.one_each, multicast=self.multicast)
        queues = m.submodules.queues.queueing
        m.d.comb += [
            queues.join.eq(self.join),
            queues.ended.eq(self.fill.write.valid & self.fill.write.last),
            queues.packet.eq(self.packet),
            queues.first.eq(buffer.first),
            crossing.joining.valid.eq(self.join & ~self.has_copies if self.multicast else self.join),
            crossing.joining.need.eq(self.packet.need),
            crossing.joining.output.eq(self.packet.output),
            crossing.joining.slot.eq(self.packet.slot),
        ]
        for name, member in crossing.heads.signature.members.items():
            inside, outside = getattr(queues.heads, name), getattr(crossing.heads, name)
            if member.flow == Out:
                m.d.comb += outside.eq(inside)
            else:
                m.d.sync += inside.eq(outside)

        # That an offer is accepted is known early. Which it is comes late.
        m.submodules.acceptance = acceptance = Acceptance(self.outputs, self.block_bits)
        accepts = crossing.offers.any()
        m.d.comb += [
            acceptance.offers.eq(crossing.offers),
            acceptance.firsts.eq(queues.firsts),
            crossing.accepted.eq(acceptance.accepted),
            queues.accepted.eq(acceptance.accepted),
            queues.taken.eq(acceptance.first),
        ]
        if self.multicast:
            connect(m, queues.inspection, flipped(self.inspection))
            m.d.comb += [
                queues.has_copies.eq(self.has_copies),
                queues.copies.eq(self.copies),
                self.first.eq(buffer.first),
            ]

        m.submodules.descriptions = descriptions = Descriptions(buffer.blocks, self.block_bits, self.description)
        m.d.comb += [
            descriptions.write.eq(self.join),
            descriptions.first.eq(buffer.first),
            descriptions.pool.eq(self.packet.pool),
            descriptions.words.eq(self.packet.words),
            descriptions.need.eq(self.packet.need),
            descriptions.read.eq(acceptance.first),
        ]

        # The lowest-numbered reader that may takes the head that is accepted (x_0); the rest of it follows in the next
        # cycle. Which reader that is, and whether there is one, is known early.
        size = (self.block_bits, self.outputs, self.vls)
        readers = [Reader(*size, self.description) for _ in range(self.readers)]
        for number, reader in enumerate(readers):
            m.submodules[f"reader_{number}"] = reader
            connect(m, reader.memory, buffer.reads[number])
        if self.aging:
            m.d.comb += buffer.clock.eq(self.clock)
        takes, taker = Signal(self.readers), Signal(self.readers)
        m.d.comb += [
            takes.eq(lowest(m, Cat(reader.ready for reader in readers))),
            taker.eq(Mux(accepts, takes, 0)),
        ]
        job, fate = Signal(job_layout(self.block_bits)), self._find_fate(m, queues, buffer)
        wide = Signal(self.outputs, reset_less=True)  # in the cycle of the offer
        m.d.sync += wide.eq(crossing.wide)
        m.d.comb += [
            job.first.eq(acceptance.first),
            job.wide.eq((crossing.accepted & wide).any()),
            buffer.taken.eq(acceptance.first),
        ]
        for number, reader in enumerate(readers):
            m.d.comb += [
                crossing.to_output[number].eq(reader.to_output),
                crossing.rows[number].eq(reader.row),
                reader.phase.eq(crossing.phase),
                reader.takes.eq(takes[number]),
                reader.grant.eq(taker[number]),
                reader.to.eq(crossing.accepted),
                reader.job.eq(job),
                reader.description.eq(descriptions.description),
                reader.fate.eq(fate),
            ]
        m.d.comb += crossing.outlived.eq(fate.outlived)
        m.d.comb += crossing.busy.eq(any_of(reader.serves for reader in readers))
        # Registers of their own: all inputs and outputs look at them.
        left = any_of(reader.leaves for reader in readers)
        free = Cat(reader.stays_free for reader in readers) & ~taker
        m.d.sync += [
            crossing.holds.eq((crossing.holds & ~left) | crossing.accepted),
            crossing.some_free.eq(free.any()),
            crossing.several_free.eq((free & (free - 1)).any()),
        ]

        self._return_blocks(m, buffer, readers, taker, queues.copy)
        return m

    def _find_fate(self, m: Module, queues: Any, buffer: Buffer) -> data.View:
        """Of the packet that was accepted in the cycle before. All that an output has to say of it is ready before it
        is known which it is; it comes from far, and that the packet is oversize is joined with it a cycle later."""
        accepted, credited = self.crossing.accepted[: self.credited], range(self.credited)
        offered = queues.heads.slots_offered
        oversize, cause, ages = Signal(reset_less=True), Signal(CAUSE_BITS, reset_less=True), Signal(reset_less=True)
        on_data_vl = Cat(~offered[output][self.vls] for output in credited)
        if self.credited:
            m.d.sync += [
                oversize.eq((accepted & queues.oversize).any()),
                cause.eq(select(accepted, self.crossing.causes)),
                ages.eq((accepted & on_data_vl).any()),
            ]

        # The first reason that applies: these come before its life time, which comes before others.
        fate = Signal(fate_layout(self.block_bits))
        rejected = queues.copy.rejected
        before = rejected | oversize | (cause == cause_of(Discard.INACTIVE))
        of_packet = Mux(rejected, Discard.CONSTRAINT, Discard.NEIGHBOR_MTU)
        m.d.comb += [
            fate.bad.eq(buffer.verdict.bad),
            fate.swallowed.eq(rejected | oversize | cause.any()),
            fate.outlived.eq(ages & ~before & buffer.verdict.outlived),
            fate.reason.eq(Mux(rejected | oversize, of_packet, reason_of(cause))),
            fate.end.eq(buffer.verdict.end),
        ]
        return fate

    def _return_blocks(
        self, m: Module, buffer: Buffer, readers: Sequence[Reader], taker: Value, copy: data.View
    ) -> None:
        """One packet's in a cycle, the lowest-numbered reader's first; behind the last read of any copy."""
        if self.multicast:
            m.submodules.copy_returns = returns = CopyReturns(self.readers, self.vls)
            m.d.sync += returns.grant.eq(taker)
            m.d.comb += [returns.copy.eq(copy), returns.done.eq(Cat(reader.done for reader in readers))]
        releaser = lowest(m, Cat(reader.release.valid for reader in readers))
        m.d.comb += buffer.release.eq(select(releaser, [reader.release for reader in readers]))
        for number, reader in enumerate(readers):
            m.d.comb += [
                reader.returns.eq(returns.returns[number] if self.multicast else 1),
                reader.released.eq(releaser[number]),
            ]
