"""An open verbs device, without a program: commands, what they are answered, and what is refused."""

import contextlib
import ctypes
import errno
import mmap
import os
import random
import resource
import signal
import struct
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from doors import uverbs_layouts as layouts
from doors.descriptors import MANY_SPARE
from doors.device import DeviceError
from doors.uverbs_device import UverbsDevice
from doors.uverbs_layouts import EXTENDED, Verb
from tests.doors.ideal_wire import described_hosts
from tests.doors.uverbs import ROOM_WORDS, Mapped, Program, packed

WRITE, SEND, READ = 0, 2, 4
SIGNALED, INLINE = 2, 8
UD = 4
SUCCESS, LOC_QP_OP_ERR, LOC_PROT_ERR, FLUSH = 0, 2, 4, 5


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


@pytest.fixture
def hosts():
    return described_hosts(2)


@pytest.fixture
def programs(hosts):
    """A program at each of two hosts."""
    made = [Program(host) for host in hosts.values()]
    yield made
    for program in made:
        program.close()


def carry(hosts, cycles: int = 100_000) -> None:
    """Hand packets over as long as there are any, and let time pass."""
    adapters = [host.adapter for host in hosts.values()]
    for now in range(adapters[0].now, adapters[0].now + cycles, 1000):
        for here, there in (adapters, adapters[::-1]):
            while (outgoing := here.poll(now)) is not None:
                there.receive(outgoing.data, now)


class Buffer:
    """Memory of this process."""

    def __init__(self, size: int = 4096) -> None:
        self.bytes = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._view = ctypes.c_char.from_buffer(self.bytes)
        self.address = ctypes.addressof(self._view)


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


def test_a_message_goes_from_ring_to_ring(programs, hosts):
    here, there = connected(programs)
    memory = Buffer()
    region = there.program.region(there.domain, memory.address, 4096)
    there.receives.put(receive_wqe(77, (memory.address + 8, 100, region.lkey)))
    here.post(send_wqe(66, data=b"inline data"))
    assert here.sends.consumed == 0, "a request stays in the ring until it has ended"
    carry(hosts)
    assert memory.bytes[8:19] == b"inline data"
    done, received = completion(here.done), completion(there.done)
    assert (done.wr_id, done.status, done.opcode, done.qp_num) == (66, SUCCESS, 0, here.pair.qpn)
    assert (received.wr_id, received.byte_len, received.opcode, received.qp_num) == (77, 11, 128, there.pair.qpn)
    assert (here.sends.consumed, there.receives.consumed) == (1, 1)


def test_requests_that_nobody_wants_to_hear_of_leave_the_ring_too(programs, hosts):
    here, there = connected(programs)
    for number in range(3):
        there.receives.put(receive_wqe(number))
        here.post(send_wqe(number, flags=0, data=b""))
    carry(hosts)
    assert here.sends.consumed == 3
    assert completion(here.done) is None


@pytest.mark.parametrize(
    ("wqe", "status"),
    [
        (send_wqe(1, opcode=99, data=b""), LOC_QP_OP_ERR),
        (send_wqe(1, opcode=4, data=b"read"), LOC_QP_OP_ERR),
        (send_wqe(1, pieces=((0x1000, 8, 0xBAD),)), LOC_PROT_ERR),
    ],
)
def test_a_request_that_cannot_be_ends_in_its_turn_and_what_follows_is_flushed(programs, hosts, wqe, status):
    here, there = connected(programs)
    there.receives.put(receive_wqe(1))
    here.post(send_wqe(0, data=b""), wqe, send_wqe(2, data=b""))
    carry(hosts)
    ended = [(one.wr_id, one.status) for one in iter(lambda: completion(here.done), None)]
    assert ended == [(0, SUCCESS), (1, status), (2, FLUSH)]
    assert here.sends.consumed == 3


def test_a_doorbell_of_a_queue_pair_that_cannot_send_is_refused_and_forgets_what_it_was_for(programs):
    program = programs[0]
    domain = program.domain()
    completions, _ring = program.completions()
    pair, sends, _receives = program.pair(domain, completions)
    sends.put(send_wqe(1, data=b""))
    fails(errno.EINVAL, program.ring_bell, pair.qp_handle)
    assert sends.consumed == sends.produced


