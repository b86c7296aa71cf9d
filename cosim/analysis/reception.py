"""What ports make of packets that are known before: taken, refused and why, sent on and where to."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from cosim.analysis.observer import Observer
from cosim.topology.topology import Port, Topology
from wire.codes import VL15, is_multicast_lid
from wire.framing import FramedPacket
from wire.headers import LRH
from wire.parameters import node_text, port_text
from wire.trace import AGENT_PORT, Kind, LinkResult, Record, Verdict, port_of_source
from wire.trace_layout import Deliver, RxData, RxFcp, Scrap, TxData, TxDiscard

__all__ = ["Receptions", "Told"]

_LATENCY: Final = 3
"""From a packet's row 0 at the port, the least to what becomes of it being in the trace (docs/pipeline.md, 3.2)."""

_NOT_RECEIVED: Final = "not received"


@dataclass(slots=True)
class Told:
    """A packet on a link, and what becomes of it.

    Attributes:
        direction: of the link, by its ends.
        packet: as it is on the wires.
        fate: what the port at its end makes of it, or who sends it says of it.
        way: what becomes of it then.
    """

    direction: str
    packet: FramedPacket
    fate: str = _NOT_RECEIVED
    way: str = ""

    @property
    def text(self) -> str:
        """All that became of it."""
        return "; ".join(filter(None, (self.fate, self.way)))


class Receptions(Observer):
    """Recognises packets in the trace: those put on links by when they arrive, those that hosts send by their headers.

    Attributes:
        verdicts: of each port, by kind of packet ("data", "flow control") and name.
    """

    def __init__(self, topology: Topology, ports: Iterable[tuple[Port, bool]], done: Callable[[Told], None]) -> None:
        """Of these ports; the packets of some come when they are given, of others when their host sends them (True).

        `done` is called with each packet whose port it is known to have reached, or not to have, in the order in which
        they came; where it goes on to is known later.
        """
        self.verdicts: Counter[tuple[Port, str, str]] = Counter()
        self._done = done
        self._ports = {topology.source(port): (port, topology.flight(port), sent) for port, sent in ports}
        self._waiting: dict[Port, deque[Told]] = {port: deque() for port, _flight, _sent in self._ports.values()}
        self._directions = {port: f"{topology.far_end(port)} -> {port}" for port in self._waiting}
        self._names = list(topology.fabric.nodes)
        self._inside: dict[tuple[int, int], deque[Told]] = {}

    def expect(self, port: Port, packet: FramedPacket) -> None:
        """This packet comes next at a port, or is given to the host there."""
        self._waiting[port].append(Told(self._directions[port], packet))

    def observe(self, record: Record) -> None:
        """Follow one record."""
        match record.kind:
            case Kind.RX_DATA if record.source in self._ports:
                self._received(record, False, Verdict(RxData.verdict.read(record)).name)
            case Kind.RX_FCP if record.source in self._ports:
                self._received(record, True, LinkResult(RxFcp.result.read(record)).name)
            case Kind.TX_DATA:
                way = "sent on by {}"
                if TxData.marked_bad.read(record):
                    way += ", marked bad"
                index, pkt_len = TxData.input.read(record), TxData.pkt_len.read(record)
                self._goes_on(record, index, pkt_len, way, TxData.dlid(record))
            case Kind.TX_DISCARD | Kind.SCRAP:
                layout = TxDiscard if record.kind == Kind.TX_DISCARD else Scrap
                self._goes_on(record, layout.input.read(record), layout.pkt_len.read(record), "discarded at {}")
            case Kind.DELIVER:
                agent = port_of_source(record.source)[1] == AGENT_PORT
                way = "to the agent of {}" if agent else "to the host {}"
                self._goes_on(record, None, Deliver.pkt_len.read(record), way)

    def finish(self) -> None:
        """What is left has not been received."""
        for port, waiting in self._waiting.items():
            for one in waiting:
                self._tell(port, one, _NOT_RECEIVED)

    def _received(self, record: Record, is_link: bool, verdict: str) -> None:
        port, flight, sent = self._ports[record.source]
        one = self._sent(record, port) if sent else self._arrived(record.cycle - flight - _LATENCY, port, is_link)
        if one is None:
            return
        if verdict == Verdict.GOOD.name:
            one.fate = "taken" if is_link else "accepted"
        else:
            one.fate = f"refused, {verdict}"
        self._tell(port, one, verdict)
        if not is_link and RxData.blocks.read(record):
            inside = self._inside.setdefault(port_of_source(record.source), deque())
            inside.append(one)

    def _arrived(self, began_by: int, port: Port, is_link: bool) -> Told | None:
        """The last of its kind that came in time; those before it, and others that came so early, were not received."""
        waiting, found = self._waiting[port], None
        came: list[Told] = []
        while waiting and waiting[0].packet.cycle <= began_by:
            came.append(waiting.popleft())
            if came[-1].packet.is_link == is_link:
                found = came[-1]
        for one in came:
            if one is not found:
                self._tell(port, one, _NOT_RECEIVED)
        return found

    def _sent(self, record: Record, port: Port) -> Told | None:
        """The first that a host has to send with such a header."""
        waiting = self._waiting[port]
        wanted = RxData.pkt_len.read(record), RxData.dlid.read(record), RxData.sl.read(record)
        is_management = RxData.vl.read(record) == VL15
        for place, one in enumerate(waiting) if record.kind == Kind.RX_DATA else ():
            body = one.packet.body
            header = LRH["pkt_len"].read(body), LRH["dlid"].read(body), LRH["sl"].read(body)
            if header == wanted and (LRH["vl"].read(body) == VL15) == is_management:
                del waiting[place]
                return one
        return None

    def _tell(self, port: Port, one: Told, verdict: str) -> None:
        self.verdicts[port, "flow control" if one.packet.is_link else "data", verdict] += 1
        self._done(one)

    def _goes_on(self, record: Record, index: int | None, pkt_len: int, way: str, dlid: int | None = None) -> None:
        """A packet leaves a node: of the input with this index, by its length and its DLID, as far as they are said.

        A multicast packet goes by a port once.
        """
        node, port = port_of_source(record.source)
        places = [(node, index + 1)] if index is not None else [key for key in self._inside if key[0] == node]
        name = self._names[node]
        told = way.format(node_text(name) if index is None else port_text(name, port))
        for inside in (self._inside[key] for key in places if key in self._inside):
            for place, one in enumerate(inside):
                body = one.packet.body
                own = LRH["dlid"].read(body)
                if LRH["pkt_len"].read(body) != pkt_len or dlid not in (None, own):
                    continue
                if is_multicast_lid(own):  # it stays: nobody says how many copies there are
                    if told in one.way:
                        continue
                    one.way = "; ".join(filter(None, (one.way, told)))
                else:
                    one.way = told
                    del inside[place]
                return
