"""The packet that the agent works on: kept, read word by word at its steps, offered (docs/management.md, section 2)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.crossing.buffer import NO_COLLISION
from rtl.crossing.words import HostStreamSignature
from rtl.link.crc import icrc_masks, icrc_step, lanes_of
from rtl.management.attribute import WORDS, Attribute
from rtl.management.attribute_memory import BLOCK_WORDS
from rtl.management.mad_head import DATA_WORD, M_KEY_WORD
from rtl.management.mad_packet import GRH_WORD, GRH_WORDS, KEPT_WORDS, LRH_WORDS, MAD_WORDS, following
from rtl.management.place import WORD_BITS, PacketWrite, place
from rtl.management.task import NEXT_WORD, SET_SLOT, Stage
from rtl.management.windows import Window, outside
from wire.codes import LNH
from wire.crc import ICRC_INIT, ICRC_RESIDUE, ICRC_WIDTH
from wire.headers import LRH
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import PmaAttribute

__all__ = ["Offer", "Packet"]


_PATH_STEP: Final = 2
_M_KEY_STEP: Final = 9

_AHEAD: Final = 6
"""The step of the last slot from which on the packet is read ahead."""


class Packet(Stage):
    """The packet in a memory.

    Members:
        write: given in cycle c, it is seen by a read of c+2.
        path_word: the word with the path's entry, in step 2. `window_word` (switch): of a CC request, see `Windows`.
        taken: the word offered is taken. One waits then in the memory's register, and one before the stream.
        word: of the path, in step 4; of a violating SMP's M_Key, in steps 11 and 12; of the data that the next slot is
            of, in the last step of a slot; at the end what is offered.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        path_word = In(range(MAD_WORDS))
        of_switch = {"window_word": In(range(KEPT_WORDS))} if isinstance(parameters, SwitchParameters) else {}
        super().__init__(
            parameters, write=In(PacketWrite), path_word=path_word, taken=In(1), word=Out(WORD_BITS), **of_switch
        )

    def elaborate(self, platform: object) -> Module:
        """One block RAM, and a register before it. What it reads while it is written is never needed."""
        m = Module()
        index = Signal(range(KEPT_WORDS))
        has_grh = self.task.gmp & self.task.head.has_grh
        m.submodules.memory = memory = Memory(shape=WORD_BITS, depth=1 << len(index), init=[], attrs=NO_COLLISION)
        writer = memory.write_port(granularity=8)
        reader = memory.read_port()
        write = Signal(PacketWrite)
        steps, last = self.steps, self.steps.last_slot
        m.d.sync += write.eq(self.write)
        m.d.comb += [
            writer.en.eq(write.bytes),
            writer.addr.eq(write.index),
            writer.data.eq(write.word),
            reader.en.eq(steps.go | self.taken),
            reader.addr.eq(index),
            self.word.eq(reader.data),
        ]
        with m.If(steps.at(_PATH_STEP)):
            m.d.sync += index.eq(self.path_word)
        for half in range(2):
            with m.If(steps.at(_M_KEY_STEP + half) & self.task.violated):
                m.d.sync += index.eq(M_KEY_WORD + half)
        with m.If(steps.at_in_slot(NEXT_WORD) & ~last):
            # Of those behind a block only the second one's slot comes after one of theirs.
            in_block = DATA_WORD + 1 - SET_SLOT + steps.slot
            m.d.sync += index.eq(Mux(below(steps.of_slot.word, BLOCK_WORDS), in_block, DATA_WORD + BLOCK_WORDS + 1))
            if self._is_switch:
                with m.If(self.task.congestion):
                    m.d.sync += index.eq(self.window_word)
        with m.If(steps.at_in_slot(_AHEAD - 1) & last):
            m.d.sync += index.eq(0)
        with m.If(((steps.at_in_slot(_AHEAD) | steps.at_in_slot(_AHEAD + 1)) & last) | self.taken):
            m.d.sync += index.eq(following(index, has_grh))
        return m


def _kept_at(word: int) -> int:
    """The place of this word of a packet with a GRH."""
    if word < LRH_WORDS:
        return word
    return GRH_WORD + word - LRH_WORDS if word < LRH_WORDS + GRH_WORDS else word - GRH_WORDS


def _as_covered(m: Module, word: Value, index: Value, has_grh: Value) -> Value:
    """The word at this place of a packet as the ICRC sees it, with ones in the fields that change on the way."""
    ones = Signal(WORD_BITS)
    local = icrc_masks(LNH.IBA_LOCAL)
    with_grh = {_kept_at(place): mask for place, mask in icrc_masks(LNH.IBA_GLOBAL).items()}
    with m.Switch(index):
        for place_of_word in sorted({*local, *with_grh}):
            with m.Case(place_of_word):
                m.d.comb += ones.eq(Mux(has_grh, with_grh.get(place_of_word, 0), local.get(place_of_word, 0)))
    return word | ones


