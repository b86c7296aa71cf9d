"""Completion queues and channels."""

from __future__ import annotations

import errno
from collections import deque

from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.device import Context
from ironband.verbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from ironband.verbs.wc import WC
from verbs.completions import CompletionQueue, WorkCompletion

__all__ = ["CQ", "WC", "CompChannel", "CompletionSource"]


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
            self.queue: CompletionQueue = context.adapter.create_cq(cqe)
        if channel is not None:
            self.queue.on_completion = lambda: channel.tell(self)
        context.listen_to(self.queue)
        self.made()

    def _end(self) -> None:
        self.context.adapter.destroy_cq(self.queue)
        self.context.forget(self.queue)
        if self.channel is not None:
            self.channel.take_back(self)

    def _take(self, count: int) -> list[WorkCompletion]:
        """Up to so many completions. If there is none, a little time passes first."""
        self.check_open()
        network = self.context.network
        if not len(self.queue):
            network.pause(f"poll of a completion queue at {self.context.name}")
        taken = self.queue.poll(count)
        if taken:
            network.found()
        return taken

    @property
    def comp_channel(self) -> CompChannel | None:
        """Its channel."""
        return self.channel

    @property
    def cqe(self) -> int:
        """Completions that it has room for."""
        return self.queue.depth


class CQ(CompletionSource):
    """A completion queue."""

    def __init__(
        self,
        context: Context,
        cqe: int,
        cq_context: object = None,
        channel: CompChannel | None = None,
        comp_vector: int = 0,
    ) -> None:
        """Of CQE completions; CQ_CONTEXT is not looked at."""
        super().__init__(context, cqe, channel, comp_vector)

    def poll(self, num_entries: int = 1) -> tuple[int, list[WC]]:
        """Up to so many completions, and how many they are. If there is none, a little time passes first.

        Raises:
            NothingComesError: there was none many times in a row, and nothing is under way any more.
        """
        taken = [WC.of(done) for done in self._take(num_entries)]
        return len(taken), taken

    def req_notify(self, solicited_only: bool = False) -> None:
        """Asks to be told of the next completion, or of the next solicited or unsuccessful one."""
        self.queue.request_notification(solicited_only=bool(solicited_only))

    def ack_events(self, num_events: int) -> None:
        """Nothing waits for it."""

    def resize(self, cqe: int) -> None:
        """Makes room for so many completions."""
        with refusals("Failed to resize CQ"):
            self.context.adapter.resize_cq(self.queue, cqe)

    def __str__(self) -> str:
        return f"CQ\n{'CQEs':22}: {self.cqe:<20}\n"


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
