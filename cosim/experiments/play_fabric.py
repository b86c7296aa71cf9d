"""The fabrics that captures are played into: given ones, and one made for a capture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from capture.survey import Survey, SurveyedDirection
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.managed_experiment import managed_experiment
from cosim.scenario.find_scenario import packaged_scenarios
from cosim.scenario.limits import MAX_CYCLES, SDR_CYCLE_NS
from cosim.scenario.scenario_file import load_scenario, parse_scenario
from cosim.stimulus.bus_bring_up import bus_bring_up
from cosim.topology.topology import Port, Topology
from cosim.topology.topology_file import find_topology, packaged_topologies
from toolchain.errors import UserError
from wire.codes import DATA_VL_COUNTS, MTU, SERVICE_LEVELS, LinkWidth, max_pkt_len, mtu_bytes
from wire.flow_control import CREDIT_WINDOW
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, NodeParameters, SwitchParameters

__all__ = ["CannotPlay", "Entry", "Into", "default_fabric", "given_fabric"]

_SWITCH: Final = "S"
_MOST_PORTS: Final = 64
_LFT_SIZE: Final = 1024
_MOST_LIDS: Final = 0xC000
_NARROW_BITS_PER_S: Final = 2_500_000_000


class CannotPlay(UserError):
    """What is asked cannot be played; the text is one line."""


class Entry(NamedTuple):
    """Where a direction of a capture, or the packets of one SLID in it, enters a fabric.

    Attributes:
        number: of the direction in the capture.
        slid: whose packets; None for all.
        port: the port that gets them.
        posted: they are given to the host at the other end of the link to send; else they are put on the link.
    """

    number: int
    slid: int | None
    port: Port
    posted: bool


@dataclass(frozen=True)
class Into:
    """A fabric that is played into.

    Attributes:
        name: what people call it; empty for the default one.
        experiment: the fabric, and what acts on it besides.
        cycle_ns: how long a cycle is.
        entries: if the fabric was made for a capture, where that enters it.
    """

    name: str
    experiment: Experiment
    cycle_ns: float = SDR_CYCLE_NS
    entries: tuple[Entry, ...] = ()


def given_fabric(name: str, by_bus: bool) -> Into:
    """The fabric of a scenario or of a topology file, brought up as `run` does it.

    Raises:
        CannotPlay: there is none.
        ScenarioError, TopologyError: it is wrong.
    """
    scenarios, topologies = packaged_scenarios(), packaged_topologies()
    if name not in {*scenarios, *topologies} and not Path(name).is_file():
        known = ", ".join([*scenarios, *topologies])
        raise CannotPlay(f"--into {name}: no such file, and Ironband comes with: {known}")
    if name in scenarios or Path(name).suffix == ".toml":
        scenario = load_scenario(name)
        if scenario.message_flows:
            raise CannotPlay(f"--into {name}: expected a scenario without a transport, which answers what is played")
    else:
        # As a scenario without traffic and without end.
        text = f"topology = '''{find_topology(name).absolute()}'''\ncycles = {MAX_CYCLES - 1}"
        scenario = parse_scenario(text, name, name)
    experiment = scenario_experiment(scenario) if by_bus else managed_experiment(scenario)
    return Into(name, experiment, scenario.symbol_time_ns)


def default_fabric(surveyed: Survey, numbers: Iterable[int], cycle_ns: float) -> Into:
    """One switch, with a port for each link that is played, a port for each host whose own capture it is, by its LID,
    and one behind which all other LIDs are.

    Raises:
        CannotPlay: more ports than a switch has.
    """
    directions = {number: surveyed.directions[number] for number in numbers}
    wanted: list[tuple[int, int | None, SurveyedDirection]] = []
    for number, direction in directions.items():
        slids: list[int | None] = [] if surveyed.is_of_links else [*sorted(direction.slids)]
        wanted += [(number, slid, direction) for slid in slids or [None]]
    known: dict[int, int] = {}
    for port, (_number, slid, direction) in enumerate(wanted, 1):
        known |= {lid: port for lid in ([slid] if slid else sorted(direction.slids)) if lid not in known}
    others = set().union(*(direction.dlids for direction in directions.values())) - known.keys()
    ports = len(wanted) + 1
    if ports > _MOST_PORTS:
        raise CannotPlay(f"{ports - 1} links and hosts: the default fabric has up to {_MOST_PORTS - 1}, say --into")
    table = known | dict.fromkeys(others, ports)
    words = max((direction.longest for direction in directions.values()), default=0)
    mtu = next((mtu_bytes(code) for code in MTU if max_pkt_len(code) >= words), mtu_bytes(max(MTU)))
    used = max((direction.vls for direction in directions.values()), default=1)
    vls = next((count for count in DATA_VL_COUNTS if count >= used), DATA_VL_COUNTS[-1])
    lft_size = min(_MOST_LIDS, max(_LFT_SIZE, 1 << max(table, default=1).bit_length()))
    switch = SwitchParameters(ports=ports, vls=vls, mtu=mtu, buffer_blocks=CREDIT_WINDOW, lft_size=lft_size)
    nodes: dict[str, NodeParameters] = {_SWITCH: switch}
    nodes |= {f"H{port}": AdapterParameters(vls=vls, mtu=mtu) for port in range(1, ports + 1)}
    links = tuple(LinkParameters(f"H{port}", 1, _SWITCH, port) for port in range(1, ports + 1))
    behind = {port: min((lid for lid, way in table.items() if way == port), default=0) for port in range(1, ports + 1)}
    topology = Topology(
        FabricParameters(nodes, links),
        {f"H{port}": lid for port, lid in behind.items() if lid},
        {_SWITCH: table},
        (*(_width(direction) for _number, _slid, direction in wanted), LinkWidth.X4),
        tuple(range(SERVICE_LEVELS)),
    )
    up = bus_bring_up(topology)
    experiment = Experiment(topology, up.start, MAX_CYCLES, MAX_CYCLES, lambda: iter(()), lambda: iter(up.controls))
    entries = tuple(
        Entry(number, slid, Port(_SWITCH, port), not surveyed.is_of_links)
        for port, (number, slid, _direction) in enumerate(wanted, 1)
    )
    return Into("", experiment, cycle_ns, entries)


def _width(direction: SurveyedDirection) -> LinkWidth:
    return LinkWidth.X1 if direction.bits_per_s == _NARROW_BITS_PER_S else LinkWidth.X4
