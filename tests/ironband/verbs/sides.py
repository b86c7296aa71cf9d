"""Two programs' ends of a connection, written as programs for pyverbs are."""

from __future__ import annotations

from dataclasses import dataclass

from ironband.verbs import (
    CQ,
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_MW_BIND,
    IBV_ACCESS_REMOTE_ATOMIC,
    IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE,
    IBV_MTU_1024,
    IBV_QPT_RC,
    IBV_WR_SEND,
    MR,
    PD,
    QP,
    SGE,
    SRQ,
    WC,
    AHAttr,
    CompChannel,
    Context,
    Network,
    QPAttr,
    QPCap,
    QPInitAttr,
    RecvWR,
    SendWR,
    SrqAttr,
    SrqInitAttr,
)

REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | REMOTE | IBV_ACCESS_MW_BIND
REGION_BYTES = 1 << 16
GRH_BYTES = 40
Q_KEY = 0x11111111
CAP = QPCap(max_send_wr=32, max_recv_wr=32, max_send_sge=4, max_recv_sge=4, max_inline_data=128)


@dataclass
class Side:
    """What a program has at a host."""

    context: Context
    pd: PD
    channel: CompChannel | None
    cq: CQ
    mr: MR
    srq: SRQ | None
    qp: QP

    def sge(self, offset: int, length: int) -> SGE:
        return SGE(self.mr.buf + offset, length, self.mr.lkey)

    def receive(self, offset: int = 0, length: int = 4096, wr_id: int = 7) -> None:
        (self.srq or self.qp).post_recv(RecvWR(wr_id, 1, [self.sge(offset, length)]))

    def request(self, length: int, opcode: int = IBV_WR_SEND, offset: int = 0, **more) -> SendWR:
        return SendWR(5, opcode, 1, sg=[self.sge(offset, length)], **more)

    def send(self, data: bytes, opcode: int = IBV_WR_SEND, to: Side | None = None, at: int = 0, **more) -> None:
        self.mr.write(data)
        wr = self.request(len(data), opcode, **more)
        if to is not None:
            wr.set_wr_rdma(to.mr.rkey, to.mr.buf + at)
        self.qp.post_send(wr)

    def completion(self) -> WC:
        """Polls until there is one."""
        while True:
            count, completions = self.cq.poll()
            if count:
                return completions[0]


def make_side(
    network: Network, host: str, kind: int = IBV_QPT_RC, *, events: bool = False, shared: bool = False, sq_sig_all=1
) -> Side:
    context = Context(network, host)
    pd = PD(context)
    channel = CompChannel(context) if events else None
    cq = CQ(context, 64, None, channel)
    mr = MR(pd, REGION_BYTES, ALL_ACCESS)
    srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=32, max_sge=4))) if shared else None
    qp = QP(pd, QPInitAttr(kind, scq=cq, rcq=cq, srq=srq, cap=CAP, sq_sig_all=sq_sig_all))
    return Side(context, pd, channel, cq, mr, srq, qp)


def attributes(peer: Side, **more) -> QPAttr:
    attr = QPAttr(path_mtu=IBV_MTU_1024)
    attr.ah_attr = AHAttr(dlid=peer.context.query_port(1).lid)
    attr.dest_qp_num = peer.qp.qp_num
    attr.qp_access_flags = REMOTE
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
    attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 8, 7, 7, 1
    attr.rq_psn = attr.sq_psn = 0x123456
    attr.qkey = Q_KEY
    for name, value in more.items():
        setattr(attr, name, value)
    return attr


def connect(one: Side, two: Side, **more) -> None:
    for side, peer in ((one, two), (two, one)):
        side.qp.to_rts(attributes(peer, **more))


def connected(network: Network, kind: int = IBV_QPT_RC, *, hosts=("H1", "H2"), events=False, shared=False, **more):
    """Two sides in RTS; the second one with a shared receive queue, if so."""
    one = make_side(network, hosts[0], kind, events=events)
    two = make_side(network, hosts[1], kind, events=events, shared=shared)
    connect(one, two, **more)
    return one, two


def datagram(one: Side, two: Side, handle) -> SendWR:
    wr = one.request(100)
    wr.set_wr_ud(handle, two.qp.qp_num, Q_KEY)
    return wr
