"""Packets that a host or an agent offers, and their path into a send buffer (docs/pipeline.md, section 9)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from wire.headers import LRH
from wire.packet import blocks_of_words
from wire.stimulus import Post
from wire.trace import Kind

from ..content import Content
from ..kernel import DECIDE
from ..packet import Packet
from .buffer import Buffer
from .matcher import Matcher
from .queues import VoqInput

__all__ = ["SendArbiter"]

_JOIN_LATENCY: Final = 2
_PKT_LEN_MAX: Final[int] = LRH["pkt_len"].max
_NO_VL: Final = 0x0FFF_FFFF
_VL_SHIFT: Final = 4
_WORD_BYTES: Final = 4
_SEND: Final = Kind.SEND


class _Stream:
    """The packets posted on one slot, in order; the first is the current one.

    Attributes:
        current: the current packet, None if there is none.
        n, need: its words and blocks.
        source: where the packets come from.
    """

    def __init__(self) -> None:
        self.current: Post | None = None
        self.n = 0
        self.need = 0
        self.source: Iterator[Post] = iter(())

    def advance(self) -> Post | None:
        """The next packet becomes current.

        Raises:
            ValueError: it is longer or shorter than a packet can be.
        """
        self.current = post = next(self.source, None)
        if post:
            self.n = n = _words(post.data)
            self.need = blocks_of_words(n)
        return post


def _words(data: bytes) -> int:
    """Words of a packet.

    Raises:
        ValueError: more or less than a packet can have.
    """
    size = len(data)
    n = size // _WORD_BYTES
    if n * _WORD_BYTES != size or not 1 <= n <= _PKT_LEN_MAX:
        raise ValueError(f"post of {size} bytes: expected 1..{_PKT_LEN_MAX} words of {_WORD_BYTES} bytes")
    return n


class SendArbiter:
    """Takes packets from one stream for each slot, one word a cycle, into the buffer of an input of the crossing.

    Attributes:
        input: with one reader.
        taken: the packet taken last.
        taken_at: the cycle a of its turn.
    """

    def __init__(
        self,
        matcher: Matcher,
        index: int,
        blocks: Sequence[int],
        source: int,
        route: Callable[[Packet], None],
    ) -> None:
        """`index` of the input; `blocks` of the buffer, by slot; `source` of the records.

        `route` says where a packet goes (output, oversize), in the cycle of its turn; what it says may be changed
        until the packet joins its queue, in the cycle of its last row.
        """
        self._matcher = matcher
        self._kernel = matcher.kernel
        self._slots = slots = len(blocks)
        self._source = source
        self._route = route
        self._buffer = Buffer(blocks)
        self._buffer.watch(self._arbitrate_at)
        self.input = VoqInput(matcher.kernel, index, matcher.size, self._buffer, 1, slots)
        self.taken: Packet | None = None
        self.taken_at = -1
        self._streams = [_Stream() for _ in range(slots)]
        self._ptr = 0
        self._idle_from = matcher.epoch
        self._arbitrated_at = -1
        if matcher.epoch:
            matcher.kernel.at(matcher.epoch, DECIDE, self._arbitrate)

    def left(self, slot: int) -> Iterator[Post]:
        """What a slot's stream has left after the current cycle, but for a packet of which a word has been taken."""
        stream, now = self._streams[slot], self._kernel.now
        packet = self.taken
        begun = packet is not None and packet.slot == slot and self.taken_at < now < self._idle_from
        if stream.current and not begun:
            yield stream.current
        yield from stream.source

    def offer(self, slot: int, posts: Iterator[Post]) -> None:
        """Set where a slot's packets come from. It is asked for one packet at a time."""
        stream = self._streams[slot]
        stream.source = posts
        if stream.current is None:
            post = stream.advance()
            if post:
                self._arbitrate_at(max(post.cycle, self._kernel.now))

    def offer_once(self, slot: int, data: bytes) -> bool:
        """Offer a packet in the current cycle alone, in which no other is offered or being taken: True if it is taken.

        Raises:
            ValueError: it is longer or shorter than a packet can be.
        """
        n = _words(data)
        need = blocks_of_words(n)
        if need > self._buffer.free[slot]:  # settled: the arbiter, which is idle, has been woken by what returned
            return False
        self._take(data, slot, n, need)
        return True

    def _arbitrate_at(self, cycle: int) -> None:
        """Something changes for the arbiter in a cycle; while it is busy, that can wait."""
        if cycle >= self._idle_from and cycle != self._arbitrated_at:
            self._arbitrated_at = cycle
            self._kernel.at(cycle, DECIDE, self._arbitrate)

    def _arbitrate(self, _: None) -> None:
        """The arbiter, in the current cycle a."""
        now = self._kernel.now
        self._arbitrated_at = -1  # what the agent offers later in this phase is looked at again
        if now < self._idle_from:
            return
        buffer = self._buffer
        if buffer.next_return <= now:
            buffer.settle(now)
        slots = self._slots
        for turn in range(slots):
            slot = (self._ptr + turn) % slots
            stream = self._streams[slot]
            post = stream.current
            if post and post.cycle <= now and stream.need <= buffer.free[slot]:
                self._take(post.data, slot, stream.n, stream.need)
                return

    def _take(self, data: bytes, slot: int, n: int, need: int) -> None:
        """Take a packet from the current cycle a on."""
        kernel = self._kernel
        now = kernel.now
        packet = Packet(data[0] >> _VL_SHIFT, int.from_bytes(data[:4], "big") & _NO_VL, n, need)
        packet.content = Content(data)
        packet.irregular = n == 1 or (data[4] << 8 | data[5]) & _PKT_LEN_MAX != n
        packet.input = self.input.index
        packet.slot_in = packet.slot = slot
        self.taken, self.taken_at = packet, now
        self._route(packet)
        self._buffer.free[slot] -= need
        self._ptr = (slot + 1) % self._slots
        kernel.record((now + 1, self._source, _SEND, slot, n, 0, 0, 0))
        self._idle_from = idle_from = now + 1 + n
        kernel.at(idle_from, DECIDE, self._was_taken, packet)

    def _was_taken(self, packet: Packet) -> None:
        """The last word was taken in the cycle before: the current one is that of the last row."""
        self._matcher.join(packet, self._kernel.now + _JOIN_LATENCY)
        following = self._streams[packet.slot].advance()
        if following and following.cycle > self._kernel.now:
            self._arbitrate_at(following.cycle)
        self._arbitrate(None)
