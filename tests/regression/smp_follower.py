"""Which SMPs the agents of a fabric took, from the trace alone, and what naive agents make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from tests.regression.naive_agent import Answer, NaiveAgent, answer_of
from wire.crc import fingerprint, vcrc
from wire.parameters import FabricParameters
from wire.stimulus import Post
from wire.symbols import Control as Symbol
from wire.trace import AGENT_PORT, Kind, Record, Verdict, port_of_source
from wire.trace_layout import Deliver, RxData, TxData

__all__ = ["SmpFollower"]

_STEP_0 = 4
"""Cycles from a packet's DELIVER to step 0 (docs/management.md, section 2)."""


class SmpFollower:
    """Follows posted SMPs from agent to agent by the fingerprints in the trace.

    On a link a packet is known by its TX_DATA, so that who received it, and by which port, is known too; at an agent
    by its DELIVER. Answers and traps are not followed: no agent works on them.

    Attributes:
        agents: by node index.
        taken: packets known that an agent took.
        sent: packets taken from hosts.
        last_send: the cycle of the last of them.
    """

    def __init__(
        self,
        fabric: FabricParameters,
        posts: Iterable[Post],
        lease_second: int,
        accesses: Collection[tuple[int, int]] = (),
    ) -> None:
        """``accesses`` are (node, cycle) of the test bus: an agent stands still in such a cycle."""
        nodes = list(fabric.nodes)
        self.agents = [NaiveAgent(node, fabric.identity(name), lease_second) for name, node in fabric.nodes.items()]
        self.taken = self.sent = self.last_send = 0
        self._slots = [node.vls for node in fabric.nodes.values()]
        self._accesses = accesses
        self._peer: dict[tuple[int, int], tuple[int, int]] = {}
        for link in fabric.links:
            ends = (nodes.index(link.a), link.a_port), (nodes.index(link.b), link.b_port)
            self._peer |= {ends[0]: ends[1], ends[1]: ends[0]}
        self._posted: dict[tuple[int, int], bytes] = {}
        self._on_links: dict[int, bytes] = {}
        self._arrived: dict[tuple[int, int], tuple[int, bytes]] = {}
        self._latest: dict[tuple[int, int], tuple[int, int]] = {}
        self._answers: Counter[tuple[int, int, int]] = Counter()
        self._keys: dict[tuple[int, int, int], set[int | None]] = {}
        self._posted_answers: set[tuple[int, int, int]] = set()
        self.expects(posts)

    def expects(self, posts: Iterable[Post]) -> None:
        """Packets that hosts will send."""
        for post in posts:
            self._posted[post.node, fingerprint(post.data)] = post.data
            self._knows(post.data)
            answer = answer_of(post.data)
            if answer is not None:
                self._posted_answers.add((answer.transaction_id, answer.attribute, answer.modifier))

    def _knows(self, packet: bytes) -> None:
        symbols = bytes([Symbol.SDP]) + packet + vcrc(packet) + bytes([Symbol.EGP])
        self._on_links[fingerprint(symbols)] = packet

    def sees(self, record: Record) -> None:
        """The next record of the trace."""
        if record.kind not in (Kind.TX_DATA, Kind.RX_DATA, Kind.DELIVER, Kind.SEND):
            return
        node, port = port_of_source(record.source)
        if record.kind == Kind.TX_DATA:
            packet = self._on_links.get(TxData.fingerprint.read(record))
            peer = self._peer[node, port]
            if packet is not None:
                place = peer[0], fingerprint(packet)
                self._arrived[place] = peer[1], packet
                self._latest[peer] = place
        elif record.kind == Kind.RX_DATA:
            place = self._latest.pop((node, port), (-1, 0))
            if RxData.verdict.read(record) != Verdict.GOOD:
                self._arrived.pop(place, None)
        elif record.kind == Kind.SEND and port != AGENT_PORT:
            self.sent += 1
            self.last_send = record.cycle
        elif record.kind == Kind.DELIVER and port == AGENT_PORT and Deliver.slot.read(record) == self._slots[node]:
            self._takes(node, record)

    def _takes(self, node: int, record: Record) -> None:
        place = node, Deliver.fingerprint.read(record)
        arrived = self._arrived.pop(place, None)
        if arrived is None:
            if place not in self._posted:
                return
            arrived = 0, self._posted[place]
        self.taken += 1
        cycle = record.cycle + _STEP_0
        while (node, cycle) in self._accesses:
            cycle += 1
        done = self.agents[node].takes(arrived[1], arrived[0], cycle)
        if done.passed_on is not None:
            self._knows(done.passed_on)
        if done.answer is not None:
            self._is_due(done.answer)

    def _is_due(self, answer: Answer) -> None:
        place = answer.transaction_id, answer.attribute, answer.modifier
        self._answers[place] += 1
        self._keys.setdefault(place, set()).add(answer.m_key)

    def hears(self, packet: bytes) -> None:
        """A host was given this packet in the records seen. An answer must be due, and show no more than it may."""
        answer = answer_of(packet)
        if answer is None:
            return
        place = answer.transaction_id, answer.attribute, answer.modifier
        if place in self._posted_answers:
            return
        self._answers[place] -= 1
        assert self._answers[place] >= 0, f"an agent answered what it should not have: {answer}"
        assert self._keys[place] & {None, answer.m_key}, f"the M_Key shown is not {self._keys[place]}: {answer}"
