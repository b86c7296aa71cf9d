"""A request of an RC send queue on its way: its PSNs, its number, what has come back."""

from __future__ import annotations

from dataclasses import dataclass

from verbs.completions import CompletionStatus
from verbs.pair_state import PairState
from verbs.psn import psn_add
from verbs.work import SendRequest

__all__ = ["SendWork"]


@dataclass(slots=True)
class SendWork:
    """A request of the send queue on its way.

    Attributes:
        owner: the queue pair that it was posted to.
        first_psn, packets: the PSNs that it takes; no packets: none were given to it yet.
        ssn: its number among the queue's messages.
        answered: READ responses, or the atomic's answer, that have come.
        done: what asks for no packet has been performed.
        error: what it ends with as soon as all before it has ended.
    """

    request: SendRequest
    owner: PairState
    first_psn: int = 0
    packets: int = 0
    ssn: int = 0
    answered: int = 0
    done: bool = False
    error: CompletionStatus = CompletionStatus.SUCCESS

    @property
    def end_psn(self) -> int:
        """The PSN after its last one."""
        return psn_add(self.first_psn, self.packets)

    @property
    def awaits_data(self) -> bool:
        """True if not all that a READ or an atomic brings has come."""
        return self.request.opcode.brings_data_back and self.answered < self.packets
