"""Work requests in a program's rings, without a program: what becomes of them."""

import ctypes
import errno
import itertools
import mmap
import os
import struct

import pytest

from doors.uverbs import layouts
from doors.uverbs.layouts import Verb
from tests.doors.verbs_client import (
    ATOMIC_WRITE,
    BIND_MW,
    FENCE,
    FLUSH,
    LOC_LEN_ERR,
    LOC_PROT_ERR,
    LOC_QP_OP_ERR,
    MW_BIND_ERR,
    READ,
    SEND_WITH_IMM,
    SIGNALED,
    SOLICITED,
    SUCCESS,
    UD,
    WRITE,
    Buffer,
    carry,
    completion,
    completions,
    connected,
    fails,
    immediate,
    open_files,
    other_process,
    outgoing,
    receive_wqe,
    send_wqe,
)
from wire.headers import BTH, LRH


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


def test_what_another_process_registers_at_a_device_is_its_own_memory(programs, hosts):
    here, there = connected(programs)
    mine = Buffer()
    before = len(open_files())
    near = here.program.region(here.domain, mine.address, 4096)
    with other_process() as (process, address):
        far = there.program.region(there.domain, address, 4096, process=process.pid)
        pieces = ((mine.address, 6, near.lkey),)
        here.post(send_wqe(1, opcode=READ, pieces=pieces, remote_addr=address, rkey=far.rkey))
        carry(hosts)
        assert completion(here.done).status == SUCCESS
        assert mine.bytes[:6] == b"theirs"
    here.post(send_wqe(2, opcode=READ, pieces=pieces, remote_addr=address, rkey=far.rkey))
    carry(hosts)
    assert completion(here.done).status == 11, "remote operational error: that process is gone"
    there.program.destroy(Verb.DEREG_MR, far.mr_handle)
    assert len(open_files()) == before


def test_a_queue_pair_that_is_reset_forgets_what_was_posted(programs, hosts):
    here, there = connected(programs)
    here.sends.put(send_wqe(1, data=b""))
    here.program.modify(here.pair.qp_handle, 1, qp_state=0)
    assert here.sends.consumed == here.sends.produced
    here.program.connect(here.pair.qp_handle, 2, there.pair.qpn)
    there.receives.put(receive_wqe(5))
    here.post(send_wqe(2, data=b""))
    carry(hosts)
    assert completions(here.done) == [(2, SUCCESS)]


def test_as_many_requests_as_were_told_can_be_posted(programs, hosts):
    here, there = connected(programs)
    most = here.pair.max_send_wr
    assert most >= 8
    assert there.pair.max_recv_wr == most
    for number in range(most):
        there.receives.put(receive_wqe(number))
    here.post(*(send_wqe(number, data=b"") for number in range(most)))
    carry(hosts)
    assert completions(here.done) == [(number, SUCCESS) for number in range(most)]


def test_a_queue_pair_may_tell_of_every_request(programs, hosts):
    here, there = connected(programs)
    pair, sends, _ = here.program.pair(here.domain, here.completions, sq_sig_all=1)
    here.program.connect(pair.qp_handle, 2, there.pair.qpn)
    there.program.modify(there.pair.qp_handle, 1, qp_state=0)
    there.program.connect(there.pair.qp_handle, 1, pair.qpn)
    there.receives.put(receive_wqe(1))
    sends.put(send_wqe(7, flags=0, data=b""))
    here.program.ring_bell(pair.qp_handle)
    carry(hosts)
    assert completions(here.done) == [(7, SUCCESS)]


def test_receive_requests_of_the_error_state_are_flushed_with_the_next_command(programs):
    here, _ = connected(programs)
    here.receives.put(receive_wqe(1))
    here.program.modify(here.pair.qp_handle, 1, qp_state=6)
    here.receives.put(receive_wqe(2))
    here.program.domain()
    assert completions(here.done) == [(1, FLUSH), (2, FLUSH)]


def test_a_solicited_message_is_told_to_who_waits_for_such(programs, hosts):
    channel = programs[1].channel()
    os.set_blocking(channel, False)
    here, there = connected(programs, channel)
    there.program.call(Verb.REQ_NOTIFY_CQ, layouts.REQ_NOTIFY_CQ, cq_handle=there.completions, solicited_only=1)
    for number, flags in enumerate((0, SOLICITED)):
        there.receives.put(receive_wqe(number))
        with pytest.raises(BlockingIOError):
            os.read(channel, 8)
        here.post(send_wqe(number, flags=flags, data=b""))
        carry(hosts)
    assert len(os.read(channel, 100)) == 8


def test_a_fence_waits_for_the_read_before_it(programs, hosts):
    here, there = connected(programs)
    memory = Buffer()
    near = here.program.region(here.domain, memory.address, 4096)
    far = there.program.region(there.domain, memory.address, 4096)
    pieces = ((memory.address, 8, near.lkey),)
    read = send_wqe(1, opcode=READ, pieces=pieces, remote_addr=memory.address, rkey=far.rkey)
    write = {"opcode": WRITE, "data": b"x", "remote_addr": memory.address, "rkey": far.rkey}
    here.post(read, send_wqe(2, flags=FENCE | SIGNALED, **write))
    assert outgoing(hosts["H1"]) == 1
    here.program.modify(here.pair.qp_handle, 1, qp_state=6)
    here.program.modify(here.pair.qp_handle, 1, qp_state=0)
    here.program.connect(here.pair.qp_handle, 2, there.pair.qpn)
    here.post(read, send_wqe(2, **write))
    assert outgoing(hosts["H1"]) == 2


