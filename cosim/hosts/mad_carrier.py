"""What carries a Subnet Manager's MADs: packets of its host's adapter, SMPs on VL15, in any simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from cosim.stimulus.actors import Shared, drawn_until
from sm.mad_client import MadAddress, MadClient, OutgoingMad
from verbs.congestion_control.agent import CongestionAgent, is_cc_request
from wire.codes import QP_GSI, QP_SMI, SERVICE_LEVELS
from wire.headers import DETH
from wire.mad_packet import gmp_of, gmp_packet, is_for_management, smp_of, smp_packet
from wire.packet import Packet, parse
from wire.stimulus import Delivery, Post, Taking

__all__ = ["REACTION_CYCLES", "MadCarrier"]

REACTION_CYCLES: Final = 1_000
"""From the last word of a packet to the cycle in which the Subnet Manager has its answer posted, and from a timer
likewise: 4 us at SDR.

It is also how far a simulation may run without asking the Subnet Manager.
"""


class MadCarrier:
    """The host at which a Subnet Manager runs: an actor (`cosim.stimulus.run_spec.Actor`).

    What the Subnet Manager does follows from the deliveries and their cycles alone, so every engine that delivers
    the same gets the same posts.
    """

    def __init__(
        self,
        mads: MadClient,
        node: int,
        slot: int,
        *,
        start: int,
        begin: Callable[[], None],
        ended: Callable[[], bool],
        sl_to_vl: Sequence[int] = range(SERVICE_LEVELS),
        agent: CongestionAgent | None = None,
    ) -> None:
        """Carries `mads` at the adapter of this node index, whose VL15 has this slot, as many as it has data VLs.

        `sl_to_vl` is the VL of each SL, modulo the data VLs.
        `begin` is called in cycle `start`; `ended` after everything the Subnet Manager does, until it is true: the run
        is over then. `agent` is that of the adapter's port, which answers what goes to its own LID.
        """
        self.posts: list[Post] = []
        """All that was posted, in order."""
        self.posted: Shared[Post] = Shared()
        """The same, for the runs in which it is posted."""
        self.reach = 0
        """The cycle up to which the posts are known."""
        self._mads = mads
        self._node = node
        self._slot = slot
        self._sl_to_vl = sl_to_vl
        self._start = start
        self._begin = begin
        self._ended = ended
        self._agent = agent
        self._started = False
        self._end: int | None = None
        self._queue = self.posted.queue()

    def until(self, finished: int) -> int:
        """How far the fabric may run, see `cosim.stimulus.run_spec.Actor`."""
        self._pass_time(finished - 1)
        reach = max(finished, self._start) + REACTION_CYCLES - 1
        self.reach = reach if self._end is None else min(reach, self._end)
        return self.reach

    def posts_until(self, cycle: int) -> list[Post]:
        """Packets for CYCLE or before that were not given yet."""
        return drawn_until(self._queue, cycle)

    def delivered(self, delivery: Delivery) -> None:
        """Hands what is for the Subnet Manager to it."""
        if delivery.node != self._node or not is_for_management(delivery.data):
            return
        self._pass_time(delivery.cycle - 1)
        found = _mad_of(delivery, self._slot)
        if found is not None and self._started and self._end is None:
            mad, source = found
            self._mads.received(mad, delivery.cycle, source)
            self._act(delivery.cycle)

    def taken(self, taking: Taking) -> None:
        """A Subnet Manager does not wait for room: no more SMPs are in the fabric than it holds."""

    def _pass_time(self, cycle: int) -> None:
        """Lets the Subnet Manager do all that it is to do up to this cycle, unless something is delivered."""
        if not self._started and self._start <= cycle:
            self._started = True
            self._mads.poll(self._start)
            self._begin()
            self._act(self._start)
        while self._end is None and (wake := self._mads.wake) is not None and wake <= cycle:
            self._act(max(wake, self._mads.now))

    def _act(self, now: int) -> None:
        """Posts what the Subnet Manager sends in cycle `now`."""
        for outgoing in self._mads.poll(now):
            if self._agent is not None and outgoing.slid == outgoing.dlid and is_cc_request(outgoing.mad):
                self._ask_own(self._agent, outgoing, now)
                continue
            post = Post(now + REACTION_CYCLES, self._node, *self._packet(outgoing))
            self.posts.append(post)
            self.posted.append(post)
        if self._end is None and self._ended():
            self._end = now + REACTION_CYCLES

    def _ask_own(self, agent: CongestionAgent, outgoing: OutgoingMad, now: int) -> None:
        """A channel adapter brings what is for itself back to itself, in no time."""
        answer = agent.answer(outgoing.mad, now, outgoing.slid)
        if answer is not None:
            self._mads.received(answer, now, MadAddress(outgoing.dlid, outgoing.slid, QP_GSI, outgoing.sl))

    def _packet(self, outgoing: OutgoingMad) -> tuple[int, bytes]:
        """Slot and bytes of the packet of a MAD."""
        mad, slid, dlid, qpn, sl = outgoing
        if qpn == QP_SMI:
            return self._slot, smp_packet(mad, slid, dlid).data
        vl = self._sl_to_vl[sl] % self._slot
        return vl, gmp_packet(mad, slid, dlid, vl=vl, sl=sl, dest_qp=qpn).data


def _mad_of(delivery: Delivery, smp_slot: int) -> tuple[bytes, MadAddress] | None:
    """The MAD in a delivered packet, and where it came from; None if there is none."""
    try:
        packet = parse(delivery.data)
        mad = smp_of(packet) if delivery.slot == smp_slot else gmp_of(packet)
    except ValueError:
        return None
    return mad, _source(packet)


def _source(packet: Packet) -> MadAddress:
    lrh = packet.lrh
    return MadAddress(lrh.slid, lrh.dlid, packet.header(DETH).src_qp, lrh.sl)
