"""MADs in their packets: SMPs and requests of general services (docs/management.md, sections 1, 2, 6 and 7)."""

from collections.abc import Mapping
from typing import Final

from wire.codes import LNH, Q_KEY_GSI, QP_GSI, QP_SMI, is_multicast_lid
from wire.congestion_control import CC_MAD
from wire.crc import ICRC_BYTES, icrc
from wire.headers import BTH, DETH, GRH, GRH_IP_VER, GRH_NXT_HDR_BTH, LRH
from wire.layout import Layout, Record
from wire.mad import BASE_VERSION, GET_SET, MAD_BYTES, MAD_HEADER, MadMethod, MgmtClass
from wire.opcodes import Opcode
from wire.pma import PERF_MAD
from wire.smp import unpack_smp

__all__ = ["answer_packet", "gmp_in", "is_perf_request", "is_smp", "request_class", "smp_in", "with_fields"]

_LRH_AT: Final = 0
_BTH_AT: Final = LRH.size_bytes
_DETH_AT: Final = _BTH_AT + BTH.size_bytes
_MAD_AT: Final = _DETH_AT + DETH.size_bytes
_MAD_END: Final = _MAD_AT + MAD_BYTES
_PACKET_BYTES: Final = _MAD_END + ICRC_BYTES
"""72 words, from LRH to ICRC."""
_GRH_AT: Final = LRH.size_bytes
_GLOBAL_PACKET_BYTES: Final = _PACKET_BYTES + GRH.size_bytes
"""With a GRH."""
_HOP_LIMIT: Final[int] = GRH["hop_lmt"].max
"""Of an answer."""

_SMP_CLASSES: Final = (MgmtClass.SUBN_LID_ROUTED, MgmtClass.SUBN_DIRECTED_ROUTE)

_GMP_LAYOUTS: Final[dict[int, Layout]] = {MgmtClass.PERF: PERF_MAD, MgmtClass.CONGESTION_CONTROL: CC_MAD}
"""By their classes."""
_GMP_METHODS: Final[dict[int, frozenset[MadMethod]]] = {
    MgmtClass.PERF: GET_SET,
    MgmtClass.CONGESTION_CONTROL: GET_SET | {MadMethod.TRAP_REPRESS},
}
_NO_METHODS: Final[frozenset[MadMethod]] = frozenset()
_KNOWN_BY: Final[tuple[tuple[Layout, int, str, int], ...]] = (
    (LRH, _LRH_AT, "lnh", LNH.IBA_LOCAL),
    (BTH, _BTH_AT, "opcode", Opcode.UD_SEND_ONLY),
    (BTH, _BTH_AT, "dest_qp", QP_GSI),
    (DETH, _DETH_AT, "q_key", Q_KEY_GSI),
    (MAD_HEADER, _MAD_AT, "base_version", BASE_VERSION),
)
"""Fields that a request has, but for its class and its method."""
_HEAD_BYTES: Final = _MAD_AT + MAD_HEADER.size_bytes

_Changes = tuple[Layout, int, Mapping[str, int]]
"""A header, where it is, and its fields that change."""


def _head(fields: tuple[tuple[Layout, int, str, int], ...]) -> int:
    """The headers, all 0 except these fields, as an integer."""
    data = bytes(_HEAD_BYTES)
    for layout, place, name, value in fields:
        data = layout[name].write(data, value, place)
    return int.from_bytes(data, "big")


_MASK: Final = _head(tuple((layout, place, name, layout[name].max) for layout, place, name, _ in _KNOWN_BY))
_HEAD: Final = _head(_KNOWN_BY)


def is_smp(data: bytes) -> bool:
    """True if a packet on VL15's slot, given from LRH to ICRC, is an SMP. Its ICRC is not looked at."""
    if len(data) != _PACKET_BYTES or LRH["lnh"].read(data) != LNH.IBA_LOCAL:
        return False
    bth = BTH.unpack(data, _BTH_AT)
    mad = MAD_HEADER.unpack(data, _MAD_AT)
    return (
        bth.opcode == Opcode.UD_SEND_ONLY
        and bth.dest_qp == QP_SMI
        and mad.base_version == BASE_VERSION
        and mad.mgmt_class in _SMP_CLASSES
    )


