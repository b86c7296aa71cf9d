"""What `ironband play` says: packets with what became of them, the totals, and the same as JSON."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

import numpy as np

from capture.captured_packets import chunk_of
from capture.crc_check import check_crcs
from capture.fields import Fields
from capture.timeline import UNKNOWN, Gaps
from capture.told_packet import ToldPacket, told_packets
from capture.views import in_words
from capture.wire_packet import WirePacket
from cosim.analysis.reception import NOT_RECEIVED, Received
from cosim.experiments.play import PlayResult, SentBack
from cosim.experiments.play_plan import PlayPlan
from cosim.trace.compare import Names
from ironband.progress import Console
from wire.framing import FramedPacket
from wire.trace import LinkResult, Verdict, link_source

__all__ = ["PlayReport"]

_T = TypeVar("_T")
_RESULT: Final = 22


class _Ends(Generic[_T]):
    """The first of many, and the last."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self._most = most
        self._first: list[_T] = []
        self._last: deque[_T] = deque(maxlen=most)

    def add(self, one: _T) -> None:
        self.count += 1
        if len(self._first) < self._most:
            self._first.append(one)
        else:
            self._last.append(one)

    def kept(self) -> list[_T]:
        return [*self._first, *self._last]


class PlayReport:
    """Follows a play."""

    def __init__(self, plan: PlayPlan, sim: str, lines: int, replay: str) -> None:
        """Of all packets LINES at the beginning and LINES at the end are told."""
        self._plan = plan
        self._sim = sim
        self._lines = lines
        self._replay = replay
        self._names = Names(plan.topology.fabric)
        self._received: _Ends[Received] = _Ends(lines)
        self._sent: _Ends[SentBack] = _Ends(lines)

    def received(self, one: Received) -> None:
        """A packet was played."""
        self._received.add(one)

    def sent(self, one: SentBack) -> None:
        """A port has sent one."""
        self._sent.add(one)

    def head(self, console: Console) -> None:
        """What is played where."""
        plan, line = self._plan, console.print_line
        fabric = plan.into.name or f"a switch with {len(plan.topology.fabric.links)} hosts"
        if plan.keeps_times:
            line(f"{plan.capture} into {fabric}, times as they stand", "bold")
        else:
            line(f"{plan.capture} into {fabric}, from cycle {plan.start:,} on, when it is up", "bold")
        for number, direction in enumerate(plan.survey.directions):
            entries = [entry for entry in plan.entries if entry.number == number]
            said = [
                f"{plan.topology.far_end(entry.port)} sends it to {entry.port}"
                if entry.posted
                else f"enters {entry.port}"
                for entry in entries
            ]
            if number in plan.compared:
                said.append(f"is compared with what {self._place(plan.compared[number]).partition(' ')[0]} sends")
            line(f"  {direction.name or 'packets'}: {', '.join(said) or 'is not played'}")

    def tail(self, console: Console, result: PlayResult) -> None:
        """Packets, totals, and what differs."""
        line = console.print_line
        if self._lines:
            line("")
            for text in self._packets():
                line(text)
        line("")

        def total(name: str, value: str) -> None:
            line(f"{name:<{_RESULT}}{value}")

        total("packets played", f"{self._received.count:,}")
        for (port, kind, verdict), count in sorted(result.verdicts.items()):
            line(f"  {f'{port} {kind} {verdict}':<{_RESULT + 8}}{count:,}")
        stimulus = result.stimulus
        for name, count in (
            ("came later than captured", stimulus.moved),
            ("initial, left out", stimulus.initial),
            ("not to be sent by a host", stimulus.not_sent),
        ):
            if count:
                line(f"  {name:<{_RESULT + 8}}{count:,}")
        total("packets sent back", f"{self._sent.count:,}")
        for number, count in result.same.items():
            line(f"  {self._plan.survey.directions[number].name}: {count:,} as captured")
        total("cycles", f"{result.cycles:,}")
        if result.comparison is not None:
            total("events compared", f"{result.comparison.records:,}")
        total("mismatches", "-" if result.comparison is None else str(int(result.comparison.difference is not None)))
        for text in (*self._differences(result), self._report(result)):
            if text:
                line(text, "bold red")

    def json(self, result: PlayResult) -> dict[str, Any]:
        """Machine-readable, units in the keys."""
        plan, stimulus, comparison = self._plan, result.stimulus, result.comparison
        ports: dict[str, dict[str, dict[str, int]]] = {}
        for (port, kind, verdict), count in sorted(result.verdicts.items()):
            ports.setdefault(str(port), {}).setdefault(kind.replace(" ", "_"), {})[verdict] = count
        directions = plan.survey.directions
        return {
            "command": "play",
            "replay": self._replay,
            "held": result.held,
            "sim": self._sim,
            "into": plan.into.name or None,
            "times_kept": plan.keeps_times,
            "first_cycle": plan.start,
            "cycle_ns": plan.into.cycle_ns,
            "cycles": result.cycles,
            "packets_read": plan.survey.packets,
            "damage": None if plan.survey.damage is None else str(plan.survey.damage),
            "entries": {directions[entry.number].name: str(entry.port) for entry in plan.entries},
            "packets_played": self._received.count,
            "received": ports,
            "packets_moved": stimulus.moved,
            "initial_left_out": stimulus.initial,
            "packets_not_sent": stimulus.not_sent,
            "packets_sent_back": self._sent.count,
            "as_captured": {directions[number].name: count for number, count in result.same.items()},
            "not_as_captured": list(self._differences(result)),
            "records_compared": comparison.records if comparison else 0,
            "mismatches": None if comparison is None else int(comparison.difference is not None),
            "difference": self._report(result) or None,
        }

    def _place(self, place: tuple[int, int]) -> str:
        return self._names.place(link_source(*place))

    def _told(self, packets: list[FramedPacket]) -> Iterator[ToldPacket]:
        cycle_ns = self._plan.into.cycle_ns
        chunk = chunk_of([WirePacket(0, round(one.cycle * cycle_ns), *one[1:]) for one in packets])
        fields = Fields(chunk)
        unknown = np.full(len(chunk), UNKNOWN)
        return told_packets(chunk, fields, check_crcs(chunk, fields), Gaps(unknown, unknown))

    def _packets(self) -> Iterator[str]:
        """Those played and those sent back, by time."""
        rows: list[tuple[FramedPacket, str, str]] = []
        for one in self._received.kept():
            far = self._plan.topology.far_end(one.port)
            rows.append((one.packet, f"{far} -> {one.port}", _fate(one)))
        for back in self._sent.kept():
            what = {True: "sent, as captured", False: "sent, not as captured", None: "sent"}[back.same]
            rows.append((back.packet, self._place(back.place), what))
        rows.sort(key=lambda row: row[0].cycle)
        left_out = self._received.count + self._sent.count - 2 * self._lines
        width = max((len(row[1]) for row in rows), default=0)
        yield (
            f"{'time ns':>15}  {'direction':{width}}  {'packet':25} {'bytes':>5} {'VL':>2} {'SLID':>5} {'DLID':>5}"
            f" {'FCTBS':>5} {'FCCL':>4}  what became of it"
        )
        for index, (told, (_packet, direction, fate)) in enumerate(
            zip(self._told([row[0] for row in rows]), rows, strict=True)
        ):
            if left_out > 0 and self._lines <= index < len(rows) - self._lines:
                if index == self._lines:
                    yield f"{'...':>15}  {left_out:,} packets more"
                continue
            numbers = ("" if number is None else str(number) for number in (told.vl, told.slid, told.dlid))
            vl, slid, dlid = numbers
            fctbs, fccl = ("" if number is None else str(number) for number in (told.fctbs, told.fccl))
            yield (
                f"{told.time_ns:>15,}  {direction:{width}}  {told.kind:25} {told.length:>5} {vl:>2} {slid:>5} {dlid:>5}"
                f" {fctbs:>5} {fccl:>4}  {fate}{f' ({told.flaws})' if told.flaws else ''}"
            )

    def _differences(self, result: PlayResult) -> Iterator[str]:
        for number, (captured, sent) in result.differences.items():
            name = self._plan.survey.directions[number].name
            yield f"{name}: the capture has {self._sentence(captured)}, sent back is {self._sentence(sent)}"

    def _sentence(self, packet: FramedPacket | None) -> str:
        if packet is None:
            return "nothing more"
        (told,) = self._told([packet])
        return f"at {told.time_ns:,} ns {in_words(told)}"

    def _report(self, result: PlayResult) -> str:
        difference = result.comparison.difference if result.comparison else None
        return difference.report(self._names, self._replay, seen_by=self._sim) if difference else ""


def _fate(one: Received) -> str:
    """What became of a packet that was played."""
    if one.verdict == NOT_RECEIVED:
        return NOT_RECEIVED
    good = Verdict.GOOD.name if not one.packet.is_link else LinkResult.GOOD.name
    if one.verdict != good:
        return "; ".join((f"refused, {one.verdict}", *one.ways))
    return "taken" if one.packet.is_link else "; ".join(("accepted", *one.ways))
