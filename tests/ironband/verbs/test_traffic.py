"""Programs as they are written for pyverbs: messages, remote memory, atomics, windows, shared queues, events."""

import socket

import numpy
import pytest

from ironband.verbs import (
    AH,
    CQEX,
    GID,
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_REMOTE_WRITE,
    IBV_ACCESS_ZERO_BASED,
    IBV_MW_TYPE_1,
    IBV_MW_TYPE_2,
    IBV_QPS_RTS,
    IBV_QPT_RC,
    IBV_QPT_UC,
    IBV_QPT_UD,
    IBV_REREG_MR_CHANGE_PD,
    IBV_REREG_MR_CHANGE_TRANSLATION,
    IBV_SEND_INLINE,
    IBV_SEND_SIGNALED,
    IBV_SEND_SOLICITED,
    IBV_SRQ_LIMIT,
    IBV_WC_BIND_MW,
    IBV_WC_GRH,
    IBV_WC_LOCAL_INV,
    IBV_WC_RDMA_READ,
    IBV_WC_RDMA_WRITE,
    IBV_WC_RECV,
    IBV_WC_RECV_RDMA_WITH_IMM,
    IBV_WC_REM_ACCESS_ERR,
    IBV_WC_SEND,
    IBV_WC_SUCCESS,
    IBV_WC_WITH_IMM,
    IBV_WC_WITH_INV,
    IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_ATOMIC_FETCH_AND_ADD,
    IBV_WR_BIND_MW,
    IBV_WR_LOCAL_INV,
    IBV_WR_RDMA_READ,
    IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_SEND_WITH_IMM,
    IBV_WR_SEND_WITH_INV,
    MR,
    MW,
    PD,
    SGE,
    AHAttr,
    CqInitAttrEx,
    GlobalRoute,
    MWBind,
    MWBindInfo,
    NothingComesError,
    PollCqAttr,
    PyverbsRDMAError,
    PyverbsUserError,
    QPEx,
    QPInitAttrEx,
    RecvWR,
    SendWR,
    SrqAttr,
    ibv_event_type,
)
from ironband.verbs import connect as connect_pairs
from ironband.verbs.mem_alloc import posix_memalign, read, write
from tests.ironband.verbs.sides import CAP, GRH_BYTES, Q_KEY, connect, connected, datagram, make_side

TEXT = bytes(range(256)) * 20


@pytest.mark.parametrize("kind", [IBV_QPT_RC, IBV_QPT_UC])
def test_a_message_arrives_and_both_sides_hear_of_it(star, kind):
    one, two = connected(star, kind)
    two.receive(100, 6000)
    one.send(TEXT)
    sent, received = one.completion(), two.completion()
    assert (sent.wr_id, sent.status, sent.opcode) == (5, IBV_WC_SUCCESS, IBV_WC_SEND)
    assert (received.wr_id, received.status, received.opcode) == (7, IBV_WC_SUCCESS, IBV_WC_RECV)
    assert (received.byte_len, received.qp_num) == (len(TEXT), two.qp.qp_num)
    assert two.mr.read(len(TEXT), 100) == TEXT


def test_messages_go_both_ways_at_the_same_time(star):
    sides = connected(star)
    for side in sides:
        side.receive(8192, 6000)
    for side, data in zip(sides, (TEXT, TEXT[::-1]), strict=True):
        side.send(data)
    for side, data in zip(sides, (TEXT[::-1], TEXT), strict=True):
        assert {side.completion().opcode, side.completion().opcode} == {IBV_WC_SEND, IBV_WC_RECV}
        assert side.mr.read(len(data), 8192) == data


@pytest.mark.parametrize("kind", [IBV_QPT_RC, IBV_QPT_UC])
def test_a_write_goes_to_the_memory_that_its_r_key_names(star, kind):
    one, two = connected(star, kind)
    one.send(TEXT, IBV_WR_RDMA_WRITE, to=two, at=1000)
    assert one.completion().opcode == IBV_WC_RDMA_WRITE
    star.run_until(lambda: star.is_idle)
    assert two.mr.read(len(TEXT), 1000) == TEXT