class _Icrc(wiring.Component):
    """The ICRC of a packet with a MAD, a word in each cycle (IBTA vol 1, 7.8).

    Members:
        take: `word` is the packet's next, as `_as_covered` has it; `first`: it is its first.
        good: the words taken so far end with their right ICRC.
        ends: the word with the ICRC of those taken so far, which ends their packet.
    """

    take: In(1)
    first: In(1)
    word: In(WORD_BITS)
    good: Out(1)
    ends: Out(WORD_BITS)

    def elaborate(self, platform: object) -> Module:
        """One register; the first byte of the ICRC is its lowest."""
        m = Module()
        state = Signal(ICRC_WIDTH)
        before = Mux(self.first, Const(ICRC_INIT, ICRC_WIDTH), state)
        # As many bits as the register has enter it at once: only their sum counts.
        following = icrc_step(m, before ^ Cat(lanes_of(self.word)), [Const(0, ICRC_WIDTH)])
        with m.If(self.take):
            m.d.sync += state.eq(following)
        m.d.comb += [self.good.eq(state == ICRC_RESIDUE), self.ends.eq(~Cat(lanes_of(state)))]
        return m


class Offer(Stage):
    """Makes a stream of the packet's words, and says of a packet that comes whether its ICRC is right.

    Members:
        came: a word of a packet that comes. `right`: its words end with their right ICRC, from the second cycle after
            the last on.
        packet_word: of the packet, as it is read for the stream (see `Packet`).
        attribute: of an answer. `window` (switch): of a CC answer.
        offering: the packet is offered.
        stream: the packet. `sent`: its last word is taken.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        super().__init__(
            parameters,
            came=In(PacketWrite),
            right=Out(1),
            packet_word=In(WORD_BITS),
            attribute=In(Attribute),
            offering=In(1),
            stream=In(HostStreamSignature),
            sent=Out(1),
            **({"window": In(Window)} if isinstance(parameters, SwitchParameters) else {}),
        )

    def elaborate(self, platform: object) -> Module:
        """A word waits before the stream. There is one ICRC for both directions, and a register before it."""
        m = Module()
        m.submodules.icrc = icrc = _Icrc()
        steps, stream, came = self.steps, self.stream, self.came
        taken = stream.ready
        covered = Signal(WORD_BITS, reset_less=True)  # the word, as the ICRC sees it

        # A packet comes.
        takes, first, came_with_grh = Signal(), Signal(), Signal()
        lnh, is_first = place(LRH["lnh"]), came.index == 0
        comes_with_grh = Mux(is_first, lnh.of(came.word) == LNH.IBA_GLOBAL, came_with_grh)
        m.d.sync += takes.eq(came.bytes.any())
        covered_as_it_came = _as_covered(m, came.word, came.index, comes_with_grh)
        with m.If(came.bytes.any()):
            m.d.sync += [
                first.eq(is_first),
                came_with_grh.eq(comes_with_grh),
                covered.eq(covered_as_it_came),
            ]

        # A packet leaves. Behind a PMA's attribute nothing stays, nor around congestion control's.
        next_word, count = Signal(WORD_BITS), Signal(range(KEPT_WORDS))
        has_grh = self.task.gmp & self.task.head.has_grh
        extended = self.attribute.chosen[PmaAttribute.PORT_COUNTERS_EXTENDED.name]
        ends_at = Mux(extended, *(below(count, DATA_WORD - 1 + words) for words in (WORDS, BLOCK_WORDS)))
        behind = ~ends_at & below(count, GRH_WORD)
        if self._is_switch:
            behind = Mux(self.task.congestion, outside(self.window, count), behind)
        beyond = self.task.gmp & self.attribute.answering & behind
        given = Mux(beyond, 0, self.packet_word)
        begins = steps.at_in_slot(_AHEAD + 1) & steps.last_slot
        covered_as_given = _as_covered(m, given, Mux(begins, 0, following(count, has_grh)), has_grh)
        with m.If(taken | begins):
            m.d.sync += [next_word.eq(given), covered.eq(covered_as_given)]
        with m.If(taken):
            m.d.sync += count.eq(following(count, has_grh))
        with m.Elif(~self.offering):
            m.d.sync += count.eq(0)
        ends = count == MAD_WORDS - 1
        m.d.comb += [
            icrc.take.eq(Mux(self.offering, taken, takes)),
            icrc.first.eq(Mux(self.offering, count == 0, first)),
            icrc.word.eq(covered),
            self.right.eq(icrc.good),
            stream.valid.eq(self.offering),
            stream.length.eq(Mux(has_grh, MAD_WORDS + GRH_WORDS, MAD_WORDS)),
            stream.data.eq(Mux(ends, icrc.ends, next_word)),
            self.sent.eq(taken & ends),
        ]
        return m
