"""Completion queues that are polled entry by entry, and whose entries are read field by field."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Final

from ironband.verbs.base import PyverbsObject
from ironband.verbs.completion_queue import CompChannel, CompletionSource
from ironband.verbs.device import Context
from ironband.verbs.pyverbs_error import PyverbsRDMAError
from ironband.verbs.wc import WC

__all__ = ["CQEX", "CqInitAttrEx", "PollCqAttr"]

_FOUND: Final = 0


class CqInitAttrEx(PyverbsObject):
    """What such a queue is made with. All fields are there whatever WC_FLAGS says."""

    def __init__(
        self,
        cqe: int = 100,
        channel: CompChannel | None = None,
        comp_vector: int = 0,
        wc_flags: int = 0,
        comp_mask: int = 0,
        flags: int = 0,
    ) -> None:
        super().__init__()
        self.cqe = cqe
        self.comp_channel = channel
        self.comp_vector = comp_vector
        self.wc_flags = wc_flags
        self.comp_mask = comp_mask
        self.flags = flags


@dataclass
class PollCqAttr:
    """How a queue is polled: there is nothing to be said."""

    comp_mask: int = 0


class CQEX(CompletionSource):
    """A completion queue. `read_...` are of the entry that was polled last."""

    def __init__(self, context: Context, init_attr: CqInitAttrEx | None = None) -> None:
        attr = init_attr or CqInitAttrEx()
        super().__init__(context, attr.cqe, attr.comp_channel, attr.comp_vector)
        self._polled: WC | None = None

    def start_poll(self, attr: PollCqAttr | None = None) -> int:
        """Goes to the oldest entry: 0, or ENOENT if there is none, before which a little time passes."""
        taken = self.take(1)
        self._polled = WC.of(*taken[0]) if taken else None
        return _FOUND if taken else errno.ENOENT

    def poll_next(self) -> int:
        """Goes to the next entry, likewise."""
        return self.start_poll()

    def end_poll(self) -> None:
        """What was polled is over."""
        self._polled = None

    @property
    def _entry(self) -> WC:
        if self._polled is None:
            raise PyverbsRDMAError("Failed to read a completion: none was polled", errno.EINVAL)
        return self._polled

    @property
    def status(self) -> int:
        """Of `ibv_wc_status`."""
        return self._entry.status

    @property
    def wr_id(self) -> int:
        """That of the work request."""
        return self._entry.wr_id

    def read_opcode(self) -> int:
        """Of `ibv_wc_opcode`."""
        return self._entry.opcode

    def read_vendor_err(self) -> int:
        """0."""
        return self._entry.vendor_err

    def read_byte_len(self) -> int:
        """Bytes."""
        return self._entry.byte_len

    def read_imm_data(self) -> int:
        """Immediate data, in the order of the network."""
        return self._entry.imm_data

    def read_qp_num(self) -> int:
        """QPN."""
        return self._entry.qp_num

    def read_src_qp(self) -> int:
        """QPN of a datagram's sender."""
        return self._entry.src_qp

    def read_wc_flags(self) -> int:
        """Of `ibv_wc_flags`."""
        return self._entry.wc_flags

    def read_slid(self) -> int:
        """SLID of a datagram."""
        return self._entry.slid

    def read_sl(self) -> int:
        """SL of a datagram."""
        return self._entry.sl

    def read_dlid_path_bits(self) -> int:
        """Which of the port's LIDs a datagram was for."""
        return self._entry.dlid_path_bits

    def read_timestamp(self) -> int:
        """The cycle in which the entry was added."""
        return self._entry.cycle
