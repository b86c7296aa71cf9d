"""A capture played into a fabric: what ports make of its packets, and whether they send back what it has."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capture.captured_packets import captured_packets
from cosim.analysis.observer import Audience, CycleListener
from cosim.analysis.reception import Receptions, Told
from cosim.engines.base import MODEL, Taps, Waves
from cosim.experiments.perform import run_beside_model
from cosim.experiments.play_fabric import CannotPlay
from cosim.experiments.play_plan import PlayPlan
from cosim.experiments.play_stimulus import PlayStimulus
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.topology.topology import Port, Topology
from cosim.trace.compare import Comparison, Names
from wire.codes import max_pkt_len, mtu_code
from wire.framing import FramedPacket
from wire.packet import rows_of_words
from wire.trace import Delimiter, link_source

__all__ = ["PlayResult", "play"]

_PIPELINE: Final = 32


@dataclass(frozen=True)
class PlayResult:
    """What came of it.

    Attributes:
        stimulus: what was played, and what was left out.
        verdicts: how many packets of which kind met which verdict, by port.
        same: of compared directions, by number, how many packets were as captured.
        differences: of compared directions that part from the capture, the first packet of either: captured, sent.
        comparison: of RTL with the golden model; None on the model.
        cycles: length of the run.
    """

    stimulus: PlayStimulus
    verdicts: Counter[tuple[Port, str, str]]
    same: dict[int, int]
    differences: dict[int, tuple[FramedPacket | None, FramedPacket | None]]
    comparison: Comparison | None
    cycles: int

    @property
    def held(self) -> bool:
        """Whether nothing differs."""
        return not self.differences and (self.comparison is None or self.comparison.difference is None)


def play(
    plan: PlayPlan,
    engine: str,
    work_dir: Path,
    *,
    tell: Callable[[Told], None] = lambda one: None,
    progress: Callable[[int], None] = lambda cycle: None,
    waves: Waves | None = None,
) -> PlayResult:
    """Play a capture.

    `tell` gets each packet that is played when it is known what its port makes of it, and each packet that ports send
    back.

    Raises:
        CannotPlay: the engine cannot.
        What the engines raise (cosim.engines.simulation.run).
    """
    topology = plan.topology
    ports = {entry.port: entry.posted for entry in plan.entries}
    receptions = Receptions(topology, ports.items(), tell)
    stimulus = PlayStimulus(plan, receptions.expect)
    returned = _Returned(plan, stimulus, tell)
    audience = Audience([receptions, CycleListener(progress)], iter(()))
    carriers = [manager.carrier for manager in plan.into.experiment.managers(audience.manage)]
    stimuli = iter((stimulus, PlayStimulus(plan)))

    def spec(actor: Actor | None) -> RunSpec:
        return next(stimuli).spec(actor)

    taps = Taps(returned.places, returned.take)
    comparison, cycles = run_beside_model(
        engine, spec, work_dir, audience, carriers, rtl=_rtl(plan, engine), waves=waves, taps=taps
    )
    returned.finish()
    return PlayResult(stimulus, receptions.verdicts, returned.same, returned.differences, comparison, cycles)


def _rtl(plan: PlayPlan, engine: str) -> list[str] | None:
    """The nodes that are RTL: those that are played into."""
    if engine == MODEL or not plan.played:
        return None
    nodes = [name for name in plan.topology.fabric.nodes if any(entry.port.node == name for entry in plan.entries)]
    for entry in plan.entries:
        far = plan.topology.far_end(entry.port)
        if not entry.posted and far is not None and far.node in nodes:
            raise CannotPlay(f"--sim {engine}: {far} and {entry.port}, both played into, have a link: play into one")
    return nodes


class _Returned:
    """Packets that ports send back, beside those of the capture.

    Attributes:
        places: where they are looked for, as (link, direction).
        same, differences: as in `PlayResult`.
    """

    def __init__(self, plan: PlayPlan, stimulus: PlayStimulus, tell: Callable[[Told], None]) -> None:
        self.places = tuple(
            dict.fromkeys([*((link, 1 - way) for link, way in map(plan.place, plan.entries)), *plan.compared.values()])
        )
        self.same = dict.fromkeys(plan.compared, 0)
        self.differences: dict[int, tuple[FramedPacket | None, FramedPacket | None]] = {}
        self._over: set[int] = set()
        names = Names(plan.topology.fabric)
        self._names = [names.place(link_source(*place)) for place in self.places]
        self._tell = tell
        self._plan = plan
        self._stimulus = stimulus
        self._numbers = {place: number for number, place in plan.compared.items()}
        self._captured = self._compared()
        self._next = next(self._captured, None)
        self._waiting: dict[int, deque[FramedPacket]] = {number: deque() for number in plan.compared}
        self._last = plan.cycle(plan.survey.last_ns)
        # A packet that had not ended then is not in the capture, and what ports made of it so far is.
        self._judged_until = self._last - max(_longest(plan.topology, entry.port) for entry in plan.entries)

    def _compared(self) -> Iterator[tuple[int, FramedPacket]]:
        plan = self._plan
        if plan.compared:
            for packet in captured_packets(plan.capture, plan.survey.packets):
                if packet.direction in plan.compared:
                    cycle = plan.cycle(packet.time_ns)
                    yield packet.direction, FramedPacket(cycle, packet.is_link, packet.data, packet.ending)

    def take(self, tap: int, packet: FramedPacket) -> None:
        """A port has sent this."""
        place = self.places[tap]
        number = self._numbers.get(place)
        fate = "sent"
        if number is not None and number not in self._over and place not in self._stimulus.repaired:
            self._read_until(packet.cycle)
            waiting = self._waiting[number]
            wanted = waiting.popleft() if waiting else None
            if wanted is not None and _comparable(wanted) == _comparable(packet):
                self.same[number] += 1
                fate = "sent, as captured"
            elif wanted is not None or self._plan.start <= packet.cycle <= self._last:
                # Others began before the capture did, or may have ended after it.
                self._differ(number, wanted, packet)
                fate = "sent, not as captured"
        self._tell(Told(self._names[tap], packet, fate))

    def finish(self) -> None:
        """What the capture has besides was not sent."""
        self._read_until(None)
        for number, waiting in self._waiting.items():
            if waiting and number not in self._over and self._plan.compared[number] not in self._stimulus.repaired:
                self._differ(number, waiting[0], None)

    def _differ(self, number: int, wanted: FramedPacket | None, packet: FramedPacket | None) -> None:
        """The first difference of a direction; none if it may come of what the capture lacks."""
        self._over.add(number)
        if min(one.cycle for one in (wanted, packet) if one is not None) < self._judged_until:
            self.differences[number] = wanted, packet

    def _read_until(self, cycle: int | None) -> None:
        while self._next is not None and (cycle is None or self._next[1].cycle <= cycle):
            number, packet = self._next
            if number not in self._over:
                self._waiting[number].append(packet)
            self._next = next(self._captured, None)


def _longest(topology: Topology, port: Port) -> int:
    """Cycles that a packet to a port can take, and a little more for what the port does then."""
    return topology.pace(port) * rows_of_words(max_pkt_len(mtu_code(topology.mtu(port)))) + _PIPELINE


def _comparable(packet: FramedPacket) -> FramedPacket:
    """A capture does not tell zeros at the end of a link packet that was cut from those that fill its record."""
    if packet.is_link and packet.end is Delimiter.CUT:
        return packet._replace(body=packet.body.rstrip(b"\0"))
    return packet