def test_immediate_data_is_what_was_given(programs, hosts):
    here, there = connected(programs)
    there.receives.put(receive_wqe(1))
    here.post(immediate(send_wqe(1, opcode=SEND_WITH_IMM, data=b""), b"\1\2\3\4"))
    carry(hosts)
    received = completion(there.done)
    assert (received.ex, received.wc_flags) == (b"\1\2\3\4", 2)


def test_windows_are_bound_one_after_the_other_before_the_first_is_done(programs, hosts):
    here, there = connected(programs)
    memory = Buffer()
    region = there.program.region(there.domain, memory.address, 4096)
    window = there.program.window(there.domain)
    keys = [window.rkey & ~0xFF | variant for variant in (window.rkey & 0xFF, 0x51, 0x52)]
    for number, (old, new) in enumerate(itertools.pairwise(keys)):
        binding = struct.pack("=QQIIII", memory.address + number, 8, region.lkey, old, new, 2)
        there.sends.put(send_wqe(number, opcode=BIND_MW, operands=binding))
    there.program.ring_bell(there.pair.qp_handle)
    carry(hosts)
    assert completions(there.done) == [(0, SUCCESS), (1, SUCCESS)]
    here.post(send_wqe(3, opcode=WRITE, data=b"12345678", remote_addr=memory.address + 1, rkey=keys[2]))
    carry(hosts)
    assert completions(here.done) == [(3, SUCCESS)]
    assert memory.bytes[:10] == b"\x0012345678\0"


def test_a_binding_of_no_window_is_an_error(programs, hosts):
    here, _ = connected(programs)
    here.post(send_wqe(1, opcode=BIND_MW, operands=struct.pack("=QQIIII", 0, 8, 1, 0xBAD00, 0xBAD01, 2)))
    carry(hosts)
    assert completions(here.done) == [(1, MW_BIND_ERR)]


def test_an_atomic_write_is_stored(programs, hosts):
    here, there = connected(programs)
    memory = Buffer()
    far = there.program.region(there.domain, memory.address, 4096)
    write = {"opcode": ATOMIC_WRITE, "remote_addr": memory.address + 8, "rkey": far.rkey}
    here.post(send_wqe(1, **write)[:208] + b"\1\2\3\4\5\6\7\x08")
    carry(hosts)
    assert completions(here.done) == [(1, SUCCESS)]
    assert memory.bytes[8:16] == b"\1\2\3\4\5\6\7\x08"


def test_a_datagram_that_is_too_long_is_a_length_error(programs, hosts):
    program = programs[0]
    memory = Buffer(8192)
    domain = program.domain()
    handle, done = program.completions()
    pair, sends, _ = program.pair(domain, handle, UD)
    program.datagrams(pair.qp_handle)
    region = program.region(domain, memory.address, 8192)
    sends.put(send_wqe(1, pieces=((memory.address, 2049, region.lkey),)))
    program.ring_bell(pair.qp_handle)
    carry(hosts)
    assert completions(done) == [(1, LOC_LEN_ERR)]


def test_more_inline_data_than_there_is_room_for_is_refused(programs, hosts):
    here, there = connected(programs)
    there.receives.put(receive_wqe(1))
    here.post(send_wqe(1, data=bytes(here.pair.max_inline_data + 1)))
    carry(hosts)
    assert completions(here.done) == [(1, LOC_QP_OP_ERR)]


def test_of_a_queue_pairs_number_24_bits_count(programs, hosts):
    ends = []
    for program in programs:
        domain = program.domain()
        handle, done = program.completions()
        pair, sends, receives = program.pair(domain, handle, UD)
        program.datagrams(pair.qp_handle)
        ends.append((program, domain, done, pair, sends, receives))
    (program, domain, _, pair, sends, _), (peer, far_domain, done, far_pair, _, receives) = ends
    memory = Buffer()
    region = peer.region(far_domain, memory.address, 4096)
    receives.put(receive_wqe(9, (memory.address, 4096, region.lkey)))
    handle = program.address(domain, layouts.AH_ATTR.pack(dlid=2, port_num=1))
    to = struct.pack("=IIHHI", 0xFF << 24 | far_pair.qpn, 0x11, 0, 0, handle)
    sends.put(send_wqe(1, data=b"x", operands=to))
    program.ring_bell(pair.qp_handle)
    packet = hosts["H1"].adapter.poll(0)
    bth = BTH.unpack(packet.data, LRH.size_bytes)
    assert (bth.dest_qp, bth.fecn, bth.becn) == (far_pair.qpn, 0, 0)
    hosts["H2"].adapter.receive(packet.data, 0)
    assert completions(done) == [(9, SUCCESS)]


def test_a_shared_receive_queue_serves_its_queue_pairs_and_tells_when_it_runs_low(programs, hosts):
    here, program = connected(programs)[0], programs[1]
    events = program.context()
    domain = program.domain()
    handle, done = program.completions()
    shared, receives = program.shared_receives(domain, limit=2)
    pair, *_ = program.pair(domain, handle, is_srq=1, srq_handle=shared.srq_handle)
    assert (pair.max_recv_wr, pair.max_recv_sge) == (0, 0)
    program.connect(pair.qp_handle, 1, here.pair.qpn)
    here.program.modify(here.pair.qp_handle, 1, qp_state=0)
    here.program.connect(here.pair.qp_handle, 2, pair.qpn)
    for number in range(3):
        receives.put(receive_wqe(number))
    here.post(*(send_wqe(number, data=b"") for number in range(3)))
    carry(hosts)
    assert completions(done) == [(0, SUCCESS), (1, SUCCESS), (2, SUCCESS)]
    data = os.read(events, 4096)
    told = [layouts.ASYNC_EVENT_DESC.unpack(data, at) for at in range(0, len(data), 16)]
    assert [(one.element, one.event_type) for one in told if one.event_type == 15] == [(0x5E, 15)]
