"""Keeping the multicast forwarding tables as the groups want them, when ports join or leave and after each sweep."""

from __future__ import annotations

from collections.abc import Callable

from sm.discovery import Findings
from sm.events import Tell
from sm.multicast.groups import RECEIVES, MulticastGroups
from sm.multicast.tables import multicast_caps, program_multicast
from sm.multicast.trees import MulticastTrees
from sm.programming import Programmed
from sm.sma_client import SmaClient
from sm.subnet import Subnet
from sm.tasks import Future, start
from wire.codes import PortState

__all__ = ["MulticastUpkeep"]


class MulticastUpkeep:
    """Finds the tree of each group and writes it to the switches."""

    def __init__(
        self, sma: SmaClient, groups: MulticastGroups, programmed: Programmed, tell: Tell, seek: Callable[[str], None]
    ) -> None:
        """`seek` asks for a heavy sweep, which settles what could not be written between two of them."""
        self.busy = False
        """Whether tables are being written."""
        self._sma = sma
        self._groups = groups
        self._programmed = programmed
        self._tell = tell
        self._seek = seek
        self._topology: tuple[Findings, MulticastTrees] | None = None
        self._is_due = False
        """Whether groups have changed since the trees were found that are being written."""
        self._idle: Future[None] = Future()
        groups.on_members = self._follow

    async def settle(self, found: Findings, routed: Subnet) -> bool:
        """Writes what differs from now on by what was found; whether every switch has answered.

        Packets take those links of `routed` that are Active.
        """
        while self.busy:
            self._idle = Future()
            await self._idle
        links = Subnet(dict(routed.nodes))
        for link in routed.links:
            if found.state(link.a) == found.state(link.b) == PortState.ACTIVE:
                links.connect(link.a, link.b)
        self._topology = found, MulticastTrees(links, multicast_caps(found))
        return await self._write()

    def _follow(self) -> None:
        """Ports have joined or left."""
        self._is_due = True
        if not self.busy and self._topology is not None:
            start(self._write_between_sweeps())

    async def _write_between_sweeps(self) -> None:
        if not await self._write():
            self._seek("a multicast group changed, and a switch did not answer")

    async def _write(self) -> bool:
        """Writes until all is as the groups want it."""
        self.busy = self._is_due = True
        done = False
        while self._is_due and self._topology is not None:
            self._is_due = False
            found, trees = self._topology
            masks: dict[int, dict[int, int]] = {}
            for group in self._groups.by_mgid.values():
                receives = {guid: bool(state & RECEIVES) for guid, state in group.members.items()}
                for switch, mask in trees.masks(group.mlid, receives).items():
                    masks.setdefault(switch, {})[group.mlid] = mask
            done = await program_multicast(self._sma, found, masks, self._programmed, self._tell)
        self.busy = False
        self._idle.resolve(None)
        return done
