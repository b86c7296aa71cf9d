"""A subnet under a Subnet Manager, with what it reported."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TypeVar

from sm.events import Event, SweepEnded
from sm.lids import LidRange
from sm.mad_client import MadClient
from sm.settings import SubnetSettings
from sm.subnet import MANAGEMENT_PORT, End, Subnet
from sm.subnet_manager import SubnetManager
from tests.sm.sma_fabric import SmaFabric
from tests.sm.subnets import first_host_port, lids_behind, seen_from, walk
from wire.codes import PortState
from wire.mad import MadMethod
from wire.sma import SmaAttribute

E = TypeVar("E", bound=Event)


class Managed:
    """A fabric, and the Subnet Manager at its first host. It has not begun."""

    def __init__(
        self,
        subnet: Subnet,
        settings: SubnetSettings | None = None,
        *,
        origin: End | None = None,
        lids: Mapping[int, LidRange] | None = None,
        lose: tuple[int, float] | None = None,
        **fabric: int,
    ) -> None:
        """`lose` is a seed and the share of MADs that are lost."""
        self.subnet = subnet
        self.origin = origin or first_host_port(subnet)
        self.mads = MadClient()
        self.story: list[tuple[int, Event]] = []
        self.manager = SubnetManager(
            self.mads, settings, lids=lids, listener=lambda cycle, event: self.story.append((cycle, event))
        )
        self.fabric = SmaFabric(subnet, self.origin, self.mads, **fabric)
        if lose is not None:
            random, share = Random(lose[0]), lose[1]
            self.fabric.lose = lambda: random.random() < share

    def bring_up(self) -> Managed:
        """Begins, and goes on until there is nothing to do but to wait."""
        self.manager.start()
        return self.settle()

    def settle(self) -> Managed:
        self.fabric.run(lambda: self.manager.resting)
        return self

    def after(self, kind: type[E], limit: int = 100_000_000) -> list[E]:
        """Forgets past events, and goes on until one of a kind is reported and all is done; the events."""
        self.story.clear()
        self.fabric.lft_writes.clear()
        self.fabric.run(lambda: bool(self.told(kind)) and self.manager.resting, limit)
        return self.told(kind)

    def until_quiet(self) -> Managed:
        """Goes on until a light sweep finds that nothing has changed."""
        self.story.clear()
        self.fabric.run(lambda: any(sweep.complete and not sweep.heavy for sweep in self.told(SweepEnded)))
        return self

    def told(self, kind: type[E]) -> list[E]:
        return [event for _cycle, event in self.story if isinstance(event, kind)]

    def sent(self, method: MadMethod, attribute: SmaAttribute) -> int:
        return self.mads.sent[method, attribute]

    def check(self) -> None:
        """Every linked port in reach is Active, every LID where it should be, and packets find every host."""
        seen = seen_from(self.subnet, self.origin)
        for link in seen.links:
            for end in (link.a, link.b):
                assert self.fabric.state(end) == PortState.ACTIVE, f"{end} is {self.fabric.state(end).name}"
        for end, port in seen.reachable_end_ports:
            info = self.fabric.nodes[end.guid].ports[end.port]
            lids = self.manager.lids[port.guid]
            assert (info.lid, info.lmc) == (lids.first, lids.lmc)
        tables = self.fabric.tables()
        for lid, home in lids_behind(seen, self.manager.lids).items():
            for switch in seen.switches:
                way = walk(self.subnet, tables, switch.guid, lid)
                assert way is not None, f"no way from 0x{switch.guid:x} to LID {lid}"
                assert way[-1] == home or home[1] == MANAGEMENT_PORT == way[-1].port
