"""What goes wrong: completions that say why, and errors of one line that say what is allowed."""

import errno
from threading import Thread

import pytest

from ironband.verbs import (
    AH,
    CQ,
    GID,
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_REMOTE_WRITE,
    IBV_MW_TYPE_2,
    IBV_QP_ALT_PATH,
    IBV_QP_CUR_STATE,
    IBV_QP_EX_WITH_TSO,
    IBV_QP_STATE,
    IBV_QPS_ERR,
    IBV_QPS_INIT,
    IBV_QPS_RESET,
    IBV_QPS_SQD,
    IBV_QPT_RAW_PACKET,
    IBV_QPT_RC,
    IBV_QPT_UD,
    IBV_QPT_XRC_RECV,
    IBV_REREG_MR_CHANGE_ACCESS,
    IBV_SEND_INLINE,
    IBV_SRQT_XRC,
    IBV_WC_LOC_LEN_ERR,
    IBV_WC_LOC_PROT_ERR,
    IBV_WC_REM_ACCESS_ERR,
    IBV_WC_REM_INV_REQ_ERR,
    IBV_WC_RETRY_EXC_ERR,
    IBV_WC_RNR_RETRY_EXC_ERR,
    IBV_WC_WR_FLUSH_ERR,
    IBV_WR_BIND_MW,
    IBV_WR_RDMA_READ,
    IBV_WR_RDMA_WRITE,
    MR,
    MW,
    PD,
    QP,
    QPT_RD,
    SGE,
    SRQ,
    AHAttr,
    CompChannel,
    Context,
    MWBind,
    MWBindInfo,
    NothingComesError,
    PyverbsError,
    PyverbsRDMAError,
    PyverbsUserError,
    QPAttr,
    QPInitAttr,
    QPInitAttrEx,
    RecvWR,
    SendWR,
    SrqInitAttr,
    SrqInitAttrEx,
    ibv_event_type,
)
from ironband.verbs.mem_alloc import free, posix_memalign
from tests.ironband.verbs.sides import CAP, attributes, connect, connected, make_side


def test_a_cut_cable_ends_a_request_with_an_error(star):
    one, two = connected(star, timeout=5, retry_cnt=2)
    two.receive()
    star.cut("SW1[2]")
    one.send(b"into the void")
    failed = one.completion()
    assert (failed.wr_id, failed.status) == (5, IBV_WC_RETRY_EXC_ERR)
    assert one.qp.qp_state == IBV_QPS_ERR


def test_what_follows_a_failed_request_is_flushed(star):
    one, two = connected(star)
    one.send(b"x", IBV_WR_RDMA_WRITE, to=two, at=1 << 20)
    one.send(b"y")
    one.receive()
    assert [one.completion().status for _ in range(3)] == [IBV_WC_REM_ACCESS_ERR, *[IBV_WC_WR_FLUSH_ERR] * 2]


@pytest.mark.parametrize(("key", "at"), [(1, 0), (0, 1 << 16), (0, -1)])
def test_a_wrong_key_or_range_of_remote_memory_is_refused_by_the_responder(star, key, at):
    one, two = connected(star)
    wr = one.request(8, IBV_WR_RDMA_READ)
    wr.set_wr_rdma(two.mr.rkey + key, two.mr.buf + at)
    one.qp.post_send(wr)
    assert one.completion().status == IBV_WC_REM_ACCESS_ERR
    assert two.context.get_async_event().event_type == ibv_event_type.IBV_EVENT_QP_ACCESS_ERR


def test_a_right_that_a_region_does_not_give_is_refused(star):
    one, two = connected(star)
    region = MR(two.pd, 64, IBV_ACCESS_LOCAL_WRITE)
    wr = one.request(8, IBV_WR_RDMA_WRITE)
    wr.set_wr_rdma(region.rkey, region.buf)
    one.qp.post_send(wr)
    assert one.completion().status == IBV_WC_REM_ACCESS_ERR


def test_a_region_whose_rights_have_changed_is_as_it_is_now(star):
    one, two = connected(star)
    two.mr.rereg(IBV_REREG_MR_CHANGE_ACCESS, access=IBV_ACCESS_LOCAL_WRITE)
    one.send(b"x", IBV_WR_RDMA_WRITE, to=two)
    assert one.completion().status == IBV_WC_REM_ACCESS_ERR


def test_a_key_of_another_host_is_no_key_here(star):
    one, two = connected(star)
    MR(two.pd, 64, IBV_ACCESS_LOCAL_WRITE)
    two.receive()
    one.qp.post_send(SendWR(1, num_sge=1, sg=[SGE(two.mr.buf, 8, two.mr.lkey)]))
    assert one.completion().status == IBV_WC_LOC_PROT_ERR


