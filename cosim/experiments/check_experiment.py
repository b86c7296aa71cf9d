"""What `ironband check` simulates: a switch or a whole fabric, random traffic and errors, all drawn from a seed."""

from __future__ import annotations

import heapq
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from random import Random
from typing import Literal

from cosim.experiments.experiment import Experiment
from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import scenario_of
from cosim.scenario.tables import Host, Link, PortSettings, Switch
from cosim.stimulus.bus_bring_up import BUS_READ_CYCLES, bus_bring_up, read_counters
from cosim.stimulus.injection import random_controls
from cosim.stimulus.packet import Packet
from cosim.stimulus.random_congestion import random_congestion_requests
from cosim.stimulus.random_groups import random_groups
from cosim.stimulus.random_mads import random_mad_packets
from cosim.stimulus.random_packets import MOST_HOSTS, RandomTraffic, random_packets
from cosim.stimulus.random_settings import random_high_limit, random_vl_weight
from cosim.stimulus.random_traps import random_trap_requests
from cosim.stimulus.register_reads import read_registers
from cosim.topology.topology import Port
from cosim.topology.topology_file import TopologyError, find_topology
from wire.codes import DATA_VL_COUNTS, MTU, SERVICE_LEVELS, max_pkt_len, mtu_bytes, mtu_code
from wire.packet import blocks_of_words
from wire.parameters import SwitchParameters, vl_arbitration_entries
from wire.registers import PORT_RESET_VALUES, PortRegister
from wire.stimulus import Control
from wire.vl_arbitration import VlArbitration, VlWeight

__all__ = ["CheckOptions", "Widths", "check_experiment", "check_scenario"]

Widths = Literal["mixed", "4X", "1X"]

_DRAIN_SHARE = 0.05
_REGISTER_READS_SHARE = 0.1
"""Of the cycles, those that reading registers and tables may take besides the counters."""

_FLIGHTS = (1, 2, 3, 8, 25, 40)
_FCP_PERIODS = (400, 3_000, PORT_RESET_VALUES[PortRegister.FCP_PERIOD])
_LINK_DOWN_TIMEOUT = 400
_MAX_BUFFER_PACKETS = 5
_STRAY_BLOCKS = 1
_MOST_BLOCKS = 4_095
_DEEP_BUFFER = 2_049
"""Blocks of a buffer of which not all can be announced at once."""

_DEEP_SHARE = 0.1
_STORED_SHARE = 0.2
"""Of the switches, those that send no packet before all of it is there."""
_MTUS = tuple(mtu_bytes(code) for code in MTU)


@dataclass(frozen=True)
class CheckOptions:
    """What is checked. Everything else (buffers, cables, timers, widths, traffic, errors) follows from the seed.

    Attributes:
        ports: ports of the switch, each with an adapter.
        topology: in place of that switch, a topology file's path, or the name of one that comes with Ironband.
        vls: data VLs of the first switch and the first host; some others have less.
        mtu: MTU in bytes of the same; that of some others is smaller.
        queueing: of the switches.
        cycles: length of the run from reset.
        seed: of all that is random.
        widths: of the links.
        errors: inject errors.
        load: mean fraction of its time that a link is asked to carry.
        sim: the engine.
    """

    ports: int = 4
    vls: int = 2
    mtu: int = 256
    queueing: Literal["voq", "fifo"] = "voq"
    cycles: int = 20_000
    seed: int = 1
    widths: Widths = "mixed"
    errors: bool = True
    load: float = 0.7
    sim: str = "verilator"
    topology: str | None = None

    @property
    def command(self) -> str:
        """The line that runs this check again."""
        words = ["ironband", "check"]
        fabric = "ports" if self.topology is None else "topology"
        for name in (fabric, "vls", "mtu", "queueing", "cycles", "seed", "widths", "load", "sim"):
            words += [f"--{name}", str(getattr(self, name))]
        return shlex.join([*words, "--errors" if self.errors else "--no-errors"])


