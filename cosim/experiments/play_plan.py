"""Which packets of a capture enter which ports of a fabric, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from capture.directions import ends, is_of_host
from capture.survey import Survey
from cosim.experiments.play_fabric import CannotPlay, Entry, Into, default_fabric
from cosim.scenario.limits import MAX_CYCLES, SDR_CYCLE_NS
from cosim.topology.topology import Port, Topology, port_named
from wire.parameters import AdapterParameters, SwitchParameters

__all__ = ["PlayPlan", "plan_play"]

_SDR_GBPS: Final = 10
_LAST_CYCLES: Final = 5_000
"""For the last packet of a capture, and what is sent back at once."""

_DRAIN_CYCLES: Final = 20_000
"""For all that the capture has brought into a fabric to leave it, unless the run that it is of ends before."""


@dataclass(frozen=True)
class PlayPlan:
    """All that is to be known to play a capture.

    Attributes:
        capture: its file.
        survey: what is in it.
        into: the fabric.
        entries: what is played into it.
        compared: directions of the capture that ports which are played into send: by number, their places
            (link, direction) in the fabric.
        keeps_times: times of the capture are those of a run of this fabric; else its first packet is in cycle `start`.
        start: the cycle in which the first packet comes.
        cycles: length of the run.
    """

    capture: str
    survey: Survey
    into: Into
    entries: tuple[Entry, ...]
    compared: Mapping[int, tuple[int, int]]
    keeps_times: bool
    start: int
    cycles: int

    @property
    def topology(self) -> Topology:
        """The fabric as it is configured."""
        return self.into.experiment.topology

    def cycle(self, time_ns: int) -> int:
        """When a packet of the capture comes."""
        if self.keeps_times:
            return round(time_ns / self.into.cycle_ns)
        return self.start + round((time_ns - self.survey.first_ns) / self.into.cycle_ns)

    def place(self, entry: Entry) -> tuple[int, int]:
        """Link and direction on which an entry's packets come."""
        return _towards(self.topology, entry.port)

    @property
    def played(self) -> dict[tuple[int, int], int]:
        """Directions of links whose packets are the capture's, and from which cycle on."""
        return {self.place(entry): self.start for entry in self.entries if not entry.posted}


def _towards(topology: Topology, port: Port) -> tuple[int, int]:
    found = topology.link_at(port)
    if found is None:
        raise CannotPlay(f"{port}: has no link")
    return found[0], 1 - found[1]


def _chosen(surveyed: Survey) -> list[int]:
    """The directions that are played where nothing says which: of a link's that to the node with more ports.

    What a host captured itself passed its link as well: it is played only if nothing else was captured.
    """
    known = surveyed.directions
    ports = {end for one in known for end in ends(one.name) or ()}
    sizes = Counter(_node(end) for end in ports)

    def rank(number: int) -> tuple[int, int]:
        return sizes[_node((ends(known[number].name) or ("", ""))[1])], -number

    cables = [number for number, one in enumerate(known) if not (surveyed.is_of_links and is_of_host(one.name))]
    backs = {number: surveyed.back(number) for number in cables}
    return [number for number, back in backs.items() if back is None or rank(number) > rank(known.index(back))]


def _node(end: str) -> str:
    return end.partition("[")[0]


def plan_play(
    capture: str,
    surveyed: Survey,
    given: Into | None,
    at: Mapping[str, str],
    keeps_times: bool | None,
    gbps: float | None,
) -> PlayPlan:
    """What is played where.

    Args:
        capture: the file.
        surveyed: what is in it.
        given: the fabric; None for a default one.
        at: the port that each direction enters, by their names; without any those that the directions' names tell.
        keeps_times: whether the capture's times are cycles of a run of this fabric; None to see whether they can be.
        gbps: rate of a link of four lanes, which says how long a cycle is; None for the fabric's own.

    Raises:
        CannotPlay: a direction or a port that is not there, or packets that cannot come from where they would have to.
    """
    for name in at:
        if name not in surveyed.numbers:
            raise CannotPlay(f"--at {name}: no such direction; {capture} has {', '.join(surveyed.numbers)}")
    cycle_ns = None if gbps is None else SDR_CYCLE_NS * _SDR_GBPS / gbps
    if given is None:
        if at or keeps_times:
            option = "--at" if at else "--times kept"
            raise CannotPlay(f"{option}: the default fabric is made for the capture: expected --into, too")
        into = default_fabric(surveyed, _chosen(surveyed), cycle_ns or SDR_CYCLE_NS)
        entries = into.entries
    else:
        into = replace(given, cycle_ns=cycle_ns or given.cycle_ns)
        entries = _entries(surveyed, into, at)
    experiment = into.experiment
    first, last = (round(time / into.cycle_ns) for time in (surveyed.first_ns, surveyed.last_ns))
    if keeps_times is None:
        keeps_times = given is not None and first < experiment.end
    start = first if keeps_times else experiment.start
    last += start - first
    end = min(last + _DRAIN_CYCLES, max(last + _LAST_CYCLES, experiment.cycles))
    if end >= MAX_CYCLES:
        raise CannotPlay(f"{capture}: it ends in cycle {end}: expected less than {MAX_CYCLES}")
    plan = PlayPlan(capture, surveyed, into, entries, {}, keeps_times, start, end)
    return replace(plan, compared=_compared(plan) if keeps_times and given is not None else {})


def _entries(surveyed: Survey, into: Into, at: Mapping[str, str]) -> tuple[Entry, ...]:
    topology = into.experiment.topology
    fabric = topology.fabric
    found = []
    for number, direction in enumerate(surveyed.directions):
        if at and direction.name in at:
            try:
                port = port_named(fabric, at[direction.name])
            except ValueError as error:
                raise CannotPlay(f"--at {direction.name}={error}") from None
            _towards(topology, port)
        else:
            link = _link_named(topology, direction.name)
            if at or link is None:
                continue
            port = link[1]
        found.append(Entry(number, None, port, not surveyed.is_of_links))
    if not at:
        into_switches = [one for one in found if isinstance(fabric.nodes[one.port.node], SwitchParameters)]
        found = into_switches or found
    if not found:
        known = ", ".join(repr(name) for name in surveyed.numbers)
        raise CannotPlay(f"no direction is named after a link of {into.name}: expected --at NAME=PORT, of {known}")
    for entry in found:
        far = topology.far_end(entry.port)
        name = surveyed.directions[entry.number].name
        if any(other is not entry and other.port == entry.port for other in found):
            raise CannotPlay(f"--at {name}={entry.port}: another direction enters this port")
        if entry.posted and (far is None or not isinstance(fabric.nodes[far.node], AdapterParameters)):
            raise CannotPlay(f"{name}: a capture without flow control is sent by hosts, and {entry.port} has none")
    return tuple(found)


def _compared(plan: PlayPlan) -> dict[int, tuple[int, int]]:
    receivers = {entry.port.node for entry in plan.entries}
    links = ((number, _link_named(plan.topology, one.name)) for number, one in enumerate(plan.survey.directions))
    found = {number: plan.topology.link_at(link[0]) for number, link in links if link and link[0].node in receivers}
    return {number: place for number, place in found.items() if place is not None}


def _link_named(topology: Topology, direction: str) -> tuple[Port, Port] | None:
    """From which port to which a direction of a capture leads in a fabric, by its name."""
    try:
        source, destination = (port_named(topology.fabric, text) for text in ends(direction) or ())
    except ValueError:
        return None
    return (source, destination) if topology.far_end(source) == destination else None
