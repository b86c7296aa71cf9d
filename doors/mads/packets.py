"""MADs of programs as packets of their hosts' adapters, and back."""

from __future__ import annotations

from typing import Final

from doors.mads.agents import SMI_CLASSES
from doors.mads.host_port import HostPort
from doors.mads.mad_layer import Send
from doors.mads.user_mad import Address
from wire.codes import LID_PERMISSIVE, QP_GSI, VL15
from wire.headers import BTH, DETH
from wire.mad import MAD_BYTES, RESPONSE_BIT, MadMethod, MgmtClass
from wire.mad_packet import gmp_of, gmp_packet, is_for_management, smp_of, smp_packet
from wire.mad_text import attribute_of, mad_title, unpack_mad
from wire.packet import Packet, parse

__all__ = ["described", "flight_key", "from_itself", "is_for_adapter", "mad_in", "packet_of"]

_KEY: Final = slice(8, 36)


def packet_of(port: HostPort, address: Address, mad: bytes, vls: int) -> tuple[int, bytes] | None:
    """The slot and the packet in which a port sends a MAD; None if no VL takes it. The host has VLS data VLs."""
    slid = _own_lid(port, address)
    if mad[1] in SMI_CLASSES:
        return vls, smp_packet(mad, LID_PERMISSIVE if address.lid == LID_PERMISSIVE else slid, address.lid).data
    vl = port.vl(address.sl)
    if vl >= vls or not port.sends_data:
        return None
    keys = port.p_keys
    p_key = keys[address.p_key_index] if address.p_key_index < len(keys) else keys[0]
    qpn = address.qpn or QP_GSI
    grh = None
    if address.grh is not None:
        hop_limit, traffic_class, gid, flow_label = address.grh
        grh = {"hop_lmt": hop_limit, "t_class": traffic_class, "flow_label": flow_label & 0xFFFFF, "sgid": port.gid}
        grh["dgid"] = int.from_bytes(gid, "big")
    return vl, gmp_packet(mad, slid, address.lid, vl=vl, sl=address.sl, p_key=p_key, dest_qp=qpn, grh=grh).data


def mad_in(port: HostPort, data: bytes) -> tuple[Address, bytes] | None:
    """The MAD in a packet that a port has got, and where it came from; None if it is something else."""
    if not is_for_management(data):
        return None
    try:
        packet = parse(data)
        mad = smp_of(packet) if packet.lrh.vl == VL15 else gmp_of(packet)
    except ValueError:
        return None
    return _origin(port, packet), mad


def from_itself(port: HostPort, address: Address) -> Address:
    """Where a MAD seems to come from that a port has sent to itself at an address."""
    lid = LID_PERMISSIVE if address.lid == LID_PERMISSIVE else _own_lid(port, address)
    return Address(lid, address.qpn, address.sl, 0, address.p_key_index)


def is_for_adapter(mad: bytes) -> bool:
    """Whether an adapter does something with a MAD that its own host has sent to it."""
    if mad[1] in SMI_CLASSES:
        return not mad[3] & RESPONSE_BIT
    return mad[1] == MgmtClass.PERF and mad[3] in (MadMethod.GET, MadMethod.SET)


def flight_key(mad: bytes) -> bytes:
    """What distinguishes a MAD on its way from others, and does not change on it."""
    return mad[1:4] + mad[_KEY]


def described(send: Send) -> str:
    """What was sent, and where to, in words."""
    mad = unpack_mad(send.mad[:MAD_BYTES].ljust(MAD_BYTES, b"\0"))
    title = mad_title(mad)
    if attribute_of(mad) is None:
        title += f" of class {mad.mgmt_class:#04x}"
    return title if send.mad[1] == MgmtClass.SUBN_DIRECTED_ROUTE else f"{title} to LID {send.address.lid}"


def _own_lid(port: HostPort, address: Address) -> int:
    info = port.info
    return info.lid + (address.path_bits & (1 << info.lmc) - 1)


def _origin(port: HostPort, packet: Packet) -> Address:
    lrh, grh = packet.lrh, packet.grh
    path_bits = lrh.dlid - port.info.lid if port.has_lid(lrh.dlid) else 0
    came_with = grh and (grh.hop_lmt, grh.t_class, grh.sgid.to_bytes(16, "big"), grh.flow_label)
    index = port.p_key_index(packet.header(BTH).p_key)
    return Address(lrh.slid, packet.header(DETH).src_qp, lrh.sl, path_bits, index, 0, came_with or None)
