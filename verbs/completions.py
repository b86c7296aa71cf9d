"""Completion queues, and what is told in them and beside them (IBTA vol 1, 11.4.2 and 11.6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import NamedTuple, Protocol

from verbs.receive_queue import SharedReceiveQueue
from verbs.work import SendOpcode

__all__ = [
    "COMPLETED_AS",
    "AsyncEvent",
    "AsyncEventType",
    "CompletionEntries",
    "CompletionFlag",
    "CompletionOpcode",
    "CompletionQueue",
    "CompletionStatus",
    "WorkCompletion",
]


class CompletionStatus(IntEnum):
    """How a work request ended (IBTA vol 1, 11.6.2)."""

    SUCCESS = 0
    LOC_LEN_ERR = 1
    LOC_QP_OP_ERR = 2
    LOC_EEC_OP_ERR = 3
    LOC_PROT_ERR = 4
    WR_FLUSH_ERR = 5
    MW_BIND_ERR = 6
    BAD_RESP_ERR = 7
    LOC_ACCESS_ERR = 8
    REM_INV_REQ_ERR = 9
    REM_ACCESS_ERR = 10
    REM_OP_ERR = 11
    RETRY_EXC_ERR = 12
    RNR_RETRY_EXC_ERR = 13
    LOC_RDD_VIOL_ERR = 14
    REM_INV_RD_REQ_ERR = 15
    REM_ABORT_ERR = 16
    INV_EECN_ERR = 17
    INV_EEC_STATE_ERR = 18


class CompletionOpcode(IntEnum):
    """What was completed; the numbers are those of the verbs that programs know."""

    SEND = 0
    RDMA_WRITE = 1
    RDMA_READ = 2
    COMP_SWAP = 3
    FETCH_ADD = 4
    BIND_MW = 5
    LOCAL_INV = 6
    RECV = 128
    RECV_RDMA_WITH_IMM = 129


COMPLETED_AS = {
    SendOpcode.RDMA_WRITE: CompletionOpcode.RDMA_WRITE,
    SendOpcode.RDMA_WRITE_WITH_IMM: CompletionOpcode.RDMA_WRITE,
    SendOpcode.SEND: CompletionOpcode.SEND,
    SendOpcode.SEND_WITH_IMM: CompletionOpcode.SEND,
    SendOpcode.SEND_WITH_INV: CompletionOpcode.SEND,
    SendOpcode.RDMA_READ: CompletionOpcode.RDMA_READ,
    SendOpcode.ATOMIC_CMP_AND_SWP: CompletionOpcode.COMP_SWAP,
    SendOpcode.ATOMIC_FETCH_AND_ADD: CompletionOpcode.FETCH_ADD,
    SendOpcode.LOCAL_INV: CompletionOpcode.LOCAL_INV,
    SendOpcode.BIND_MW: CompletionOpcode.BIND_MW,
}


class CompletionFlag(IntFlag):
    """What a completion of a receive request brings besides."""

    NONE = 0
    GRH = 1
    WITH_IMM = 2
    WITH_INV = 8


class WorkCompletion(NamedTuple):
    """One entry of a completion queue. Of one that is not SUCCESS only `wr_id`, `status` and `qp_number` count.

    Attributes:
        imm: the immediate data, or the R_Key that was invalidated, as `flags` says.
    """

    wr_id: int
    status: CompletionStatus
    opcode: CompletionOpcode
    qp_number: int
    byte_len: int = 0
    imm: int = 0
    flags: CompletionFlag = CompletionFlag.NONE
    src_qp: int = 0
    p_key_index: int = 0
    slid: int = 0
    sl: int = 0
    dlid_path_bits: int = 0


class AsyncEventType(IntEnum):
    """What is told outside completion queues (IBTA vol 1, 11.6.3); the numbers are those that programs know."""

    CQ_ERR = 0
    QP_FATAL = 1
    QP_REQ_ERR = 2
    QP_ACCESS_ERR = 3
    COMM_EST = 4
    SQ_DRAINED = 5
    SRQ_LIMIT_REACHED = 15
    QP_LAST_WQE_REACHED = 16


class CompletionEntries(Protocol):
    """Where a completion queue keeps its entries: here, or in a ring that a program polls by itself."""

    def __len__(self) -> int: ...
    def append(self, completion: WorkCompletion, /) -> None:
        """Adds an entry, for which there is room."""

    def popleft(self) -> WorkCompletion:
        """Takes the oldest entry, which there is."""


class CompletionQueue:
    """A completion queue of `depth` entries, which can tell when it gets one.

    Attributes:
        on_completion: called once for each arming, when what it waits for comes.
        on_overrun: called when an entry finds no room. The queue is of no use from then on.
    """

    def __init__(self, depth: int, entries: CompletionEntries | None = None) -> None:
        if depth < 1:
            raise ValueError(f"completion queue of {depth} entries, allowed 1 and above")
        self.depth = depth
        self.overrun = False
        self.on_completion: Callable[[], None] = lambda: None
        self.on_overrun: Callable[[], None] = lambda: None
        self._entries: CompletionEntries = deque[WorkCompletion]() if entries is None else entries
        self._armed = False
        self._solicited_only = False

    def __len__(self) -> int:
        """Entries that were not polled yet."""
        return len(self._entries)

    def poll(self, count: int = 1) -> list[WorkCompletion]:
        """Takes up to `count` entries, the oldest first."""
        return [self._entries.popleft() for _ in range(min(count, len(self._entries)))]

    def resize(self, depth: int, entries: CompletionEntries | None = None) -> None:
        """Makes room for `depth` entries; what is there stays. `entries`, if given, have it already.

        Raises:
            ValueError: fewer than 1, or than there are.
        """
        held = len(self._entries)
        if depth < max(1, held):
            raise ValueError(f"completion queue of {depth} entries: it holds {held}, allowed {max(1, held)} and above")
        self.depth = depth
        if entries is not None:
            self._entries = entries

    def request_notification(self, *, solicited_only: bool = False) -> None:
        """Asks to be told of the next entry that is added, or of the next solicited or unsuccessful one.

        What is there already is not told, and a wider request stays as it is (IBTA vol 1, 11.4.2.2).
        """
        self._solicited_only = solicited_only and (self._solicited_only or not self._armed)
        self._armed = True

    def add(self, completion: WorkCompletion, *, solicited: bool = False) -> None:
        """Adds an entry."""
        if self.overrun or len(self._entries) >= self.depth:
            if not self.overrun:
                self.overrun = True
                self.on_overrun()
            return
        self._entries.append(completion)
        if self._armed and (not self._solicited_only or solicited or completion.status):
            self._armed = False
            self.on_completion()


@dataclass(frozen=True, slots=True)
class AsyncEvent:
    """An event and whose it is: a completion queue, a queue pair's number or a shared receive queue."""

    type: AsyncEventType
    source: int | CompletionQueue | SharedReceiveQueue
