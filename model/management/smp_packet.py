"""An SMP in its packet: what is one, and how its fields are changed (docs/management.md, sections 1 and 2)."""

from collections.abc import Mapping
from typing import Final

from wire.codes import LNH, QP_SMI
from wire.headers import BTH, LRH
from wire.layout import Record
from wire.mad import BASE_VERSION, MAD_HEADER, MgmtClass
from wire.opcodes import Opcode
from wire.smp import unpack_smp

from .mad_in_packet import BTH_AT, LRH_AT, MAD_AT, MAD_END, PACKET_BYTES, changed

__all__ = ["is_smp", "smp_in", "with_fields"]

_CLASSES: Final = (MgmtClass.SUBN_LID_ROUTED, MgmtClass.SUBN_DIRECTED_ROUTE)


def is_smp(data: bytes) -> bool:
    """True if a packet on VL15's slot, given from LRH to ICRC, is an SMP. Its ICRC is not looked at."""
    if len(data) != PACKET_BYTES or LRH["lnh"].read(data) != LNH.IBA_LOCAL:
        return False
    bth = BTH.unpack(data, BTH_AT)
    mad = MAD_HEADER.unpack(data, MAD_AT)
    return (
        bth.opcode == Opcode.UD_SEND_ONLY
        and bth.dest_qp == QP_SMI
        and mad.base_version == BASE_VERSION
        and mad.mgmt_class in _CLASSES
    )


def smp_in(data: bytes) -> Record:
    """The SMP in its packet."""
    return unpack_smp(data[MAD_AT:MAD_END])


def with_fields(data: bytes, lrh: Mapping[str, int], smp: Mapping[str, int]) -> bytes:
    """An SMP's packet with these fields changed and a right ICRC; every other bit is as it came."""
    return changed(data, (LRH, LRH_AT, lrh), (smp_in(data).layout, MAD_AT, smp))
