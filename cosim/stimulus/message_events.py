"""What hosts tell of the messages that they send by a transport."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from verbs.completions import CompletionStatus
from verbs.incidents import Incident

__all__ = ["MessageEvent", "MessageListener", "MessageStep"]


class MessageStep(Enum):
    """What becomes of a message."""

    POSTED = "posted"
    """Its request is in the send queue."""
    ARRIVED = "arrived"
    """Its data is where it should be, every byte as it was sent, and the host knows it."""
    FAILED = "failed"
    """A request ended with an error."""
    WRONG = "wrong"
    """A completion says that a message is there which is not as it was sent."""


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """Something that a message or a queue pair of a stream lives through.

    Attributes:
        stream: its number; streams of packets come first.
        cycle: when.
        host: where.
        what: what.
        number: of the message, in its stream; -1 for an incident.
        psn: of an incident.
        status: of what failed.
        cycles: of what arrived, since it was posted; of a time-out or an RNR NAK, how long the wait is.
        text: of what is wrong.
    """

    stream: int
    cycle: int
    host: str
    what: MessageStep | Incident
    number: int = -1
    psn: int = 0
    status: CompletionStatus = CompletionStatus.SUCCESS
    cycles: int = 0
    text: str = ""


MessageListener: TypeAlias = Callable[[MessageEvent], None]