def test_a_write_with_immediate_takes_a_receive_request(star):
    one, two = connected(star)
    two.receive()
    one.send(TEXT, IBV_WR_RDMA_WRITE_WITH_IMM, to=two, imm_data=socket.htonl(0x1234))
    received = two.completion()
    assert (received.opcode, received.wc_flags) == (IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM)
    assert socket.ntohl(received.imm_data) == 0x1234


def test_immediate_data_of_a_send_is_in_the_completion(star):
    one, two = connected(star)
    two.receive()
    one.send(b"x", IBV_WR_SEND_WITH_IMM, imm_data=socket.htonl(1))
    received = two.completion()
    assert received.wc_flags & IBV_WC_WITH_IMM
    assert socket.ntohl(received.imm_data) == 1


def test_a_read_brings_remote_memory(star):
    one, two = connected(star)
    two.mr.write(TEXT, offset=50)
    wr = one.request(len(TEXT), IBV_WR_RDMA_READ, offset=2000)
    wr.set_wr_rdma(two.mr.rkey, two.mr.buf + 50)
    one.qp.post_send(wr)
    assert one.completion().opcode == IBV_WC_RDMA_READ
    assert one.mr.read(len(TEXT), 2000) == TEXT


@pytest.mark.parametrize(
    ("opcode", "operands", "after"),
    [
        (IBV_WR_ATOMIC_FETCH_AND_ADD, (5,), 47),
        (IBV_WR_ATOMIC_CMP_AND_SWP, (42, 9), 9),
        (IBV_WR_ATOMIC_CMP_AND_SWP, (41, 9), 42),
    ],
)
def test_an_atomic_changes_a_number_of_this_machine_and_brings_what_it_was(star, opcode, operands, after):
    one, two = connected(star)
    two.mr.write((42).to_bytes(8, "little"))
    wr = one.request(8, opcode, offset=8)
    wr.set_wr_atomic(two.mr.rkey, two.mr.buf, *operands)
    one.qp.post_send(wr)
    assert one.completion().status == IBV_WC_SUCCESS
    assert int.from_bytes(one.mr.read(8, 8), "little") == 42
    assert int.from_bytes(two.mr.read(8, 0), "little") == after


def test_a_datagram_without_a_grh_leaves_40_bytes_free(star):
    one, two = connected(star, IBV_QPT_UD)
    two.receive()
    one.mr.write(TEXT[:100])
    handle = AH(one.pd, attr=AHAttr(dlid=two.context.query_port(1).lid))
    one.qp.post_send(datagram(one, two, handle))
    received = two.completion()
    assert (received.byte_len, received.wc_flags) == (GRH_BYTES + 100, 0)
    assert (received.src_qp, received.slid) == (one.qp.qp_num, one.context.query_port(1).lid)
    assert two.mr.read(100, GRH_BYTES) == TEXT[:100]


@pytest.mark.parametrize("global_route", [False, True])
def test_a_datagram_is_answered_by_its_completion(star, global_route):
    one, two = connected(star, IBV_QPT_UD)
    one.receive(offset=8192)
    two.receive()
    port = two.context.query_port(1)
    gr = GlobalRoute(GID(two.context.query_gid(1, 0).gid)) if global_route else None
    there = AH(one.pd, attr=AHAttr(dlid=port.lid, is_global=int(global_route), gr=gr))
    one.qp.post_send(datagram(one, two, there))
    received = two.completion()
    assert bool(received.wc_flags & IBV_WC_GRH) is global_route
    back = AH(two.pd, wc=received, grh=two.mr.buf, port_num=1)
    wr = two.request(8)
    wr.set_wr_ud(back, received.src_qp, Q_KEY)
    two.qp.post_send(wr)
    assert one.completion().opcode == IBV_WC_SEND
    assert one.completion().src_qp == two.qp.qp_num


