"""The story of a run, drawn from its trace: who sends, waits, receives and frees what, with which credits.

Credits of a port are CL less TBS (docs/pipeline.md, 6 and 7): the credit limit of the last flow control
packet it received, less the blocks it sent since Initialize, both modulo 4096.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NamedTuple

from cosim.analysis.event import Event
from cosim.analysis.observer import Observer
from cosim.analysis.packet_names import PacketNames, flow_of, plural
from cosim.analysis.refusal import is_cancelled, what_is_wrong, why_unsent
from cosim.scenario.tables import EventName
from cosim.stimulus.packet import Packet
from cosim.topology.topology import Port, Topology
from sm.events import QUIET_EVENTS, event_text
from sm.events import Event as ManagerEvent
from wire.codes import VL15, PortState, is_multicast_lid
from wire.flow_control import CREDIT_MODULUS, CREDIT_WINDOW
from wire.packet import blocks_of_words
from wire.parameters import SwitchParameters, adapter_port
from wire.trace import (
    AGENT_PORT,
    LINK_SOURCE,
    Kind,
    LinkResult,
    Record,
    Verdict,
    link_of_source,
    port_of_source,
)
from wire.trace_layout import Deliver, Inject, RxData, RxFcp, Scrap, Send, State, TxData, TxDiscard

__all__ = ["Story", "Totals"]

_HOST = 0
"""Port number that stands for the host behind an adapter."""

_SLOTS: dict[int, Callable[[Record], int]] = {
    layout.kind: layout.slot.read for layout in (Scrap, TxData, TxDiscard, Send, Deliver)
}
"""Reads a packet's slot, for the kinds of records that say it."""

_HOLD_CYCLES = 8_192
"""Longer than any packet takes: its start is known only at its end, so events are held back for so long."""


@dataclass(slots=True)
class Totals:
    """Packets of a run, counted in its trace."""

    sent: int = 0
    delivered: int = 0
    dropped: int = 0
    injected: int = 0


@dataclass(frozen=True, slots=True)
class _Waiting:
    label: str
    blocks: int
    since: int


@dataclass(slots=True)
class _Copies:
    """How many ports a packet is still to leave by."""

    left: int


class _Queued(NamedTuple):
    """A packet that a node has, or a copy of one: what it is called, its length, and the VL whose buffer it is in.

    `copies` are those of a multicast packet in a switch.
    """

    label: str | None
    words: int
    vl: int
    copies: _Copies | None = None


@dataclass(slots=True)
class _Sender:
    """The sending side of a port on one VL."""

    credit_limit: int = 0
    sent_blocks: int = 0
    need: int = 0
    """Blocks of the packet sent last; of the first one waiting as long as there is none."""
    stalled_from: int | None = None
    busy_until: int = -1
    """Cycle of the last row of the packet sent last."""
    waiting: deque[_Waiting] = field(default_factory=deque)
    flows: Counter[str] = field(default_factory=Counter)
    """How many of each flow are waiting."""

    @property
    def credits(self) -> int:
        """Blocks that may be sent; what the window calls negative is none."""
        left = (self.credit_limit - self.sent_blocks) % CREDIT_MODULUS
        return left if left <= CREDIT_WINDOW else 0

    def waits(self, label: str, blocks: int, since: int) -> None:
        """One more packet waits."""
        self.waiting.append(_Waiting(label, blocks, since))
        self.flows[flow_of(label)] += 1

    def leaves(self, label: str | None) -> int | None:
        """A packet waits no longer, most often the first. Since when it did, or None if it did not."""
        for place, one in enumerate(self.waiting):
            if one.label == label:
                del self.waiting[place]
                flow = flow_of(one.label)
                self.flows[flow] -= 1
                if not self.flows[flow]:
                    del self.flows[flow]
                return one.since
        return None


