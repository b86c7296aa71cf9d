"""Shared receive queues of a program."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Any, Final

from doors.uverbs.context import Command, Context, Handled, Reply, check
from doors.uverbs.layouts import (
    CREATE_SRQ_RESP,
    DESTROY_EVENTS_RESP,
    QUERY_SRQ_RESP,
    RXE_CREATE_SRQ_TAIL,
    RXE_MODIFY_SRQ_CMD,
)
from doors.uverbs.memory import Domain
from doors.uverbs.rxe_rings import ReceiveRing
from verbs.completions import AsyncEventType
from verbs.receive_queue import SharedReceiveQueue

__all__ = ["SharedReceives", "create_srq", "create_xsrq", "destroy_srq", "modify_srq", "query_srq"]

_BASIC: Final = 0
"""IBV_SRQT_BASIC."""

_MAX_WR: Final = 1 << 0
_LIMIT: Final = 1 << 1
"""enum ibv_srq_attr_mask."""


@dataclass(eq=False, slots=True)
class SharedReceives(Handled):
    """A shared receive queue.

    Attributes:
        user: what the program calls it in events.
        told: events that it was told.
    """

    context: Context
    queue: SharedReceiveQueue
    posted: ReceiveRing
    user: int
    told: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Let the program be told."""
        self.context.host.owners[self.queue] = self._tell

    def _tell(self, event: AsyncEventType) -> None:
        self.told += 1
        self.context.tell(self.user, event)

    def end(self) -> None:
        """See `Handled`."""
        self.context.host.adapter.destroy_srq(self.queue)
        del self.context.host.owners[self.queue]
        self.posted.ring.close()


def create_srq(context: Context, fields: Any, _command: Command) -> Reply:
    """A shared receive queue."""
    domain = context.get(fields.pd_handle, Domain)
    adapter = context.host.adapter
    check(fields.max_wr and fields.max_sge)
    adapter.limits.check(max_srq_wr=fields.max_wr, max_srq_sge=fields.max_sge)
    ring = context.ring(fields.max_wr, ReceiveRing.element(fields.max_sge))
    posted = ReceiveRing(ring, fields.max_sge)
    queue = adapter.create_srq(domain.domain, fields.max_wr, fields.max_sge, posted)
    queue.limit = fields.srq_limit
    made = context.add(SharedReceives(context, queue, posted, fields.user_handle))
    answer = CREATE_SRQ_RESP.pack(
        srq_handle=made.handle, max_wr=fields.max_wr, max_sge=fields.max_sge, srqn=made.handle
    )
    return Reply(answer, ring.info + RXE_CREATE_SRQ_TAIL.pack(srq_num=made.handle))


def create_xsrq(context: Context, fields: Any, command: Command) -> Reply:
    """The same; others than basic ones there are not."""
    check(fields.srq_type == _BASIC, errno.EOPNOTSUPP)
    return create_srq(context, fields, command)


def modify_srq(context: Context, fields: Any, command: Command) -> Reply:
    """Another size, another limit."""
    receives = context.get(fields.srq_handle, SharedReceives)
    queue, posted = receives.queue, receives.posted
    new_size = fields.max_wr if fields.attr_mask & _MAX_WR else queue.max_wr
    check(not fields.attr_mask & ~(_MAX_WR | _LIMIT))
    context.host.adapter.limits.check(max_srq_wr=new_size)
    check(max(len(posted), 1) <= new_size)
    check(not fields.attr_mask & _LIMIT or fields.srq_limit <= new_size)
    elsewhere: tuple[tuple[int, bytes], ...] = ()
    if fields.attr_mask & _MAX_WR:
        check(len(command.driver) >= RXE_MODIFY_SRQ_CMD.size)
        ring = context.ring(new_size, ReceiveRing.element(queue.max_sge))
        posted.move(ring).close()
        context.host.adapter.modify_srq(queue, max_wr=new_size)
        elsewhere = ((RXE_MODIFY_SRQ_CMD.unpack(command.driver).mmap_info_addr, ring.info),)
    if fields.attr_mask & _LIMIT:
        queue.limit = fields.srq_limit
    return Reply(elsewhere=elsewhere)


def query_srq(context: Context, fields: Any, _command: Command) -> Reply:
    """Sizes and limit."""
    queue = context.get(fields.srq_handle, SharedReceives).queue
    return Reply(QUERY_SRQ_RESP.pack(max_wr=queue.max_wr, max_sge=queue.max_sge, srq_limit=queue.limit))


def destroy_srq(context: Context, fields: Any, _command: Command) -> Reply:
    """Its end."""
    receives = context.get(fields.handle, SharedReceives)
    context.remove(receives)
    return Reply(DESTROY_EVENTS_RESP.pack(events_reported=receives.told - context.take_back(receives.user)))
