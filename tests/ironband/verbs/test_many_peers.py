"""XRC and RD: queue pairs that receive for others, and contexts that carry for many."""

import pytest

from ironband.verbs import (
    CQ,
    EEC,
    IBV_ACCESS_LOCAL_WRITE,
    IBV_QPS_ERR,
    IBV_QPS_RTS,
    IBV_QPT_XRC_RECV,
    IBV_QPT_XRC_SEND,
    IBV_SRQT_XRC,
    IBV_WC_RETRY_EXC_ERR,
    IBV_WC_SUCCESS,
    MR,
    PD,
    QP,
    QPT_RD,
    RDD,
    SGE,
    SRQ,
    XRCD,
    Context,
    PyverbsRDMAError,
    QPAttr,
    QPInitAttrEx,
    RecvWR,
    SendWR,
    SrqInitAttrEx,
    connect,
)
from tests.ironband.verbs.sides import CAP, Q_KEY


class Program:
    """What every program has at a host."""

    def __init__(self, fabric, host):
        self.context = Context(fabric, host)
        self.pd = PD(self.context)
        self.cq = CQ(self.context, 32)
        self.mr = MR(self.pd, 4096, IBV_ACCESS_LOCAL_WRITE)

    def sge(self, length, offset=0):
        return SGE(self.mr.buf + offset, length, self.mr.lkey)

    def completion(self):
        while True:
            count, found = self.cq.poll()
            if count:
                return found[0]


def test_senders_of_xrc_say_which_shared_queue_a_message_is_for(star):
    one, two = Program(star, "H1"), Program(star, "H2")
    sender = QP(one.context, QPInitAttrEx(IBV_QPT_XRC_SEND, scq=one.cq, cap=CAP, sq_sig_all=1, pd=one.pd))
    domain = XRCD(two.context)
    queues = []
    for _ in range(2):
        attr = SrqInitAttrEx(max_wr=4)
        attr.srq_type, attr.pd, attr.xrcd, attr.cq = IBV_SRQT_XRC, two.pd, domain, two.cq
        queues.append(SRQ(two.context, attr))
    receiver = QP(two.context, QPInitAttrEx(IBV_QPT_XRC_RECV, xrcd=domain))
    connect(sender, receiver)
    assert sender.qp_state == receiver.qp_state == IBV_QPS_RTS
    for number, queue in enumerate(queues):
        queue.post_recv(RecvWR(number, 1, [two.sge(16, 64 * number)]))
    for number in (1, 0):
        one.mr.write(f"for {number}")
        wr = SendWR(7, num_sge=1, sg=[one.sge(5)])
        wr.set_qp_type_xrc(queues[number].get_srq_num())
        sender.post_send(wr)
        assert (two.completion().wr_id, one.completion().status) == (number, IBV_WC_SUCCESS)
        assert two.mr.read(5, 64 * number) == f"for {number}".encode()
    with pytest.raises(PyverbsRDMAError, match="Failed to post recv"):
        receiver.post_recv(RecvWR(1, 1, [two.sge(16)]))
    domain.close()
    assert not any(queue.is_open for queue in queues)
    assert not receiver.is_open


def reliable(fabric, *hosts):
    """Programs with a queue pair of RD each, and contexts between the first and each of the others."""
    programs = [Program(fabric, host) for host in hosts]
    for program in programs:
        program.rdd = RDD(program.context)
        init = QPInitAttrEx(QPT_RD, scq=program.cq, rcq=program.cq, cap=CAP, sq_sig_all=1, pd=program.pd)
        init.rdd = program.rdd
        program.qp = QP(program.context, init)
        attr = QPAttr()
        attr.qkey, attr.min_rnr_timer = Q_KEY, 1
        program.qp.to_rts(attr)
    first, *others = programs
    contexts = []
    for other in others:
        ends = EEC(first.rdd), EEC(other.rdd)
        connect(*ends, timeout=4, retry_cnt=2)
        contexts.append(ends[0])
    return programs, contexts


def test_one_queue_pair_of_rd_sends_to_many_by_way_of_contexts(star):
    (first, *others), contexts = reliable(star, "H1", "H2", "H2")
    for number, (other, context) in enumerate(zip(others, contexts, strict=True)):
        other.qp.post_recv(RecvWR(number, 1, [other.sge(64)]))
        first.mr.write(f"to {number}")
        wr = SendWR(3, num_sge=1, sg=[first.sge(4)])
        wr.set_wr_rd(context.eec_num, other.qp.qp_num, Q_KEY)
        first.qp.post_send(wr)
        received = other.completion()
        assert (received.wr_id, received.byte_len, received.src_qp) == (number, 4, first.qp.qp_num)
        assert first.completion().status == IBV_WC_SUCCESS
        assert other.mr.read(4) == f"to {number}".encode()


def test_a_context_whose_peer_is_away_is_in_error_and_its_queue_pair_is_told(star):
    (first, other), (context,) = reliable(star, "H1", "H2")
    star.cut("SW1[2]")
    wr = SendWR(3, num_sge=1, sg=[first.sge(4)])
    wr.set_wr_rd(context.eec_num, other.qp.qp_num, Q_KEY)
    first.qp.post_send(wr)
    assert first.completion().status == IBV_WC_RETRY_EXC_ERR
    assert context.qp_state == IBV_QPS_ERR
