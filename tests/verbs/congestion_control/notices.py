"""Notices of congestion, and what an adapter sends when."""

from __future__ import annotations

from collections.abc import Iterator

from tests.verbs.congestion_control.settings import settings_with
from tests.verbs.ends import End
from verbs.frame import Outgoing
from wire.headers import BTH, LRH
from wire.opcodes import Opcode

PACKET = 8 + 12 + 256 + 4
ROWS = PACKET // 4 + 1


def fecn(data: bytes) -> bytes:
    """A packet as a switch marks it."""
    return BTH["fecn"].write(data, 1, LRH.size_bytes)


def slow(end: End, ccti: int, sl: int = 0, *, by_sl: bool = False) -> None:
    """Lets a queue pair, or an SL, be as slow as so many BECNs make it."""
    control = end.adapter.congestion_control[0]
    control.set(settings_with(by_sl=by_sl, ccti_increase=ccti), 0)
    end.adapter.receive(cnp(end), 0)
    assert control.ccti(end.qp.number, sl, 0) == ccti


def cnp(end: End) -> bytes:
    """A notice from its peer."""
    made = end.qp.pair.envelope.packet(Opcode.CNP, 0, becn=True)
    data = BTH["dest_qp"].write(made.data, end.qp.number, LRH.size_bytes)
    return LRH["slid"].write(LRH["dlid"].write(data, end.adapter.ports[0].lid), made.dlid)


def polls(end: End, until: int) -> Iterator[tuple[int, Outgoing]]:
    """What it sends when, if nothing arrives."""
    now = 0
    while now is not None and now < until:
        packet = end.adapter.poll(now)
        if packet is not None:
            yield now, packet
        wake = end.adapter.wake
        if wake is None:
            return
        now = max(now, wake)