def test_a_message_is_gathered_from_pieces_and_scattered_into_pieces(star):
    one, two = connected(star)
    one.mr.write("abcdefgh")
    two.qp.post_recv(RecvWR(1, 2, [two.sge(10, 3), two.sge(0, 10)]))
    one.qp.post_send(SendWR(2, num_sge=3, sg=[one.sge(6, 2), one.sge(0, 1), one.sge(3, 2)]))
    assert two.completion().byte_len == 5
    assert (two.mr.read(3, 10), two.mr.read(2, 0)) == (b"gha", b"de")


def test_inline_data_is_what_it_was_when_it_was_posted(star):
    one, two = connected(star)
    two.receive()
    one.send(b"before", send_flags=IBV_SEND_INLINE)
    one.mr.write(b"after!")
    assert two.completion().byte_len == 6
    assert two.mr.read(6, 0) == b"before"


def test_requests_are_told_of_only_if_they_say_so_unless_all_are(star):
    one = make_side(star, "H1", sq_sig_all=0)
    two = make_side(star, "H2")
    connect(one, two)
    for wr_id, flags in ((1, 0), (2, IBV_SEND_SIGNALED)):
        two.receive()
        one.qp.post_send(SendWR(wr_id, num_sge=1, sg=[one.sge(0, 4)], send_flags=flags))
    assert one.completion().wr_id == 2
    assert one.cq.poll() == (0, [])


def test_a_list_of_requests_is_posted_in_one_call(star):
    one, two = connected(star)
    two.qp.post_recv(RecvWR(1, 1, [two.sge(0, 64)], next_wr=RecvWR(2, 1, [two.sge(64, 64)])))
    last = one.request(2, offset=1)
    one.mr.write(b"abc")
    one.qp.post_send(SendWR(4, num_sge=1, sg=[one.sge(0, 1)], next_wr=last))
    assert [two.completion().wr_id, two.completion().wr_id] == [1, 2]
    assert (two.mr.read(1, 0), two.mr.read(2, 64)) == (b"a", b"bc")


def test_poll_takes_as_many_completions_as_are_asked_for(star):
    one, two = connected(star)
    for _ in range(3):
        two.receive()
        one.qp.post_send(one.request(4))
    star.run_until(lambda: star.is_idle)
    assert [one.cq.poll(2)[0], one.cq.poll(2)[0]] == [2, 1]


def test_queue_pairs_share_receive_requests_and_hear_that_few_are_left(star):
    one, two = connected(star, shared=True)
    two.srq.modify(SrqAttr(srq_limit=2), IBV_SRQ_LIMIT)
    two.receive(wr_id=1)
    two.receive(wr_id=2)
    one.send(b"x")
    assert two.completion().wr_id == 1
    event = two.context.get_async_event()
    event.ack()
    assert event.event_type == ibv_event_type.IBV_EVENT_SRQ_LIMIT_REACHED
    assert (two.srq.query().max_wr, two.srq.query().srq_limit) == (32, 0)


def test_a_channel_tells_of_the_next_completion(star):
    one, two = connected(star, events=True)
    two.receive()
    two.cq.req_notify()
    one.send(b"x")
    assert two.cq.comp_channel is two.channel
    two.channel.get_cq_event(two.cq)
    two.cq.ack_events(1)
    assert two.cq.poll()[0] == 1


def test_a_channel_tells_of_a_solicited_completion_only_if_that_was_asked_for(star):
    one, two = connected(star, events=True)
    two.receive(wr_id=1)
    two.receive(wr_id=2)
    two.cq.req_notify(solicited_only=True)
    one.send(b"x")
    with pytest.raises(NothingComesError, match="event of a completion queue at H2: nothing is under way any more"):
        two.channel.get_cq_event(two.cq)
    one.send(b"x", send_flags=IBV_SEND_SIGNALED | IBV_SEND_SOLICITED)
    two.channel.get_cq_event(two.cq)
    assert [wc.wr_id for wc in two.cq.poll(4)[1]] == [1, 2]


