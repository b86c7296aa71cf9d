"""Messages between two hosts of a fabric, a packet that is lost, a cable that is cut: docs/python-verbs.md."""

from ironband.verbs import (
    CQ,
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_REMOTE_READ,
    IBV_QPT_RC,
    IBV_WR_RDMA_READ,
    MR,
    PD,
    QP,
    SGE,
    Context,
    Fabric,
    QPCap,
    QPInitAttr,
    RecvWR,
    SendWR,
    connect,
)


class End:
    """What a program has at a host."""

    def __init__(self, fabric, host):
        context = Context(fabric, host)
        pd = PD(context)
        self.cq = CQ(context, 16)
        self.mr = MR(pd, 65536, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)
        self.qp = QP(pd, QPInitAttr(IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(16, 16)))

    def sge(self, length, offset=0):
        """A piece of its memory."""
        return SGE(self.mr.buf + offset, length, self.mr.lkey)

    def completion(self):
        """Each poll that finds nothing lets a little time pass."""
        count = 0
        while not count:
            count, found = self.cq.poll()
        return found[0]


with Fabric("star", skip_timeouts=True) as fabric:
    print(f"up in cycle {fabric.now:,}")
    one, two = End(fabric, "H1"), End(fabric, "H2")
    connect(one.qp, two.qp)

    one.mr.write("hello")
    two.qp.post_recv(RecvWR(1, 1, [two.sge(64)]))
    one.qp.post_send(SendWR(2, num_sge=1, sg=[one.sge(5)]))
    posted = fabric.now
    done = two.completion()
    print(f"{two.mr.read(5)}: {done.status.name} after {done.cycle - posted} cycles")
    one.completion()

    for lost in (False, True):
        if lost:
            fabric.inject("H2", "lost_packet")
        read = SendWR(3, IBV_WR_RDMA_READ, 1, sg=[one.sge(65536)])
        read.set_wr_rdma(two.mr.rkey, two.mr.buf)
        one.qp.post_send(read)
        posted = fabric.now
        done = one.completion()
        print(f"64 KiB read: {done.status.name} after {done.cycle - posted:,} cycles{', one packet lost' * lost}")

    fabric.cut("SW1[2]")
    one.qp.post_send(SendWR(4, num_sge=1, sg=[one.sge(5)]))
    print(f"cut: {one.completion().status.name}")