def test_memory_that_is_gone_is_a_completion_error_and_not_the_servers(programs, hosts):
    here, there = connected(programs)
    gone = mmap.mmap(-1, 1 << 20)
    address = ctypes.addressof(view := ctypes.c_char.from_buffer(gone))
    region = there.program.region(there.domain, address, 1 << 20)
    del view
    gone.close()
    there.receives.put(receive_wqe(1, (address, 64, region.lkey)))
    here.post(send_wqe(5, data=b"into nothing"))
    carry(hosts)
    ended = completion(here.done)
    assert ended.wr_id == 5
    assert ended.status == 11, "remote operational error"


def test_events_of_a_channel_come_by_the_descriptor_that_the_program_has(programs, hosts):
    program = programs[1]
    channels = [program.channel(), program.channel()]
    here, there = connected(programs, channels[1])
    program.call(Verb.REQ_NOTIFY_CQ, layouts.REQ_NOTIFY_CQ, cq_handle=there.completions)
    for number in range(2):
        there.receives.put(receive_wqe(number))
        here.post(send_wqe(number, data=b""))
    carry(hosts)
    assert os.read(channels[1], 100) == (0x1234).to_bytes(8, "little"), "one event for one arming"
    os.set_blocking(channels[0], False)
    with pytest.raises(BlockingIOError):
        os.read(channels[0], 8)
    fails(errno.EINVAL, program.completions, channel=0)
    fails(errno.EBADF, program.completions, channel=10_000)


def test_events_that_were_not_read_are_taken_back_with_their_queue(programs):
    program = programs[0]
    domain = program.domain()
    channel = program.channel()
    completions, _ring = program.completions(channel=channel)
    pair, sends, _ = program.pair(domain, completions)
    program.connect(pair.qp_handle, 9, 9)
    program.call(Verb.REQ_NOTIFY_CQ, layouts.REQ_NOTIFY_CQ, cq_handle=completions)
    sends.put(send_wqe(1, data=b""))
    program.ring_bell(pair.qp_handle)
    program.modify(pair.qp_handle, 1, qp_state=6)
    program.call(Verb.DESTROY_QP, layouts.DESTROY_WITH_EVENTS, layouts.DESTROY_EVENTS_RESP, handle=pair.qp_handle)
    told, _ = program.call(Verb.DESTROY_CQ, layouts.DESTROY_CQ, layouts.DESTROY_CQ_RESP, cq_handle=completions)
    assert told.comp_events_reported == 0
    os.set_blocking(channel, False)
    with pytest.raises(BlockingIOError):
        os.read(channel, 8)


def test_what_is_used_is_busy(programs):
    program = programs[0]
    domain = program.domain()
    completions, _ring = program.completions()
    pair, *_ = program.pair(domain, completions)
    fails(errno.EBUSY, program.destroy, Verb.DEALLOC_PD, domain)
    fails(errno.EBUSY, program.call, Verb.DESTROY_CQ, layouts.DESTROY_CQ, cq_handle=completions)
    program.call(Verb.DESTROY_QP, layouts.DESTROY_WITH_EVENTS, handle=pair.qp_handle)
    program.call(Verb.DESTROY_CQ, layouts.DESTROY_CQ, cq_handle=completions)
    program.destroy(Verb.DEALLOC_PD, domain)


def test_a_region_is_registered_anew(programs):
    program = programs[0]
    domain, other = program.domain(), program.domain()
    memory = Buffer()
    region = program.region(domain, memory.address, 4096)
    answer, _ = program.call(
        Verb.REREG_MR,
        layouts.REREG_MR,
        layouts.REREG_MR_RESP,
        mr_handle=region.mr_handle,
        flags=7,
        start=memory.address + 1024,
        length=1024,
        hca_va=0,
        pd_handle=other,
        access_flags=1,
    )
    assert answer.lkey == region.lkey
    program.destroy(Verb.DEALLOC_PD, domain)
    fails(errno.EBUSY, program.destroy, Verb.DEALLOC_PD, other)
    fails(errno.EINVAL, program.call, Verb.REREG_MR, layouts.REREG_MR, mr_handle=region.mr_handle, flags=8)


def open_files() -> list[Path]:
    """Descriptors of this process."""
    return list(Path("/proc/self/fd").iterdir())


