"""The Subnet Manager: it discovers a subnet, gives LIDs, routes it, brings its ports up, keeps it so, and tells of it.

    mads = MadClient()
    manager = SubnetManager(mads, listener=lambda cycle, event: print(cycle, event))
    manager.start()

From then on a back end carries what `mads.poll` gives, hands in what comes to `mads.received`, and so drives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from sm.activation import bring_up_ports
from sm.congestion_control import set_congestion_control
from sm.congestion_traps import CongestionTraps
from sm.credit_loops import find_credit_loop
from sm.discovery import Findings, discover
from sm.election import Election
from sm.errors import RoutingError
from sm.events import CreditLoopFound, Event, LinkFlapping, LinkLost, NodeLost, RoutingRemark, Unsettled
from sm.flapping import LinkHistory
from sm.lids import LidRange, assign_lids, remembered_lids, with_lids_in_force
from sm.mad_client import MadClient, SmpError
from sm.multicast.groups import MulticastGroups
from sm.multicast.tables import learn_multicast_tables
from sm.multicast.upkeep import MulticastUpkeep
from sm.p_keys import PKeyTable, checks, learn_p_keys, program_p_keys
from sm.partition_groups import made_groups
from sm.port_settings import check_vls, port_settings, wanted_vls
from sm.programming import Programmed, learn_tables, program_sl_to_vl, program_switch
from sm.reregistration import forget_clients, tell_clients
from sm.routing.graph import SwitchGraph
from sm.routing.routes import Routes
from sm.routing.up_down import up_down
from sm.sa.administrator import SubnetAdministrator
from sm.sa.view import SubnetView
from sm.settings import SubnetSettings
from sm.sma_client import SmaClient
from sm.subnet import MANAGEMENT_PORT, End, Link, Subnet
from sm.sweep import HeavySweep, Sweeper, find_change
from sm.tasks import gather, start
from sm.vl_arbitration import program_vl_arbitration
from wire.codes import LID_PERMISSIVE, PortState
from wire.layout import Record
from wire.notice import TrapNumber, details_of
from wire.sma import SMState

__all__ = ["SubnetManager"]


class SubnetManager:
    """Manages the subnet at the port whose datagrams `mads` carries."""

    def __init__(
        self,
        mads: MadClient,
        settings: SubnetSettings | None = None,
        *,
        lids: Mapping[int, LidRange] | None = None,
        listener: Callable[[int, Event], None] | None = None,
    ) -> None:
        """`lids`, by PortGUID, are those of an earlier run; `listener` gets each event and its cycle."""
        self.mads = mads
        """Carries its datagrams; it also counts them."""
        self.found: Findings | None = None
        """What the latest discovery found, and ports as they were set since."""
        self.lids: dict[int, LidRange] = {}
        """By PortGUID, of the ports that take part."""
        self.remembered_lids: dict[int, LidRange] = dict(lids or {})
        """Also of ports that are gone, as a guid2lid file keeps them."""
        self.routes: Routes | None = None
        """Forwarding tables, and the other ports they might have used."""
        self._settings = settings or SubnetSettings()
        self.groups = MulticastGroups(made_groups(self._settings.partitions, self._settings.subnet_timeout))
        """The multicast groups."""
        self._listener = listener
        self._sma = SmaClient(mads)
        self._programmed = Programmed()
        self._history = LinkHistory(self._settings.flap_limit, self._settings.flap_period)
        self.held_links: list[Link] = []
        """Links that flap and that no path leads over."""
        self._active: set[Link] = set()
        """Links both ends of which have been Active."""
        self._renamed: set[int] = set()
        """LIDs of nodes that have reported new descriptions since the last heavy sweep began."""
        self._sweeper = Sweeper(mads, self._settings, self._tell, self._heavy_sweep, self._change, self._period)
        self._election = Election(mads, self._settings, self._tell, self._commanded)
        self._multicast = MulticastUpkeep(self._sma, self.groups, self._programmed, self._tell, self._sweeper.seek)
        self._administrator = SubnetAdministrator(mads, self._settings, self.groups, lambda: self._election.sm_info)
        self._congestion_traps = CongestionTraps(mads, self._settings, self._tell)
        mads.on_trap = self._trap

    def start(self) -> None:
        """Begins. Permanent errors, such as too many LIDs, are raised here or out of a call to `mads`."""
        start(self._sweeper.run())

    @property
    def subnet(self) -> Subnet:
        """The nodes and links of the latest discovery."""
        return self.found.subnet if self.found is not None else Subnet()

    @property
    def state(self) -> SMState:
        """Whether it is the master of the subnet, or stands by."""
        return self._election.state

    @property
    def resting(self) -> bool:
        """Whether nothing is in progress: it waits for a trap or for the next light sweep."""
        return self._sweeper.resting and not self._multicast.busy

    def look(self) -> None:
        """Makes the next light sweep, or the next look at the master, due now."""
        self._sweeper.look()

    def _period(self) -> int | None:
        """Cycles to the next light sweep, to the next look at the master, or at the one to be handed over to."""
        if self._election.has_heir:
            return self._settings.handover_wait
        return self._settings.polling_period if self._election.stands_by else self._settings.light_sweep_period

    async def _heavy_sweep(self) -> HeavySweep:
        """Looks at the whole subnet and, if it is the master, corrects what is wrong."""
        if self._election.stands_by:
            return HeavySweep(complete=True)
        self._forget_descriptions()
        try:
            found = await discover(self._sma, self.subnet, self._tell, self._election.begin)
        except SmpError as error:
            self._tell(Unsettled(str(error)))
            return HeavySweep(complete=False)
        self._tell_losses(found)
        self.found = found
        if not list(found.subnet.reachable_end_ports):
            # The own link is down: there is no subnet.
            return HeavySweep(found.settled)
        if not await self._election.is_won(found):
            self._leave()
            return HeavySweep(complete=True)
        self._administrator.is_open = True
        await learn_tables(self._sma, found, self._programmed, self._tell)
        await learn_multicast_tables(self._sma, found, self._programmed, self._tell)
        self._assign_lids(found.subnet)
        routed = self._route(found)
        p_keys = await learn_p_keys(self._sma, found, self._settings, self._programmed, self._tell)
        programmed = await self._program(found, p_keys)
        checked = checks(found, p_keys, self._programmed, self._settings)
        wanted = port_settings(found, self.lids, self._settings, checked)
        forget_clients(found, wanted, self._programmed)
        active = await bring_up_ports(
            self.mads, found, wanted, self._settings, self._tell, lambda: self._sweeper.has_trap
        )
        self._active = {link for link in found.subnet.links if _is_active(found, link)}
        self.groups.keep({port.guid for _end, port in found.subnet.reachable_end_ports})
        led = await self._multicast.settle(found, routed)
        changed = [found.subnet.nodes[guid] for guid in found.changed if guid in found.subnet.nodes]
        lids = frozenset(node.end_ports[MANAGEMENT_PORT].lid for node in changed)
        if self.routes is not None:
            tables = None if self._settings.partitions is None else dict(self._programmed.p_keys)
            self._administrator.show(SubnetView(found, self.lids, self.routes, self._settings, tables))
            await set_congestion_control(
                self.mads, found, self.lids, self.routes, self._settings, self._programmed, self._tell
            )
        # Where a trap ended the activation, the next sweep is due: clients behind what was lost would keep it waiting.
        is_due = not active and self._sweeper.has_trap
        told = not is_due and await tell_clients(self._sma, found, self._programmed, self._tell)
        await self._hand_over()
        return HeavySweep(programmed and active and led and told and found.settled, lids)

    async def _change(self) -> str | None:
        """What makes another heavy sweep necessary; None if nothing does."""
        if self._election.stands_by:
            return await self._election.look_at_master()
        if self._election.has_heir:
            await self._hand_over()
            return None
        if self._renamed:
            return "a node has another description"
        for link in self.held_links:
            if not self._history.flaps(link, self.mads.now):
                return f"link {link.a} to {link.b} flaps no more"
        return "no discovery yet" if self.found is None else await find_change(self._sma, self.found)

    async def _hand_over(self) -> None:
        """Hands over to a Subnet Manager that comes before this one, if there is one."""
        await self._election.hand_over()
        if self._election.stands_by:
            self._leave()

    def _leave(self) -> None:
        """Another is the master: it answers clients, and trees and congestion control are what it makes of them."""
        self._administrator.is_open = False
        self._programmed.multicast.clear()
        self._programmed.congestion_control.clear()

    def _commanded(self, cause: str) -> None:
        """Another Subnet Manager has handed over its subnet, or asks for a look: nothing is known of its clients."""
        self._programmed.told_clients.clear()
        self._sweeper.seek(cause)

    def _assign_lids(self, subnet: Subnet) -> None:
        known = with_lids_in_force(subnet, self.remembered_lids)
        self.lids = assign_lids(subnet, self._settings.lmc, known)
        self.remembered_lids = remembered_lids(self.lids, known)
        for _end, port in subnet.reachable_end_ports:
            port.lid, port.lmc = self.lids[port.guid].first, self.lids[port.guid].lmc

    def _route(self, found: Findings) -> Subnet:
        """Finds paths; the subnet without the links that none of them takes because they flap."""
        routed = self._without_flapping_links(found.subnet)
        before = self.routes
        self.routes = self._settings.routing(routed, self.lids, previous=self._programmed.tables)
        try:
            check_vls(found, routed, self.routes.vls_needed, self._settings)
        except RoutingError as error:
            if before is None:
                raise
            # It was possible before something was lost: traffic goes on.
            remark = f"routed up/down: {str(error).partition(': ')[0]}"
            self.routes = replace(up_down(routed, self.lids, previous=self._programmed.tables), remark=remark)
        if before is None or (before.tables, before.layers) != (self.routes.tables, self.routes.layers):
            if self.routes.remark:
                self._tell(RoutingRemark(self.routes.remark))
            vls = cache(lambda end: wanted_vls(found, end, self._settings))
            loop = find_credit_loop(
                routed,
                self.lids,
                self.routes.tables,
                service_level=self.routes.service_level if self.routes.layers else None,
                vl=lambda end, sl: vls(end)[sl],
            )
            if loop is not None:
                self._tell(CreditLoopFound(tuple(loop)))
        return routed

    def _without_flapping_links(self, subnet: Subnet) -> Subnet:
        """The subnet without those links between switches that flap, as long as there are other paths."""
        self.held_links = []
        routed = subnet
        for link in subnet.links:
            between_switches = subnet.nodes[link.a.guid].is_switch and subnet.nodes[link.b.guid].is_switch
            if between_switches and self._history.flaps(link, self.mads.now):
                without = routed.without(link)
                if len(SwitchGraph.of(without).islands()) == len(SwitchGraph.of(routed).islands()):
                    routed = without
                    self.held_links.append(link)
        return routed

    async def _program(self, found: Findings, p_keys: Mapping[End, PKeyTable]) -> bool:
        """Writes tables, those of `p_keys` among them; whether every node answered.

        One that does not answer holds up no other.
        """
        tables = self.routes.tables if self.routes is not None else {}

        async def program(guid: int) -> bool:
            rest = (found, self._settings, self._programmed, self._tell)
            try:
                if found.subnet.nodes[guid].is_switch:
                    await program_switch(self._sma, guid, tables[guid], *rest)
                await program_sl_to_vl(self._sma, guid, *rest)
                await program_vl_arbitration(self._sma, guid, *rest)
                await program_p_keys(self._sma, guid, p_keys, found, self._programmed, self._tell)
            except SmpError as error:
                self._tell(Unsettled(str(error)))
                return False
            return True

        return all(await gather([program(guid) for guid in found.subnet.nodes]))

    def _tell_losses(self, found: Findings) -> None:
        """Reports what was lost since the discovery before."""
        for guid, node in self.subnet.nodes.items():
            if guid not in found.subnet.nodes:
                self._tell(NodeLost(node))
        links = set(found.subnet.links)
        for link in self.subnet.links:
            back = link in links and link in self._active and not _is_active(found, link)
            if link not in links or back:
                self._tell(LinkLost(link, back))
                losses = self._history.lost(link, self.mads.now)
                if losses == self._settings.flap_limit:
                    self._tell(LinkFlapping(link, losses))

    def _trap(self, trap: Record) -> None:
        own_lid = LID_PERMISSIVE
        if self.found is not None:
            origin = self.found.origin
            own_lid = self.subnet.nodes[origin.guid].end_ports[origin.port].lid
        notice = self._sweeper.trap(trap, own_lid)
        self._administrator.report(notice)
        details = details_of(notice)
        if details is not None and notice.trap_number == TrapNumber.LOCAL_CHANGES and details.node_description_change:
            self._renamed.add(details.lid)

    def _forget_descriptions(self) -> None:
        """Those of renamed nodes: discovery reads what it does not know.

        Only where a sweep begins: one in progress has taken the descriptions over already.
        """
        for node in self.subnet.nodes.values():
            if any(port.lid in self._renamed for port in node.end_ports.values()):
                node.description = ""
        self._renamed.clear()

    def _tell(self, event: Event) -> None:
        if self._listener is not None:
            self._listener(self.mads.now, event)


def _is_active(found: Findings, link: Link) -> bool:
    return all(found.state(end) == PortState.ACTIVE for end in (link.a, link.b))
