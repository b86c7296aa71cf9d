"""What the queues of an input offer, whatever their order (docs/pipeline.md, sections 4 and 7)."""

from typing import Any

from amaranth.hdl import Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.eligibility import send_facts_layout
from rtl.widths import LENGTH_BITS, NEED_BITS, SLOT_BITS

__all__ = [
    "HeadsSignature",
    "InspectionSignature",
    "QueueingSignature",
    "copies_layout",
    "copy_layout",
    "routed",
    "routed_layout",
]


def copy_layout(vls: int) -> data.StructLayout:
    """Whether a head that is taken is a copy, and which: `shared`, mask of the data VL whose queue it is first in, none
    if it is no copy; `more`: other copies of the packet are left; `rejected`: it may not leave.
    """
    return data.StructLayout({"shared": vls, "more": 1, "rejected": 1})


def copies_layout(outputs: int, credited: int, vls: int) -> data.StructLayout:
    """The copies of a multicast packet.

    `to`: mask of the outputs for which there is one. `oversize`, `slots`: of each output that needs credits, whether
    the copy for it is oversize, and its slot there, if there are several. The others' keep the packet's. `guarded`: the
    packet is inspected before it is a head.
    """
    slots = {"slots": data.ArrayLayout(range(vls), credited)} if vls > 1 else {}
    return data.StructLayout({"to": outputs, "oversize": credited, "guarded": 1, **slots})


def routed_layout(outputs: int) -> data.StructLayout:
    """A packet that joins its queue.

    `pool`: the slot it came in on. `words`: PktLen. `need`: blocks. `output`
    (number, from 0) and `slot`: where it goes.
    """
    return data.StructLayout(
        {
            "pool": SLOT_BITS,
            "words": LENGTH_BITS,
            "need": NEED_BITS,
            "oversize": 1,
            "output": range(outputs),
            "slot": SLOT_BITS,
        }
    )


def routed(
    packet: data.View, of: data.View, output: Value, slot: Value, size: tuple[Value, Value] | None = None
) -> list[Any]:
    """A `routed_layout` of a packet by its header, or by a row of it that is stored; SIZE has its words and blocks, if
    they are known to have fewer bits."""
    words, need = size or (of.n, of.need)
    return [
        packet.pool.eq(of.slot),
        packet.words.eq(words),
        packet.need.eq(need),
        packet.output.eq(output),
        packet.slot.eq(slot),
    ]


class HeadsSignature(wiring.Signature):
    """The heads of one input's queues as the crossing sees them, seen from the queues.

    The first `credited` outputs need credits. Packets may always go to the others.

    Args:
        need_bits: of the blocks of a packet that is not oversize; nothing depends on those of one that is.

    Members:
        facts: of each output that needs credits for the next cycle, see `send_facts_layout`.
        visible: for each slot, the mask of outputs for which a head is visible.
        requests: for each slot, the mask of outputs for which there is a head that could go if
            input and output were available; anything for an output that is taken.
        starving: for each data VL, the mask of outputs for which there is a head that has not the credits, and needs
            them; likewise.
        slots_offered: of each output that made an offer to this input in the cycle before (g), the slot, one-hot.
    """

    def __init__(self, outputs: int, credited: int, vls: int, need_bits: int) -> None:
        super().__init__(
            {
                "facts": In(data.ArrayLayout(send_facts_layout(vls, need_bits), credited)),
                "visible": Out(data.ArrayLayout(outputs, vls + 1)),
                "requests": Out(data.ArrayLayout(outputs, vls + 1)),
                "starving": Out(data.ArrayLayout(credited, vls)),
                "slots_offered": In(data.ArrayLayout(vls + 1, outputs)),
            }
        )


class InspectionSignature(wiring.Signature):
    """The guarded packets of one input as they are inspected (docs/pipeline.md, section 3.8), seen from the queues.

    Members:
        waiting: mask of the data VLs in whose queue the first packet is to be inspected.
        queue: one-hot, the one of which is asked `first`, the first block of that packet, and `to`, for which of the
            outputs that need credits it has a copy; in the same cycle.
        inspected: mask of the data VL whose packet has been inspected, none or one. `rejected`, with it: mask of the
            outputs where it may not leave.
    """

    def __init__(self, block_bits: int, credited: int, vls: int) -> None:
        super().__init__(
            {
                "waiting": Out(vls),
                "queue": In(vls),
                "first": Out(block_bits),
                "to": Out(credited),
                "inspected": In(vls),
                "rejected": In(credited),
            }
        )


class QueueingSignature(wiring.Signature):
    """The queues of one input, seen from them.

    Members:
        join, packet, first: a packet joins (cycle e); its first block. `ended`: its end row is being stored, or was.
        has_copies, copies: it is a multicast packet, and has these; `inspection`: of these; where there are any.
        heads: what they ask for and are offered.
        accepted: one-hot, the output whose offer is accepted in this cycle (g+1 = x_0); none if 0.
        oversize: mask of the outputs for which the head that goes, if it is accepted in this cycle (x_0), is oversize.
        firsts: likewise, its first block, of each output.
        taken: the first block of the head that goes (x_0). `copy`: whether that is a copy, in the cycle after.
    """

    def __init__(
        self, block_bits: int, outputs: int, credited: int, vls: int, need_bits: int, *, multicast: bool
    ) -> None:
        copies = {
            "has_copies": In(1),
            "copies": In(copies_layout(outputs, credited, vls)),
            "inspection": Out(InspectionSignature(block_bits, credited, vls)),
        }
        super().__init__(
            {
                **(copies if multicast else {}),
                "join": In(1),
                "ended": In(1),
                "packet": In(routed_layout(outputs)),
                "first": In(block_bits),
                "heads": Out(HeadsSignature(outputs, credited, vls, need_bits)),
                "accepted": In(outputs),
                "oversize": Out(credited),
                "firsts": Out(data.ArrayLayout(block_bits, outputs)),
                "taken": In(block_bits),
                "copy": Out(copy_layout(vls)),
            }
        )
