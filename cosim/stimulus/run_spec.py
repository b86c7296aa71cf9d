"""What acts on a fabric in one run: control operations, packets, and who answers what is delivered."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from wire.codes import MTU, max_pkt_len
from wire.packet import WORD_BYTES, blocks_of_words
from wire.parameters import AdapterParameters, FabricParameters
from wire.stimulus import Control, Delivery, Operation, Play, Post, Taking
from wire.trace import AGENT_PORT, Record, port_of_source
from wire.trace_layout import Send

__all__ = ["Actor", "RunSpec", "Stimulus"]

_Entry = TypeVar("_Entry", Control, Post)

_SMALLEST_PACKET = 5
"""Words of a host's packet. The blocks of a shorter one would not count yet when the next is matched."""

_LARGEST_PACKET = max_pkt_len(max(MTU))
_WORD_MAX = 0xFFFF_FFFF
_OPERATIONS = frozenset(Operation)


class Actor(Protocol):
    """Acts on a fabric in answer to what comes out of it, as software on a host does.

    Time goes in steps: the actor says how far the fabric may run, takes all that is delivered until then, and says
    how far it may run on. So the same deliveries give the same posts on every engine: the actor of a run is asked only
    at the ends of its own steps (`Stimulus.until`). One of several in an `ActorGroup` is asked at those of the others,
    too.
    """

    def until(self, finished: int) -> int:
        """The cycle to which the fabric may run, all cycles below FINISHED being over; FINISHED itself ends the run."""
        ...

    def posts_until(self, cycle: int) -> Iterable[Post]:
        """Packets for CYCLE or before that were not given yet, ascending; no cycle beyond `until` is asked for."""
        ...

    def delivered(self, delivery: Delivery) -> None:
        """Takes a delivered packet, in order of (cycle, node)."""
        ...

    def taken(self, taking: Taking) -> None:
        """Hears that an adapter takes one of its host's packets, in order of (cycle, node).

        What is delivered in a step and what is taken in it need not be told in their common order.
        """
        ...


@dataclass(frozen=True)
class RunSpec:
    """A fabric and all that acts on it. The iterables are drawn once, lazily, as simulated time goes on.

    Attributes:
        parameters: the fabric.
        controls: ascending by cycle, one a cycle at most.
        posts: ascending by cycle.
        cycles: every record of a cycle below this is produced, then the run ends.
        actor: posts packets too, and may end the run before. It is for one run.
        plays: packets put on links in place of those of the ports there, ascending by cycle: by the golden model only.
        played: the (link, direction) of each of them, and from which cycle on it is played.
    """

    parameters: FabricParameters
    controls: Iterable[Control]
    posts: Iterable[Post]
    cycles: int
    actor: Actor | None = None
    plays: Iterable[Play] = ()
    played: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse an empty run."""
        if self.cycles < 1:
            raise ValueError(f"cycles {self.cycles}: expected 1 and above")


class Stimulus:
    """The entries of a specification, checked, drawn up to a cycle at a time.

    Attributes:
        answers: whether posts depend on what is delivered, which `delivered` then gets.

    Raises (while drawing):
        ValueError: an entry out of order, or for a node, slot, link or operation that is not there.
    """

    def __init__(self, spec: RunSpec) -> None:
        self._controls = _Ahead(_checked_controls(spec))
        self.answers = spec.actor is not None
        self._check = _post_check(spec.parameters)
        self._only_answers = spec.posts == ()
        self._posts = _Ahead(map(self._check, _in_order(spec.posts)))
        self._actor = spec.actor
        self._reach = 0
        self._cycles = spec.cycles

    def controls_until(self, cycle: int) -> Iterator[Control]:
        """Those not drawn yet, given in CYCLE or before."""
        return self._controls.until(cycle)

    def posts_until(self, cycle: int) -> Iterator[Post]:
        """Those not drawn yet, posted for CYCLE or before."""
        if self._actor is None:
            return self._posts.until(cycle)
        answers = map(self._check, self._actor.posts_until(cycle))
        if self._only_answers:
            return answers
        return heapq.merge(self._posts.until(cycle), answers, key=lambda post: post.cycle)

    def until(self, finished: int) -> int:
        """The cycle to which the fabric may run, all cycles below FINISHED being over; FINISHED itself ends the run."""
        if self._actor is None:
            return self._cycles
        if finished >= self._reach:
            # Engines ask in between, too, each elsewhere: what is done there would depend on the engine.
            self._reach = min(self._actor.until(finished), self._cycles)
        return self._reach

    def delivered(self, delivery: Delivery) -> None:
        """Gives the actor a delivered packet, in order of (cycle, node)."""
        if self._actor is not None:
            self._actor.delivered(delivery)

    def sent(self, record: Record) -> None:
        """Tells the actor of a SEND record, unless an agent's packet was taken."""
        node, port = port_of_source(record.source)
        if self._actor is not None and port != AGENT_PORT:
            self._actor.taken(Taking(record.cycle, node, Send.slot.read(record)))