def test_a_program_that_opens_too_much_is_refused_more(programs):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(least := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (least + MANY_SPARE + 20, limits[1]))
    try:
        with contextlib.suppress(DeviceError):
            for _ in range(100):
                programs[0].channel()
        fails(errno.EMFILE, programs[0].channel)
        programs[1].domain()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_channels_that_a_program_has_closed_end(programs):
    program = programs[0]
    before = len(open_files())
    for _ in range(100):
        os.close(program.channel())
        program.descriptors.clear()
    assert len(open_files()) <= before + 1


def test_a_queue_pair_in_a_multicast_group_gets_what_comes_for_it(programs, hosts):
    program, group = programs[1], {"gid": bytes([0xFF, 0x12] + [7] * 14), "mlid": 0xC001}
    domain = program.domain()
    completions, done = program.completions()
    pair, _, receives = program.pair(domain, completions, UD)
    program.datagrams(pair.qp_handle)
    program.call(Verb.ATTACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, **group)
    fails(errno.EBUSY, program.call, Verb.DESTROY_QP, layouts.DESTROY_WITH_EVENTS, handle=pair.qp_handle)
    fails(errno.EINVAL, program.call, Verb.ATTACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, mlid=1)
    memory = Buffer()
    region = program.region(domain, memory.address, 4096)
    receives.put(receive_wqe(5, (memory.address, 100, region.lkey)))

    sender = programs[0]
    completions, _ = sender.completions()
    source, sends, _ = sender.pair(domain := sender.domain(), completions, UD)
    sender.datagrams(source.qp_handle)
    route = layouts.AH_ATTR.pack(dgid=group["gid"], hop_limit=1, dlid=group["mlid"], is_global=1, port_num=1)
    handle = sender.call(Verb.CREATE_AH, layouts.CREATE_AH, layouts.CREATE_AH_RESP, pd_handle=domain, attr=route)
    to = struct.pack("=IIHHI", 0xFFFFFF, 0x11, 0, 0, handle[0].ah_handle)
    sends.put(send_wqe(1, data=b"to all", operands=to))
    sender.ring_bell(source.qp_handle)
    carry(hosts)
    assert completion(done).wr_id == 5
    assert memory.bytes[40:46] == b"to all"
    program.call(Verb.DETACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, **group)
    fails(errno.EINVAL, program.call, Verb.DETACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, **group)
    program.call(Verb.ATTACH_MCAST, layouts.ATTACH_MCAST, qp_handle=pair.qp_handle, **group)


def test_a_process_whose_memory_cannot_be_reached_has_no_device(hosts):
    gone = os.fork()
    if not gone:
        os._exit(0)
    os.waitpid(gone, 0)
    fails(errno.ENOENT, UverbsDevice, hosts["H1"], gone)
    assert not hosts["H1"].listeners


def test_a_queue_pair_is_as_it_was_modified(programs):
    pair = connected(programs)[0].pair
    answer, _ = programs[0].call(
        Verb.QUERY_QP, layouts.QUERY_QP, layouts.QUERY_QP_RESP, qp_handle=pair.qp_handle, attr_mask=(1 << 21) - 1
    )
    assert (answer.qp_state, answer.path_mtu, answer.timeout, answer.retry_cnt, answer.min_rnr_timer) == (
        3,
        4,
        14,
        1,
        1,
    )
    assert layouts.QP_DEST.unpack(answer.dest).dlid == 2
    assert answer.max_send_wr >= 8
    fails(errno.EINVAL, programs[0].modify, pair.qp_handle, 3, qp_state=3, cur_qp_state=1)
    fails(errno.EINVAL, programs[0].modify, pair.qp_handle, 1, qp_state=2)


def test_what_ports_become_is_told_to_every_program(programs, hosts):
    host = hosts["H1"]
    others = Program(host)
    ends = [programs[0].context(), others.context()]
    port = host.ports[0]
    info = port.info.replace(lid=9, port_state=1)
    port.known[next(key for key in port.known if key.name == "PORT_INFO")] = info.pack()
    host.update(port)
    for end in ends:
        data = os.read(end, 4096)
        events = [layouts.ASYNC_EVENT_DESC.unpack(data, at) for at in range(0, len(data), 16)]
        assert [(one.element, one.event_type) for one in events] == [(1, 11), (1, 10)]
    others.close()


