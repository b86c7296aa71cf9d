"""An open verbs device: the commands that a program writes, as the kernel takes them (rdma/ib_user_verbs.h)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from doors.mads.umad_device import DeviceError
from doors.uverbs import layouts
from doors.uverbs.adapter import UverbsAdapter
from doors.uverbs.addresses import create_ah, destroy_ah
from doors.uverbs.c_struct import CStruct
from doors.uverbs.completions import (
    create_comp_channel,
    create_cq,
    create_cq_ex,
    destroy_cq,
    req_notify_cq,
    resize_cq,
)
from doors.uverbs.context import Command, Context, Reply, check
from doors.uverbs.layouts import CMD_HDR, EX_CMD_HDR, EXTENDED, Verb
from doors.uverbs.memory import alloc_mw, alloc_pd, dealloc_mw, dealloc_pd, dereg_mr, reg_mr, rereg_mr
from doors.uverbs.pairs import (
    Pair,
    attach_mcast,
    create_qp,
    create_qp_ex,
    destroy_qp,
    detach_mcast,
    modify_qp,
    post_send,
    query_qp,
)
from doors.uverbs.queries import get_context, query_device, query_device_ex, query_port
from doors.uverbs.receives import create_srq, create_xsrq, destroy_srq, modify_srq, query_srq
from verbs.limits import LimitError
from verbs.regions import InUseError

__all__ = ["Answer", "Put", "UverbsDevice"]

_WORD_BYTES: Final = 4
_EX_WORD_BYTES: Final = 8

_Handler = Callable[[Context, Any, Command], Reply]

_COMMANDS: Final[dict[int, tuple[CStruct, _Handler]]] = {
    Verb.GET_CONTEXT: (layouts.GET_CONTEXT, get_context),
    Verb.QUERY_DEVICE: (layouts.QUERY_DEVICE, query_device),
    Verb.QUERY_PORT: (layouts.QUERY_PORT, query_port),
    Verb.ALLOC_PD: (layouts.ALLOC_PD, alloc_pd),
    Verb.DEALLOC_PD: (layouts.DESTROY, dealloc_pd),
    Verb.CREATE_AH: (layouts.CREATE_AH, create_ah),
    Verb.DESTROY_AH: (layouts.DESTROY, destroy_ah),
    Verb.REG_MR: (layouts.REG_MR, reg_mr),
    Verb.REREG_MR: (layouts.REREG_MR, rereg_mr),
    Verb.DEREG_MR: (layouts.DESTROY, dereg_mr),
    Verb.ALLOC_MW: (layouts.ALLOC_MW, alloc_mw),
    Verb.DEALLOC_MW: (layouts.DESTROY, dealloc_mw),
    Verb.CREATE_COMP_CHANNEL: (layouts.CREATE_COMP_CHANNEL, create_comp_channel),
    Verb.CREATE_CQ: (layouts.CREATE_CQ, create_cq),
    Verb.RESIZE_CQ: (layouts.RESIZE_CQ, resize_cq),
    Verb.DESTROY_CQ: (layouts.DESTROY_CQ, destroy_cq),
    Verb.REQ_NOTIFY_CQ: (layouts.REQ_NOTIFY_CQ, req_notify_cq),
    Verb.CREATE_QP: (layouts.CREATE_QP, create_qp),
    Verb.QUERY_QP: (layouts.QUERY_QP, query_qp),
    Verb.MODIFY_QP: (layouts.MODIFY_QP, modify_qp),
    Verb.DESTROY_QP: (layouts.DESTROY_WITH_EVENTS, destroy_qp),
    Verb.POST_SEND: (layouts.POST_SEND, post_send),
    Verb.ATTACH_MCAST: (layouts.ATTACH_MCAST, attach_mcast),
    Verb.DETACH_MCAST: (layouts.ATTACH_MCAST, detach_mcast),
    Verb.CREATE_SRQ: (layouts.CREATE_SRQ, create_srq),
    Verb.MODIFY_SRQ: (layouts.MODIFY_SRQ, modify_srq),
    Verb.QUERY_SRQ: (layouts.QUERY_SRQ, query_srq),
    Verb.DESTROY_SRQ: (layouts.DESTROY_WITH_EVENTS, destroy_srq),
    Verb.CREATE_XSRQ: (layouts.CREATE_XSRQ, create_xsrq),
    Verb.EX_QUERY_DEVICE: (layouts.EX_QUERY_DEVICE, query_device_ex),
    Verb.EX_CREATE_CQ: (layouts.EX_CREATE_CQ, create_cq_ex),
    Verb.EX_CREATE_QP: (layouts.EX_CREATE_QP, create_qp_ex),
}


class Put(NamedTuple):
    """Bytes that go to an address of the program's; of a descriptor that is passed, its number."""

    address: int
    data: bytes
    is_descriptor: bool = False


