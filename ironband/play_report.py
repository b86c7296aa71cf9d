"""What `ironband play` says: packets with what became of them, the totals, and the same as JSON."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import numpy as np

from capture.captured_packets import chunk_of
from capture.crc_check import check_crcs
from capture.fields import Fields
from capture.timeline import UNKNOWN, Gaps
from capture.told_packet import ToldPacket, told_packets
from capture.views import in_words
from capture.wire_packet import WirePacket
from cosim.analysis.reception import Told
from cosim.engines.base import waves_around
from cosim.experiments.play import PlayResult
from cosim.experiments.play_plan import PlayPlan
from cosim.trace.compare import Names
from ironband.progress import Console
from wire.framing import FramedPacket
from wire.trace import link_source

__all__ = ["PlayReport"]

_RESULT: Final = 22


class PlayReport:
    """Follows a play."""

    def __init__(self, plan: PlayPlan, sim: str, lines: int, replay: str) -> None:
        """Of all packets the first LINES are told, and the last."""
        self._plan = plan
        self._sim = sim
        self._lines = lines
        self._replay = replay
        self._names = Names(plan.topology.fabric)
        self._count = 0
        self._first: defaultdict[str, list[Told]] = defaultdict(list)
        self._last: defaultdict[str, deque[Told]] = defaultdict(lambda: deque(maxlen=lines))

    def tell(self, one: Told) -> None:
        """A packet was played, or sent back; those of one direction come in order."""
        self._count += 1
        first = self._first[one.direction]
        (first if len(first) < self._lines else self._last[one.direction]).append(one)

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

        total("packets played", f"{sum(result.verdicts.values()):,}")
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
        total("packets sent back", f"{self._count - sum(result.verdicts.values()):,}")
        for number, count in result.same.items():
            direction = self._plan.survey.directions[number]
            line(f"  {direction.name}: {count:,} of {direction.data_packets + direction.link_packets:,} as captured")
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
            "packets_played": sum(result.verdicts.values()),
            "received": ports,
            "packets_moved": stimulus.moved,
            "initial_left_out": stimulus.initial,
            "packets_not_sent": stimulus.not_sent,
            "packets_sent_back": self._count - sum(result.verdicts.values()),
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
        """Those that are told, by time."""
        kept = sorted(chain(*self._first.values(), *self._last.values()), key=lambda one: one.packet.cycle)
        left_out = max(0, self._count - 2 * self._lines)
        if left_out:
            kept = [*kept[: self._lines], *kept[-self._lines :]]
        width = max((len(one.direction) for one in kept), default=0)
        yield (
            f"{'time ns':>15}  {'direction':{width}}  {'packet':25} {'bytes':>5} {'VL':>2} {'SLID':>5} {'DLID':>5}"
            f" {'FCTBS':>5} {'FCCL':>4}  what became of it"
        )
        for index, (one, told) in enumerate(zip(kept, self._told([one.packet for one in kept]), strict=True)):
            if index == self._lines and left_out:
                yield f"{'...':>15}  {left_out:,} packets more"
            vl, slid, dlid, fctbs, fccl = (
                "" if number is None else str(number)
                for number in (told.vl, told.slid, told.dlid, told.fctbs, told.fccl)
            )
            yield (
                f"{told.time_ns:>15,}  {one.direction:{width}}  {told.kind:25} {told.length:>5} {vl:>2} {slid:>5}"
                f" {dlid:>5} {fctbs:>5} {fccl:>4}  {one.text}{f' ({told.flaws})' if told.flaws else ''}"
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
        return (
            difference.report(self._names, self._replay, waves_around(self._sim, difference.cycle), seen_by=self._sim)
            if difference
            else ""
        )
