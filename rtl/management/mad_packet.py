"""What makes a packet an SMP, a PMA or a CC request (docs/management.md, 1 and 7; IBTA vol 1, 13.5.3)."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from amaranth.hdl import Cat, Mux, Value

from wire.codes import LNH, Q_KEY_GSI, QP_GSI, QP_SMI
from wire.congestion_control import CC_DATA_BYTES
from wire.crc import ICRC_BYTES
from wire.headers import BTH, DETH, GRH, GRH_IP_VER, GRH_NXT_HDR_BTH, LRH
from wire.layout import Field
from wire.mad import BASE_VERSION, MAD_BYTES, MAD_HEADER, MadMethod, MgmtClass
from wire.opcodes import Opcode
from wire.packet import WORD_BYTES, blocks_of_words

__all__ = [
    "BTH_START",
    "CC_DATA_WORD",
    "DETH_START",
    "GMP_REQUEST_BYTES",
    "GRH_BYTES",
    "GRH_WORD",
    "GRH_WORDS",
    "KEPT_WORDS",
    "LRH_WORDS",
    "MAD_BLOCKS",
    "MAD_START",
    "MAD_WORDS",
    "PMA_REQUEST_BYTES",
    "SMP_BYTES",
    "AllowedByte",
    "following",
    "words_that_differ",
]

BTH_START: Final = LRH.size_bytes
DETH_START: Final = BTH_START + BTH.size_bytes

MAD_START: Final = DETH_START + DETH.size_bytes
"""Byte of a MAD's packet at which the MAD begins."""

MAD_WORDS: Final = (MAD_START + MAD_BYTES + ICRC_BYTES) // WORD_BYTES
"""PktLen of a MAD's packet."""

MAD_BLOCKS: Final = blocks_of_words(MAD_WORDS)
"""64-byte blocks of it."""

CC_DATA_WORD: Final = (MAD_START + MAD_BYTES - CC_DATA_BYTES) // WORD_BYTES
"""Word of a MAD's packet in which the data of congestion control begin."""

LRH_WORDS: Final = LRH.size_bytes // WORD_BYTES
GRH_WORDS: Final = GRH.size_bytes // WORD_BYTES

GRH_WORD: Final = 78
"""Where an agent keeps a GRH: behind the words of a packet without, of which each has one place so. The two GIDs begin
at multiples of eight and four: one bit tells them apart."""

KEPT_WORDS: Final = GRH_WORD + GRH_WORDS
"""As many words an agent has place for."""


def following(index: Value, has_grh: Value) -> Value:
    """The place of the word of a packet that comes behind the one at this place."""
    to_grh = has_grh & (index == LRH_WORDS - 1)
    return Mux(to_grh, GRH_WORD, Mux(index == KEPT_WORDS - 1, LRH_WORDS, index + 1))


class AllowedByte(NamedTuple):
    """The values that a byte may have in the bits of a mask."""

    mask: int
    values: tuple[int, ...]


def _allow(start: int, field: Field, *values: int) -> dict[int, AllowedByte]:
    """By byte, that the field of a header at byte START has this value, or one of these if it is one byte's."""
    allowed = {}
    for place in range(field.byte_span):
        shift = 8 * (field.byte_span - 1 - place)
        mask, *of_byte = (number << field.lsb_in_span >> shift & 0xFF for number in (field.max, *values))
        allowed[start + field.byte + place] = AllowedByte(mask, tuple(of_byte))
    return allowed


_OF_BOTH: Final = {
    **_allow(BTH_START, BTH["opcode"], Opcode.UD_SEND_ONLY),
    **_allow(MAD_START, MAD_HEADER["base_version"], BASE_VERSION),
}

SMP_BYTES: Final[Mapping[int, AllowedByte]] = {
    **_OF_BOTH,
    **_allow(0, LRH["lnh"], LNH.IBA_LOCAL),
    **_allow(BTH_START, BTH["dest_qp"], QP_SMI),
    **_allow(MAD_START, MAD_HEADER["mgmt_class"], MgmtClass.SUBN_LID_ROUTED, MgmtClass.SUBN_DIRECTED_ROUTE),
}
"""By byte of the packet, from the LRH's byte 0 on: a packet on VL15 of `MAD_WORDS` words is an SMP if all hold."""

PMA_REQUEST_BYTES: Final[Mapping[int, AllowedByte]] = {
    **_OF_BOTH,
    **_allow(0, LRH["lnh"], LNH.IBA_LOCAL, LNH.IBA_GLOBAL),
    **_allow(BTH_START, BTH["dest_qp"], QP_GSI),
    **_allow(DETH_START, DETH["q_key"], Q_KEY_GSI),
    **_allow(MAD_START, MAD_HEADER["mgmt_class"], MgmtClass.PERF),
    **_allow(MAD_START, MAD_HEADER["method"], MadMethod.GET, MadMethod.SET),
}
"""Likewise: a packet on a data VL of `MAD_WORDS` words, besides a GRH, is a PMA request if all hold."""

GMP_REQUEST_BYTES: Final[Mapping[int, AllowedByte]] = {
    **PMA_REQUEST_BYTES,
    **_allow(MAD_START, MAD_HEADER["mgmt_class"], MgmtClass.PERF, MgmtClass.CONGESTION_CONTROL),
    **_allow(MAD_START, MAD_HEADER["method"], MadMethod.GET, MadMethod.SET, MadMethod.TRAP_REPRESS),
}
"""Likewise: then it is a PMA's, of which there is no TrapRepress, or a CC request."""

GRH_BYTES: Final[Mapping[int, AllowedByte]] = {
    **_allow(0, GRH["ip_ver"], GRH_IP_VER),
    **_allow(0, GRH["nxt_hdr"], GRH_NXT_HDR_BTH),
}
"""By byte of its GRH, if it has one."""


def words_that_differ(allowed: Mapping[int, AllowedByte], word: Value, before: int = 0) -> dict[int, Value]:
    """By number of a word that is looked at: `word`, if it is this one, has a byte that is not as allowed.

    `before`: bytes in word 0 before the packet.
    """
    differ: dict[int, list[Value]] = defaultdict(list)
    for byte, (mask, values) in allowed.items():
        index, place = divmod(before + byte, WORD_BYTES)
        found = word.word_select(WORD_BYTES - 1 - place, 8) & mask
        differ[index].append(~Cat(found == value for value in values).any())
    return {index: Cat(of_word).any() for index, of_word in differ.items()}
