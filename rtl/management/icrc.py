"""The ICRC of a packet with a MAD, a word in each cycle (IBTA vol 1, 7.8)."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.crc import icrc_step, lanes_of
from rtl.management.mad_packet import MAD_WORDS
from rtl.management.place import WORD_BITS
from wire.codes import LNH
from wire.crc import ICRC_INIT, ICRC_RESIDUE, ICRC_WIDTH, icrc_masked
from wire.headers import BTH, LRH
from wire.packet import WORD_BYTES

__all__ = ["Icrc"]


def _masks() -> dict[int, int]:
    """What counts as ones in each word of a packet without a GRH."""
    packet = LRH.pack(lnh=LNH.IBA_LOCAL) + bytes(BTH.size_bytes)
    ones = bytes(a ^ b for a, b in zip(icrc_masked(packet), packet, strict=True))
    words = [int.from_bytes(ones[at : at + WORD_BYTES], "big") for at in range(0, len(ones), WORD_BYTES)]
    return {index: mask for index, mask in enumerate(words) if mask}


class Icrc(wiring.Component):
    """Follows the words of one packet.

    Members:
        take: `word` is word `index` of the packet.
        good: the words taken so far end with their right ICRC.
        ends: the word with the ICRC of those taken so far, which ends their packet.
    """

    take: In(1)
    word: In(WORD_BITS)
    index: In(range(MAD_WORDS))
    good: Out(1)
    ends: Out(WORD_BITS)

    def elaborate(self, platform: object) -> Module:
        """One register; the first byte of the ICRC is its lowest."""
        m = Module()
        state = Signal(ICRC_WIDTH)
        ones = Signal(WORD_BITS)
        with m.Switch(self.index):
            for index, mask in _masks().items():
                with m.Case(index):
                    m.d.comb += ones.eq(mask)
        before = Mux(self.index == 0, Const(ICRC_INIT, ICRC_WIDTH), state)
        with m.If(self.take):
            # As many bits as the register has enter it at once: only their sum counts.
            taken = before ^ Cat(lanes_of(self.word | ones))
            m.d.sync += state.eq(icrc_step(taken, [Const(0, ICRC_WIDTH)]))
        m.d.comb += [self.good.eq(state == ICRC_RESIDUE), self.ends.eq(~Cat(lanes_of(state)))]
        return m
