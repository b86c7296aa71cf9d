"""A capture as stimulus: packets put on links, and packets given to hosts to send."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

from capture.captured_packets import captured_packets
from capture.wire_packet import WirePacket
from cosim.experiments.play_fabric import Entry
from cosim.experiments.play_plan import PlayPlan
from cosim.stimulus.packet import slot_of_vl
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.topology.topology import Port
from wire.codes import VL15
from wire.crc import LPCRC_BYTES, VCRC_BYTES, lpcrc, lpcrc_good, vcrc_good
from wire.flow_control import CREDIT_MODULUS, CREDIT_WINDOW, FLOW_CONTROL, FlowControlOp
from wire.framing import FramedPacket
from wire.headers import LRH
from wire.packet import WORD_BYTES, blocks_of_words
from wire.parameters import AdapterParameters
from wire.stimulus import Control, Operation, Play, Post, injected_link
from wire.symbols import DELIMITERS, LANES
from wire.trace import Delimiter

__all__ = ["Listener", "PlayStimulus"]

Listener = Callable[[Port, FramedPacket], None]
"""Takes each packet that is played, and the port that is to get it, before what becomes of it is in the trace."""

_SILENCE: Final = 16
"""Cycles in which a port's own last flow control packet is over, before another's packets come in their place."""
_SHORTEST_POST: Final = 5


class PlayStimulus:
    """What acts on the fabric of a plan in one run.

    Attributes:
        moved: packets that came later than they should have, behind others.
        initial: flow control packets of the link's beginning that were left out, since the link is up.
        not_sent: packets that no host can send: damaged ones, and with a length that is none.
        repaired: directions of links on which the fabric's own errors are not repeated.
    """

    def __init__(self, plan: PlayPlan, listener: Listener = lambda port, packet: None) -> None:
        self.moved = 0
        self.initial = 0
        self.not_sent = 0
        self.repaired: set[tuple[int, int]] = set()
        self._plan = plan
        self._listener = listener
        self._places = {entry: plan.place(entry) for entry in plan.entries}
        topology = plan.topology
        self._hosts = {
            entry: far.node for entry in plan.entries if entry.posted and (far := topology.far_end(entry.port))
        }

    def spec(self, actor: Actor | None) -> RunSpec:
        """For a run; a plan has one for each."""
        experiment, topology = self._plan.into.experiment, self._plan.topology
        silent = set(self._hosts.values())
        own = (packet.post(topology) for packet in experiment.packets() if packet.source not in silent)
        since = {
            place: since - (0 if self._plan.keeps_times else _SILENCE) for place, since in self._plan.played.items()
        }
        return RunSpec(
            topology.fabric,
            self._controls(),
            heapq.merge(own, self._posts(), key=lambda post: post.cycle) if silent else own,
            self._plan.cycles,
            actor,
            self._plays() if since else (),
            since,
        )

    def _controls(self) -> Iterator[Control]:
        """A capture is of what there is behind errors."""
        played = self._plan.played
        for control in self._plan.into.experiment.controls():
            if control.operation == Operation.INJECT and injected_link(control.target) in played:
                self.repaired.add(injected_link(control.target))
            else:
                yield control

    def _packets(self, posted: bool) -> Iterator[tuple[Entry, int, WirePacket]]:
        """What is put on links, or posted, with its cycles, which do not go back."""
        entries: dict[int, dict[int | None, Entry]] = {}
        for entry in self._plan.entries:
            if entry.posted is posted:
                entries.setdefault(entry.number, {})[entry.slid] = entry
        cycle = 0
        for packet in captured_packets(self._plan.capture, self._plan.survey.packets):
            ways = entries.get(packet.direction)
            if ways is not None:
                slid = LRH["slid"].read(packet.data) if len(packet.data) >= LRH.size_bytes else None
                # Those of no SLID that is a port's come from the first.
                entry = ways.get(slid) or next(iter(ways.values()))
                cycle = max(cycle, self._plan.cycle(packet.time_ns))
                yield entry, cycle, packet

    # On links.

    def _plays(self) -> Iterator[Play]:
        """As captured if times are kept, else one behind the other, and with credits that count from this run's."""
        free = dict.fromkeys(self._places, 0)
        order = count()
        waiting: list[tuple[int, int, Entry, FramedPacket]] = []
        for entry, cycle, packet in self._packets(posted=False):
            data = packet.data
            due = cycle
            if not self._plan.keeps_times:
                if packet.is_link:
                    data = self._recounted(entry, data)
                    if not data:
                        self.initial += 1
                        continue
                pace = self._plan.topology.pace(entry.port)
                due = -(-max(cycle, free[entry]) // pace) * pace
                cut = packet.ending is Delimiter.CUT
                free[entry] = due + pace * (-(-(len(data) + DELIMITERS) // LANES) + cut)
                self.moved += due - cycle >= pace
            framed = FramedPacket(due, packet.is_link, data, packet.ending)
            heapq.heappush(waiting, (due, next(order), entry, framed))
            while waiting and waiting[0][0] <= cycle:
                yield self._play(*heapq.heappop(waiting)[2:])
        while waiting:
            yield self._play(*heapq.heappop(waiting)[2:])

    def _play(self, entry: Entry, packet: FramedPacket) -> Play:
        self._listener(entry.port, packet)
        return Play(*self._places[entry], packet)

    def _recounted(self, entry: Entry, body: bytes) -> bytes:
        """A flow control packet, its credits counted from what both ends had sent when the capture began; empty for one
        of the link's beginning."""
        if not lpcrc_good(body) or len(body) != FLOW_CONTROL.size_bytes + LPCRC_BYTES:
            return body
        said = FLOW_CONTROL.unpack(body[:-LPCRC_BYTES])
        if said.op == FlowControlOp.INIT:
            return b""
        there = self._plan.survey.directions[entry.number].credits.get(said.vl)
        if there is None or said.op != FlowControlOp.NORMAL:
            return body
        back = self._plan.survey.back(entry.number)
        # Nobody knows what the other end had sent: it has all the room that there can be.
        other = back.credits[said.vl].sent if back and said.vl in back.credits else there.limit - CREDIT_WINDOW
        fields = FLOW_CONTROL.pack(
            op=said.op,
            fctbs=(said.fctbs - there.sent) % CREDIT_MODULUS,
            vl=said.vl,
            fccl=(said.fccl - other) % CREDIT_MODULUS,
        )
        return fields + lpcrc(fields)

    # By hosts.

    def _posts(self) -> Iterator[Post]:
        topology = self._plan.topology
        for entry, cycle, packet in self._packets(posted=True):
            host = self._hosts[entry]
            adapter = topology.fabric.nodes[host]
            assert isinstance(adapter, AdapterParameters)
            data = packet.data[:-VCRC_BYTES]
            words, rest = divmod(len(data), WORD_BYTES)
            sound = packet.ending is Delimiter.EGP and vcrc_good(packet.data)
            if not sound or rest or words < _SHORTEST_POST or blocks_of_words(words) > adapter.send_blocks:
                self.not_sent += 1
                continue
            vl = LRH["vl"].read(data)
            slot = slot_of_vl(vl if vl == VL15 else vl % adapter.vls, adapter.vls)
            self._listener(entry.port, FramedPacket(cycle, False, packet.data, packet.ending))
            yield Post(cycle, topology.index[host], slot, data)
