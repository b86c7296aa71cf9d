"""What is kept of the headers of an SMP, a PMA or a CC request as its words pass (docs/management.md, 1, 3, 6, 7)."""

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.below import below
from rtl.crossing.words import HostWordSignature
from rtl.link.multicast_dlid import is_multicast
from rtl.management.mad_packet import (
    DETH_START,
    GMP_REQUEST_BYTES,
    GRH_BYTES,
    GRH_WORD,
    KEPT_WORDS,
    MAD_START,
    MAD_WORDS,
    PMA_REQUEST_BYTES,
    SMP_BYTES,
    following,
    words_that_differ,
)
from rtl.management.place import WHOLE, WORD_BITS, PacketWrite, Place, place, word_of
from rtl.management.trap_packet import TRAPS, trap_numbers
from rtl.widths import PORT_BITS, SLOT_BITS
from wire.codes import LNH
from wire.congestion_control import CC_CLASS_VERSION, CC_MAD
from wire.headers import DETH, GRH, LRH
from wire.layout import Layout
from wire.mad import CLASS_VERSION, MadMethod, MgmtClass
from wire.packet import WORD_BYTES
from wire.parameters import NodeParameters, SwitchParameters
from wire.pma import PORT_COUNTERS
from wire.smp import SMP_DIRECTED_ROUTE

__all__ = [
    "CC_KEY_BITS",
    "DATA_WORD",
    "M_KEY_BITS",
    "M_KEY_WORD",
    "TRANSACTION_WORD",
    "MadHead",
    "MadReceive",
    "mad_place",
]

M_KEY_BITS: Final = SMP_DIRECTED_ROUTE["m_key"].width
_COUNT_BITS: Final = SMP_DIRECTED_ROUTE["transaction_id"].width // 2

M_KEY_WORD: Final = word_of(SMP_DIRECTED_ROUTE["m_key"], MAD_START)
"""Word of the packet with the higher half of the M_Key."""

TRANSACTION_WORD: Final = word_of(SMP_DIRECTED_ROUTE["transaction_id"], MAD_START)
"""Word of the packet with the higher half of the TransactionID."""

_GID_WORD: Final = word_of(GRH["sgid"], WORD_BYTES * GRH_WORD)
_OTHER_GID: Final = word_of(GRH["dgid"], WORD_BYTES * GRH_WORD) ^ _GID_WORD

CC_KEY_BITS: Final = CC_MAD["cc_key"].width
_CC_KEY_WORD: Final = word_of(CC_MAD["cc_key"], MAD_START)

_DATA_START: Final = MAD_START + SMP_DIRECTED_ROUTE["data"].byte

DATA_WORD: Final = word_of(SMP_DIRECTED_ROUTE["data"], MAD_START)
"""Word of the packet with the attribute's first, in an SMP and in a PMA request."""

_KEPT: Final[dict[str, tuple[Layout, int]]] = {
    **dict.fromkeys(("sl", "dlid", "slid"), (LRH, 0)),
    "src_qp": (DETH, DETH_START),
    **dict.fromkeys(
        ("method", "d", "hop_pointer", "hop_count", "attribute_id", "attribute_modifier", "dr_slid", "dr_dlid"),
        (SMP_DIRECTED_ROUTE, MAD_START),
    ),
    **dict.fromkeys(("port_select", "counter_select", "counter_select2"), (PORT_COUNTERS, _DATA_START)),
}
"""By name: the header that it is of, and the packet's byte at which that begins."""

MadHead = data.StructLayout(
    {
        **{name: header[name].width for name, (header, _) in _KEPT.items()},
        "has_grh": 1,
        "directed": 1,
        "version_known": 1,
        "transaction": _COUNT_BITS,
        "names": TRAPS,
        "key_matches": 1,
        "arrival": PORT_BITS,
        "from_host": 1,
        "slot": SLOT_BITS,
        "is_smp": 1,
        "is_gmp_request": 1,
        "congestion": 1,
        "cc_key": CC_KEY_BITS,
    }
)
"""Fields of a packet's headers, and what else must be known of it. What a packet does not have is any value.

`has_grh`: the LNH says so; `directed`: MgmtClass 0x81; `version_known`: the ClassVersion is 1; `transaction`: the lower
half of the TransactionID; `names`: of which trap that could be, one-hot; `key_matches`: an SMP's M_Key is the node's;
`arrival`, `slot`: the port that it came in by, and its slot; `from_host`: it came from an adapter's host, and `arrival`
is the port before that; `is_smp`, `is_gmp_request`: it is one. In a switch such a request is a PMA's or, if
`congestion`, a CC request; `cc_key`: its CC_Key."""


def mad_place(name: str) -> Place:
    """Where a field of a MAD, in an SMP or in any other, is in its packet's words."""
    return place(SMP_DIRECTED_ROUTE[name], MAD_START)