class Answer(NamedTuple):
    """What a program gets for a command; who passes the descriptor on closes it here."""

    puts: list[Put]
    descriptor: int | None


class UverbsDevice:
    """One opening of a host's verbs device."""

    def __init__(self, host: UverbsAdapter, process: int) -> None:
        """For a process.

        Raises:
            DeviceError: its memory cannot be reached.
        """
        try:
            self._context = Context(host, process)
        except OSError as error:
            raise DeviceError(error.errno or errno.EACCES) from None

    def close(self) -> None:
        """The program has closed it, or is gone: all that it has ends."""
        self._context.close()

    def map(self, offset: int, size: int) -> int:
        """The memory file of which a program maps a part.

        Raises:
            DeviceError: there is no such part.
        """
        check(self._context.rings.has(offset, size))
        return self._context.rings.descriptor

    def write(self, data: bytes, process: int) -> Answer:
        """Carry out a command of a process.

        Raises:
            DeviceError: it fails.
        """
        check(len(data) >= CMD_HDR.size)
        header = CMD_HDR.unpack(data)
        at, response = CMD_HDR.size, 0
        word = _EX_WORD_BYTES if header.command & EXTENDED else _WORD_BYTES
        own_room = room = header.out_words * word
        if header.command & EXTENDED:
            check(len(data) >= at + EX_CMD_HDR.size)
            extended = EX_CMD_HDR.unpack(data, at)
            at += EX_CMD_HDR.size
            response, room = extended.response, room + extended.provider_out_words * word
        found = _COMMANDS.get(header.command)
        if found is None:
            raise DeviceError(errno.EOPNOTSUPP)
        layout, handler = found
        check(len(data) >= at + layout.size)
        fields = layout.unpack(data, at)
        if not header.command & EXTENDED:
            response = getattr(fields, "response", 0)
        if header.command != Verb.POST_SEND:
            self._look_around()
        command = Command(process, data[at + layout.size :], response, room, own_room)
        succeeded = False
        try:
            reply = handler(self._context, fields, command)
            succeeded = True
        except InUseError:
            raise DeviceError(errno.EBUSY) from None
        except LimitError:
            raise DeviceError(errno.EINVAL) from None
        except OSError as error:
            raise DeviceError(error.errno or errno.EIO) from None
        finally:
            self._context.keep_rings(succeeded=succeeded)
        return _answer(reply, command, is_extended=bool(header.command & EXTENDED))

    def _look_around(self) -> None:
        """What programs do without a word is looked after when they say something."""
        for pair in self._context.objects(Pair):
            pair.flush_receives()


def _answer(reply: Reply, command: Command, *, is_extended: bool) -> Answer:
    data = reply.data[: command.own_room].ljust(command.own_room, b"\0") if is_extended else reply.data
    data = (data + reply.driver)[: command.room]
    puts = [Put(address, more) for address, more in reply.elsewhere]
    if data:
        puts.append(Put(command.response, data))
    if reply.descriptor is not None:
        puts.append(Put(command.response, bytes(_WORD_BYTES), is_descriptor=True))
    return Answer(puts, reply.descriptor)
