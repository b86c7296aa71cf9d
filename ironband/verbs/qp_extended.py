"""Queue pairs whose work requests are put together call by call, and posted together."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import NoReturn

from ironband.verbs.addr import AH
from ironband.verbs.base import PyverbsCM, refusals
from ironband.verbs.device import Context
from ironband.verbs.enums import ibv_wr_opcode
from ironband.verbs.mr import MW, MWBindInfo
from ironband.verbs.pd import PD
from ironband.verbs.process_memory import MEMORY
from ironband.verbs.pyverbs_error import PyverbsRDMAError
from ironband.verbs.qp_attributes import QPAttr, QPInitAttr
from ironband.verbs.queue_pair import QP
from ironband.verbs.wc import swapped
from ironband.verbs.wr import SGE, SendWR

__all__ = ["DataBuffer", "QPEx"]


class DataBuffer(PyverbsCM):
    """Data that goes inline."""

    def __init__(self, addr: int, length: int) -> None:
        super().__init__()
        self.addr = addr
        self.length = length


class QPEx(QP):
    """A queue pair. Between `wr_start` and `wr_complete`, each operation begins a work request, under the `wr_id` and
    `wr_flags` of that time, and `wr_set_...` are of the one that was begun last. Immediate data is a plain number.
    """

    ind_table = None
    """There is none."""

    def __init__(self, creator: PD | Context, init_attr: QPInitAttr, qp_attr: QPAttr | None = None) -> None:
        super().__init__(creator, init_attr, qp_attr)
        self.wr_id = 0
        self.wr_flags = 0
        self._begun: list[SendWR] = []

    def wr_start(self) -> None:
        """Begins to put work requests together."""
        self._begun.clear()

    def wr_complete(self) -> None:
        """Posts them; those from the first on that is refused are not."""
        begun, self._begun = self._begun, []
        for wr in begun:
            self.post_send(wr)

    def wr_abort(self) -> None:
        """Forgets them."""
        self._begun.clear()

    def _begin(self, opcode: int, imm_data: int = 0) -> SendWR:
        wr = SendWR(self.wr_id, opcode, 0, imm_data, [], self.wr_flags, is_complete=False)
        self._begun.append(wr)
        return wr

    @property
    def _last(self) -> SendWR:
        if not self._begun:
            raise PyverbsRDMAError("Failed to set up a work request: none was begun", errno.EINVAL)
        return self._begun[-1]

    def wr_send(self) -> None:
        """SEND."""
        self._begin(ibv_wr_opcode.IBV_WR_SEND)

    def wr_send_imm(self, data: int) -> None:
        """SEND with immediate."""
        self._begin(ibv_wr_opcode.IBV_WR_SEND_WITH_IMM, swapped(data))

    def wr_send_inv(self, invalidate_rkey: int) -> None:
        """SEND with invalidate."""
        self._begin(ibv_wr_opcode.IBV_WR_SEND_WITH_INV, invalidate_rkey)

    def wr_rdma_write(self, rkey: int, remote_addr: int) -> None:
        """RDMA WRITE."""
        self._begin(ibv_wr_opcode.IBV_WR_RDMA_WRITE).set_wr_rdma(rkey, remote_addr)

    def wr_rdma_write_imm(self, rkey: int, remote_addr: int, data: int) -> None:
        """RDMA WRITE with immediate."""
        self._begin(ibv_wr_opcode.IBV_WR_RDMA_WRITE_WITH_IMM, swapped(data)).set_wr_rdma(rkey, remote_addr)

    def wr_rdma_read(self, rkey: int, remote_addr: int) -> None:
        """RDMA READ."""
        self._begin(ibv_wr_opcode.IBV_WR_RDMA_READ).set_wr_rdma(rkey, remote_addr)

    def wr_atomic_cmp_swp(self, rkey: int, remote_addr: int, compare: int, swap: int) -> None:
        """CmpSwap."""
        self._begin(ibv_wr_opcode.IBV_WR_ATOMIC_CMP_AND_SWP).set_wr_atomic(rkey, remote_addr, compare, swap)

    def wr_atomic_fetch_add(self, rkey: int, remote_addr: int, add: int) -> None:
        """FetchAdd."""
        self._begin(ibv_wr_opcode.IBV_WR_ATOMIC_FETCH_AND_ADD).set_wr_atomic(rkey, remote_addr, add)

    def wr_local_inv(self, invalidate_rkey: int) -> None:
        """Invalidates a window of type 2."""
        self._begin(ibv_wr_opcode.IBV_WR_LOCAL_INV, invalidate_rkey)

    def wr_bind_mw(self, mw: MW, rkey: int, bind_info: MWBindInfo) -> None:
        """Binds a window of type 2 under this R_Key."""
        self._begin(ibv_wr_opcode.IBV_WR_BIND_MW).set_bind_wr(mw, bind_info, rkey)

    def wr_atomic_write(self, rkey: int, remote_addr: int, atomic_wr: object) -> NoReturn:
        """There is none."""
        raise PyverbsRDMAError("Failed to begin ATOMIC_WRITE: there is none", errno.EOPNOTSUPP)

    def wr_send_tso(self, hdr: object, hdr_sz: int, mss: int) -> NoReturn:
        """There is none."""
        raise PyverbsRDMAError("Failed to begin TSO: there is none", errno.EOPNOTSUPP)

    def wr_set_ud_addr(self, ah: AH, remote_qpn: int, remote_rkey: int) -> None:
        """Where a datagram goes; the last is its Q_Key."""
        self._last.set_wr_ud(ah, remote_qpn, remote_rkey)

    def wr_set_xrc_srqn(self, remote_srqn: int) -> None:
        """The shared receive queue that it is for."""
        self._last.set_qp_type_xrc(remote_srqn)

    def wr_set_sge(self, sge: SGE) -> None:
        """Its memory."""
        self.wr_set_sge_list(1, [sge])

    def wr_set_sge_list(self, num_sge: int, sg_list: Sequence[SGE]) -> None:
        """Its memory, in pieces."""
        self._last.set_sge_list(num_sge, sg_list)

    def wr_set_inline_data(self, addr: int, length: int) -> None:
        """Its data, as it is now."""
        self.wr_set_inline_data_list(1, [DataBuffer(addr, length)])

    def wr_set_inline_data_list(self, num_buf: int, buf_list: Sequence[DataBuffer]) -> None:
        """Its data, in pieces, as it is now."""
        with refusals("Failed to set inline data"):
            self._last.inline = b"".join(MEMORY.read(data.addr, data.length) for data in buf_list[:num_buf])