def request_class(data: bytes) -> int:
    """MgmtClass if a packet on the slot of a data VL, given from LRH to ICRC, is a PMA or a CC request; else 0.

    Its ICRC is not looked at. Data packets are checked too: most fields are compared at once.
    """
    if len(data) == _GLOBAL_PACKET_BYTES:
        grh = GRH.unpack(data, _GRH_AT)
        right = LRH["lnh"].read(data) == LNH.IBA_GLOBAL and grh.ip_ver == GRH_IP_VER
        return request_class(_without_grh(data)) if right and grh.nxt_hdr == GRH_NXT_HDR_BTH else 0
    if len(data) != _PACKET_BYTES or int.from_bytes(data[:_HEAD_BYTES], "big") & _MASK != _HEAD:
        return 0
    if is_multicast_lid(LRH["dlid"].read(data)):
        return 0
    mgmt_class = MAD_HEADER["mgmt_class"].read(data, _MAD_AT)
    methods = _GMP_METHODS.get(mgmt_class, _NO_METHODS)
    return mgmt_class if MAD_HEADER["method"].read(data, _MAD_AT) in methods else 0


def is_perf_request(data: bytes) -> bool:
    """True if such a packet is a request to a PMA."""
    return request_class(data) == MgmtClass.PERF


def smp_in(data: bytes) -> Record:
    """The SMP in its packet."""
    return unpack_smp(data[_MAD_AT:_MAD_END])


def gmp_in(data: bytes) -> Record:
    """The MAD of a PMA's or CC request or answer in its packet."""
    mad = _without_grh(data)[_MAD_AT:_MAD_END]
    return _GMP_LAYOUTS[MAD_HEADER["mgmt_class"].read(mad)].unpack(mad)


def with_fields(data: bytes, lrh: Mapping[str, int], smp: Mapping[str, int]) -> bytes:
    """An SMP's packet with these fields changed and a right ICRC; every other bit is as it came."""
    return _changed(data, (LRH, _LRH_AT, lrh), (smp_in(data).layout, _MAD_AT, smp))


def answer_packet(data: bytes, answer: Record) -> bytes:
    """The packet of an answer to a request in its packet: back to where that came from."""
    lrh = LRH.unpack(data, _LRH_AT)
    behind = len(data) - _PACKET_BYTES  # bytes of the GRH
    grh: _Changes = GRH, _GRH_AT, {}
    if behind:
        came = GRH.unpack(data, _GRH_AT)
        grh = GRH, _GRH_AT, {"sgid": came.dgid, "dgid": came.sgid, "hop_lmt": _HOP_LIMIT}
    return _changed(
        data,
        (LRH, _LRH_AT, {"dlid": lrh.slid, "slid": lrh.dlid}),
        grh,
        (BTH, behind + _BTH_AT, {"dest_qp": DETH["src_qp"].read(data, behind + _DETH_AT)}),
        (DETH, behind + _DETH_AT, {"src_qp": QP_GSI}),
        (answer.layout, behind + _MAD_AT, answer),
    )


def _without_grh(data: bytes) -> bytes:
    """A request's packet as it would be without its GRH, if it has one; but for its LRH and its ICRC."""
    if len(data) == _PACKET_BYTES:
        return data
    local = LRH["lnh"].write(data[:_GRH_AT], LNH.IBA_LOCAL)
    return local + data[_GRH_AT + GRH.size_bytes :]


def _changed(data: bytes, *headers: _Changes) -> bytes:
    """A packet with these fields changed and a right ICRC; every other bit is as it came."""
    for layout, place, fields in headers:
        for name, value in fields.items():
            data = layout[name].write(data, value, place)
    body = data[:-ICRC_BYTES]
    return body + icrc(body)
