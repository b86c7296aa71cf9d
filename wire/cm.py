"""Communication management: the messages by which queue pairs are connected and found (IBTA vol 1, chapter 12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from .cm_codes import AprStatus, ConnectedService, FailoverAccepted, MraMessage, RejectReason, RejMessage, SidrStatus
from .codes import mtu_bytes, timer_text
from .layout import Field, Layout, Record
from .mad import MAD_BYTES, Attribute, MadMethod, MgmtClass, header_fields, pack_data
from .meaning import GID, HEX, Code, Derived

__all__ = [
    "CM_ATTRIBUTES",
    "CM_CLASS_VERSION",
    "CM_DATA_BYTES",
    "CM_MAD",
    "CmMessage",
    "cm_mad",
    "cm_message",
    "packed_private_data",
    "private_data_bytes",
    "private_data_of",
]

CM_CLASS_VERSION: Final = 2
"""MADHeader.ClassVersion of the communication management class (IBTA vol 1, 16.7.1)."""

CM_DATA_BYTES: Final = 232
"""Bytes of a message, from byte 24 of the MAD on."""

CM_MAD: Final = Layout(
    "CommMgtMAD",
    MAD_BYTES,
    [
        *header_fields(MgmtClass.COMM_MGT, class_version=CM_CLASS_VERSION, method=MadMethod.SEND),
        Field("data", 192, 8 * CM_DATA_BYTES, meaning=HEX),
    ],
)
"""Communication management MAD, 256 bytes (IBTA vol 1, 16.7.1). All are sent with method Send."""


class CmMessage(IntEnum):
    """AttributeIDs of the communication management class: which message it is (IBTA vol 1, 16.7.2)."""

    REQ = 0x0010
    MRA = 0x0011
    REJ = 0x0012
    REP = 0x0013
    RTU = 0x0014
    DREQ = 0x0015
    DREP = 0x0016
    SIDR_REQ = 0x0017
    SIDR_REP = 0x0018
    LAP = 0x0019
    APR = 0x001A


def _mtu_text(code: int) -> str:
    return f"{mtu_bytes(code)} bytes"


_TIMER: Final = Derived(timer_text)


def _message(message: CmMessage, fields: Iterable[Field], private_from: int) -> Layout:
    """The layout of a message whose private data begin at a byte and end with the message."""
    private = Field("private_data", 8 * private_from, 8 * (CM_DATA_BYTES - private_from), meaning=HEX)
    return Layout(message.name, CM_DATA_BYTES, [*fields, private])


def _local_comm_id(byte: int = 0) -> Field:
    return Field("local_comm_id", 8 * byte, 32, meaning=HEX)


_COMM_IDS: Final = (_local_comm_id(), Field("remote_comm_id", 32, 32, meaning=HEX))


def _ports(prefix: str, byte: int) -> list[Field]:
    """Both ends of a path."""
    return [
        Field(f"{prefix}_local_port_lid", 8 * byte, 16),
        Field(f"{prefix}_remote_port_lid", 8 * byte + 16, 16),
        Field(f"{prefix}_local_port_gid", 8 * byte + 32, 128, meaning=GID),
        Field(f"{prefix}_remote_port_gid", 8 * byte + 160, 128, meaning=GID),
    ]


def _path(prefix: str, byte: int) -> list[Field]:
    """A path, 44 bytes, as in a REQ."""
    bit = 8 * byte
    return [
        *_ports(prefix, byte),
        Field(f"{prefix}_flow_label", bit + 288, 20, meaning=HEX),
        Field(f"{prefix}_packet_rate", bit + 314, 6),
        Field(f"{prefix}_traffic_class", bit + 320, 8, meaning=HEX),
        Field(f"{prefix}_hop_limit", bit + 328, 8),
        Field(f"{prefix}_sl", bit + 336, 4),
        Field(f"{prefix}_subnet_local", bit + 340, 1),
        Field(f"{prefix}_local_ack_timeout", bit + 344, 5, meaning=_TIMER),
    ]


_REQ: Final = _message(
    CmMessage.REQ,
    [
        _local_comm_id(),
        Field("service_id", 64, 64, meaning=HEX),
        Field("local_ca_guid", 128, 64, meaning=HEX),
        Field("local_q_key", 224, 32, meaning=HEX),
        Field("local_qpn", 256, 24, meaning=HEX),
        Field("responder_resources", 280, 8),
        Field("local_eecn", 288, 24, meaning=HEX),
        Field("initiator_depth", 312, 8),
        Field("remote_eecn", 320, 24, meaning=HEX),
        Field("remote_cm_response_timeout", 344, 5, meaning=_TIMER),
        Field("transport_service_type", 349, 2, meaning=Code(ConnectedService)),
        Field("end_to_end_flow_control", 351, 1),
        Field("starting_psn", 352, 24),
        Field("local_cm_response_timeout", 376, 5, meaning=_TIMER),
        Field("retry_count", 381, 3),
        Field("partition_key", 384, 16, meaning=HEX),
        Field("path_packet_payload_mtu", 400, 4, meaning=Derived(_mtu_text)),
        Field("rdc_exists", 404, 1),
        Field("rnr_retry_count", 405, 3),
        Field("max_cm_retries", 408, 4),
        Field("srq", 412, 1),
        Field("extended_transport_type", 413, 3),
        *_path("primary", 52),
        *_path("alternate", 96),
    ],
    140,
)

_MRA: Final = _message(
    CmMessage.MRA,
    [
        *_COMM_IDS,
        Field("message_mraed", 64, 2, meaning=Code(MraMessage)),
        Field("service_timeout", 72, 5, meaning=_TIMER),
    ],
    10,
)

_REJ: Final = _message(
    CmMessage.REJ,
    [
        *_COMM_IDS,
        Field("message_rejected", 64, 2, meaning=Code(RejMessage)),
        Field("reject_info_length", 72, 7),
        Field("reason", 80, 16, meaning=Code(RejectReason)),
        Field("additional_reject_info", 96, 576, meaning=HEX),
    ],
    84,
)

_REP: Final = _message(
    CmMessage.REP,
    [
        *_COMM_IDS,
        Field("local_q_key", 64, 32, meaning=HEX),
        Field("local_qpn", 96, 24, meaning=HEX),
        Field("local_eecn", 128, 24, meaning=HEX),
        Field("starting_psn", 160, 24),
        Field("responder_resources", 192, 8),
        Field("initiator_depth", 200, 8),
        Field("target_ack_delay", 208, 5, meaning=_TIMER),
        Field("failover_accepted", 213, 2, meaning=Code(FailoverAccepted)),
        Field("end_to_end_flow_control", 215, 1),
        Field("rnr_retry_count", 216, 3),
        Field("srq", 219, 1),
        Field("local_ca_guid", 224, 64, meaning=HEX),
    ],
    36,
)

_RTU: Final = _message(CmMessage.RTU, _COMM_IDS, 8)

_DREQ: Final = _message(CmMessage.DREQ, [*_COMM_IDS, Field("remote_qpn_eecn", 64, 24, meaning=HEX)], 12)

_DREP: Final = _message(CmMessage.DREP, _COMM_IDS, 8)

_LAP: Final = _message(
    CmMessage.LAP,
    [
        *_COMM_IDS,
        Field("remote_qpn_eecn", 96, 24, meaning=HEX),
        Field("remote_cm_response_timeout", 120, 5, meaning=_TIMER),
        *_ports("alternate", 20),
        Field("alternate_flow_label", 448, 20, meaning=HEX),
        Field("alternate_traffic_class", 472, 8, meaning=HEX),
        Field("alternate_hop_limit", 480, 8),
        Field("alternate_packet_rate", 490, 6),
        Field("alternate_sl", 496, 4),
        Field("alternate_subnet_local", 500, 1),
        Field("alternate_local_ack_timeout", 504, 5, meaning=_TIMER),
    ],
    64,
)

_APR: Final = _message(
    CmMessage.APR,
    [
        *_COMM_IDS,
        Field("additional_info_length", 64, 8),
        Field("ap_status", 72, 8, meaning=Code(AprStatus)),
        Field("additional_info", 96, 576, meaning=HEX),
    ],
    84,
)

_SIDR_REQ: Final = _message(
    CmMessage.SIDR_REQ,
    [
        Field("request_id", 0, 32, meaning=HEX),
        Field("partition_key", 32, 16, meaning=HEX),
        Field("service_id", 64, 64, meaning=HEX),
    ],
    16,
)

_SIDR_REP: Final = _message(
    CmMessage.SIDR_REP,
    [
        Field("request_id", 0, 32, meaning=HEX),
        Field("status", 32, 8, meaning=Code(SidrStatus)),
        Field("additional_info_length", 40, 8),
        Field("qpn", 64, 24, meaning=HEX),
        Field("service_id", 96, 64, meaning=HEX),
        Field("q_key", 160, 32, meaning=HEX),
        Field("additional_info", 192, 576, meaning=HEX),
    ],
    96,
)

_LAYOUTS: Final[Mapping[int, Layout]] = {
    CmMessage[layout.name]: layout
    for layout in (_REQ, _MRA, _REJ, _REP, _RTU, _DREQ, _DREP, _LAP, _APR, _SIDR_REQ, _SIDR_REP)
}

CM_ATTRIBUTES: Final[Mapping[int, Attribute]] = {
    code: Attribute(CmMessage(code), layout, frozenset({MadMethod.SEND})) for code, layout in _LAYOUTS.items()
}
"""Every message by its AttributeID; all are 232 bytes long and end with private data."""


def private_data_bytes(message: CmMessage) -> int:
    """How many bytes of private data a message has room for."""
    return _LAYOUTS[message]["private_data"].width // 8


def packed_private_data(message: CmMessage, data: bytes) -> int:
    """The value of a message's field ``private_data`` that holds these bytes, filled up with zero bytes.

    Raises:
        ValueError: more bytes than the message has room for.
    """
    room = private_data_bytes(message)
    if len(data) > room:
        raise ValueError(f"{message.name}: {len(data)} bytes of private data, allowed up to {room}")
    return int.from_bytes(data.ljust(room, b"\0"), "big")


def private_data_of(message: Record) -> bytes:
    """All the private data of a message, as long as the message has room for."""
    return message.private_data.to_bytes(message.layout["private_data"].width // 8, "big")


def cm_mad(message: CmMessage, transaction_id: int, private_data: bytes = b"", **fields: int) -> bytes:
    """A MAD with a message.

    Raises:
        ValueError: a field that the message does not have, or a value that does not fit.
    """
    packed = packed_private_data(message, private_data)
    data = _LAYOUTS[message].pack({**fields, "private_data": packed})
    return CM_MAD.pack(transaction_id=transaction_id, attribute_id=message, data=pack_data(CM_MAD, data))


def cm_message(mad: bytes) -> tuple[CmMessage, Record] | None:
    """The message in a MAD, and which it is; None if it is none that is known here."""
    if len(mad) != MAD_BYTES:
        return None
    header = CM_MAD.unpack(mad)
    layout = _LAYOUTS.get(header.attribute_id)
    is_ours = (header.mgmt_class, header.class_version, header.method) == (
        MgmtClass.COMM_MGT,
        CM_CLASS_VERSION,
        MadMethod.SEND,
    )
    if layout is None or not is_ours:
        return None
    return CmMessage(header.attribute_id), layout.unpack(mad, MAD_BYTES - CM_DATA_BYTES)
