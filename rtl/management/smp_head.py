"""What is kept of an SMP's headers as its words come by (docs/management.md, sections 1 and 3)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.adapter.host_receive import HostWordSignature
from rtl.management.place import Place, place, word_of
from rtl.management.smp_packet import MAD_START, SMP_BYTES, SMP_WORDS
from wire.headers import LRH
from wire.mad import CLASS_VERSION, MgmtClass
from wire.packet import WORD_BYTES
from wire.smp import SMP_DIRECTED_ROUTE

__all__ = ["DATA_WORD", "M_KEY_BITS", "M_KEY_WORD", "TRANSACTION_WORD", "SmpHead", "SmpReceive", "smp_place"]

M_KEY_BITS: Final = SMP_DIRECTED_ROUTE["m_key"].width
_COUNT_BITS: Final = SMP_DIRECTED_ROUTE["transaction_id"].width // 2

M_KEY_WORD: Final = word_of(SMP_DIRECTED_ROUTE["m_key"], MAD_START)
"""Word of the packet with the higher half of the M_Key."""

TRANSACTION_WORD: Final = word_of(SMP_DIRECTED_ROUTE["transaction_id"], MAD_START)
"""Word of the packet with the higher half of the TransactionID."""

DATA_WORD: Final = word_of(SMP_DIRECTED_ROUTE["data"], MAD_START)
"""Word of the packet with the attribute's first."""

_KEPT: Final = (
    "method",
    "d",
    "hop_pointer",
    "hop_count",
    "attribute_id",
    "attribute_modifier",
    "dr_slid",
    "dr_dlid",
)
_ROUTE: Final = ("dlid", "slid")

SmpHead = data.StructLayout(
    {
        **{name: LRH[name].width for name in _ROUTE},
        **{name: SMP_DIRECTED_ROUTE[name].width for name in _KEPT},
        "directed": 1,
        "version_known": 1,
        "transaction": _COUNT_BITS,
    }
)
"""Fields of the LRH and of the SMP; `directed`: MgmtClass 0x81; `version_known`: the ClassVersion is 1; `transaction`:
the lower half of the TransactionID. What a LID-routed SMP does not have is any value."""


def smp_place(name: str) -> Place:
    """Where a field of an SMP stands in its packet's words."""
    return place(SMP_DIRECTED_ROUTE[name], MAD_START)


def _words_of_smp() -> dict[int, tuple[int, int]]:
    """The (mask, value) of each word that make a packet an SMP."""
    words: dict[int, tuple[int, int]] = {}
    for byte, (mask, value) in SMP_BYTES.items():
        index, at = divmod(byte, WORD_BYTES)
        shift = 8 * (WORD_BYTES - 1 - at)
        before = words.get(index, (0, 0))
        words[index] = (before[0] | mask << shift, before[1] | value << shift)
    return words


class SmpReceive(wiring.Component):
    """Looks at the words of one packet after the other.

    Args:
        slot: VL15's.
        traps: the trap numbers of this kind of node.

    Members:
        words: the packet.
        m_key: what the SMP's is compared with.
        index: of the word on the wires.
        head: the SMP's header; valid from the cycle after the word with it on, until the next packet.
        is_smp: the packet is an SMP, from the cycle after its last word on.
        key_matches: its M_Key is `m_key`, from then on.
        names: of which trap its TransactionID could be, one-hot, from then on.
    """

    def __init__(self, slot: int, traps: tuple[int, ...]) -> None:
        self._slot = slot
        self._traps = traps
        super().__init__(
            {
                "words": In(HostWordSignature()),
                "m_key": In(M_KEY_BITS),
                "index": Out(range(SMP_WORDS + 1)),
                "head": Out(SmpHead),
                "is_smp": Out(1),
                "key_matches": Out(1),
                "names": Out(len(traps)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Each word is looked at once. The index stops beyond an SMP's last word."""
        m = Module()
        words, word, head = self.words, self.words.data, self.head
        count = Signal.like(self.index)
        beyond = SMP_WORDS
        m.d.comb += self.index.eq(Mux(words.first, 0, count))
        with m.If(words.valid):
            m.d.sync += count.eq(Mux(self.index == beyond, beyond, self.index + 1))

        differs = Signal()
        as_smp = Signal()  # all words so far are as an SMP's
        with m.Switch(self.index):
            for index, (mask, value) in _words_of_smp().items():
                with m.Case(index):
                    m.d.comb += differs.eq((word & mask) != value)
        so_far = (words.first | as_smp) & ~differs & (words.slot == self._slot)
        with m.If(words.valid):
            m.d.sync += [as_smp.eq(so_far), self.is_smp.eq(so_far & words.last & (self.index == SMP_WORDS - 1))]

        fields = {name: place(LRH[name]) for name in _ROUTE} | {name: smp_place(name) for name in _KEPT}
        mgmt_class, class_version = smp_place("mgmt_class"), smp_place("class_version")
        keys = (self.m_key[M_KEY_BITS // 2 :], self.m_key[: M_KEY_BITS // 2])
        with m.If(words.valid):
            for name, where in fields.items():
                with m.If(self.index == where.word):
                    m.d.sync += head[name].eq(where.of(word))
            with m.If(self.index == mgmt_class.word):
                m.d.sync += [
                    head.directed.eq(mgmt_class.of(word) == MgmtClass.SUBN_DIRECTED_ROUTE),
                    head.version_known.eq(class_version.of(word) == CLASS_VERSION),
                ]
            with m.If(self.index == M_KEY_WORD):
                m.d.sync += self.key_matches.eq(word == keys[0])
            with m.If(self.index == M_KEY_WORD + 1):
                m.d.sync += self.key_matches.eq(self.key_matches & (word == keys[1]))
            with m.If(self.index == TRANSACTION_WORD):
                m.d.sync += self.names.eq(Cat(word == Const(number, _COUNT_BITS) for number in self._traps))
            with m.If(self.index == TRANSACTION_WORD + 1):
                m.d.sync += head.transaction.eq(word)
        return m