class Story(Observer):
    """Reads a trace, record by record, and gives each event to `report` in the order of cycles.

    Packets offered are recognised by the order of the queues that they pass. What happens to packets and ports before
    `start` is not reported but given to `before`. Management's packets are left out, but not what Subnet Managers say
    of their work.

    A record of a packet is stamped with its end, its events are earlier. So a record only says what will
    happen at which cycle; it happens, with the credits and the buffer of that cycle, a while later.
    """

    def __init__(
        self,
        topology: Topology,
        start: int,
        report: Callable[[Event], None],
        flow_names: list[str] | None = None,
        before: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        self._topology = topology
        self._offered: deque[Packet] = deque()
        self._start = start
        self._report = report
        self._before = before
        self._names = PacketNames(flow_names or [])
        self._nodes = list(topology.fabric.nodes)
        self._node_names = {topology.fabric.identity(name).node_guid: adapter_port(name)[0] for name in self._nodes}
        self._vls = [node.vls for node in topology.fabric.nodes.values()]
        self._senders: defaultdict[tuple[Port, int], _Sender] = defaultdict(_Sender)
        self._filled: Counter[Port] = Counter()
        self._filled_vl: Counter[tuple[Port, int]] = Counter()
        self._queued: defaultdict[tuple[Port, Port, int], deque[_Queued]] = defaultdict(deque)
        self._on_cable: defaultdict[Port, deque[tuple[int, str | None]]] = defaultdict(deque)
        self._pending: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = count()
        self._p_keys: dict[str, int] = {}
        """Of the packets of a flow."""
        self.totals = Totals()

    def offer(self, packet: Packet) -> None:
        """Keep a packet until the trace is as far."""
        self._offered.append(packet)

    def observe(self, record: Record) -> None:
        """Follow one record."""
        self._take_posts(record.cycle)
        self._happen(record.cycle - _HOLD_CYCLES)
        if record.source >= LINK_SOURCE:
            if record.kind == Kind.INJECT:
                self._injected(record)
            return
        node, number = port_of_source(record.source)
        if number == AGENT_PORT or self._is_management(node, record):
            return
        port = Port(self._nodes[node], number)
        match record.kind:
            case Kind.RX_DATA:
                self._received(record, port)
            case Kind.RX_FCP:
                self._credited(record, port)
            case Kind.STATE:
                self._changed_state(record, port)
            case Kind.TX_DATA:
                self._sent(record, port)
            case Kind.TX_DISCARD | Kind.SCRAP:
                self._dropped_in_queue(record, port)
            case Kind.SEND:
                self.totals.sent += 1
            case Kind.DELIVER:
                self._delivered(record, port)

    def manage(self, host: str, cycle: int, event: ManagerEvent) -> None:
        """What the Subnet Manager at a host says of its work."""
        if not isinstance(event, QUIET_EVENTS):
            text = event_text(event, self._node_names)
            self._at(cycle, lambda cycle: self._report(Event(cycle, Port(host, 1), "manage", text)))

    def later(self, event: Event) -> None:
        """Report an event that others make, when its cycle comes."""
        self._at(event.cycle, lambda cycle: self._event(event))

    def finish(self) -> None:
        """Report what is still held back."""
        self._happen(None)

    def _is_management(self, node: int, record: Record) -> bool:
        """Whether a record is of a packet on VL15."""
        if record.kind == Kind.RX_DATA:
            return RxData.vl.read(record) == VL15
        slot = _SLOTS.get(record.kind)
        return slot is not None and slot(record) == self._vls[node]

    def _at(self, cycle: int, what: Callable[[int], None]) -> None:
        heapq.heappush(self._pending, (cycle, next(self._order), what))

    def _happen(self, until: int | None) -> None:
        while self._pending and (until is None or self._pending[0][0] < until):
            cycle, _, what = heapq.heappop(self._pending)
            what(cycle)

    def _event(self, event: Event) -> None:
        if event.cycle >= self._start:
            self._report(event)
        else:
            self._before(event)

    # Packets ---------------------------------------------------------------------------------------------

    def _take_posts(self, cycle: int) -> None:
        offered = self._offered
        while offered and offered[0].cycle <= cycle:
            burst = [offered.popleft()]
            while offered and (offered[0].cycle, offered[0].source) == (burst[0].cycle, burst[0].source):
                burst.append(offered.popleft())
            self._posted(burst)

    def _posted(self, packets: list[Packet]) -> None:
        place = Port(packets[0].source, 1)
        labels = [f"{packet.flow}/{packet.title or packet.sequence}" for packet in packets]
        for packet, label in zip(packets, labels, strict=True):
            self._p_keys[flow_of(label)] = packet.p_key
            self._queued[Port(place.node, _HOST), place, packet.slot].append(
                _Queued(label, packet.pkt_len, packet.slot)
            )

        def happen(cycle: int) -> None:
            for packet, label in zip(packets, labels, strict=True):
                sender = self._senders[place, packet.slot]
                sender.waits(label, packet.blocks, cycle)
            each = f"{packets[0].payload_bytes:,} bytes" if len({p.pkt_len for p in packets}) == 1 else "mixed sizes"
            listed = self._names.listed(labels[0], labels[-1], len(labels), len({packet.flow for packet in packets}))
            text = f"host has {listed} to send, {each}"
            event = Event(cycle, place, "post", text)
            vls = {packet.slot for packet in packets}
            if len(vls) == 1:
                (vl,) = vls
                sender = self._senders[place, vl]
                if sender.need == 0:
                    sender.need = sender.waiting[0].blocks
                event = _with_credits(replace(event, vl=vl), sender)
            self._event(event)
            for vl in sorted(vls):
                self._look_for_stall(cycle, place, vl)

        self._at(packets[0].cycle, happen)

    def _sent(self, record: Record, port: Port) -> None:
        vl, words = TxData.slot.read(record), TxData.pkt_len.read(record)
        source = self._input(port, TxData.input.read(record))
        is_copy = is_multicast_lid(TxData.dlid(record)) if self._is_switch(port) else None
        queued = self._leaves_queue(source, port, vl, words, is_copy)
        label = queued.label
        self._on_cable[port].append((record.cycle + self._topology.flight(port), label))

        def start(cycle: int) -> None:
            sender = self._senders[port, vl]
            sender.busy_until = record.cycle
            waited = ""
            if sender.stalled_from is not None:
                waited = f", after waiting {plural(cycle - sender.stalled_from, 'cycle')}"
                sender.stalled_from = None
            since = sender.leaves(label)
            bad = ", marked bad" if TxData.marked_bad.read(record) else ""
            text = f"sends {self._names.name(label)} to {self._topology.far_end(port)}{bad}{waited}"
            event = Event(cycle, port, "send", text, label, vl, until=record.cycle, since=since)
            event = replace(event, blocks=blocks_of_words(words))
            sender.need = blocks_of_words(words)
            sender.sent_blocks = (sender.sent_blocks + sender.need) % CREDIT_MODULUS
            self._event(_with_credits(event, sender))

        self._at(record.cycle - (record.cycle - TxData.first_cycle.read(record) & TxData.first_cycle.mask), start)
        self._at(record.cycle + 1, lambda cycle: self._look_for_stall(cycle, port, vl))
        self._released(record.cycle, port, source, queued)

    def _look_for_stall(self, cycle: int, port: Port, vl: int) -> None:
        sender = self._senders[port, vl]
        if cycle <= sender.busy_until or sender.stalled_from is not None:
            return
        if not sender.waiting or sender.credits >= sender.waiting[0].blocks:
            return
        sender.stalled_from = cycle
        need = plural(sender.waiting[0].blocks, "block")
        first, last = sender.waiting[0].label, sender.waiting[-1].label
        listed = self._names.listed(first, last, len(sender.waiting), len(sender.flows))
        text = f"stalls with {listed} waiting: the next needs {need}"
        self._event(_with_credits(Event(cycle, port, "stall", text, sender.waiting[0].label, vl), sender))

    def _released(self, cycle: int, out: Port, source: Port, queued: _Queued) -> None:
        """A packet left a node; at a switch that frees its buffer, if no copy is left."""
        if queued.copies is not None:
            queued.copies.left -= 1
            if queued.copies.left:
                return
        if self._is_switch(out):
            self._freed(cycle, source, "release", f"{self._names.name(queued.label)} has left by {out}", queued)

    def _freed(self, cycle: int, port: Port, name: EventName, text: str, queued: _Queued) -> None:
        """Blocks of a packet show as free in the cycle of its last row (section 8.1)."""

        def happen(cycle: int) -> None:
            self._fill(port, queued.vl, -blocks_of_words(queued.words))
            held = f"{text}: buffer holds {self._fill_text(port)}"
            self._event(self._with_fill(Event(cycle, port, name, held, queued.label, queued.vl)))

        self._at(cycle, happen)

    def _received(self, record: Record, port: Port) -> None:
        verdict, vl = Verdict(RxData.verdict.read(record)), RxData.vl.read(record)
        taken, words = RxData.blocks.read(record), RxData.pkt_len.read(record)
        label = self._arrived(record, port)
        outs = self._onward(record, port)
        # Accepted in the cycle after its row 1, which shows one later (section 3.3).
        accepted = record.cycle - (RxData.end_row.read(record) - 1) * self._topology.pace(port)
        if verdict != Verdict.GOOD:
            stays = bool(taken and outs) and not is_cancelled(self._topology, record, port, outs)
            self.totals.dropped += not stays
            p_key = None if label is None else self._p_keys[flow_of(label)]
            text = what_is_wrong(self._names.name(label), verdict, p_key, outs)
            self._at(record.cycle, lambda cycle: self._event(Event(cycle, port, "drop", text, label, vl)))
            if not stays:
                return
        sl, is_multicast = RxData.sl.read(record), is_multicast_lid(RxData.dlid.read(record))
        copies = _Copies(len(outs)) if is_multicast else None
        ways = [(out, self._topology.vl(out, sl)) for out in outs]
        for out, out_vl in ways or [(Port(port.node, _HOST), vl)]:
            self._queued[port, out, out_vl].append(_Queued(label, words, vl, copies))

        def happen(cycle: int) -> None:
            self._fill(port, vl, taken)
            if not outs:
                return
            text = f"receives {self._names.name(label)}: buffer holds {self._fill_text(port)}"
            self._event(self._with_fill(Event(cycle, port, "receive", text, label, vl)))
            if label is not None:
                for out, out_vl in ways:
                    self._senders[out, out_vl].waits(label, taken, cycle)
                    self._look_for_stall(cycle, out, out_vl)

        self._at(accepted, happen)

    def _onward(self, record: Record, port: Port) -> list[Port]:
        """The ports by which a switch sends the packet on; none at a host or where there is no path."""
        dlid, topology = RxData.dlid.read(record), self._topology
        if is_multicast_lid(dlid):
            outs = topology.multicast_tables.get(port.node, {}).get(dlid, ())
            return [Port(port.node, out) for out in outs if out != port.number]
        out = topology.tables.get(port.node, {}).get(dlid)
        return [] if out is None else [Port(port.node, out)]

    def _delivered(self, record: Record, port: Port) -> None:
        self.totals.delivered += 1
        place = Port(port.node, 1)
        words = Deliver.pkt_len.read(record)
        queued = self._leaves_queue(place, Port(place.node, _HOST), Deliver.slot.read(record), words)
        self._freed(record.cycle, place, "deliver", f"hands {self._names.name(queued.label)} to its host", queued)

    def _dropped_in_queue(self, record: Record, port: Port) -> None:
        self.totals.dropped += 1
        layout = Scrap if record.kind == Kind.SCRAP else TxDiscard
        vl, words = layout.slot.read(record), layout.pkt_len.read(record)
        source = self._input(port, layout.input.read(record))
        queued = self._leaves_queue(source, port, vl, words)
        label = queued.label
        text = f"drops {self._names.name(label)} unsent: {why_unsent(record)}"

        def happen(cycle: int) -> None:
            self._senders[port, vl].leaves(label)
            self._event(Event(cycle, port, "drop", text, label, vl))

        self._at(record.cycle, happen)
        self._released(record.cycle, port, source, queued)

    # Links -----------------------------------------------------------------------------------------------

    def _credited(self, record: Record, port: Port) -> None:
        result = LinkResult(RxFcp.result.read(record))
        vl, limit = RxFcp.vl.read(record), RxFcp.fccl.read(record)
        if result == LinkResult.IGNORED:
            return

        def happen(cycle: int) -> None:
            if result != LinkResult.GOOD:
                text = f"refuses a flow control packet: {result.name}"
                self._event(Event(cycle, port, "drop", text))
                return
            sender = self._senders[port, vl]
            gained = (limit - sender.credit_limit) % CREDIT_MODULUS
            sender.credit_limit = limit
            if gained:
                text = f"gets credit for {plural(gained, 'block')}"
                self._event(_with_credits(Event(cycle, port, "credit", text, vl=vl), sender))

        self._at(record.cycle, happen)

    def _changed_state(self, record: Record, port: Port) -> None:
        state = PortState(State.state.read(record))

        def happen(cycle: int) -> None:
            if state == PortState.INITIALIZE:
                for (place, _), sender in self._senders.items():
                    if place == port:
                        sender.credit_limit = sender.sent_blocks = 0
            name = state.name.title().replace("_", "")
            self._event(Event(cycle, port, "state", f"becomes {name}"))

        self._at(record.cycle, happen)

    def _injected(self, record: Record) -> None:
        self.totals.injected += 1
        index, back = link_of_source(record.source)
        link = self._topology.fabric.links[index]
        a, b = Port(link.a, link.a_port), Port(link.b, link.b_port)
        source, far = (b, a) if back else (a, b)
        text = f"an injected error changes row {Inject.row.read(record)} on the way to {far}"
        self._at(record.cycle, lambda cycle: self._event(Event(cycle, source, "error", text)))

    # Who is who ------------------------------------------------------------------------------------------

    def _input(self, out: Port, index: int) -> Port:
        """Where a packet sent by `out` came in: input i is port i + 1, and at an adapter it is the host."""
        return Port(out.node, index + 1 if self._is_switch(out) else _HOST)

    def _leaves_queue(self, source: Port, out: Port, vl: int, words: int, is_copy: bool | None = None) -> _Queued:
        """The packet of that length that has waited longest, among those from one input to one output and VL.

        Copies of multicast packets have a queue of their own; None if it is not known whether this is one.
        """
        queue = self._queued[source, out, vl]
        for place, queued in enumerate(queue):
            if queued.words == words and is_copy in (None, queued.copies is not None):
                del queue[place]
                return queued
        return _Queued(None, words, vl)

    def _is_switch(self, port: Port) -> bool:
        return isinstance(self._topology.fabric.nodes[port.node], SwitchParameters)

    def _arrived(self, record: Record, port: Port) -> str | None:
        """The packet whose last row is on the wires two cycles before its verdict is in the trace (section 3.2)."""
        far = self._topology.far_end(port)
        if far is None:
            return None
        cable = self._on_cable[far]
        last_row = record.cycle - 2
        while cable and cable[0][0] < last_row:
            cable.popleft()
        return cable.popleft()[1] if cable and cable[0][0] == last_row else None

    def _fill(self, port: Port, vl: int, blocks: int) -> None:
        """So many blocks more are in use."""
        self._filled[port] = max(0, self._filled[port] + blocks)
        self._filled_vl[port, vl] = max(0, self._filled_vl[port, vl] + blocks)

    def _with_fill(self, event: Event) -> Event:
        blocks = self._filled_vl[event.place, event.vl] if event.vl is not None else None
        return replace(event, buffer_blocks=self._filled[event.place], buffer_vl_blocks=blocks)

    def _fill_text(self, port: Port) -> str:
        capacity = self._topology.receive_blocks(port) * self._topology.fabric.nodes[port.node].vls
        return f"{self._filled[port]} of {capacity:,} blocks"


def _with_credits(event: Event, sender: _Sender) -> Event:
    return replace(event, credit_blocks=sender.credits, credit_packets=sender.credits // max(1, sender.need))
