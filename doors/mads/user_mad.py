"""The binary interface of umad devices: headers, and how agents are registered (the kernel's rdma/ib_user_mad.h)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from wire.mad import MAD_HEADER

__all__ = [
    "ABI_VERSION",
    "HEADER_BYTES",
    "SHORT_HEADER_BYTES",
    "Address",
    "Ioctl",
    "Registration",
    "UserMad",
    "packed_registration",
    "unpacked_registration",
]

ABI_VERSION: Final = 5

HEADER_BYTES: Final = 64
SHORT_HEADER_BYTES: Final = 56
"""Of a header without a P_Key index, which a program has until it enables that."""

_NATIVE: Final = struct.Struct("=5I")
_BIG: Final = struct.Struct(">IIHBBBBBB16sI")
_P_KEY_INDEX: Final = struct.Struct("=H6x")


class Ioctl(IntEnum):
    """What may be asked of a umad device."""

    REGISTER_AGENT = 0xC01C1B01
    UNREGISTER_AGENT = 0x40041B02
    ENABLE_PKEY = 0x00001B03
    REGISTER_AGENT2 = 0xC0281B04


@dataclass(frozen=True, slots=True)
class Address:
    """The other end of a MAD, and how it travels.

    Attributes:
        lid, qpn: the other end's.
        sl: service level.
        path_bits: of the own LID, which is the base LID plus these.
        p_key_index: of the P_Key in the own port's table.
        q_key: to be sent with; 0 in what was received.
        grh: hop limit, traffic class, the other end's GID and flow label, if there is a GRH.
    """

    lid: int
    qpn: int
    sl: int = 0
    path_bits: int = 0
    p_key_index: int = 0
    q_key: int = 0
    grh: tuple[int, int, bytes, int] | None = None


@dataclass(frozen=True, slots=True)
class UserMad:
    """A MAD as a program writes or reads it.

    Attributes:
        agent: number of the program's agent.
        status: 0, or why there is no answer.
        timeout_ms, retries: what a sender wants.
        address: the other end.
        mad: the MAD; a message of several segments has the first one's header and all data.
    """

    agent: int
    status: int
    timeout_ms: int
    retries: int
    address: Address
    mad: bytes

    @classmethod
    def unpack(cls, data: bytes, header_bytes: int) -> UserMad:
        """From what was written.

        Raises:
            ValueError: too short for the header and that of a MAD.
        """
        if len(data) < header_bytes + MAD_HEADER.size_bytes:
            raise ValueError(f"{len(data)} bytes: expected {header_bytes + MAD_HEADER.size_bytes} and more")
        agent, status, timeout_ms, retries, _length = _NATIVE.unpack_from(data)
        qpn, q_key, lid, sl, path_bits, has_grh, _gid_index, hop_limit, traffic_class, gid, flow_label = (
            _BIG.unpack_from(data, _NATIVE.size)
        )
        (p_key_index,) = _P_KEY_INDEX.unpack_from(data, SHORT_HEADER_BYTES) if header_bytes == HEADER_BYTES else (0,)
        grh = (hop_limit, traffic_class, gid, flow_label) if has_grh else None
        address = Address(lid, qpn & 0xFFFFFF, sl & 15, path_bits & 0x7F, p_key_index, q_key, grh)
        return cls(agent, status, timeout_ms, retries, address, data[header_bytes:])

    def pack(self, header_bytes: int) -> bytes:
        """As it is read."""
        address = self.address
        hop_limit, traffic_class, gid, flow_label = address.grh or (0, 0, bytes(16), 0)
        head = _NATIVE.pack(self.agent, self.status, self.timeout_ms, self.retries, header_bytes + len(self.mad))
        head += _BIG.pack(
            *(address.qpn, address.q_key, address.lid, address.sl, address.path_bits),
            *(address.grh is not None, 0, hop_limit, traffic_class, gid, flow_label),
        )
        return (head + _P_KEY_INDEX.pack(address.p_key_index))[:header_bytes] + self.mad


@dataclass(frozen=True, slots=True)
class Registration:
    """What an agent wants to get.

    Attributes:
        qpn: 0 or 1.
        mgmt_class, class_version: of requests; class 0 for none.
        methods: of requests, bit m for method m.
        oui: of a vendor's class that has one.
        rmpp_version: 1 if messages of several segments are taken apart and put together for it.
        flags: of REGISTER_AGENT2; 1 says that the program does RMPP itself.
    """

    qpn: int
    mgmt_class: int = 0
    class_version: int = 0
    methods: int = 0
    oui: int = 0
    rmpp_version: int = 0
    flags: int = 0


_FIRST: Final = struct.Struct("=I16s3B3sB1x")
_SECOND: Final = struct.Struct("=IIBBHI16sIB3x")


def unpacked_registration(request: Ioctl, data: bytes) -> Registration:
    """From the bytes of REGISTER_AGENT or REGISTER_AGENT2.

    Raises:
        ValueError: another number of bytes.
    """
    layout = _FIRST if request is Ioctl.REGISTER_AGENT else _SECOND
    if len(data) != layout.size:
        raise ValueError(f"{len(data)} bytes: expected {layout.size}")
    if layout is _FIRST:
        _id, mask, qpn, mgmt_class, version, oui, rmpp_version = layout.unpack(data)
        methods = int.from_bytes(mask, "little")
        return Registration(qpn, mgmt_class, version, methods, int.from_bytes(oui, "big"), rmpp_version)
    _id, qpn, mgmt_class, version, _reserved, flags, mask, vendor, rmpp_version = layout.unpack(data)
    return Registration(qpn, mgmt_class, version, int.from_bytes(mask, "little"), vendor, rmpp_version, flags)


def packed_registration(data: bytes, agent: int) -> bytes:
    """The same bytes with the agent's number."""
    return agent.to_bytes(4, "little") + data[4:]
