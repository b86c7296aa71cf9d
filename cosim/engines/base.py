"""What every engine takes and gives: a stimulus in, a stream of trace records out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from cosim.mail import Delivery
from cosim.ports import slots_of
from wire.codes import MTU, max_pkt_len
from wire.packet import WORD_BYTES, blocks_of_words
from wire.parameters import AdapterParameters, FabricParameters
from wire.stimulus import Control, Operation, Post
from wire.trace import Record

__all__ = ["Engine", "EngineError", "Run", "RunSpec", "Stimulus", "UnknownEngine", "WavesUnsupported"]

OnDelivery = Callable[[Delivery], None]
Progress = Callable[[int], None]

_Entry = TypeVar("_Entry", Control, Post)
_SMALLEST_PACKET = 5
"""Words of a host's packet. The blocks of a shorter one would not count yet when the next is matched."""
_LARGEST_PACKET = max_pkt_len(max(MTU))
_WORD_MAX = 0xFFFF_FFFF


class EngineError(Exception):
    """An engine cannot do what is asked; the text is one line for the user."""


class UnknownEngine(EngineError):
    """There is no engine of this name."""


class WavesUnsupported(EngineError):
    """The engine records no waves, or not into such a file."""


@dataclass(frozen=True)
class RunSpec:
    """A fabric and all that acts on it. The iterables are drawn once, lazily, as simulated time goes on.

    Attributes:
        parameters: the fabric.
        controls: ascending by cycle, one a cycle at most.
        posts: ascending by cycle.
        cycles: every record of a cycle below this is produced, then the run ends.
    """

    parameters: FabricParameters
    controls: Iterable[Control]
    posts: Iterable[Post]
    cycles: int

    def __post_init__(self) -> None:
        """Refuse an empty run."""
        if self.cycles < 1:
            raise ValueError(f"cycles {self.cycles}: expected 1 and above")


class Engine(Protocol):
    """Runs a specification; the generator's end, or its closing, ends all that it started.

    PROGRESS is called now and then with the cycles simulated so far.
    """

    def __call__(
        self,
        spec: RunSpec,
        work_dir: Path,
        waves: Path | None,
        on_delivery: OnDelivery | None,
        progress: Progress,
    ) -> Generator[Record, None, None]:
        """The records, in the order of docs/pipeline.md, section 11."""
        ...


class Run:
    """A run of an engine: iterate over its records inside a `with` block, whose end ends the run.

    Attributes:
        cycles_done: cycles simulated so far.
    """

    def __init__(
        self, engine: Engine, spec: RunSpec, work_dir: Path, waves: Path | None, on_delivery: OnDelivery | None
    ) -> None:
        self.cycles_done = 0
        self._records = engine(spec, work_dir, waves, on_delivery, self._advance)

    def _advance(self, cycles: int) -> None:
        self.cycles_done = cycles

    def __iter__(self) -> Iterator[Record]:
        return self._records

    def close(self) -> None:
        """End the run; outputs of one that was not exhausted are removed."""
        self._records.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Stimulus:
    """The entries of a specification, checked, drawn up to a cycle at a time.

    Raises (while drawing):
        ValueError: an entry out of order, or for a node, slot, link or operation that is not there.
    """

    def __init__(self, spec: RunSpec) -> None:
        self._controls = _Ahead(_checked_controls(spec))
        self._posts = _Ahead(_checked_posts(spec))

    def controls_until(self, cycle: int) -> Iterator[Control]:
        """Those not drawn yet, given in CYCLE or before."""
        return self._controls.until(cycle)

    def posts_until(self, cycle: int) -> Iterator[Post]:
        """Those not drawn yet, posted for CYCLE or before."""
        return self._posts.until(cycle)


class _Ahead(Generic[_Entry]):
    """An iterator of entries that is asked for those up to a cycle, and holds the first one after it."""

    def __init__(self, entries: Iterator[_Entry]) -> None:
        self._entries: Iterator[_Entry] = entries
        self._held: _Entry | None = next(entries, None)

    def until(self, cycle: int) -> Iterator[_Entry]:
        while self._held is not None and self._held.cycle <= cycle:
            held, self._held = self._held, next(self._entries, None)
            yield held


def _checked_controls(spec: RunSpec) -> Iterator[Control]:
    nodes, links = len(spec.parameters.nodes), len(spec.parameters.links)
    adapters = {i for i, node in enumerate(spec.parameters.nodes.values()) if isinstance(node, AdapterParameters)}
    link_operations = (Operation.LINK_DOWN, Operation.LINK_UP)
    host_operations = (Operation.RECV_STALL, Operation.HOST_SM)
    last = -1
    for control in spec.controls:
        cycle, operation, target, args = control
        if cycle <= last:
            raise ValueError(f"{control}: expected a cycle above that of the one before, {last}")
        last = cycle
        if operation not in set(Operation):
            raise ValueError(f"{control}: expected an operation of {', '.join(str(int(o)) for o in Operation)}")
        targets = 2 * links if operation == Operation.INJECT else links if operation in link_operations else nodes
        if not 0 <= target < targets:
            raise ValueError(f"{control}: expected a target below {targets}")
        if operation in host_operations and target not in adapters:
            raise ValueError(f"{control}: expected a target that is an adapter")
        if not all(0 <= arg <= _WORD_MAX for arg in args):
            raise ValueError(f"{control}: expected arguments of 32 bits")
        yield control


def _checked_posts(spec: RunSpec) -> Iterator[Post]:
    adapters = {
        index: (node, name)
        for index, (name, node) in enumerate(spec.parameters.nodes.items())
        if isinstance(node, AdapterParameters)
    }
    last = 0
    for post in spec.posts:
        place = f"post of cycle {post.cycle} at node {post.node}, slot {post.slot}"
        if post.cycle < last:
            raise ValueError(f"{place}: expected a cycle of at least that of the one before, {last}")
        last = post.cycle
        if post.node not in adapters:
            raise ValueError(f"{place}: expected an adapter, nodes {', '.join(map(str, adapters))}")
        adapter, name = adapters[post.node]
        if not 0 <= post.slot < slots_of(adapter):
            raise ValueError(f"{place}: {name} has slots 0..{adapter.vls}")
        room = adapter.send_blocks if post.slot < adapter.vls else adapter.vl15_blocks
        words, rest = divmod(len(post.data), WORD_BYTES)
        if rest:
            raise ValueError(f"{place}: {len(post.data)} bytes: expected whole words of {WORD_BYTES} bytes")
        if not _SMALLEST_PACKET <= words <= _LARGEST_PACKET or blocks_of_words(words) > room:
            allowed = f"{_SMALLEST_PACKET}..{_LARGEST_PACKET}"
            raise ValueError(f"{place}: {words} words: expected {allowed} that fit {name}'s {room} blocks")
        yield post