def test_a_channel_that_waits_in_vain_says_so_after_the_cycles_given(star):
    one, two = connected(star, events=True, timeout=14)
    two.cq.req_notify()
    star.cut("SW1[2]")
    one.send(b"x")
    before = star.now
    with pytest.raises(TimeoutError, match="has not come within 5,000 cycles"):
        two.channel.get_cq_event(two.cq, cycles=5_000)
    assert star.now == before + 5_000


def test_a_window_of_type_1_is_bound_by_the_consumer(star):
    one, two = connected(star)
    with MW(two.pd, IBV_MW_TYPE_1) as window:
        before = window.rkey
        info = MWBindInfo(two.mr, two.mr.buf + 512, 64, IBV_ACCESS_REMOTE_WRITE)
        two.qp.bind_mw(window, MWBind(info, IBV_SEND_SIGNALED, wr_id=3))
        assert window.rkey != before
        bound = two.completion()
        assert (bound.wr_id, bound.opcode) == (3, IBV_WC_BIND_MW)
        one.mr.write(b"through a window")
        wr = one.request(16, IBV_WR_RDMA_WRITE)
        wr.set_wr_rdma(window.rkey, two.mr.buf + 512)
        one.qp.post_send(wr)
        assert one.completion().status == IBV_WC_SUCCESS
        assert two.mr.read(16, 512) == b"through a window"


def bind_of_type_2(side, window: MW, offset: int, length: int) -> SendWR:
    wr = SendWR(1, IBV_WR_BIND_MW)
    wr.set_bind_wr(window, MWBindInfo(side.mr, side.mr.buf + offset, length, IBV_ACCESS_REMOTE_WRITE))
    return wr


@pytest.mark.parametrize("by_peer", [False, True])
def test_a_window_of_type_2_is_bound_and_invalidated_by_work_requests(star, by_peer):
    one, two = connected(star)
    window = MW(two.pd, IBV_MW_TYPE_2)
    wr = bind_of_type_2(two, window, 0, 64)
    two.qp.post_send(wr)
    assert two.completion().opcode == IBV_WC_BIND_MW
    assert window.rkey == wr.rkey
    if by_peer:
        two.receive(1024)
        one.send(b"x", IBV_WR_SEND_WITH_INV, imm_data=window.rkey)
        received = two.completion()
        assert (received.wc_flags, received.imm_data) == (IBV_WC_WITH_INV, window.rkey)
        one.completion()
    else:
        two.qp.post_send(SendWR(2, IBV_WR_LOCAL_INV, imm_data=window.rkey))
        assert two.completion().opcode == IBV_WC_LOCAL_INV
    late = one.request(16, IBV_WR_RDMA_WRITE)
    late.set_wr_rdma(window.rkey, two.mr.buf)
    one.qp.post_send(late)
    assert one.completion().status == IBV_WC_REM_ACCESS_ERR


def test_a_region_of_somebody_s_bytes_is_what_the_program_sees(star):
    one, two = connected(star)
    there = bytearray(64)
    region = MR(two.pd, 0, IBV_ACCESS_LOCAL_WRITE, address=there)
    assert region.length == 64
    two.qp.post_recv(RecvWR(1, 1, [SGE(region.buf, 64, region.lkey)]))
    one.send(b"into a bytearray")
    two.completion()
    assert there[:16] == b"into a bytearray"


def test_a_region_of_an_array_is_what_the_program_sees(star):
    one, two = connected(star)
    numbers = numpy.arange(8, dtype=numpy.uint32)
    region = MR(two.pd, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, address=numbers)
    one.mr.write((77).to_bytes(4, "little"))
    wr = one.request(4, IBV_WR_RDMA_WRITE)
    wr.set_wr_rdma(numpy.uint32(region.rkey), numpy.uint64(region.buf + 4 * 3))
    one.qp.post_send(wr)
    one.completion()
    assert list(numbers) == [0, 1, 2, 77, 4, 5, 6, 7]


