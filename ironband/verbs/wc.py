"""Completions as programs see them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from ironband.verbs.enums import ibv_wc_flags, ibv_wc_opcode, ibv_wc_status
from verbs.completions import CompletionFlag, WorkCompletion

__all__ = ["WC", "swapped"]

_VENDOR: Final = 0
_MASK: Final = 0xFFFF_FFFF


def swapped(imm_data: int) -> int:
    """Immediate data as a number of the wire, or back: programs hold it in the order of the network."""
    return int.from_bytes((int(imm_data) & _MASK).to_bytes(4, "little"), "big")


@dataclass(slots=True)
class WC:
    """A completion. Immediate data is in the order of the network, as in C: see `socket.ntohl`.

    Attributes:
        cycle: in which it was added to its queue, which pyverbs does not tell.
    """

    wr_id: int = 0
    status: int = 0
    opcode: int = 0
    vendor_err: int = _VENDOR
    byte_len: int = 0
    qp_num: int = 0
    src_qp: int = 0
    imm_data: int = 0
    wc_flags: int = 0
    pkey_index: int = 0
    slid: int = 0
    sl: int = 0
    dlid_path_bits: int = 0
    cycle: int = 0

    @classmethod
    def of(cls, done: WorkCompletion, cycle: int) -> WC:
        """The adapter's for programs."""
        return cls(
            done.wr_id,
            ibv_wc_status(done.status),
            ibv_wc_opcode(done.opcode),
            _VENDOR,
            done.byte_len,
            done.qp_number,
            done.src_qp,
            swapped(done.imm) if done.flags & CompletionFlag.WITH_IMM else done.imm,
            ibv_wc_flags(done.flags),
            done.p_key_index,
            done.slid,
            done.sl,
            done.dlid_path_bits,
            cycle,
        )

    def __str__(self) -> str:
        shown = ((name, getattr(self, name)) for name in self.__slots__)
        named = ((name, value.name if isinstance(value, IntEnum) else value) for name, value in shown)
        return "".join(f"{name.replace('_', ' '):22}: {value!s:<20}\n" for name, value in named)
