"""Requests of class 0x21 that come as packets to QP1, and the packets that answer them."""

from __future__ import annotations

from typing import Final

from verbs.congestion_control.agent import is_cc_request
from verbs.frame import Outgoing
from wire.headers import BTH, DETH
from wire.mad_packet import gmp_of, gmp_packet
from wire.packet import Packet, parse

__all__ = ["answer_packet", "request_in"]

_HOP_LIMIT: Final = 255


def request_in(data: bytes) -> tuple[Packet, bytes] | None:
    """A packet, and the request of the class that is in it; None if there is none."""
    try:
        packet = parse(data)
        mad = gmp_of(packet)
    except ValueError:
        return None
    return (packet, mad) if is_cc_request(mad) else None


def answer_packet(packet: Packet, answer: bytes) -> Outgoing:
    """The packet that answers one: it goes back by the LIDs that the request came by, with a GRH if that had one."""
    lrh, grh, back = packet.lrh, packet.grh, None
    if grh is not None:
        back = {"t_class": grh.t_class, "flow_label": grh.flow_label, "sgid": grh.dgid, "dgid": grh.sgid}
        back["hop_lmt"] = _HOP_LIMIT
    made = gmp_packet(
        answer,
        lrh.dlid,
        lrh.slid,
        sl=lrh.sl,
        p_key=packet.header(BTH).p_key,
        dest_qp=packet.header(DETH).src_qp,
        grh=back,
    )
    return Outgoing(made.data, lrh.sl, lrh.slid)