def test_a_program_that_is_gone_leaves_nothing_behind_and_its_peer_is_told(hosts):
    here, there = connected([Program(host) for host in hosts.values()])
    memory = Buffer()
    region = there.program.region(there.domain, memory.address, 4096)
    there.program.window(there.domain)
    here.post(send_wqe(1, opcode=WRITE, data=b"x", remote_addr=memory.address, rkey=region.rkey))
    there.program.close()
    carry(hosts, 100_000_000)
    assert completion(here.done).status == 12, "transport retry counter exceeded"
    here.program.close()
    for host in hosts.values():
        assert not host.owners
        assert not host.listeners


def test_what_a_child_registers_is_its_own_memory(programs, hosts):
    here, there = connected(programs)
    memory, mine = Buffer(), Buffer()
    written, write = os.pipe()
    child = os.fork()
    if not child:
        memory.bytes[:5] = b"child"
        os.write(write, b"x")
        signal.pause()
    try:
        os.read(written, 1)
        far = there.program.region(there.domain, memory.address, 4096, process=child)
        near = here.program.region(here.domain, mine.address, 4096)
        pieces = ((mine.address, 5, near.lkey),)
        here.post(send_wqe(1, opcode=READ, pieces=pieces, remote_addr=memory.address, rkey=far.rkey))
        carry(hosts)
        assert completion(here.done).status == SUCCESS
        assert (mine.bytes[:5], memory.bytes[:5]) == (b"child", bytes(5))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    here.post(send_wqe(2, opcode=READ, pieces=pieces, remote_addr=memory.address, rkey=far.rkey))
    carry(hosts)
    assert completion(here.done).status == 11, "remote operational error: the child is gone"


def test_commands_that_are_none_are_refused(programs):
    program = programs[0]
    fails(errno.EINVAL, program.write, b"")
    fails(errno.EINVAL, program.write, bytes(7))
    fails(errno.EOPNOTSUPP, program.write, packed(10, bytes(64)))
    fails(errno.EOPNOTSUPP, program.write, packed(EXTENDED | 50, bytes(64)))
    fails(errno.EINVAL, program.write, packed(Verb.EX_CREATE_CQ, b"")[:20])
    for verb in Verb:
        fails(errno.EINVAL, program.write, packed(verb, b"1"))


HANDLE_ALONE = {
    Verb.DEALLOC_PD: layouts.DESTROY,
    Verb.DESTROY_AH: layouts.DESTROY,
    Verb.DEREG_MR: layouts.DESTROY,
    Verb.DEALLOC_MW: layouts.DESTROY,
    Verb.DESTROY_QP: layouts.DESTROY_WITH_EVENTS,
    Verb.DESTROY_SRQ: layouts.DESTROY_WITH_EVENTS,
    Verb.DETACH_MCAST: layouts.ATTACH_MCAST,
}


KINDS = {
    Verb.ALLOC_PD: "pd",
    Verb.REG_MR: "mr",
    Verb.ALLOC_MW: "mw",
    Verb.CREATE_CQ: "cq",
    Verb.EX_CREATE_CQ: "cq",
    Verb.CREATE_QP: "qp",
    Verb.EX_CREATE_QP: "qp",
    Verb.CREATE_SRQ: "srq",
    Verb.CREATE_XSRQ: "srq",
    Verb.CREATE_AH: "ah",
    Verb.DEALLOC_PD: "pd",
    Verb.DEREG_MR: "mr",
    Verb.DEALLOC_MW: "mw",
    Verb.DESTROY_QP: "qp",
    Verb.DESTROY_SRQ: "srq",
    Verb.DESTROY_AH: "ah",
}
"""What commands make, or end by a field that is called handle alone."""

USUAL = {
    "comp_channel": (-1,),
    "qp_type": (2, 3, 4),
    "is_srq": (0, 0, 1),
    "mw_type": (1, 2),
    "port_num": (1,),
    "path_mtu": (1, 4),
    "qp_state": tuple(range(7)),
    "cqe": (1, 7, 100),
    "attr_mask": (0x39, 0x31 | 0x40, 0x121181 | 0x8000, 0x121181, 0x12E01, 0x10001, 1, 2, 3),
    **dict.fromkeys(("max_wr", "max_sge", "max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge"), (1, 3, 16)),
}


