"""What a Subnet Manager reports of a trap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sm.events import Event, TrapReceived
from wire.congestion_control import CC_MAD
from wire.layout import Record
from wire.mad_text import mad_title
from wire.notice import TrapNumber, details_of

__all__ = ["WrongKeyReported", "trap_event"]


@dataclass(frozen=True)
class WrongKeyReported(Event):
    """A trap about a packet with a wrong M_Key, P_Key, Q_Key or CC_Key."""

    number: int
    lid: int
    """Of the port that issued it."""
    details: Record
    """The trap's, of `wire.notice.NOTICE_DETAILS`."""

    def __str__(self) -> str:
        return f"hears by trap {self.number} from LID {self.lid}: {_TEXTS[self.number](self.details)}"


def _bad_key(name: str, digits: int) -> Callable[[Record], str]:
    """Of what an adapter's host has found; P_Keys have a field of 32 bits too."""

    def text(of: Record) -> str:
        source = f"LID {of.lid1} queue pair 0x{of.qp1:06x}" if of.qp1 else f"LID {of.lid1}"
        return f"{name} 0x{of.key:0{digits}x} in a packet from {source} to LID {of.lid2} queue pair 0x{of.qp2:06x}"

    return text


def _bad_cc_key(of: Record) -> str:
    request = CC_MAD.record(method=of.method, attribute_id=of.attribute_id, attribute_modifier=of.attribute_modifier)
    return f"CC_Key 0x{of.cc_key:x} in a {mad_title(request)} from LID {of.slid}"


_TEXTS: Final[Mapping[int, Callable[[Record], str]]] = {
    TrapNumber.BAD_CC_KEY: _bad_cc_key,
    TrapNumber.BAD_M_KEY: lambda of: f"M_Key 0x{of.m_key:x} in an SMP from LID {of.lid}",
    TrapNumber.BAD_P_KEY: _bad_key("P_Key", 4),
    TrapNumber.BAD_Q_KEY: _bad_key("Q_Key", 8),
    TrapNumber.BAD_P_KEY_AT_SWITCH: lambda of: (
        f"port {of.port} rejects P_Key 0x{of.p_key:04x} in a packet from LID {of.lid1} to LID {of.lid2}"
    ),
}


def trap_event(notice: Record) -> Event:
    """The event of a trap, by its notice."""
    details = details_of(notice)
    if details is not None and notice.trap_number in _TEXTS:
        return WrongKeyReported(notice.trap_number, notice.issuer_lid, details)
    return TrapReceived(notice.trap_number, notice.issuer_lid)
