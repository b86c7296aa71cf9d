"""Requests of class 0x21 that come as packets to QP1, and what answers them."""

from __future__ import annotations

from typing import Final

from verbs.congestion_control.agent import CongestionAgent, is_cc_request
from verbs.frame import Outgoing
from wire.headers import BTH, DETH
from wire.mad_packet import gmp_of, gmp_packet
from wire.packet import parse

__all__ = ["answer_to"]

_HOP_LIMIT: Final = 255


def answer_to(data: bytes, agent: CongestionAgent, now: int) -> Outgoing | None:
    """The packet that answers one; None if it is no such request, or gets no answer.

    It goes back by the LIDs that the request came by, with a GRH if that had one.
    """
    try:
        packet = parse(data)
        mad = gmp_of(packet)
    except ValueError:
        return None
    answer = agent.answer(mad, now) if is_cc_request(mad) else None
    if answer is None:
        return None
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
