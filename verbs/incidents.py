"""What a queue pair lives through besides completions: losses found, requests sent again, congestion."""

from __future__ import annotations

from enum import Enum

__all__ = ["Incident"]


class Incident(Enum):
    """Something told by `PairState.on_incident`, with a PSN: of a requester the one from which it sends again, of a
    responder the one that it expects, of congestion that of the packet that tells."""

    SEQUENCE_NAK = "sequence_nak"
    """A requester got NAK PSN sequence error."""
    RNR_NAK = "rnr_nak"
    """A requester got RNR NAK, and waits."""
    IMPLIED_NAK = "implied_nak"
    """A requester got an answer that follows one that did not come."""
    TIMEOUT = "timeout"
    """A requester's Local ACK Timeout ran out."""
    OUT_OF_SEQUENCE = "out_of_sequence"
    """A responder got a later request than it expects, and sends NAK PSN sequence error."""
    NOT_READY = "not_ready"
    """A responder has no receive request, and sends RNR NAK."""
    REFUSED = "refused"
    """A responder sends any other NAK."""
    DUPLICATE = "duplicate"
    """A responder got a request that it has carried out."""
    BECN = "becn"
    """A packet told that what was sent met congestion."""
