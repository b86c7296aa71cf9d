"""What is kept of the headers of an SMP or a PMA request as its words come by (docs/management.md, 1, 3 and 6)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.crossing.rows_to_words import HostWordSignature
from rtl.management.mad_packet import (
    DETH_START,
    MAD_START,
    MAD_WORDS,
    PMA_REQUEST_BYTES,
    SMP_BYTES,
    words_that_differ,
)
from rtl.management.place import Place, place, word_of
from wire.headers import DETH, LRH
from wire.layout import Layout
from wire.mad import CLASS_VERSION, MgmtClass
from wire.pma import PORT_COUNTERS
from wire.smp import SMP_DIRECTED_ROUTE

__all__ = ["DATA_WORD", "M_KEY_BITS", "M_KEY_WORD", "TRANSACTION_WORD", "MadHead", "MadReceive", "mad_place"]

M_KEY_BITS: Final = SMP_DIRECTED_ROUTE["m_key"].width
_COUNT_BITS: Final = SMP_DIRECTED_ROUTE["transaction_id"].width // 2

M_KEY_WORD: Final = word_of(SMP_DIRECTED_ROUTE["m_key"], MAD_START)
"""Word of the packet with the higher half of the M_Key."""

TRANSACTION_WORD: Final = word_of(SMP_DIRECTED_ROUTE["transaction_id"], MAD_START)
"""Word of the packet with the higher half of the TransactionID."""

_DATA_START: Final = MAD_START + SMP_DIRECTED_ROUTE["data"].byte

DATA_WORD: Final = word_of(SMP_DIRECTED_ROUTE["data"], MAD_START)
"""Word of the packet with the attribute's first, in an SMP and in a PMA request."""

_KEPT: Final[dict[str, tuple[Layout, int]]] = {
    **dict.fromkeys(("sl", "dlid", "slid"), (LRH, 0)),
    "src_qp": (DETH, DETH_START),
    **dict.fromkeys(
        (
            "method",
            "d",
            "hop_pointer",
            "hop_count",
            "attribute_id",
            "attribute_modifier",
            "dr_slid",
            "dr_dlid",
        ),
        (SMP_DIRECTED_ROUTE, MAD_START),
    ),
    **dict.fromkeys(("port_select", "counter_select", "counter_select2"), (PORT_COUNTERS, _DATA_START)),
}
"""By name: the header that it is of, and the packet's byte at which that begins."""

MadHead = data.StructLayout(
    {
        **{name: header[name].width for name, (header, _) in _KEPT.items()},
        "directed": 1,
        "version_known": 1,
        "transaction": _COUNT_BITS,
    }
)
"""Fields of a packet's headers; `directed`: MgmtClass 0x81; `version_known`: the ClassVersion is 1; `transaction`:
the lower half of the TransactionID. What a packet does not have is any value."""


def mad_place(name: str) -> Place:
    """Where a field of a MAD, in an SMP or in any other, stands in its packet's words."""
    return place(SMP_DIRECTED_ROUTE[name], MAD_START)


class MadReceive(wiring.Component):
    """Looks at the words of one packet after the other.

    Args:
        slot: VL15's.
        traps: the trap numbers of this kind of node.

    Members:
        words: the packet.
        m_key: what the SMP's is compared with.
        index: of the word on the wires.
        head: the packet's headers; valid from the cycle after the word with it on, until the next packet.
        is_smp, is_pma_request: the packet is one, from the cycle after its last word on.
        key_matches: an SMP's M_Key is `m_key`, from then on.
        names: of which trap its TransactionID could be, one-hot, from then on.
    """

    def __init__(self, slot: int, traps: tuple[int, ...]) -> None:
        self._slot = slot
        self._traps = traps
        super().__init__(
            {
                "words": In(HostWordSignature()),
                "m_key": In(M_KEY_BITS),
                "index": Out(range(MAD_WORDS + 1)),
                "head": Out(MadHead),
                "is_smp": Out(1),
                "is_pma_request": Out(1),
                "key_matches": Out(1),
                "names": Out(len(traps)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Each word is looked at once. The index stops beyond a MAD's last word."""
        m = Module()
        words, word, head = self.words, self.words.data, self.head
        count = Signal.like(self.index)
        beyond = MAD_WORDS
        m.d.comb += self.index.eq(Mux(words.first, 0, count))
        with m.If(words.valid):
            m.d.sync += count.eq(Mux(self.index == beyond, beyond, self.index + 1))

        ends = words.last & (self.index == MAD_WORDS - 1)
        on_vl15 = words.slot == self._slot
        for allowed, found, slot in (
            (SMP_BYTES, self.is_smp, on_vl15),
            (PMA_REQUEST_BYTES, self.is_pma_request, ~on_vl15),
        ):
            differs = Signal(name=f"{found.name}_differs")
            as_one = Signal(name=f"as_{found.name}")  # all words so far are as one's
            with m.Switch(self.index):
                for index, in_word in words_that_differ(allowed, word).items():
                    with m.Case(index):
                        m.d.comb += differs.eq(in_word)
            so_far = (words.first | as_one) & ~differs & slot
            with m.If(words.valid):
                m.d.sync += [as_one.eq(so_far), found.eq(so_far & ends)]

        fields = {name: place(header[name], start) for name, (header, start) in _KEPT.items()}
        mgmt_class, class_version = mad_place("mgmt_class"), mad_place("class_version")
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
