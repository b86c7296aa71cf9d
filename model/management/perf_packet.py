"""A performance management MAD in its packet: what is a request (docs/management.md, sections 1 and 6)."""

from typing import Final

from wire.codes import LNH, Q_KEY_GSI, QP_GSI
from wire.headers import BTH, DETH, LRH
from wire.layout import Layout, Record
from wire.mad import BASE_VERSION, MAD_HEADER, MadMethod, MgmtClass
from wire.opcodes import Opcode
from wire.pma import PERF_MAD

from .mad_in_packet import BTH_AT, DETH_AT, LRH_AT, MAD_AT, MAD_END, PACKET_BYTES, changed

__all__ = ["answer_packet", "is_perf_request", "perf_in"]

_METHODS: Final = (MadMethod.GET, MadMethod.SET)
_KNOWN_BY: Final[tuple[tuple[Layout, int, str, int], ...]] = (
    (LRH, LRH_AT, "lnh", LNH.IBA_LOCAL),
    (BTH, BTH_AT, "opcode", Opcode.UD_SEND_ONLY),
    (BTH, BTH_AT, "dest_qp", QP_GSI),
    (DETH, DETH_AT, "q_key", Q_KEY_GSI),
    (MAD_HEADER, MAD_AT, "base_version", BASE_VERSION),
    (MAD_HEADER, MAD_AT, "mgmt_class", MgmtClass.PERF),
)
"""Fields that a request has, and its method."""
_HEAD_BYTES: Final = MAD_AT + MAD_HEADER.size_bytes


def _head(fields: tuple[tuple[Layout, int, str, int], ...]) -> int:
    """The headers, all 0 except these fields, as an integer."""
    data = bytes(_HEAD_BYTES)
    for layout, place, name, value in fields:
        data = layout[name].write(data, value, place)
    return int.from_bytes(data, "big")


_MASK: Final = _head(tuple((layout, place, name, layout[name].max) for layout, place, name, _ in _KNOWN_BY))
_HEAD: Final = _head(_KNOWN_BY)


def is_perf_request(data: bytes) -> bool:
    """True if a packet on the slot of a data VL, given from LRH to ICRC, is a request to a PMA.

    Its ICRC is not looked at. Data packets are checked too: all fields but one are compared at once.
    """
    return (
        len(data) == PACKET_BYTES
        and int.from_bytes(data[:_HEAD_BYTES], "big") & _MASK == _HEAD
        and MAD_HEADER["method"].read(data, MAD_AT) in _METHODS
    )


def perf_in(data: bytes) -> Record:
    """The MAD in its packet."""
    return PERF_MAD.unpack(data[MAD_AT:MAD_END])


def answer_packet(data: bytes, answer: Record) -> bytes:
    """The packet of an answer to a request in its packet: back to where that came from."""
    lrh = LRH.unpack(data, LRH_AT)
    return changed(
        data,
        (LRH, LRH_AT, {"dlid": lrh.slid, "slid": lrh.dlid}),
        (BTH, BTH_AT, {"dest_qp": DETH["src_qp"].read(data, DETH_AT)}),
        (DETH, DETH_AT, {"src_qp": QP_GSI}),
        (PERF_MAD, MAD_AT, answer),
    )
