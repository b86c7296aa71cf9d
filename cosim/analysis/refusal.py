"""Why a node does not take a packet, or not send it on, as a story tells it."""

from __future__ import annotations

from collections.abc import Sequence

from cosim.topology.topology import Port, Topology
from wire.codes import is_multicast_lid
from wire.parameters import SwitchParameters
from wire.trace import Discard, Kind, Record, Verdict
from wire.trace_layout import RxData, TxDiscard

__all__ = ["is_cancelled", "what_is_wrong", "why_unsent"]

_DISCARDED = {
    Discard.INACTIVE: "the port does not let it through",
    Discard.NEIGHBOR_MTU: "it is longer than the port's NeighborMTU",
    Discard.LIFE_TIME: "it has been in the switch for its life time",
    Discard.HOQ_LIFE: "it has stood at the head of its queue for HOQLife",
    Discard.STALLED: "its VL is stalled",
    Discard.CONSTRAINT: "its partition is not the port's",
}

_OF_PARTITION = (Verdict.RCV_CONSTRAINT, Verdict.XMIT_CONSTRAINT)


def what_is_wrong(name: str, verdict: Verdict, p_key: int | None, outs: Sequence[Port]) -> str:
    """With a packet of this name and P_Key, if that is known, that would have left by OUTS, one if that refuses it."""
    if verdict not in _OF_PARTITION:
        return f"finds {name} bad: {verdict.name}"
    key = "its P_Key" if p_key is None else f"its P_Key 0x{p_key:04x}"
    table = "the port's table" if verdict == Verdict.RCV_CONSTRAINT else f"the table of {outs[0]}"
    return f"refuses {name}, {verdict.name}: {key} matches none in {table}"


def is_cancelled(topology: Topology, record: Record, port: Port, outs: Sequence[Port]) -> bool:
    """A packet that is bad, by RX_DATA of a port, had not joined its queue when it ended (docs/pipeline.md, 3.5)."""
    node = topology.fabric.nodes[port.node]
    if isinstance(node, SwitchParameters) and node.forwarding == "store-and-forward":
        return True
    if RxData.verdict.read(record) in _OF_PARTITION:
        return True
    words, end = RxData.pkt_len.read(record), RxData.end_row.read(record)
    # A multicast packet joins as one for a 4X output does.
    pace = 1 if is_multicast_lid(RxData.dlid.read(record)) else topology.pace(outs[0])
    return topology.pace(port) > pace and end <= words - words // 4


def why_unsent(record: Record) -> str:
    """By SCRAP or TX_DISCARD."""
    return "it was bad" if record.kind == Kind.SCRAP else _DISCARDED[Discard(TxDiscard.reason.read(record))]
