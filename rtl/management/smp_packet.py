"""What makes a packet an SMP (docs/management.md, section 1; IBTA vol 1, 13.5.3)."""

from typing import Final

from wire.codes import LNH, QP_SMI
from wire.crc import ICRC_BYTES
from wire.headers import BTH, DETH, LRH
from wire.layout import Field
from wire.mad import BASE_VERSION, MAD_BYTES, MAD_HEADER, MgmtClass
from wire.opcodes import Opcode
from wire.packet import WORD_BYTES, blocks_of_words

__all__ = ["MAD_START", "SMP_BLOCKS", "SMP_BYTES", "SMP_WORDS"]

_BTH_START = LRH.size_bytes

MAD_START: Final = _BTH_START + BTH.size_bytes + DETH.size_bytes
"""Byte of an SMP's packet at which the MAD begins."""

SMP_WORDS: Final = (MAD_START + MAD_BYTES + ICRC_BYTES) // WORD_BYTES
"""PktLen of an SMP's packet."""

SMP_BLOCKS: Final = blocks_of_words(SMP_WORDS)
"""64-byte blocks of it."""

_EITHER_CLASS = ~(MgmtClass.SUBN_LID_ROUTED ^ MgmtClass.SUBN_DIRECTED_ROUTE)


def _bytes_of(start: int, field: Field, value: int, care: int = -1) -> dict[int, tuple[int, int]]:
    """By byte, the (mask, value) that say that the field of a header at byte START is VALUE in the bits of CARE."""
    places = range(field.byte_span)
    mask, wanted = ((field.max & bits) << field.lsb_in_span for bits in (care, value & care))
    shifts = [8 * (field.byte_span - 1 - place) for place in places]
    return {
        start + field.byte + place: (mask >> shifts[place] & 0xFF, wanted >> shifts[place] & 0xFF) for place in places
    }


SMP_BYTES: Final[dict[int, tuple[int, int]]] = {
    **_bytes_of(0, LRH["lnh"], LNH.IBA_LOCAL),
    **_bytes_of(_BTH_START, BTH["opcode"], Opcode.UD_SEND_ONLY),
    **_bytes_of(_BTH_START, BTH["dest_qp"], QP_SMI),
    **_bytes_of(MAD_START, MAD_HEADER["base_version"], BASE_VERSION),
    **_bytes_of(MAD_START, MAD_HEADER["mgmt_class"], MgmtClass.SUBN_LID_ROUTED, _EITHER_CLASS),
}
"""(mask, value) by byte of the packet, from the LRH's byte 0 on: a packet on VL15 of `SMP_WORDS` words is an SMP if it
is so in all of them. The classes differ in one bit."""