ADDRESSES = (layouts.AH_ATTR.pack(dlid=2, port_num=1), layouts.QP_DEST.pack(dlid=2, port_num=1))


class Liar:
    """Writes what could be commands; some of their fields are anything."""

    def __init__(self, host, draws: random.Random) -> None:
        self.program = Program(host)
        self.carried_out: Counter[Verb] = Counter()
        self._draws = draws
        self._memory = Buffer()
        self._made: dict[str, list[int]] = {kind: [0] for kind in KINDS.values()}
        self._rings: list[Mapped] = []

    def lie(self) -> None:
        """Write something, and perhaps over a ring."""
        draws = self._draws
        if draws.random() < 0.2:
            with contextlib.suppress(DeviceError):
                self.program.write(packed(draws.randrange(1 << 32), draws.randbytes(draws.randrange(200))))
            return
        verb = draws.choice(tuple(Verb))
        if verb in HANDLE_ALONE and draws.random() < 0.7:
            verb = Verb.POST_SEND
        body = self._body(verb)
        if draws.random() < 0.1:
            body = body[: draws.randrange(len(body))]
        room = ROOM_WORDS if draws.random() < 0.9 else draws.randrange(ROOM_WORDS)
        with contextlib.suppress(DeviceError):
            answer = self.program.write(packed(verb, body, room))
            self.carried_out[verb] += 1
            if verb in KINDS and len(answer) >= 4:
                self._made[KINDS[verb]].append(int.from_bytes(answer[:4], "little"))
            info = answer[-layouts.MMINFO.size :]
            if verb in (Verb.CREATE_CQ, Verb.CREATE_QP) and room == ROOM_WORDS:
                self._rings = [*self._rings[-20:], self.program.mapped(info)]
        if self._rings and draws.random() < 0.2:
            ring = draws.choice(self._rings)
            at = draws.choice((128, 256, 384, draws.randrange(len(ring.memory) - 8)))
            ring.memory[at : at + 8] = draws.choice((bytes(8), b"\3" + bytes(7), draws.randbytes(8)))

    def forget(self) -> None:
        """Close what was passed."""
        for descriptor in self.program.descriptors:
            os.close(descriptor)
        self.program.descriptors.clear()

    def _body(self, verb: Verb) -> bytes:
        layout = HANDLE_ALONE.get(verb) or getattr(layouts, verb.name)
        values = {field: self._value(verb, field) for field in layout.fields}
        for field, empty in layout.unpack(layout.pack())._asdict().items():
            if isinstance(empty, bytes):
                values[field] = self._draws.choice((bytes(32), self._draws.randbytes(32), *ADDRESSES))
        try:
            return layout.pack(**values)
        except struct.error:  # more than the field can hold
            return self._draws.randbytes(layout.size)

    def _value(self, verb: Verb, field: str) -> int:
        draws = self._draws
        if draws.random() < 0.03:
            return draws.choice((0, 1, draws.randrange(256), draws.randrange(1 << 32)))
        if field.endswith("handle") and field != "user_handle":
            kind = KINDS[verb] if field == "handle" else field.split("_")[-2]
            return draws.choice(self._made.get(kind, [0])[-8:])
        if field in ("start", "hca_va"):
            return draws.choice((self._memory.address, 0))
        if field == "length":
            return draws.choice((4096, 1, (1 << 64) - 1))
        return draws.choice(USUAL.get(field, (0, 0, 0, 1)))


def test_nothing_that_a_program_writes_harms_another(programs, hosts):
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    liar = Liar(hosts["H1"], random.Random(seed))
    here, there = connected(programs)
    for count in range(10_000):
        liar.lie()
        if not count % 100:
            liar.forget()
            carry(hosts, 10_000)
            there.receives.put(receive_wqe(count))
            here.post(send_wqe(count, data=b""))
            carry(hosts, 10_000)
            assert (completion(here.done).status, completion(there.done).wr_id) == (SUCCESS, count)
    liar.forget()
    liar.program.close()
    made = {verb for verb in KINDS if verb not in HANDLE_ALONE}
    assert min(liar.carried_out[verb] for verb in made) > 10, "most of what it writes is no lie"
