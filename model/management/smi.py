"""The Subnet Management Interface: where an SMP goes from here (docs/management.md, section 3)."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from wire.codes import LID_PERMISSIVE
from wire.layout import Record
from wire.mad import MadMethod
from wire.sma import SmaAttribute
from wire.smp import MAX_HOPS, initial_port, is_directed, return_port, with_return_port

__all__ = [
    "FROM_HOST",
    "TO_AGENT",
    "TO_HOST",
    "TO_LINK",
    "Passage",
    "Toward",
    "Way",
    "answer_passage",
    "pass_on",
    "port",
    "route",
]

FROM_HOST: Final = 0
"""The arrival port of an SMP that an adapter's host sent."""

_UNCHANGED: Final[Mapping[str, int]] = MappingProxyType({})


class Toward(IntEnum):
    """Where a `Way` leads."""

    NOWHERE = 0
    AGENT = 1
    HOST = 2
    PORT = 3
    ROUTE = 4
    LINK = 5


class Way(NamedTuple):
    """Where an SMP goes.

    Attributes:
        toward: the kind of target.
        number: PORT: the port. ROUTE: the LID that the forwarding table is asked for.
    """

    toward: Toward
    number: int = 0


class Passage(NamedTuple):
    """What becomes of an SMP.

    Attributes:
        way: where it goes.
        smp: its fields that change.
        lrh: fields of its packet's LRH that change.
    """

    way: Way
    smp: Mapping[str, int] = _UNCHANGED
    lrh: Mapping[str, int] = _UNCHANGED


_DROPPED: Final = Passage(Way(Toward.NOWHERE))
TO_AGENT: Final = Way(Toward.AGENT)
TO_HOST: Final = Way(Toward.HOST)
TO_LINK: Final = Way(Toward.LINK)
"""Out by an adapter's only link, as it came from the host."""
_DIRECT: Final = {"dlid": LID_PERMISSIVE, "slid": LID_PERMISSIVE}
"""The LRH of an SMP on the directed part of its route."""

_SMA_METHODS: Final = (MadMethod.GET, MadMethod.SET, MadMethod.TRAP_REPRESS)


def port(number: int) -> Way:
    """Out by a port."""
    return Way(Toward.PORT, number)


def route(dlid: int) -> Way:
    """Out by the forwarding table."""
    return Way(Toward.ROUTE, dlid)


def pass_on(smp: Record, lrh: Record, arrival: int, *, is_switch: bool, lid: int, lmc: int) -> Passage:
    """What becomes of an SMP that came by a port. `lid` and `lmc` are the node's own.

    AGENT means that the SMA works on it.
    """
    from_host = not is_switch and arrival == FROM_HOST
    if not is_directed(smp):
        passage = _lid_routed(lrh, from_host, lid, lmc)
    elif smp.hop_count > MAX_HOPS:
        passage = _DROPPED
    elif smp.d == 0:
        passage = _sent_by_host(smp) if from_host else _on_its_way(smp, lrh, arrival, is_switch, lid)
    else:
        passage = _answer_by_host(smp) if from_host else _on_its_way_back(smp, lrh, is_switch, lid)
    way = passage.way
    if way == TO_AGENT and not _for_sma(smp, is_switch):
        way = TO_HOST
    if way == TO_HOST and is_switch:
        return _DROPPED
    return passage._replace(way=way)


def _for_sma(smp: Record, is_switch: bool) -> bool:
    return smp.method in _SMA_METHODS and (is_switch or smp.attribute_id != SmaAttribute.SM_INFO)


def _lid_routed(lrh: Record, from_host: bool, lid: int, lmc: int) -> Passage:
    if from_host and (lid == 0 or lrh.dlid >> lmc != lid >> lmc):
        return Passage(TO_LINK)
    return Passage(TO_AGENT)


# The rows of the table, in its order.


