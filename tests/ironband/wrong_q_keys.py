"""Datagrams with a wrong Q_Key from one adapter of this machine to its other one, then one with the right key.

python3 wrong_q_keys.py NUMBER      sends so many wrong ones and prints the LID of the other; by the system's Python
"""

import sys

from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_QPT_UD, IBV_SEND_SIGNALED, IBV_WR_SEND
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

RIGHT, WRONG = 0x11, 0x22
GRH_BYTES, BYTES = 40, 64


class Side:
    """An adapter with a queue pair for datagrams."""

    def __init__(self, name):
        self.context = Context(name=name)
        self.domain = PD(self.context)
        self.completions = CQ(self.context, 64, None, None, 0)
        self.region = MR(self.domain, GRH_BYTES + BYTES, IBV_ACCESS_LOCAL_WRITE)
        what = QPInitAttr(qp_type=IBV_QPT_UD, scq=self.completions, rcq=self.completions, cap=QPCap(max_recv_wr=4))
        attr = QPAttr(port_num=1)
        attr.qkey = RIGHT
        self.pair = QP(self.domain, what, attr)

    def wait(self):
        while True:
            number, found = self.completions.poll(1)
            if number:
                return found[0].status


def main():
    sender, receiver = Side("rxe_ironband0"), Side("rxe_ironband1")
    receiver.pair.post_recv(RecvWR(1, 1, [SGE(receiver.region.buf, GRH_BYTES + BYTES, receiver.region.lkey)]))
    lid = receiver.context.query_port(1).lid
    handle = AH(sender.domain, attr=AHAttr(dlid=lid, port_num=1))
    for key in [WRONG] * int(sys.argv[1]) + [RIGHT]:
        what = [SGE(sender.region.buf, BYTES, sender.region.lkey)]
        wr = SendWR(1, opcode=IBV_WR_SEND, num_sge=1, sg=what, send_flags=IBV_SEND_SIGNALED)
        wr.set_wr_ud(handle, receiver.pair.qp_num, key)
        sender.pair.post_send(wr)
        assert sender.wait() == 0
    assert receiver.wait() == 0
    print(lid)


main()
