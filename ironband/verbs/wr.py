"""Work requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar

from ironband.verbs.addr import AH
from ironband.verbs.base import PyverbsCM, inc_rkey, refusals
from ironband.verbs.enums import ibv_send_flags, ibv_wr_opcode
from ironband.verbs.mr import MW, MWBindInfo, access_of
from ironband.verbs.process_memory import MEMORY
from ironband.verbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from ironband.verbs.sge import SGE
from ironband.verbs.wc import swapped
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode, SendRequest, WindowBinding

__all__ = ["SGE", "RecvWR", "SendWR", "post_all"]

_WITHOUT_PIECES: Final = (SendOpcode.LOCAL_INV, SendOpcode.BIND_MW, SendOpcode.SEND_WITH_INV)
_INVALIDATING: Final = (SendOpcode.LOCAL_INV, SendOpcode.SEND_WITH_INV)
_FENCE: Final = ibv_send_flags["IBV_SEND_FENCE"]
_SIGNALED: Final = ibv_send_flags["IBV_SEND_SIGNALED"]
_SOLICITED: Final = ibv_send_flags["IBV_SEND_SOLICITED"]
_INLINE: Final = ibv_send_flags["IBV_SEND_INLINE"]


class _WR(PyverbsCM):
    """What both kinds have."""

    def __init__(self, wr_id: int, num_sge: int, sg: Sequence[SGE] | None, next_wr: Self | None) -> None:
        super().__init__()
        self.wr_id = wr_id
        self.num_sge = num_sge
        self.sg = list(sg or ())
        self.next_wr = next_wr
        if num_sge > len(self.sg):
            raise PyverbsUserError(f"num_sge {num_sge}: sg has {len(self.sg)}")

    def set_sge_list(self, num_sge: int, sg: Sequence[SGE]) -> None:
        """Other memory than before."""
        self.num_sge = num_sge
        self.sg = list(sg)

    def become(self, other: Self) -> None:
        """Is the same as another from now on."""
        vars(self).update(vars(other))

    @property
    def pieces(self) -> list[ScatterGather]:
        """Its memory, for the adapter."""
        return [sge.piece for sge in self.sg[: self.num_sge]]


class RecvWR(_WR):
    """A work request of a receive queue."""

    def __init__(
        self, wr_id: int = 0, num_sge: int = 0, sg: Sequence[SGE] | None = None, next_wr: RecvWR | None = None
    ) -> None:
        super().__init__(wr_id, num_sge, sg, next_wr)

    def request(self) -> ReceiveRequest:
        """The same for the adapter."""
        return ReceiveRequest(int(self.wr_id), self.pieces)


class SendWR(_WR):
    """A work request of a send queue. Immediate data is in the order of the network, as in C: see `socket.htonl`."""

    def __init__(
        self,
        wr_id: int = 0,
        opcode: int = ibv_wr_opcode["IBV_WR_SEND"],
        num_sge: int = 0,
        imm_data: int = 0,
        sg: Sequence[SGE] | None = None,
        send_flags: int = _SIGNALED,
        next_wr: SendWR | None = None,
        *,
        is_complete: bool = True,
    ) -> None:
        if is_complete and opcode not in _WITHOUT_PIECES and (num_sge < 1 or sg is None):
            raise PyverbsUserError("A WR needs at least one SGE")
        super().__init__(wr_id, num_sge, sg, next_wr)
        self.opcode = opcode
        self.imm_data = imm_data
        self.send_flags = send_flags
        self.rdma_remote_addr = 0
        self.rdma_rkey = 0
        self._compare_add = 0
        self._swap = 0
        self.ah: AH | None = None
        self._remote_qp = 0
        self._remote_q_key = 0
        self._remote_srq = 0
        self._eec = 0
        self._window: tuple[MW, MWBindInfo, int] | None = None
        self.inline: bytes | None = None

    def set_wr_ud(self, ah: AH, rqpn: int, rqkey: int) -> None:
        """Where a datagram goes."""
        self.ah = ah
        self._remote_qp = rqpn
        self._remote_q_key = rqkey

    def set_wr_rd(self, eec: int, rqpn: int, rqkey: int) -> None:
        """Where a reliable datagram goes: by which context here, to which queue pair there. Not of pyverbs."""
        self._eec = eec
        self._remote_qp = rqpn
        self._remote_q_key = rqkey

    def set_qp_type_xrc(self, remote_srqn: int) -> None:
        """The shared receive queue that a request of XRC is for."""
        self._remote_srq = remote_srqn

    def set_wr_rdma(self, rkey: int, addr: int) -> None:
        """The remote memory of RDMA READ and WRITE."""
        self.rdma_rkey = rkey
        self.rdma_remote_addr = addr

    def set_wr_atomic(self, rkey: int, addr: int, compare_add: int, swap: int = 0) -> None:
        """The remote memory of an atomic, and its operands."""
        self.set_wr_rdma(rkey, addr)
        self._compare_add = compare_add
        self._swap = swap

    def set_bind_wr(self, mw: MW, bind_info: MWBindInfo, rkey: int | None = None) -> None:
        """Which window is bound to what, under its next R_Key unless RKEY is given."""
        self._window = mw, bind_info, inc_rkey(mw.rkey) if rkey is None else rkey

    @property
    def rkey(self) -> int:
        """The R_Key that a window gets."""
        return 0 if self._window is None else self._window[2]

    def request(self, *, always_signaled: bool) -> SendRequest:
        """The same for the adapter.

        Raises:
            ValueError: no such opcode, or a value that does not fit.
            MemoryFaultError: data to be sent inline is not there.
        """
        opcode, flags, pieces = SendOpcode(self.opcode), self.send_flags, self.pieces
        inline = self.inline
        if inline is None and flags & _INLINE:
            inline = b"".join(MEMORY.read(piece.va, piece.length) for piece in pieces)
            pieces = []
        invalidates = opcode in _INVALIDATING
        binding = None
        if opcode is SendOpcode.BIND_MW:
            if self._window is None:
                raise ValueError("BIND_MW without a window: expected set_bind_wr before")
            mw, info, key = self._window
            access = access_of(info.mw_access_flags)
            binding = WindowBinding(mw.window, key, info.mr.lkey, int(info.addr), int(info.length), access)
        return SendRequest(
            int(self.wr_id),
            opcode,
            pieces,
            inline=inline,
            signaled=always_signaled or bool(flags & _SIGNALED),
            solicited=bool(flags & _SOLICITED),
            fence=bool(flags & _FENCE),
            imm=0 if invalidates else swapped(self.imm_data),
            remote_va=int(self.rdma_remote_addr),
            r_key=int(self.imm_data if invalidates else self.rdma_rkey),
            compare_add=int(self._compare_add),
            swap=int(self._swap),
            handle=None if self.ah is None else self.ah.handle,
            remote_qp=int(self._remote_qp),
            remote_q_key=int(self._remote_q_key),
            binding=binding,
            xrc_srq=int(self._remote_srq),
            eec=int(self._eec),
        )


_WR_T = TypeVar("_WR_T", bound=_WR)


def post_all(what: str, wr: _WR_T, bad_wr: _WR_T | None, post: Callable[[_WR_T], None]) -> None:
    """Posts a work request and those that follow it; BAD_WR becomes the first that is refused.

    Raises:
        PyverbsRDMAError: one is refused; those before it are posted.
    """
    following: _WR_T | None = wr
    while following is not None:
        try:
            with refusals(what):
                post(following)
        except PyverbsRDMAError:
            if bad_wr is not None:
                bad_wr.become(following)
            raise
        following = following.next_wr