def test_memory_that_is_not_there_any_more_ends_a_request(star):
    one, two = connected(star)
    address = posix_memalign(64, 4096)
    region = MR(one.pd, 64, IBV_ACCESS_LOCAL_WRITE, address=address)
    two.receive()
    free(address)
    one.qp.post_send(SendWR(1, num_sge=1, sg=[SGE(region.buf, 8, region.lkey)]))
    assert one.completion().status == IBV_WC_LOC_PROT_ERR


def test_a_message_that_finds_no_receive_request_is_given_up_after_its_retries(star):
    one, _two = connected(star, rnr_retry=1)
    one.send(b"x")
    assert one.completion().status == IBV_WC_RNR_RETRY_EXC_ERR


def test_a_message_longer_than_its_receive_request_is_an_error_at_both_ends(star):
    one, two = connected(star)
    two.receive(length=4)
    one.send(b"too long")
    assert one.completion().status == IBV_WC_REM_INV_REQ_ERR
    assert two.completion().status == IBV_WC_LOC_LEN_ERR


def test_the_first_message_that_comes_before_rts_is_told(star):
    one, two = make_side(star, "H1"), make_side(star, "H2")
    one.qp.to_rts(attributes(two))
    two.qp.to_rtr(attributes(one))
    two.receive()
    one.send(b"early")
    assert two.context.get_async_event().event_type == ibv_event_type.IBV_EVENT_COMM_EST


def test_polling_what_nothing_can_come_to_ends_with_an_error(star):
    one, _two = connected(star)
    with pytest.raises(NothingComesError, match=r"poll of a completion queue at H1: nothing is under way any more"):
        one.completion()
    assert isinstance(NothingComesError("x"), TimeoutError)


def test_an_empty_poll_of_a_network_at_rest_finds_nothing(star):
    one, _two = connected(star)
    before = star.now
    assert one.cq.poll() == (0, [])
    assert star.now > before


def refused(match: str, error: int):
    def has_error(raised: PyverbsRDMAError) -> bool:
        return raised.error_code == error and "\n" not in str(raised)

    return pytest.raises(PyverbsRDMAError, match=match, check=has_error)


def test_work_requests_that_cannot_be_posted_are_refused(star):
    one, two = make_side(star, "H1"), make_side(star, "H2")
    bad = SendWR(0, num_sge=1, sg=[one.sge(0, 1)])
    with refused(
        r"Failed to post send: SEND on RC .* it is in RESET, allowed RTS, SQD, SQE, ERR\. Errno: 22", errno.EINVAL
    ):
        one.qp.post_send(one.request(4), bad)
    assert bad.wr_id == 5
    with refused("Failed to post recv: .* it is in RESET", errno.EINVAL):
        one.receive()
    connect(one, two)
    with refused("129 bytes inline, allowed up to 128", errno.EINVAL):
        one.qp.post_send(one.request(129, send_flags=IBV_SEND_INLINE))
    with refused("5 pieces, allowed up to 4", errno.EINVAL):
        one.qp.post_send(SendWR(1, num_sge=5, sg=[one.sge(0, 1)] * 5))
    with refused("4 bytes, allowed 8", errno.EINVAL):
        one.qp.post_send(one.request(4, 5))
    with refused("77 is not a valid SendOpcode", errno.EINVAL):
        one.qp.post_send(one.request(4, 77))
    with refused("BIND_MW without a window: expected set_bind_wr before", errno.EINVAL):
        one.qp.post_send(SendWR(1, IBV_WR_BIND_MW))
    for _ in range(CAP.max_recv_wr):
        one.receive()
    with refused("receive queue is full with 32 requests", errno.ENOMEM):
        one.receive()


def test_a_list_is_posted_up_to_the_request_that_is_refused(star):
    one, two = connected(star)
    two.receive()
    bad = SendWR(0, num_sge=1, sg=[one.sge(0, 1)])
    with refused("5 pieces", errno.EINVAL):
        one.qp.post_send(one.request(4, next_wr=SendWR(9, num_sge=5, sg=[one.sge(0, 1)] * 5)), bad)
    assert (bad.wr_id, bad.num_sge) == (9, 5)
    assert one.completion().wr_id == 5


def test_a_work_request_needs_memory_and_as_much_as_it_says(star):
    one = make_side(star, "H1")
    with pytest.raises(PyverbsUserError, match="A WR needs at least one SGE"):
        SendWR()
    with pytest.raises(PyverbsUserError, match="num_sge 2: sg has 1"):
        RecvWR(1, 2, [one.sge(0, 1)])