def check_scenario(options: CheckOptions) -> Scenario:
    """The switch and its adapters, or the topology's, with buffers, cables and timers drawn from the seed.

    Raises:
        ValueError: impossible parameters (pydantic's ValidationError, whose text has the reason).
        TopologyError: there is no such topology, or it cannot be built.
    """
    shape = _shape(options)
    random = Random(f"{options.seed}/fabric")
    largest = blocks_of_words(max_pkt_len(mtu_code(options.mtu)))

    def blocks() -> int:
        # Room for a stray that is too long: a host would wait forever for more than there is.
        least = largest + _STRAY_BLOCKS
        if random.random() < _DEEP_SHARE:
            return random.randint(max(least, _DEEP_BUFFER), _MOST_BLOCKS)
        return min(_MOST_BLOCKS, random.randint(least, _MAX_BUFFER_PACKETS * least))

    def some(most: int, choices: tuple[int, ...], *, is_first: bool) -> int:
        """What a node has: the first the most, others mostly, so that links differ in VLs and MTU."""
        return most if is_first else random.choice((most, most, *(choice for choice in choices if choice <= most)))

    count = len(shape.links)
    widths = [options.widths] * count if options.widths != "mixed" else _mixed(random, count)

    def link(ends: tuple[str, str], width: Literal["1X", "4X"]) -> Link:
        return Link(
            ends=ends if random.random() < 0.5 else ends[::-1], width=width, flight_cycles=random.choice(_FLIGHTS)
        )

    def settings(end: str) -> PortSettings:
        return PortSettings(
            at=end,
            fcp_threshold=random.choice((0, 1, largest // 2, largest, 2 * largest)),
            fcp_period=random.choice(_FCP_PERIODS) + random.randint(0, 200),
            fc_watchdog=random.choice((5_000, PORT_RESET_VALUES[PortRegister.FC_WATCHDOG])),
            link_down_timeout=_LINK_DOWN_TIMEOUT + random.randint(0, 2_000),
            tick=random.choice((0, 1, 7, 31, 255)),
            local_phy_errors=random.choice((0, 1, 15)),
            overrun_errors=random.choice((0, 1, 2)),
        )

    def switch(ports: int, *, is_first: bool) -> Switch:
        return Switch(
            ports=ports,
            vls=some(options.vls, DATA_VL_COUNTS, is_first=is_first),
            mtu=some(options.mtu, _MTUS, is_first=is_first),
            buffer_blocks=blocks(),
            queueing=options.queueing,
            readers=1 if options.queueing == "fifo" else random.choice((1, 2)),
            forwarding="store-and-forward" if random.random() < _STORED_SHARE else "cut-through",
        )

    def host(ports: int, *, is_first: bool) -> Host:
        return Host(
            ports=ports,
            vls=some(options.vls, DATA_VL_COUNTS, is_first=is_first),
            mtu=some(options.mtu, _MTUS, is_first=is_first),
            receive_blocks=blocks(),
            send_blocks=blocks(),
        )

    switches = {name: switch(ports, is_first=place == 0) for place, (name, ports) in enumerate(shape.switches.items())}
    hosts = {name: host(ports, is_first=place == 0) for place, (name, ports) in enumerate(shape.hosts.items())}
    return Scenario(
        name="check",
        cycles=options.cycles,
        seed=options.seed,
        sl_to_vl=tuple(random.randrange(8) for _ in range(SERVICE_LEVELS)),
        switches=switches,
        hosts=hosts,
        links=tuple(link(ends, width) for ends, width in zip(shape.links, widths, strict=True)),
        ports=tuple(settings(end) for ends in shape.links for end in ends),
    )


@dataclass(frozen=True)
class _Shape:
    """Ports of the switches, and of the hosts, by name, and the ends of the links."""

    switches: dict[str, int]
    hosts: dict[str, int]
    links: tuple[tuple[str, str], ...]


def _shape(options: CheckOptions) -> _Shape:
    """One switch with a host at each port, or a topology's nodes and links."""
    if options.topology is None:
        numbers = range(1, options.ports + 1)
        links = tuple((f"S[{port}]", f"H{port}") for port in numbers)
        return _Shape({"S": options.ports}, {f"H{port}": 1 for port in numbers}, links)
    file = find_topology(options.topology).resolve()
    described = scenario_of({"cycles": 1, "topology": file.name}, options.topology, "check", file.parent)
    if not described.switches:
        raise TopologyError(f"{options.topology}: no switches, expected at least one")
    if not 2 <= len(described.lids) <= MOST_HOSTS:
        raise TopologyError(
            f"{options.topology}: {len(described.lids)} linked ports of hosts, expected 2..{MOST_HOSTS}"
        )
    return _Shape(
        {name: table.ports for name, table in described.switches.items()},
        {name: table.ports for name, table in described.hosts.items()},
        tuple(link.ends for link in described.links),
    )


def _arbitration(options: CheckOptions) -> VlArbitration:
    """What all ports begin with; each gets entries of its own later."""
    random = Random(f"{options.seed}/arbitration")
    most = vl_arbitration_entries(2)  # what every port has room for that has lists

    def entries() -> tuple[VlWeight, ...]:
        return tuple(random_vl_weight(random, options.vls) for _ in range(random.randint(0, most)))

    return VlArbitration(entries(), entries(), random_high_limit(random))


def _mixed(random: Random, count: int) -> list[Literal["1X", "4X"]]:
    """Widths of so many links, both at least once if there are two."""
    widths: list[Literal["1X", "4X"]] = ["1X", "4X", *random.choices(("1X", "4X"), (1, 2), k=count - 2)]
    random.shuffle(widths)
    return widths[:count]


def check_experiment(options: CheckOptions, errors_given: Counter[str] | None = None) -> Experiment:
    """The experiment of a check.

    `errors_given` counts the errors ordered, by kind, in each stimulus made of it.

    Raises:
        ValueError: impossible parameters, or fewer cycles than bring-up and reading the counters take.
        TopologyError: there is no such topology, or it cannot be built.
    """
    scenario = check_scenario(options)
    topology = scenario.topology
    first, *others = topology.lids
    for host in others:
        if topology.path(first, host) is None:
            raise TopologyError(
                f"{options.topology}: no way from {first} to {host}, expected hosts in reach of each other"
            )
    size = next(node.mft_size for node in topology.fabric.nodes.values() if isinstance(node, SwitchParameters))
    groups = random_groups(list(topology.lids), size, Random(f"{options.seed}/groups"))
    topology = replace(topology, vl_arbitration=_arbitration(options), groups=groups)
    settings = {Port(*scenario.port_of(table.at)): table.registers for table in scenario.ports}
    up = bus_bring_up(topology, settings)

    def reads(cycle: int) -> list[Control]:
        counters = read_counters(topology, cycle, details=True)
        most = int(options.cycles * _REGISTER_READS_SHARE)
        return counters + read_registers(topology, counters[-1].cycle + 1, Random(f"{options.seed}/registers"), most)

    reading = reads(0)[-1].cycle + BUS_READ_CYCLES + 2
    end = options.cycles - reading
    if end <= up.start:
        raise ValueError(f"cycles {options.cycles}: expected more than {up.start + reading}")
    last_post = end - int((end - up.start) * _DRAIN_SHARE)
    traffic = RandomTraffic(options.seed, up.start, last_post, options.load, strays=options.errors)
    counts = Counter() if errors_given is None else errors_given

    def controls() -> Iterator[Control]:
        between = random_controls(topology, options.seed, up.start, last_post, errors=options.errors, injected=counts)
        return chain(up.controls, (one for one in between if one.cycle < end), reads(end))

    def packets() -> Iterator[Packet]:
        requests = random_congestion_requests(topology, options.seed, up.start, last_post)
        of_traps = random_trap_requests(topology, options.seed, up.start, last_post)
        mads = random_mad_packets(topology, options.seed, up.start, last_post) if options.errors else iter(())
        return heapq.merge(random_packets(topology, traffic), requests, of_traps, mads, key=attrgetter("cycle"))

    return Experiment(topology, up.start, end, options.cycles, packets, controls)
