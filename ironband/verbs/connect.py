"""Two queue pairs connected in one line, which pyverbs leaves to programs."""

from __future__ import annotations

from typing import Any, Final

from ironband.verbs.addresses import GID, AHAttr, GlobalRoute
from ironband.verbs.device import Context
from ironband.verbs.enums import ibv_access_flags
from ironband.verbs.pyverbs_error import PyverbsUserError
from ironband.verbs.qp_attributes import QPAttr
from ironband.verbs.stateful_pair import StatefulPair

__all__ = ["connect"]

_REMOTE: Final = (
    ibv_access_flags.IBV_ACCESS_REMOTE_WRITE
    | ibv_access_flags.IBV_ACCESS_REMOTE_READ
    | ibv_access_flags.IBV_ACCESS_REMOTE_ATOMIC
)
_ATTRIBUTES: Final = {
    "qp_access_flags": _REMOTE,
    "max_rd_atomic": 16,
    "max_dest_rd_atomic": 16,
    "min_rnr_timer": 12,
    "timeout": 14,
    "retry_cnt": 7,
    "rnr_retry": 7,
}


def connect(
    one: StatefulPair, two: StatefulPair, *, is_global: bool = False, port_num: int = 1, **attributes: Any
) -> None:
    """Takes two queue pairs to RTS, each with the other as its peer, by their hosts' ports of this number.

    They are of the same type; of XRC, one sends and the other receives. End-to-end contexts are connected likewise.

    The path MTU is what both ports have. ATTRIBUTES are of `QPAttr`; those that are not given are what
    `ibv_rc_pingpong` takes, with 16 READs and atomics outstanding.

    Raises:
        PyverbsUserError: an attribute that there is not.
        PyverbsRDMAError: one that is refused, or queue pairs that are not in RESET, INIT or RTR.
    """
    for name in attributes:
        if name not in vars(QPAttr()):
            raise PyverbsUserError(f"connect: {name}: there is no such attribute")
    ports = [qp.context.query_port(port_num) for qp in (one, two)]
    mtu = min(port.active_mtu for port in ports)
    for qp, peer, port in ((one, two, ports[1]), (two, one, ports[0])):
        attr = QPAttr(port_num=port_num, path_mtu=mtu)
        attr.ah_attr = AHAttr(
            dlid=port.lid, port_num=port_num, is_global=int(is_global), gr=_route(peer.context, port_num)
        )
        attr.dest_qp_num = peer.qp_num
        for name, value in {**_ATTRIBUTES, **attributes}.items():
            setattr(attr, name, value)
        qp.to_rts(attr)


def _route(peer: Context, port_num: int) -> GlobalRoute:
    return GlobalRoute(GID(peer.query_gid(port_num, 0).gid), hop_limit=64)