def _sent_by_host(smp: Record) -> Passage:
    if smp.hop_pointer == 0 and smp.hop_count == 0:
        return Passage(TO_AGENT, {"hop_pointer": 1})
    if smp.hop_pointer == 0 and smp.dr_slid != LID_PERMISSIVE:
        return Passage(TO_LINK)
    if smp.hop_pointer == 0:
        return Passage(port(initial_port(smp, 1)), {"hop_pointer": 1}, _DIRECT)
    return _DROPPED


def _on_its_way(smp: Record, lrh: Record, arrival: int, is_switch: bool, lid: int) -> Passage:
    hop, hops = smp.hop_pointer, smp.hop_count
    if hop == 0 and hops == 0:
        return Passage(TO_AGENT, {"hop_pointer": 1})
    if is_switch and hop == 0 and lrh.dlid != LID_PERMISSIVE:
        return Passage(port(initial_port(smp, 1)), {"hop_pointer": 1}, _DIRECT)
    if is_switch and hop != 0 and hop < hops:
        return Passage(port(initial_port(smp, hop + 1)), _hop_done(smp, arrival), _DIRECT)
    if hop == hops and smp.dr_dlid == LID_PERMISSIVE:
        return Passage(TO_AGENT, _hop_done(smp, arrival))
    if is_switch and hop == hops:
        return Passage(route(smp.dr_dlid), _hop_done(smp, arrival), {"dlid": smp.dr_dlid, "slid": lid})
    if hop == hops + 1:
        return Passage(TO_AGENT)
    return _DROPPED


def _hop_done(smp: Record, arrival: int) -> dict[str, int]:
    hop = smp.hop_pointer
    return {"hop_pointer": hop + 1, "return_path": with_return_port(smp, hop, arrival).return_path}


def _answer_by_host(smp: Record) -> Passage:
    hops = smp.hop_count
    if hops != 0 and smp.hop_pointer == hops + 1 and smp.dr_dlid != LID_PERMISSIVE:
        return Passage(TO_LINK)
    if hops != 0 and smp.hop_pointer == hops + 1:
        return Passage(port(return_port(smp, hops)), {"hop_pointer": hops}, _DIRECT)
    return _DROPPED


def _on_its_way_back(smp: Record, lrh: Record, is_switch: bool, lid: int) -> Passage:
    hop, hops = smp.hop_pointer, smp.hop_count
    if is_switch and hops != 0 and hop == hops + 1 and lrh.dlid != LID_PERMISSIVE:
        return Passage(port(return_port(smp, hops)), {"hop_pointer": hops}, _DIRECT)
    if is_switch and 2 <= hop <= hops:
        return Passage(port(return_port(smp, hop - 1)), {"hop_pointer": hop - 1}, _DIRECT)
    if hop == 1 and smp.dr_slid == LID_PERMISSIVE:
        return Passage(TO_HOST, {"hop_pointer": 0})
    if is_switch and hop == 1:
        return Passage(route(smp.dr_slid), {"hop_pointer": 0}, {"dlid": smp.dr_slid, "slid": lid})
    if hop == 0:
        return Passage(TO_HOST)
    return _DROPPED


def answer_passage(smp: Record, lrh: Record, arrival: int, *, is_switch: bool, lid: int) -> Passage:
    """Where the answer to an SMP goes, and what changes in it and its LRH. `lid` is the node's own.

    `Passage.way` does not depend on `lid`.
    """
    exchanged = {"dlid": lrh.slid, "slid": lrh.dlid}
    from_host = not is_switch and arrival == FROM_HOST
    if not is_directed(smp):
        return Passage(TO_HOST if from_host else route(lrh.slid), {}, exchanged)
    if smp.hop_count == 0:
        return Passage(TO_HOST if from_host else port(arrival), {"hop_pointer": 0}, exchanged)
    if smp.dr_dlid != LID_PERMISSIVE:
        return Passage(route(lrh.slid), {}, {"dlid": lrh.slid, "slid": lid})
    return Passage(port(return_port(smp, smp.hop_count)), {"hop_pointer": smp.hop_count}, exchanged)
