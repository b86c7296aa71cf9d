"""MADs in packets: UD SEND Only, SMPs on VL15 between QP0s, the other classes between QP1s (IBTA vol 1, 13.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .codes import LID_PERMISSIVE, P_KEY_DEFAULT, Q_KEY_GSI, Q_KEY_SMI, QP_GSI, QP_SMI, VL15
from .crc import ICRC_BYTES
from .headers import BTH, DETH, GRH, LRH
from .layout import Record
from .mad import BASE_VERSION, MAD_BYTES, MAD_HEADER, MgmtClass
from .opcodes import Opcode
from .packet import Packet, build_ud_send
from .smp import smp_layout

__all__ = [
    "gmp_of",
    "gmp_packet",
    "is_for_general_services",
    "is_for_management",
    "is_mad",
    "is_of_management",
    "smp_of",
    "smp_packet",
]

_LNH_BITS: Final = 3
_LNH_IBA: Final = 2
_SMP_CLASSES: Final = (MgmtClass.SUBN_LID_ROUTED, MgmtClass.SUBN_DIRECTED_ROUTE)


def smp_packet(smp: Record | bytes, slid: int = LID_PERMISSIVE, dlid: int = LID_PERMISSIVE, psn: int = 0) -> Packet:
    """The packet of an SMP, CRCs included; a purely directed route has permissive LIDs.

    Raises:
        ValueError: a value that does not fit its field.
    """
    return build_ud_send(
        slid=slid,
        dlid=dlid,
        dest_qp=QP_SMI,
        src_qp=QP_SMI,
        q_key=Q_KEY_SMI,
        payload=smp.pack() if isinstance(smp, Record) else smp,
        vl=VL15,
        psn=psn,
    )


def gmp_packet(
    mad: Record | bytes,
    slid: int,
    dlid: int,
    *,
    vl: int = 0,
    sl: int = 0,
    p_key: int = P_KEY_DEFAULT,
    dest_qp: int = QP_GSI,
    src_qp: int = QP_GSI,
    psn: int = 0,
    grh: Mapping[str, int] | None = None,
) -> Packet:
    """The packet of a MAD of any other class, CRCs included. It travels on a data VL.

    Raises:
        ValueError: a value that does not fit its field.
    """
    return build_ud_send(
        slid=slid,
        dlid=dlid,
        dest_qp=dest_qp,
        src_qp=src_qp,
        q_key=Q_KEY_GSI,
        payload=mad.pack() if isinstance(mad, Record) else mad,
        vl=vl,
        sl=sl,
        p_key=p_key,
        psn=psn,
        grh=grh,
    )


def is_for_management(data: bytes) -> bool:
    """Whether the packet of these bytes is for QP0 or QP1, so that it is worth while to take it apart."""
    return _dest_qp(data) in (QP_SMI, QP_GSI)


def is_for_general_services(data: bytes) -> bool:
    """Whether the packet of these bytes is for QP1."""
    return _dest_qp(data) == QP_GSI


def is_mad(data: bytes) -> bool:
    """Whether the packet of these bytes is for QP1, or an SMP's: not all that goes to QP0 on VL15 is one."""
    dest_qp = _dest_qp(data)
    if dest_qp != QP_SMI:
        return dest_qp == QP_GSI
    at = LRH.size_bytes + BTH.size_bytes + DETH.size_bytes
    if len(data) != at + MAD_BYTES + ICRC_BYTES:
        return False
    mad = MAD_HEADER.unpack(data, at)
    return mad.base_version == BASE_VERSION and mad.mgmt_class in _SMP_CLASSES


def is_of_management(data: bytes) -> bool:
    """Whether the packet of these bytes has a MAD or comes from QP1: agents answer to whatever QP asked."""
    return is_mad(data) or _src_qp(data) == QP_GSI


def _transport(data: bytes) -> int | None:
    """Where the BTH of a packet with IBA transport begins; None of another."""
    lnh = data[1] & _LNH_BITS
    return LRH.size_bytes + (GRH.size_bytes if lnh == _LNH_BITS else 0) if lnh & _LNH_IBA else None


def _dest_qp(data: bytes) -> int | None:
    """That of a packet with IBA transport and as many bytes."""
    at = _transport(data)
    return None if at is None or len(data) < at + BTH.size_bytes else BTH["dest_qp"].read(data, at)


def _src_qp(data: bytes) -> int | None:
    """Likewise, as if its opcode had a DETH."""
    at = _transport(data)
    if at is None or len(data) < at + BTH.size_bytes + DETH.size_bytes:
        return None
    return DETH["src_qp"].read(data, at + BTH.size_bytes)


def smp_of(packet: Packet) -> bytes:
    """The 256 bytes of the SMP in a packet that a Subnet Management Interface accepts (IBTA vol 1, 13.5.3).

    Raises:
        ValueError: why it is to be discarded: VL, opcode, DestQP, length, BaseVersion or MgmtClass.
    """
    if packet.lrh.vl != VL15:
        raise ValueError(f"SMP on VL {packet.lrh.vl}, allowed {VL15}")
    mad = _mad_of(packet, QP_SMI)
    smp_layout(mad)
    return mad


def gmp_of(packet: Packet) -> bytes:
    """The 256 bytes of the MAD in a packet that a General Services Interface accepts.

    Raises:
        ValueError: why it is to be discarded: VL, opcode, DestQP, Q_Key, length or BaseVersion.
    """
    if packet.lrh.vl == VL15:
        raise ValueError(f"MAD to QP1 on VL {VL15}, allowed data VLs")
    mad = _mad_of(packet, QP_GSI)
    q_key = packet.header(DETH).q_key
    if q_key != Q_KEY_GSI:
        raise ValueError(f"MAD with Q_Key {q_key:#010x}, allowed {Q_KEY_GSI:#010x}")
    return mad


def _mad_of(packet: Packet, qp: int) -> bytes:
    bth = packet.bth
    if bth is None:
        raise ValueError("MAD in a raw packet, allowed UD_SEND_ONLY")
    if bth.opcode != Opcode.UD_SEND_ONLY:
        raise ValueError(f"MAD with opcode {Opcode(bth.opcode).name}, allowed UD_SEND_ONLY")
    if bth.dest_qp != qp:
        raise ValueError(f"MAD to QP {bth.dest_qp:#x}, allowed {qp:#x}")
    if len(packet.payload) != MAD_BYTES:
        raise ValueError(f"MAD of {len(packet.payload)} bytes, allowed {MAD_BYTES}")
    base_version = MAD_HEADER["base_version"].read(packet.payload)
    if base_version != BASE_VERSION:
        raise ValueError(f"MAD of BaseVersion {base_version}, allowed {BASE_VERSION}")
    return packet.payload
