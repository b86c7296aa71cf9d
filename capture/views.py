"""A capture as lines for a terminal: as an analyser shows it, and as a ladder between two ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from capture.directions import ends
from capture.told_packet import ToldPacket
from toolchain.errors import UserError

__all__ = ["AnalyserView", "Ladder", "View", "in_words"]

_SHOWN_TIME: Final = 15


class View(Protocol):
    """Makes lines of packets."""

    def lines(self, packets: Iterable[ToldPacket], directions: Sequence[str]) -> Iterator[str]:
        """Of the next packets, with a heading where one is needed."""


class AnalyserView:
    """A line a packet, a column a number."""

    def __init__(self) -> None:
        self._width = 0

    def lines(self, packets: Iterable[ToldPacket], directions: Sequence[str]) -> Iterator[str]:
        """The heading comes first, and again if a direction needs more room."""
        width = max((len(name) for name in directions), default=0)
        if width > self._width:
            self._width = width
            yield (
                f"{'time ns':>{_SHOWN_TIME}} {'idle ns':>9}  {'direction':{width}}  {'packet':25} {'bytes':>5}"
                f" {'VL':>2} {'SLID':>5} {'DLID':>5} {'dest QP':>8} {'PSN':>8} {'FCTBS':>5} {'FCCL':>4}  CRCs"
            )
        width = self._width
        for packet in packets:
            time_ns, idle_ns, direction, kind, length, vl, slid, dlid, dest_qp, psn, fctbs, fccl, flaws = packet
            idle = "" if idle_ns is None else f"{idle_ns:,}"
            yield (
                f"{time_ns:>{_SHOWN_TIME},} {idle:>9}  {directions[direction]:{width}}  {kind:25} {length:>5}"
                f" {_text(vl):>2} {_text(slid):>5} {_text(dlid):>5} {_text(dest_qp):>8} {_text(psn):>8}"
                f" {_text(fctbs):>5} {_text(fccl):>4}  {flaws or 'right'}"
            )


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


_RUNG: Final = 64


class Ladder:
    """Two ends, time downwards, and an arrow for each packet."""

    def __init__(self) -> None:
        self._left = ""
        self._right = ""

    def lines(self, packets: Iterable[ToldPacket], directions: Sequence[str]) -> Iterator[str]:
        """The heading comes first.

        Raises:
            UserError: a packet of a third end.
        """
        for packet in packets:
            # A direction without the names of its ends is that of the packets that the end of its name sends.
            source, destination = ends(directions[packet.direction]) or (directions[packet.direction], "")
            if not self._left:
                self._left, self._right = source, destination
                yield f"{'time ns':>{_SHOWN_TIME}}  {self._left:{_RUNG + 1}}{self._right}".rstrip()
            self._right = self._right or (source if source != self._left else "")
            if source not in (self._left, self._right) or destination not in (self._left, self._right, ""):
                raise UserError(
                    f"a ladder has two ends, here {self._left} and {self._right or 'another'}: "
                    f"{directions[packet.direction]} too (--port chooses)"
                )
            if source == self._left:
                arrow = f"-- {in_words(packet)} ".ljust(_RUNG - 1, "-") + ">"
            else:
                arrow = "<" + f" {in_words(packet)} --".rjust(_RUNG - 1, "-")
            yield f"{packet.time_ns:>{_SHOWN_TIME},}  |{arrow}|"


def in_words(packet: ToldPacket) -> str:
    """A packet in few words."""
    words = [packet.kind]
    if packet.vl is not None:
        words.append(f"VL {packet.vl}")
    if packet.slid is not None:
        words.append(f"LID {packet.slid} to {packet.dlid}")
    if packet.psn is not None:
        words.append(f"PSN {packet.psn}")
    if packet.fctbs is not None:
        words.append(f"FCTBS {packet.fctbs} FCCL {packet.fccl}")
    if packet.flaws:
        words.append(packet.flaws)
    return ", ".join(words)