class MadReceive(wiring.Component):
    """Looks at the words of one packet after the other.

    Members:
        words: the packet. `arrival`, `from_host`: the port that it comes in by, with its first word.
        m_key: what the SMP's is compared with.
        write: a word on the wires; of a packet that is too long, as many as a MAD's has. A GRH's GIDs are exchanged.
        head: the packet's headers, from the cycle after the word with it on, until the next packet.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        self._vl15_slot = parameters.vls
        self._is_switch = isinstance(parameters, SwitchParameters)
        self._traps = trap_numbers(self._is_switch)
        super().__init__(
            {
                "words": In(HostWordSignature),
                "arrival": In(PORT_BITS),
                "from_host": In(1),
                "m_key": In(M_KEY_BITS),
                "write": Out(PacketWrite),
                "head": Out(MadHead),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Each word is looked at once, in its place. The index stops beyond a MAD's last word."""
        m = Module()
        words, head = self.words, self.head
        index, count = Signal(range(KEPT_WORDS)), Signal(range(KEPT_WORDS))
        m.d.comb += index.eq(Mux(words.first, 0, count))
        with m.If(words.valid & (index != MAD_WORDS)):
            m.d.sync += count.eq(following(index, head.has_grh))
            place_of_word = Mux(below(index, _GID_WORD), index, index ^ _OTHER_GID)
            m.d.comb += [self.write.bytes.eq(WHOLE), self.write.index.eq(place_of_word), self.write.word.eq(words.data)]
        with m.If(words.valid & words.first):
            m.d.sync += [
                head.arrival.eq(self.arrival),
                head.from_host.eq(self.from_host),
                head.slot.eq(words.slot),
            ]
        self._identify(m, index)
        with m.If(words.valid):
            self._keep(m, index)
        return m

    def _identify(self, m: Module, index: Signal) -> None:
        words, head = self.words, self.head
        on_vl15 = words.slot == self._vl15_slot
        grh_bytes = {WORD_BYTES * GRH_WORD + byte: allowed for byte, allowed in GRH_BYTES.items()}
        request_bytes = GMP_REQUEST_BYTES if self._is_switch else PMA_REQUEST_BYTES
        dlid = place(LRH["dlid"])
        to_many = (index == dlid.word) & is_multicast(dlid.of(words.data))
        method, mgmt_class = mad_place("method"), mad_place("mgmt_class")
        represses = (index == method.word) & (method.of(words.data) == MadMethod.TRAP_REPRESS)
        of_none = represses & (mgmt_class.of(words.data) != MgmtClass.CONGESTION_CONTROL)
        for allowed, name, as_this in (
            (SMP_BYTES, "is_smp", on_vl15),
            ({**request_bytes, **grh_bytes}, "is_gmp_request", ~on_vl15 & ~to_many & ~of_none),
        ):
            differs = Signal(name=f"{name}_differs")
            as_one = Signal(name=f"as_{name}")  # all words so far are as one's
            with m.Switch(index):
                for number, in_word in words_that_differ(allowed, words.data).items():
                    with m.Case(number):
                        m.d.comb += differs.eq(in_word)
            so_far = (words.first | as_one) & ~differs & as_this
            with m.If(words.valid):
                ends = words.last & (index == MAD_WORDS - 1)
                m.d.sync += [as_one.eq(so_far), head[name].eq(so_far & ends)]

    def _keep(self, m: Module, index: Signal) -> None:
        word, head = self.words.data, self.head
        for name, (header, start) in _KEPT.items():
            where = place(header[name], start)
            with m.If(index == where.word):
                m.d.sync += head[name].eq(where.of(word))
        lnh = place(LRH["lnh"])
        with m.If(index == lnh.word):
            m.d.sync += head.has_grh.eq(lnh.of(word) == LNH.IBA_GLOBAL)
        mgmt_class, class_version = mad_place("mgmt_class"), mad_place("class_version")
        with m.If(index == mgmt_class.word):
            m.d.sync += [
                head.directed.eq(mgmt_class.of(word) == MgmtClass.SUBN_DIRECTED_ROUTE),
                head.version_known.eq(class_version.of(word) == CLASS_VERSION),
            ]
            if self._is_switch:
                congestion = mgmt_class.of(word) == MgmtClass.CONGESTION_CONTROL
                m.d.sync += head.congestion.eq(congestion)
                with m.If(congestion):
                    m.d.sync += head.version_known.eq(class_version.of(word) == CC_CLASS_VERSION)
        if self._is_switch:
            for half in range(2):
                with m.If(index == _CC_KEY_WORD + half):
                    m.d.sync += head.cc_key.word_select(1 - half, WORD_BITS).eq(word)
        with m.If(index == M_KEY_WORD):
            m.d.sync += head.key_matches.eq(word == self.m_key[M_KEY_BITS // 2 :])
        with m.If(index == M_KEY_WORD + 1):
            m.d.sync += head.key_matches.eq(head.key_matches & (word == self.m_key[: M_KEY_BITS // 2]))
        with m.If(index == TRANSACTION_WORD):
            m.d.sync += head.names.eq(Cat(word == Const(number, _COUNT_BITS) for number in self._traps))
        with m.If(index == TRANSACTION_WORD + 1):
            m.d.sync += head.transaction.eq(word)
