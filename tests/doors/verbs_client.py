"""A program that writes commands to a verbs device by itself, and is this process: its memory is ours."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from doors.mads.umad_device import DeviceError
from doors.uverbs import layouts
from doors.uverbs.adapter import UverbsAdapter
from doors.uverbs.c_struct import CStruct
from doors.uverbs.device import UverbsDevice
from doors.uverbs.layouts import CMD_HDR, EX_CMD_HDR, EXTENDED, Verb

WRITE, SEND, SEND_WITH_IMM, READ, BIND_MW, ATOMIC_WRITE = 0, 2, 3, 4, 8, 15
FENCE, SIGNALED, SOLICITED, INLINE = 1, 2, 4, 8
UD = 4
ACCESS_ERR = 3
SUCCESS, LOC_LEN_ERR, LOC_QP_OP_ERR, LOC_PROT_ERR, FLUSH, MW_BIND_ERR = 0, 1, 2, 4, 5, 6

RESPONSE = 0x7000
ROOM_WORDS = 64
ALL = 0x1F
"""Every right that a region or a queue pair may give."""


def packed(verb: int, body: bytes, room: int = ROOM_WORDS) -> bytes:
    """A command."""
    extended = b""
    if verb & EXTENDED:
        extended = EX_CMD_HDR.pack(response=RESPONSE, provider_out_words=room)
        room //= 2
    size = CMD_HDR.size + len(extended) + len(body)
    return CMD_HDR.pack(command=verb, in_words=size // 4 & 0xFFFF, out_words=room) + extended + body


class Program:
    """One opening of a host's verbs device by this process."""

    def __init__(self, host: UverbsAdapter) -> None:
        self.host = host
        self.device = UverbsDevice(host, os.getpid())
        self.descriptors: list[int] = []

    def close(self) -> None:
        self.device.close()
        for descriptor in self.descriptors:
            os.close(descriptor)

    def write(self, data: bytes, process: int | None = None) -> bytes:
        """Write a command; what comes at the address of the answer."""
        answer = self.device.write(data, process or os.getpid())
        if answer.descriptor is not None:
            self.descriptors.append(answer.descriptor)
        return b"".join(one.data for one in answer.puts if not one.is_descriptor)

    def call(
        self,
        verb: Verb,
        layout: CStruct,
        answer: CStruct | None = None,
        process: int | None = None,
        **fields: int | bytes,
    ) -> Any:
        """A command by its fields: the fields of its answer, and what follows for the provider."""
        if "response" in layout.fields:
            fields["response"] = RESPONSE
        data = self.write(packed(verb, layout.pack(**fields)), process)
        return (answer.unpack(data), data[answer.size :]) if answer is not None else None

    # What tests need often.

    def context(self) -> int:
        """The descriptor of asynchronous events."""
        self.call(Verb.GET_CONTEXT, layouts.GET_CONTEXT, layouts.GET_CONTEXT_RESP)
        return self.descriptors[-1]

    def domain(self) -> int:
        return self.call(Verb.ALLOC_PD, layouts.ALLOC_PD, layouts.ALLOC_PD_RESP)[0].pd_handle

    def region(self, domain: int, start: int, length: int, access: int = ALL, process: int | None = None) -> Any:
        return self.call(
            Verb.REG_MR,
            layouts.REG_MR,
            layouts.REG_MR_RESP,
            process,
            start=start,
            length=length,
            hca_va=start,
            pd_handle=domain,
            access_flags=access,
        )[0]

    def window(self, domain: int, kind: int = 1) -> Any:
        return self.call(Verb.ALLOC_MW, layouts.ALLOC_MW, layouts.ALLOC_MW_RESP, pd_handle=domain, mw_type=kind)[0]

    def address(self, domain: int, attributes: bytes) -> int:
        """An address handle's number."""
        made = self.call(Verb.CREATE_AH, layouts.CREATE_AH, layouts.CREATE_AH_RESP, pd_handle=domain, attr=attributes)
        return made[0].ah_handle

    def channel(self) -> int:
        """The descriptor of a completion channel."""
        self.call(Verb.CREATE_COMP_CHANNEL, layouts.CREATE_COMP_CHANNEL, layouts.CREATE_COMP_CHANNEL_RESP)
        return self.descriptors[-1]

    def completions(self, entries: int = 16, channel: int = -1, user: int = 0xC0) -> tuple[int, Mapped]:
        fields, ring = self.call(
            Verb.CREATE_CQ,
            layouts.CREATE_CQ,
            layouts.CREATE_CQ_RESP,
            user_handle=user,
            cqe=entries,
            comp_channel=channel,
        )
        return fields.cq_handle, self.mapped(ring)

    def pair(self, domain: int, completions: int, kind: int = 2, **fields: int) -> tuple[Any, Mapped, Mapped]:
        """A queue pair, the ring of its send queue and that of its receive queue."""
        sizes = {"max_send_wr": 8, "max_recv_wr": 8, "max_send_sge": 2, "max_recv_sge": 2, "max_inline_data": 64}
        made, rings = self.call(
            Verb.CREATE_QP,
            layouts.CREATE_QP,
            layouts.CREATE_QP_RESP,
            user_handle=0xDA,
            pd_handle=domain,
            send_cq_handle=completions,
            recv_cq_handle=completions,
            qp_type=kind,
            **sizes | fields,
        )
        size = layouts.MMINFO.size
        return (
            made,
            self.mapped(rings[size:]),
            self.mapped(rings[:size] if rings[:size] != bytes(size) else rings[size:]),
        )

    def shared_receives(self, domain: int, limit: int = 0) -> tuple[Any, Mapped]:
        made, ring = self.call(
            Verb.CREATE_SRQ,
            layouts.CREATE_SRQ,
            layouts.CREATE_SRQ_RESP,
            user_handle=0x5E,
            pd_handle=domain,
            max_wr=4,
            max_sge=1,
            srq_limit=limit,
        )
        return made, self.mapped(ring)

    def modify(self, pair: int, mask: int, **fields: int | bytes) -> None:
        self.call(Verb.MODIFY_QP, layouts.MODIFY_QP, qp_handle=pair, attr_mask=mask, **fields)

    def connect(self, pair: int, lid: int, number: int) -> None:
        """Take a queue pair of RC to RTS."""
        self.modify(pair, 0x39, qp_state=1, qp_access_flags=0xF, port_num=1)
        dest = layouts.QP_DEST.pack(dlid=lid, port_num=1)
        self.modify(
            pair,
            0x121181 | 0x8000,
            qp_state=2,
            dest=dest,
            path_mtu=4,
            dest_qp_num=number,
            max_dest_rd_atomic=4,
            min_rnr_timer=1,
        )
        self.modify(pair, 0x12E01, qp_state=3, timeout=14, retry_cnt=1, rnr_retry=1, max_rd_atomic=4)

    def datagrams(self, pair: int) -> None:
        """Take a queue pair of UD to RTS."""
        self.modify(pair, 0x71, qp_state=1, qkey=0x11, port_num=1)
        self.modify(pair, 1, qp_state=2)
        self.modify(pair, 0x10001, qp_state=3)

    def ring_bell(self, pair: int) -> None:
        self.call(Verb.POST_SEND, layouts.POST_SEND, qp_handle=pair)

    def destroy(self, verb: Verb, handle: int) -> None:
        self.call(verb, layouts.DESTROY, handle=handle)

    def mapped(self, info: bytes) -> Mapped:
        """A ring as a program maps it."""
        where = layouts.MMINFO.unpack(info)
        return Mapped(mmap.mmap(self.device.map(where.offset, where.size), where.size, offset=where.offset))