def test_transitions_that_there_are_not_are_refused(star):
    one, two = connected(star)
    attr = attributes(two)
    attr.qp_state = IBV_QPS_INIT
    with refused("Failed to modify QP: RC queue pair, RTS to INIT: there is no such transition", errno.EINVAL):
        one.qp.modify(attr, IBV_QP_STATE)
    attr.qp_state, attr.cur_qp_state = IBV_QPS_SQD, IBV_QPS_RESET
    with refused("it is in RTS, not in RESET", errno.EINVAL):
        one.qp.modify(attr, IBV_QP_STATE | IBV_QP_CUR_STATE)
    with refused("there is nothing to be set for IBV_QP_ALT_PATH", errno.EINVAL):
        one.qp.modify(attr, IBV_QP_ALT_PATH)
    attr.qp_state = 9
    with refused("9 is not a valid QpState", errno.EINVAL):
        one.qp.modify(attr, IBV_QP_STATE)
    fresh = make_side(star, "H1").qp
    with refused("path_mtu 7: allowed codes 1..5", errno.EINVAL):
        fresh.to_rts(attributes(two, path_mtu=7))
    with refused("path_mtu 4096: allowed 256, 512, 1024, 2048, 4096, up to the port's 2048", errno.EINVAL):
        fresh.to_rtr(attributes(two, path_mtu=5))


def test_what_cannot_be_made_is_refused(star):
    context = Context(star, "H1")
    pd, cq = PD(context), CQ(context, 10)
    with refused("completion queue of 0 entries", errno.EINVAL):
        CQ(context, 0)
    with refused(r"comp_vector 1: allowed 0\.\.0", errno.EINVAL):
        CQ(context, 10, None, None, 1)
    with refused("remote write and atomic access need LOCAL_WRITE", errno.EINVAL):
        MR(pd, 10, IBV_ACCESS_REMOTE_WRITE)
    with refused("length 0: allowed 1 and above", errno.EINVAL):
        MR(pd, 0, 0)
    with refused("access 0x1000: allowed bits", errno.EINVAL):
        MR(pd, 10, 0x1000)
    with refused("10 bytes at 0x7: there is no such memory", errno.EFAULT):
        MR(pd, 10, 0, address=7)
    with refused("length 9: bytearray has 8 bytes", errno.EINVAL):
        MR(pd, 9, 0, address=bytearray(8))
    with refused("bytes: cannot be written", errno.EINVAL):
        MR(pd, 8, 0, address=b"constant")
    with refused("window of type 3: allowed 1, 2", errno.EINVAL):
        MW(pd, 3)
    with refused(r"Failed to create QP: RC without rcq=", errno.EINVAL):
        QP(pd, QPInitAttr(IBV_QPT_RC, scq=cq))
    with refused(r"type 8, allowed RC 2, UC 3, UD 4, XRC_SEND 9, XRC_RECV 10, RD 256", errno.EOPNOTSUPP):
        QP(pd, QPInitAttr(IBV_QPT_RAW_PACKET, scq=cq, rcq=cq))
    with refused(r"port 2: allowed 1\.\.1", errno.EINVAL):
        AH(pd, attr=AHAttr(dlid=1, port_num=2))
    with pytest.raises(PyverbsUserError, match=r"Invalid GID value \(fe80::1\)"):
        GID("fe80::1")
    with pytest.raises(PyverbsUserError, match="gr parameter is None"):
        AHAttr(is_global=1)
    with pytest.raises(PyverbsUserError, match="expected attr=, or wc="):
        AH(pd)
    with pytest.raises(PyverbsUserError, match="QP of a context: expected QPInitAttrEx with pd="):
        QP(context, QPInitAttrEx(IBV_QPT_UD, scq=cq, rcq=cq))
    other = CQ(Context(star, "H2"), 10)
    with refused("its CQ is of another context", errno.EINVAL):
        QP(pd, QPInitAttr(IBV_QPT_RC, scq=cq, rcq=other))
    with pytest.raises(PyverbsUserError, match="QP that receives for XRC: expected QPInitAttrEx with xrcd="):
        QP(context, QPInitAttrEx(IBV_QPT_XRC_RECV))
    with refused("operations IBV_QP_EX_WITH_TSO", errno.EOPNOTSUPP):
        QP(context, QPInitAttrEx(IBV_QPT_UD, scq=cq, rcq=cq, pd=pd, send_ops_flags=IBV_QP_EX_WITH_TSO))
    with refused("create_flags 2, allowed none", errno.EOPNOTSUPP):
        QP(context, QPInitAttrEx(IBV_QPT_UD, scq=cq, rcq=cq, pd=pd, create_flags=2))
    with refused("domain of RD None: allowed is RD with one", errno.EINVAL):
        QP(context, QPInitAttrEx(QPT_RD, scq=cq, rcq=cq, pd=pd))
    shared = SrqInitAttrEx()
    with pytest.raises(PyverbsUserError, match="SRQ of Context: expected PD, or Context and SrqInitAttrEx with pd"):
        SRQ(context, shared)
    shared.pd, shared.srq_type = pd, IBV_SRQT_XRC
    with refused("one for XRC: expected xrcd and cq", errno.EINVAL):
        SRQ(context, shared)
    with refused("it is not for XRC", errno.EOPNOTSUPP):
        SRQ(pd, SrqInitAttr()).get_srq_num()
    # Nothing is left of what was refused.
    pd.close()


