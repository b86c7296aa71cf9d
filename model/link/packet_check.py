"""Packet checks: the header's rejection and the verdict (docs/pipeline.md, sections 3.2 and 3.3)."""

from typing import Final

from wire.codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, LNH, MIN_PKT_LEN_IBA, MIN_PKT_LEN_RAW, VL15
from wire.registers import Counter, Detail
from wire.trace import Verdict

from ..packet import CUT, EBP, EGP, Packet

__all__ = ["VERDICT_COUNTERS", "VERDICT_DETAILS", "header_rejection", "verdict_of"]

_GOOD: Final = Verdict.GOOD
# Places in `Packet.lrh`.
_LVER: Final = 0xF << 24
_LNH_SHIFT: Final = 16
_LNH: Final = 3
_IBA_TRANSPORT: Final = 2 << _LNH_SHIFT
_DLID: Final = 0xFFFF
_RELAY: Final = (Verdict.NO_ROUTE, Verdict.LOOP, Verdict.VL_MAP)

VERDICT_COUNTERS: Final[dict[int, Counter]] = {
    Verdict.PHYSICAL: Counter.RCV_ERRORS,
    Verdict.REMOTE: Counter.RCV_REMOTE_PHYSICAL_ERRORS,
    Verdict.LVER: Counter.RCV_ERRORS,
    Verdict.LENGTH: Counter.RCV_ERRORS,
    Verdict.VL: Counter.RCV_ERRORS,
    Verdict.VL15_HEADER: Counter.RCV_ERRORS,
    **dict.fromkeys(_RELAY, Counter.RCV_SWITCH_RELAY_ERRORS),
    Verdict.VL15_DROPPED: Counter.VL15_DROPPED,
    Verdict.OVERRUN: Counter.RCV_ERRORS,
    Verdict.RCV_CONSTRAINT: Counter.RCV_CONSTRAINT_ERRORS,
}
"""The counter that a verdict moves at the port of arrival. A switch counts DLID as RCV_SWITCH_RELAY_ERRORS, an adapter
does not."""


VERDICT_DETAILS: Final[dict[int, Detail]] = {
    Verdict.PHYSICAL: Detail.LOCAL_PHYSICAL_ERRORS,
    **dict.fromkeys((Verdict.LVER, Verdict.LENGTH, Verdict.VL, Verdict.VL15_HEADER), Detail.MALFORMED_PACKET_ERRORS),
    Verdict.OVERRUN: Detail.BUFFER_OVERRUN_ERRORS,
    Verdict.NO_ROUTE: Detail.DLID_MAPPING_ERRORS,
    Verdict.VL_MAP: Detail.VL_MAPPING_ERRORS,
    Verdict.LOOP: Detail.LOOPING_ERRORS,
}
"""And the one that splits that one up; a switch's DLID is a DLID mapping error."""


def header_rejection(packet: Packet, dlid_good: bool, largest: int, operational: int) -> Verdict:
    """Rows a to e of the table in section 3.3; GOOD if none applies.

    `largest` is the port's largest PktLen for MTUCap, `operational` its number of data VLs.
    """
    n, vl, lrh = packet.n, packet.vl, packet.lrh
    if lrh & _LVER:
        return Verdict.LVER
    if n > largest or n < (MIN_PKT_LEN_IBA if lrh & _IBA_TRANSPORT else MIN_PKT_LEN_RAW):
        return Verdict.LENGTH
    if not dlid_good:
        return Verdict.DLID
    if vl == VL15:
        if LID_MULTICAST_MIN <= lrh & _DLID <= LID_MULTICAST_MAX:
            return Verdict.VL
        if lrh >> _LNH_SHIFT & _LNH != LNH.IBA_LOCAL:
            return Verdict.VL15_HEADER
    elif vl >= operational:
        return Verdict.VL
    return _GOOD


def verdict_of(packet: Packet, check_icrc: bool) -> Verdict:
    """What a packet that ended or was cut is (section 3.2)."""
    if packet.delimiter == CUT:
        return Verdict.PHYSICAL
    if packet.delimiter == EGP and not packet.vcrc_good:
        return Verdict.PHYSICAL
    if check_icrc and packet.delimiter == EGP and packet.lrh & _IBA_TRANSPORT and packet.k == packet.n:
        assert packet.content is not None
        if not packet.content.icrc_good():
            return Verdict.PHYSICAL
    if packet.delimiter == EBP:
        return Verdict.REMOTE
    if not packet.n:
        return Verdict.LENGTH
    if packet.not_active:
        return Verdict.NOT_ACTIVE
    if packet.rejection:
        return Verdict(packet.rejection)
    if packet.k != packet.n:
        return Verdict.LENGTH
    return Verdict(packet.constraint) if packet.constraint else _GOOD