class _Ahead(Generic[_Entry]):
    """An iterator of entries that is asked for those up to a cycle, and holds the first one after it."""

    def __init__(self, entries: Iterator[_Entry]) -> None:
        self._entries: Iterator[_Entry] = entries
        self._held: _Entry | None = None

    def until(self, cycle: int) -> Iterator[_Entry]:
        # An entry is drawn when it is asked for: what acts in answer to a run may not know it before.
        while True:
            if self._held is None:
                self._held = next(self._entries, None)
            if self._held is None or self._held.cycle > cycle:
                return
            held, self._held = self._held, None
            yield held


def _checked_controls(spec: RunSpec) -> Iterator[Control]:
    nodes, links = len(spec.parameters.nodes), len(spec.parameters.links)
    adapters = {i for i, node in enumerate(spec.parameters.nodes.values()) if isinstance(node, AdapterParameters)}
    link_operations = (Operation.LINK_DOWN, Operation.LINK_UP)
    host_operations = (Operation.RECV_STALL, Operation.HOST_SM, Operation.KEY_VIOLATION)
    last = -1
    for control in spec.controls:
        cycle, operation, target, args = control
        if cycle <= last:
            raise ValueError(f"{control}: expected a cycle above that of the one before, {last}")
        last = cycle
        if operation not in _OPERATIONS:
            raise ValueError(f"{control}: expected an operation of {', '.join(str(int(o)) for o in Operation)}")
        targets = 2 * links if operation == Operation.INJECT else links if operation in link_operations else nodes
        if not 0 <= target < targets:
            raise ValueError(f"{control}: expected a target below {targets}")
        if operation in host_operations and target not in adapters:
            raise ValueError(f"{control}: expected a target that is an adapter")
        if not all(0 <= arg <= _WORD_MAX for arg in args):
            raise ValueError(f"{control}: expected arguments of 32 bits")
        yield control


def _in_order(posts: Iterable[Post]) -> Iterator[Post]:
    last = 0
    for post in posts:
        if post.cycle < last:
            raise ValueError(f"{_place(post)}: expected a cycle of at least that of the one before, {last}")
        last = post.cycle
        yield post


def _post_check(parameters: FabricParameters) -> Callable[[Post], Post]:
    """Passes packets on, and refuses those that no adapter can send."""
    nodes = enumerate(parameters.nodes.items())
    adapters = {
        index: (name, (node.send_blocks,) * node.vls + (node.vl15_blocks,))
        for index, (name, node) in nodes
        if isinstance(node, AdapterParameters)
    }

    def check(post: Post) -> Post:
        if post.node not in adapters:
            raise ValueError(f"{_place(post)}: expected an adapter, nodes {', '.join(map(str, adapters))}")
        name, blocks = adapters[post.node]
        if not 0 <= post.slot < len(blocks):
            raise ValueError(f"{_place(post)}: {name} has slots 0..{len(blocks) - 1}")
        room = blocks[post.slot]
        words, rest = divmod(len(post.data), WORD_BYTES)
        if rest:
            raise ValueError(f"{_place(post)}: {len(post.data)} bytes: expected whole words of {WORD_BYTES} bytes")
        if not _SMALLEST_PACKET <= words <= _LARGEST_PACKET or blocks_of_words(words) > room:
            allowed = f"{_SMALLEST_PACKET}..{_LARGEST_PACKET}"
            raise ValueError(f"{_place(post)}: {words} words: expected {allowed} that fit {name}'s {room} blocks")
        return post

    return check


def _place(post: Post) -> str:
    return f"post of cycle {post.cycle} at node {post.node}, slot {post.slot}"