def test_a_region_moves_to_other_memory_and_another_domain(star):
    one, two = connected(star)
    domain = PD(two.context)
    elsewhere = posix_memalign(64, 4096)
    write(elsewhere, b"moved", 5)
    flags = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD
    before = two.mr.rkey
    two.mr.rereg(flags, domain, elsewhere, 64)
    assert (two.mr.rkey, two.mr.length, two.mr.read(5)) == (before, 64, b"moved")
    domain.close()
    assert not two.mr.is_open
    assert read(elsewhere, 5) == b"moved"
    assert one.mr.is_open


def test_connected_queue_pairs_exchange_messages(star):
    sides = make_side(star, "H1"), make_side(star, "H2")
    one, two = sides
    connect_pairs(one.qp, two.qp, is_global=True, rq_psn=5, sq_psn=5)
    two.receive()
    one.send(b"x")
    assert two.completion().byte_len == 1
    attr, init = one.qp.query()
    assert (attr.qp_state, attr.dest_qp_num, attr.sq_psn, attr.path_mtu) == (IBV_QPS_RTS, two.qp.qp_num, 6, 4)
    assert attr.ah_attr.dgid == two.context.query_gid(1, 0).gid
    assert init.max_send_wr == 32
    with pytest.raises(PyverbsUserError, match="connect: colour: there is no such attribute"):
        connect_pairs(one.qp, two.qp, colour=1)


def test_extended_queues_are_filled_and_read_call_by_call(star):
    one, two = make_side(star, "H1"), make_side(star, "H2")
    cqs = [CQEX(side.context, CqInitAttrEx(cqe=16)) for side in (one, two)]
    pairs = [
        QPEx(side.context, QPInitAttrEx(IBV_QPT_RC, scq=cq, rcq=cq, cap=CAP, pd=side.pd))
        for side, cq in zip((one, two), cqs, strict=True)
    ]
    connect_pairs(*pairs)
    for wr_id in (1, 2):
        pairs[1].post_recv(RecvWR(wr_id, 1, [two.sge(64 * wr_id, 64)]))
    one.mr.write(b"inline or not")
    posting = pairs[0]
    posting.wr_start()
    posting.wr_id, posting.wr_flags = 3, 0
    posting.wr_send_imm(0x1234)
    posting.wr_set_inline_data(one.mr.buf, 6)
    posting.wr_id, posting.wr_flags = 4, IBV_SEND_SIGNALED
    posting.wr_send()
    posting.wr_set_sge_list(2, [one.sge(10, 3), one.sge(0, 2)])
    posting.wr_complete()
    taken = []
    while len(taken) < 2:
        if cqs[1].start_poll(PollCqAttr()) == 0:
            taken.append((cqs[1].wr_id, cqs[1].read_byte_len(), cqs[1].read_timestamp(), cqs[1].read_imm_data()))
            cqs[1].end_poll()
    (first, length, when, data), (second, other, later, _none) = taken
    assert (first, length, second, other) == (1, 6, 2, 5)
    assert when < later <= star.now
    assert socket.ntohl(data) == 0x1234
    assert (two.mr.read(6, 64), two.mr.read(5, 128)) == (b"inline", b"notin")
    while cqs[0].start_poll():
        pass
    assert (cqs[0].wr_id, cqs[0].status) == (4, IBV_WC_SUCCESS)
    posting.wr_start()
    posting.wr_send()
    posting.wr_abort()
    posting.wr_complete()
    with pytest.raises(PyverbsRDMAError, match="Failed to set up a work request: none was begun"):
        posting.wr_set_sge(one.sge(0, 1))


def test_a_zero_based_region_is_named_by_offsets(star):
    one, two = connected(star)
    region = MR(two.pd, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED)
    one.mr.write(b"zero")
    wr = one.request(4, IBV_WR_RDMA_WRITE)
    wr.set_wr_rdma(region.rkey, 8)
    one.qp.post_send(wr)
    assert one.completion().status == IBV_WC_SUCCESS
    assert region.read(4, 8) == b"zero"


def test_two_programs_at_one_host_talk_too(star):
    one, two = connected(star, hosts=("H1", "H1"))
    two.receive()
    one.send(b"to myself")
    assert two.completion().byte_len == 9
    assert two.qp.qp_state == IBV_QPS_RTS
