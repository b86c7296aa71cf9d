"""`[[flows]]` with a transport: messages between queue pairs; docs/scenario.md describes every key."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, model_validator

from cosim.scenario.tables import ANY_HOST, MOST_MESSAGE_BYTES, AnyFlow, Cycles
from wire.codes import MTU, SERVICE_LEVELS, mtu_bytes
from wire.crc import ICRC_BYTES
from wire.headers import AETH, ATOMIC_ETH, BTH, DETH, IMM_DT, LRH, RETH
from wire.packet import WORD_BYTES, rows_of_words

__all__ = ["MessageFlow", "MessageOperation", "TransportName"]

TransportName = Literal["rc", "uc", "ud"]

MessageOperation = Literal["send", "rdma_write", "rdma_write_with_imm", "rdma_read", "fetch_add", "cmp_swap"]

_WRITES: Final = ("rdma_write", "rdma_write_with_imm")
_ATOMICS: Final = ("fetch_add", "cmp_swap")
_OPERATIONS: Final[dict[TransportName, tuple[MessageOperation, ...]]] = {
    "rc": ("send", "rdma_write", "rdma_write_with_imm", "rdma_read", "fetch_add", "cmp_swap"),
    "uc": ("send", "rdma_write", "rdma_write_with_imm"),
    "ud": ("send",),
}

_ONLY_OF: Final[dict[str, tuple[TransportName, ...]]] = {
    **dict.fromkeys(("timeout", "retry_count", "rnr_retry", "min_rnr_timer"), ("rc",)),
    "path_mtu": ("rc", "uc"),
}
"""Keys of some transports only."""
_RECEIVED: Final = ("send", "rdma_write_with_imm")
_LEAST_BYTES: Final = 8
"""A message begins with its flow and its number."""
_ATOMIC_BYTES: Final = 8
_USUAL_BYTES: Final = 256
_MOST_REQUESTS: Final = 16_384
"""Of a queue pair."""


class MessageFlow(AnyFlow):
    """`[[flows]]` with `transport`: messages of one host, or of each, to one host by queue pairs of their own."""

    transport: TransportName
    operation: MessageOperation = "send"
    sl: int = Field(default=0, ge=0, lt=SERVICE_LEVELS)
    message_bytes: int | None = Field(default=None, ge=_LEAST_BYTES, le=MOST_MESSAGE_BYTES)
    depth: int = Field(default=16, ge=1, le=_MOST_REQUESTS)
    """Messages outstanding at most."""
    path_mtu: Literal[256, 512, 1024, 2048, 4096] | None = None
    """That of the path unless given."""
    timeout: int = Field(default=8, ge=0, le=31)
    retry_count: int = Field(default=7, ge=0, le=7)
    rnr_retry: int = Field(default=7, ge=0, le=7)
    min_rnr_timer: int = Field(default=1, ge=0, le=31)
    receives: int = Field(default=64, ge=1, le=_MOST_REQUESTS)
    """Receive requests that are posted at first."""
    receive_every: Cycles = 0
    """Cycles from a receive request that was used up to the one in its place, and between two of these."""

    @model_validator(mode="after")
    def _of_its_transport(self) -> MessageFlow:
        if self.destination == ANY_HOST:
            raise ValueError("to '*': expected one host, for a queue pair has one peer")
        allowed = _OPERATIONS[self.transport]
        if self.operation not in allowed:
            raise ValueError(f"operation {self.operation!r}: expected one of {self.transport}: {', '.join(allowed)}")
        for key, transports in _ONLY_OF.items():
            if key in self.model_fields_set and self.transport not in transports:
                given = f"{key} given with transport {self.transport!r}"
                raise ValueError(f"{given}: expected it with {' or '.join(map(repr, transports))}")
        for key in ("receives", "receive_every"):
            if key in self.model_fields_set and not self.takes_a_receive:
                takers = ", ".join(one for one in allowed if one in _RECEIVED)
                given = f"{key} given with operation {self.operation!r}, which takes no receive request"
                raise ValueError(f"{given}: expected it with {takers}")
        if self.is_atomic and self.size != _ATOMIC_BYTES:
            raise ValueError(f"message_bytes {self.size}: expected {_ATOMIC_BYTES}, for {self.operation}")
        if self.transport == "ud" and self.size > mtu_bytes(MTU.MTU_4096):
            raise ValueError(f"message_bytes {self.size}: expected at most a path's MTU, for a datagram is one packet")
        return self

    @property
    def size(self) -> int:
        """Bytes of a message."""
        if self.message_bytes is None:
            return _ATOMIC_BYTES if self.is_atomic else _USUAL_BYTES
        return self.message_bytes

    @property
    def is_atomic(self) -> bool:
        """Fetch and add, compare and swap."""
        return self.operation in _ATOMICS

    @property
    def is_write(self) -> bool:
        """What is written where the sender says."""
        return self.operation in _WRITES

    @property
    def brings_data_back(self) -> bool:
        """The data comes to the host that asks."""
        return self.operation == "rdma_read" or self.is_atomic

    @property
    def takes_a_receive(self) -> bool:
        """Each message takes a receive request."""
        return self.operation in _RECEIVED

    def rows(self, path_mtu: int) -> int:
        """Rows on a 4X link of all packets that carry a message's data."""
        count = -(-self.size // path_mtu)
        last = self.size - (count - 1) * path_mtu
        if count == 1:
            return self._packet_rows(last, first=True, last=True)
        middle = (count - 2) * self._packet_rows(path_mtu)
        return self._packet_rows(path_mtu, first=True) + middle + self._packet_rows(last, last=True)

    def _packet_rows(self, payload: int, *, first: bool = False, last: bool = False) -> int:
        """Rows of a packet with so much of a message, the first, the last or another."""
        headers = LRH.size_bytes + BTH.size_bytes + ICRC_BYTES
        if self.transport == "ud":
            headers += DETH.size_bytes
        if self.is_atomic:
            return rows_of_words((headers + ATOMIC_ETH.size_bytes) // WORD_BYTES)
        if self.is_write and first:
            headers += RETH.size_bytes
        if self.operation == "rdma_write_with_imm" and last:
            headers += IMM_DT.size_bytes
        if self.operation == "rdma_read" and (first or last):
            headers += AETH.size_bytes
        return rows_of_words(-(-(headers + payload) // WORD_BYTES))
