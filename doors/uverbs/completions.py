"""Completion channels and completion queues of a program."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Any, Final

from doors.uverbs.context import Command, Context, Handled, Reply, check
from doors.uverbs.event_channel import EventChannel
from doors.uverbs.layouts import (
    CREATE_COMP_CHANNEL_RESP,
    CREATE_CQ_RESP,
    DESTROY_CQ_RESP,
    EX_TAIL,
    RESIZE_CQ_RESP,
)
from doors.uverbs.rxe_rings import CompletionRing
from verbs.completions import AsyncEventType, CompletionQueue

__all__ = [
    "Completions",
    "create_comp_channel",
    "create_cq",
    "create_cq_ex",
    "destroy_cq",
    "req_notify_cq",
    "resize_cq",
]

_CQE_BYTES: Final = 64
_NO_CHANNEL: Final = -1


@dataclass(eq=False, slots=True)
class Completions(Handled):
    """A completion queue.

    Attributes:
        user: what the program calls it in events.
        told, told_besides: events that it was told, in the channel and asynchronously.
    """

    context: Context
    queue: CompletionQueue
    entries: CompletionRing
    user: int
    channel: EventChannel | None
    told: int = field(default=0, init=False)
    told_besides: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Let the program be told."""
        self.queue.on_completion = self._complete
        self.context.host.owners[self.queue] = self._tell
        if self.channel is not None:
            self.channel.uses += 1

    def _complete(self) -> None:
        if self.channel is not None:
            self.told += 1
            self.channel.send(cq_handle=self.user)

    def _tell(self, event: AsyncEventType) -> None:
        self.told_besides += 1
        self.context.tell(self.user, event)

    def end(self) -> None:
        """See `Handled`."""
        self.context.host.adapter.destroy_cq(self.queue)
        del self.context.host.owners[self.queue]
        if self.channel is not None:
            self.channel.uses -= 1
        self.entries.ring.close()


def create_comp_channel(context: Context, _fields: Any, _command: Command) -> Reply:
    """A completion channel."""
    return Reply(CREATE_COMP_CHANNEL_RESP.pack(), descriptor=context.open_channel().take_end())


def _create(context: Context, fields: Any, command: Command) -> Completions:
    check(fields.cqe and not fields.comp_vector)
    context.host.adapter.limits.check(max_cqe=fields.cqe)
    channel = None
    if fields.comp_channel != _NO_CHANNEL:
        channel = context.channel(command.process, fields.comp_channel)
    entries = CompletionRing(context.ring(fields.cqe, _CQE_BYTES))
    queue = context.host.adapter.create_cq(fields.cqe, entries)
    return context.add(Completions(context, queue, entries, fields.user_handle, channel))


def create_cq(context: Context, fields: Any, command: Command) -> Reply:
    """A completion queue."""
    made = _create(context, fields, command)
    return Reply(CREATE_CQ_RESP.pack(cq_handle=made.handle, cqe=made.queue.depth), made.entries.ring.info)


def create_cq_ex(context: Context, fields: Any, command: Command) -> Reply:
    """The same; there are no time stamps, and an overrun is not to be ignored."""
    check(not fields.comp_mask and not fields.flags, errno.EOPNOTSUPP)
    made = _create(context, fields, command)
    data = CREATE_CQ_RESP.pack(cq_handle=made.handle, cqe=made.queue.depth)
    tail = EX_TAIL.pack(response_length=CREATE_CQ_RESP.size + EX_TAIL.size)
    return Reply(data + tail, made.entries.ring.info)


def resize_cq(context: Context, fields: Any, _command: Command) -> Reply:
    """Another size, with all that is there."""
    completions = context.get(fields.cq_handle, Completions)
    adapter = context.host.adapter
    adapter.limits.check(max_cqe=fields.cqe)
    check(fields.cqe and len(completions.queue) <= fields.cqe)
    completions.entries.move(context.ring(fields.cqe, _CQE_BYTES)).close()
    adapter.resize_cq(completions.queue, fields.cqe)
    return Reply(RESIZE_CQ_RESP.pack(cqe=fields.cqe), completions.entries.ring.info)


def req_notify_cq(context: Context, fields: Any, _command: Command) -> Reply:
    """The next entry is to be told in the channel."""
    completions = context.get(fields.cq_handle, Completions)
    completions.queue.request_notification(solicited_only=bool(fields.solicited_only))
    return Reply()


def destroy_cq(context: Context, fields: Any, _command: Command) -> Reply:
    """Its end. The program waits for as many events as it was told; those that it has not read are taken back."""
    completions = context.get(fields.cq_handle, Completions)
    context.remove(completions)
    told = completions.told - (completions.channel.withdraw(completions.user) if completions.channel else 0)
    besides = completions.told_besides - context.take_back(completions.user)
    return Reply(DESTROY_CQ_RESP.pack(comp_events_reported=told, async_events_reported=besides))