class Mapped:
    """A ring as a program sees it."""

    def __init__(self, memory: mmap.mmap) -> None:
        self.memory = memory
        self.log2, self.mask = (int.from_bytes(memory[at : at + 4], "little") for at in (0, 4))

    @property
    def produced(self) -> int:
        return int.from_bytes(self.memory[128:132], "little")

    @produced.setter
    def produced(self, index: int) -> None:
        self.memory[128:132] = (index & self.mask).to_bytes(4, "little")

    @property
    def consumed(self) -> int:
        return int.from_bytes(self.memory[256:260], "little")

    @consumed.setter
    def consumed(self, index: int) -> None:
        self.memory[256:260] = (index & self.mask).to_bytes(4, "little")

    def put(self, data: bytes) -> None:
        """Add an element."""
        at = 384 + (self.produced << self.log2)
        self.memory[at : at + len(data)] = data
        self.produced += 1

    def take(self) -> bytes | None:
        """The oldest element, if there is one."""
        if self.consumed == self.produced:
            return None
        at = 384 + (self.consumed << self.log2)
        self.consumed += 1
        return self.memory[at : at + (1 << self.log2)]


class Buffer:
    """Memory of this process."""

    def __init__(self, size: int = 4096) -> None:
        self.bytes = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._view = ctypes.c_char.from_buffer(self.bytes)
        self.address = ctypes.addressof(self._view)