def test_questions_about_ports_that_there_are_not_are_refused(star):
    context = Context(star, "H1")
    with refused(r"Failed to query port 2 of H1: allowed 1\.\.1", errno.EINVAL):
        context.query_port(2)
    with refused(r"GID index 1 at H1: allowed 0\.\.0", errno.EINVAL):
        context.query_gid(1, 1)
    with refused("P_Key 0x1234: port 1 of H1 does not have it", errno.EINVAL):
        context.get_pkey_index(1, 0x1234)


def test_a_region_is_read_and_written_within_its_bounds(star):
    region = MR(PD(Context(star, "H1")), 10, IBV_ACCESS_LOCAL_WRITE)
    with pytest.raises(PyverbsUserError, match=r"MR\.write of 4 bytes at offset 8: region has 10"):
        region.write(b"abcd", 4, 8)
    with pytest.raises(PyverbsUserError, match=r"MR\.read of 11 bytes at offset 0"):
        region.read(11, 0)
    with pytest.raises(PyverbsUserError, match=r"MR\.write of 5 bytes: data has 4"):
        region.write(b"abcd", 5)


def test_a_region_with_a_window_does_not_go(star):
    one, two = connected(star)
    window = MW(two.pd, IBV_MW_TYPE_2)
    wr = SendWR(1, IBV_WR_BIND_MW)
    wr.set_bind_wr(window, MWBindInfo(two.mr, two.mr.buf, 64, IBV_ACCESS_REMOTE_WRITE))
    two.qp.post_send(wr)
    two.completion()
    with refused(f"Failed to close MR: region {two.mr.rkey:#x} is used by window {window.rkey:#x}", errno.EBUSY):
        two.mr.close()
    window.close()
    two.mr.close()
    with refused("it is of type 2, allowed 1", errno.EINVAL):
        one.qp.bind_mw(MW(one.pd, IBV_MW_TYPE_2), MWBind(MWBindInfo(one.mr, 0, 0, 0), 0))


def test_what_is_made_of_a_thing_is_closed_with_it(star):
    one, two = connected(star, events=True)
    with one.context:
        pass
    assert not any(thing.is_open for thing in (one.pd, one.cq, one.mr, one.qp, one.channel))
    assert two.qp.is_open
    one.context.close()
    for use in (lambda: one.cq.poll(), lambda: one.mr.read(1), lambda: one.receive(), lambda: PD(one.context)):
        with pytest.raises(PyverbsUserError, match="has been closed"):
            use()


def test_an_event_of_another_queue_is_an_error(star):
    one, two = connected(star, events=True)
    other = CQ(two.context, 10, None, two.channel)
    two.receive()
    two.cq.req_notify()
    one.send(b"x")
    with refused("Received event on an unexpected CQ", errno.EINVAL):
        two.channel.get_cq_event(other)


def test_events_of_a_queue_that_is_closed_are_forgotten(star):
    one, two = connected(star, events=True)
    two.receive()
    two.cq.req_notify()
    one.send(b"x")
    one.completion()
    other = CQ(two.context, 10, None, two.channel)
    two.cq.close()
    with pytest.raises(NothingComesError):
        two.channel.get_cq_event(other, cycles=1000)


def test_another_thread_cannot_let_time_pass(star):
    one, _two = connected(star)
    raised: list[Exception] = []

    def poll() -> None:
        try:
            one.cq.poll()
        except PyverbsError as error:
            raised.append(error)

    thread = Thread(target=poll)
    thread.start()
    thread.join()
    assert "expected the thread that began it" in str(raised[0])


def test_a_channel_and_a_queue_of_different_hosts_do_not_go_together(star):
    channel = CompChannel(Context(star, "H1"))
    with pytest.raises(PyverbsUserError, match="channel of H1: expected one of H2"):
        CQ(Context(star, "H2"), 10, None, channel)


def test_a_queue_pair_without_attributes_stays_in_reset(star):
    side = make_side(star, "H1")
    assert side.qp.qp_state == IBV_QPS_RESET
    with refused(
        "Failed to modify QP state to INIT: .* p_key_index 3: allowed 0..0|p_key_index 3: allowed", errno.EINVAL
    ):
        attr = QPAttr()
        attr.pkey_index = 3
        side.qp.to_init(attr)
