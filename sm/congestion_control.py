"""Congestion control as a Subnet Manager sets it: of switches, and of ports of channel adapters (IBTA vol 1, A10.3).

What is set is the same everywhere and does not change, so each is asked once; again only if it was reset or gone. One
that refuses or does not answer has no congestion control, and is left alone likewise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from sm.congestion_options import CongestionOptions
from sm.discovery import Findings
from sm.events import CongestionControlSet, CongestionControlUnavailable, Tell
from sm.lids import LidRange
from sm.mad_client import MadAddress, MadClient, RefusedError, SmpError
from sm.programming import Programmed
from sm.routing.routes import Routes
from sm.settings import SubnetSettings
from sm.subnet import End
from sm.tasks import gather
from wire.codes import P_KEY_DEFAULT, Q_KEY_GSI, QP_GSI, PortState
from wire.congestion_control import CC_CLASS_PORT_INFO, CC_CLASS_VERSION, CcAttribute, cc_request
from wire.layout import Record
from wire.mad import MadMethod
from wire.node_info import NodeType

__all__ = ["set_congestion_control"]


class _Set(NamedTuple):
    """What a node is asked to hold."""

    attribute: CcAttribute
    modifier: int
    data: Record


async def set_congestion_control(
    mads: MadClient,
    found: Findings,
    lids: Mapping[int, LidRange],
    routes: Routes,
    settings: SubnetSettings,
    programmed: Programmed,
    tell: Tell,
) -> None:
    """Sets it where that was not done yet, of all that packets come to; `lids` is by PortGUID.

    Its traps are to come here; one that sends none refuses that, and is told the rest. A port's attributes are set one
    after the other, in OpenSM's order, ports side by side.
    """
    options = settings.congestion_control
    if options is None:
        return
    done = programmed.congestion_control
    ports = {end: lids[port.guid].first for end, port in found.subnet.reachable_end_ports}
    for end in [end for end in done if end not in ports]:
        del done[end]
    own_lid = ports[found.origin]

    async def send(wanted: _Set, to: MadAddress) -> None:
        request = cc_request(
            MadMethod.SET,
            wanted.attribute,
            wanted.data.pack(),
            transaction_id=0,
            modifier=wanted.modifier,
            cc_key=options.cc_key,
        )
        await mads.ask(request, to)

    async def configure(end: End, lid: int) -> None:
        sl = routes.service_level(own_lid, lid)
        to = MadAddress(lid, own_lid, QP_GSI, sl)
        try:
            with suppress(RefusedError):
                await send(_traps_to(own_lid, sl), to)
            for wanted in _sets(options, found.subnet.nodes[end.guid].type):
                await send(wanted, to)
        except SmpError as error:
            done[end] = False
            tell(CongestionControlUnavailable(end, str(error)))
        else:
            done[end] = True

    asked = {end: lid for end, lid in ports.items() if end not in done and _is_reached(found, end)}
    await gather([configure(end, lid) for end, lid in asked.items()])
    new = [found.subnet.nodes[end.guid] for end in asked if done[end]]
    if new:
        switches = sum(node.is_switch for node in new)
        tell(CongestionControlSet(switches, len(new) - switches))


def _traps_to(lid: int, sl: int) -> _Set:
    """Paths are reversible: traps come back on the SL on which a node is asked."""
    info = CC_CLASS_PORT_INFO.record(
        class_version=CC_CLASS_VERSION,
        trap_sl=sl,
        trap_lid=lid,
        trap_p_key=P_KEY_DEFAULT,
        trap_qp=QP_GSI,
        trap_q_key=Q_KEY_GSI,
    )
    return _Set(CcAttribute.CLASS_PORT_INFO, 0, info)


def _sets(options: CongestionOptions, node_type: NodeType) -> Iterator[_Set]:
    if node_type is NodeType.SWITCH:
        yield _Set(CcAttribute.SWITCH_CONGESTION_SETTING, 0, options.switch)
    elif node_type is NodeType.CA:
        yield _Set(CcAttribute.CA_CONGESTION_SETTING, 0, options.adapter)
        for block, entries in enumerate(options.table):
            yield _Set(CcAttribute.CONGESTION_CONTROL_TABLE, block, entries)


def _is_reached(found: Findings, end: End) -> bool:
    """Whether packets come to a port of a node that has congestion control: one of its links is Active."""
    node = found.subnet.nodes[end.guid]
    links = [End(end.guid, port) for port, _far in found.subnet.neighbours(end.guid)] if node.is_switch else [end]
    return node.type is not NodeType.ROUTER and any(found.state(link) == PortState.ACTIVE for link in links)
