"""Completion queues as all of them are, and the channels where they tell of completions."""

from __future__ import annotations

import errno
from collections import deque
from typing import NamedTuple

from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.device import Context
from ironband.verbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from verbs.adapter import Adapter
from verbs.completions import CompletionQueue, WorkCompletion

__all__ = ["CompChannel", "CompletionSource", "Taken"]


class Taken(NamedTuple):
    """A completion, and the cycle in which it was added to its queue."""

    completion: WorkCompletion
    cycle: int


class _Entries:
    """The entries of a completion queue (`verbs.completions.CompletionEntries`), each with its cycle."""

    def __init__(self, adapter: Adapter) -> None:
        self.last_cycle = 0
        self._adapter = adapter
        self._entries: deque[Taken] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, completion: WorkCompletion, /) -> None:
        """Adds an entry."""
        self._entries.append(Taken(completion, self._adapter.now))

    def popleft(self) -> WorkCompletion:
        """Takes the oldest."""
        completion, self.last_cycle = self._entries.popleft()
        return completion

    def drop(self, qp_number: int) -> None:
        """Takes those of a queue pair."""
        self._entries = deque(entry for entry in self._entries if entry.completion.qp_number != qp_number)


class CompletionSource(PyverbsCM):
    """A completion queue, however it is polled.

    Attributes:
        context: whose it is.
        channel: where it tells of completions.
        queue: the adapter's.
    """

    def __init__(self, context: Context, cqe: int, channel: CompChannel | None, comp_vector: int) -> None:
        super().__init__(context, *([] if channel is None else [channel]))
        if channel is not None and channel.context is not context:
            where = f"channel of {channel.context.name}"
            raise PyverbsUserError(f"{where}: expected one of {context.name}, and of the same context")
        self.context = context
        self.channel = channel
        with refusals("Failed to create a CQ"):
            if not 0 <= comp_vector < context.num_comp_vectors:
                raise ValueError(f"comp_vector {comp_vector}: allowed 0..{context.num_comp_vectors - 1}")
            self._entries = _Entries(context.adapter)
            self.queue: CompletionQueue = context.adapter.create_cq(int(cqe), self._entries)
        if channel is not None:
            self.queue.on_completion = lambda: channel.tell(self)
        context.listen_to(self.queue)
        self.made()

    def _end(self) -> None:
        self.context.adapter.destroy_cq(self.queue)
        self.context.forget(self.queue)
        if self.channel is not None:
            self.channel.take_back(self)

    def forget(self, qp_number: int) -> None:
        """Takes away the completions of a queue pair that goes to RESET or ends."""
        self._entries.drop(qp_number)

    def take(self, count: int) -> list[Taken]:
        """Up to so many completions. If there is none, a little time passes first.

        Raises:
            NothingComesError: there was none many times in a row, and nothing is under way any more.
        """
        self.check_open()
        network = self.context.network
        if not len(self.queue):
            network.pause(f"poll of a completion queue at {self.context.name}")
        if len(self.queue):
            network.found()
        taken: list[Taken] = []
        while len(taken) < count and (found := self.queue.poll()):
            taken.append(Taken(found[0], self._entries.last_cycle))
        return taken

    @property
    def comp_channel(self) -> CompChannel | None:
        """Its channel."""
        return self.channel

    @property
    def cqe(self) -> int:
        """Completions that it has room for."""
        return self.queue.depth


class CompChannel(PyverbsCM):
    """Where completion queues tell that they got something."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.context = context
        self._events: deque[CompletionSource] = deque()
        self.made()

    def tell(self, source: CompletionSource) -> None:
        """A completion queue got what it was asked to tell of."""
        self._events.append(source)

    def take_back(self, source: CompletionSource) -> None:
        """A completion queue ends, and what it told that nobody heard."""
        self._events = deque(event for event in self._events if event is not source)

    def get_cq_event(self, expected_cq: CompletionSource, cycles: int | None = None) -> None:
        """Waits until a completion queue tells something; time goes on until one does.

        Raises:
            NothingComesError: within CYCLES, or before nothing was under way any more, none did.
            PyverbsRDMAError: another one than was expected did.
        """
        self.check_open()
        network = self.context.network
        network.wait(lambda: bool(self._events), cycles, f"event of a completion queue at {self.context.name}")
        if self._events.popleft() is not expected_cq:
            raise PyverbsRDMAError("Received event on an unexpected CQ", errno.EINVAL)