_OTHER = """
import ctypes, mmap, sys
memory = mmap.mmap(-1, 1 << 16, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory[:6] = b"theirs"
print(ctypes.addressof(ctypes.c_char.from_buffer(memory)), flush=True)
sys.stdin.read()
"""


@contextmanager
def other_process() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process, and the address of 64 KiB of its memory, which begins with "theirs"."""
    command = [sys.executable, "-c", _OTHER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


class End(NamedTuple):
    """A queue pair of RC that is connected, and what it needs."""

    program: Program
    domain: int
    completions: int
    done: Mapped
    pair: Any
    sends: Mapped
    receives: Mapped

    def post(self, *wqes: bytes) -> None:
        """Post requests to the send queue."""
        for wqe in wqes:
            self.sends.put(wqe)
        self.program.ring_bell(self.pair.qp_handle)


def connected(programs, channel: int = -1) -> list[End]:
    """The ends of a connection; the second one's completions are told in CHANNEL."""
    ends = []
    for program, told_in in zip(programs, (-1, channel), strict=True):
        domain = program.domain()
        completions, done = program.completions(channel=told_in, user=0x1234)
        ends.append(End(program, domain, completions, done, *program.pair(domain, completions)))
    for end, lid, peer in zip(ends, (2, 1), ends[::-1], strict=True):
        end.program.connect(end.pair.qp_handle, lid, peer.pair.qpn)
    return ends


def send_wqe(
    wr_id: int, opcode: int = SEND, flags: int = SIGNALED, data: bytes | None = None, pieces=(), **wr
) -> bytes:
    """struct rxe_send_wqe."""
    operands = wr.get("operands", struct.pack("=QI", wr.get("remote_addr", 0), wr.get("rkey", 0))).ljust(120, b"\0")
    length = len(data) if data is not None else sum(piece[1] for piece in pieces)
    head = struct.pack("=QIII4s", wr_id, 0, opcode, flags | (INLINE if data is not None else 0), bytes(4)) + operands
    body = data if data is not None else b"".join(struct.pack("=QII", *piece) for piece in pieces)
    return head.ljust(184, b"\0") + struct.pack("=4I8x", length, length, 0, len(pieces)) + body


def receive_wqe(wr_id: int, *pieces) -> bytes:
    """struct rxe_recv_wqe."""
    length = sum(piece[1] for piece in pieces)
    head = struct.pack("=Q8x4I8x", wr_id, length, length, 0, len(pieces))
    return head + b"".join(struct.pack("=QII", *piece) for piece in pieces)


def completion(ring):
    data = ring.take()
    return data if data is None else layouts.WC.unpack(data)


def fails(number: int, function, *arguments, **more) -> None:
    with pytest.raises(DeviceError) as caught:
        function(*arguments, **more)
    assert caught.value.errno == number


def carry(hosts, cycles: int = 100_000) -> None:
    """Hand packets over as long as there are any, and let time pass."""
    adapters = [host.adapter for host in hosts.values()]
    for now in range(adapters[0].now, adapters[0].now + cycles, 1000):
        for here, there in (adapters, adapters[::-1]):
            while (outgoing := here.poll(now)) is not None:
                there.receive(outgoing.data, now)


def immediate(wqe: bytes, data: bytes) -> bytes:
    """A request with immediate data, or a key to be invalidated."""
    return wqe[:20] + data + wqe[24:]


def completions(ring: Mapped) -> list[tuple[int, int]]:
    """Work request and status of all that has completed."""
    return [(one.wr_id, one.status) for one in iter(lambda: completion(ring), None)]


def outgoing(host) -> int:
    """How many packets an adapter has to send now."""
    return sum(1 for _ in iter(lambda: host.adapter.poll(host.adapter.now), None))


def open_files() -> list[Path]:
    """Descriptors of this process."""
    return list(Path("/proc/self/fd").iterdir())


def read_events(end: int) -> list[Any]:
    """The asynchronous events that can be read."""
    data = os.read(end, 1 << 16)
    return [layouts.ASYNC_EVENT_DESC.unpack(data, at) for at in range(0, len(data), layouts.ASYNC_EVENT_DESC.size)]
