"""What `ironband check` simulates: a switch or a whole fabric, random traffic and errors, all drawn from a seed."""

from __future__ import annotations

import heapq
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from random import Random
from typing import Literal

from cosim.experiments.check_shape import RANDOM_FABRIC, Shape, one_switch, random_shape, shape_of_topology
from cosim.experiments.experiment import Experiment
from cosim.experiments.managed_experiment import managed_bring_up
from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import Host, Link, PortSettings, Switch
from cosim.stimulus.bus_bring_up import BUS_READ_CYCLES, BringUp, bus_bring_up, read_counters
from cosim.stimulus.injection import random_controls
from cosim.stimulus.packet import Packet
from cosim.stimulus.random_addresses import has_own_addresses, has_vls_of_pairs, random_addresses
from cosim.stimulus.random_cc_traps import random_cc_trap_requests
from cosim.stimulus.random_congestion import random_congestion_requests
from cosim.stimulus.random_counters import has_crowds_at_stuck_links
from cosim.stimulus.random_groups import random_groups
from cosim.stimulus.random_mads import random_mad_packets
from cosim.stimulus.random_packets import RandomTraffic, has_starved_copies, random_packets
from cosim.stimulus.random_power_up import random_power_up
from cosim.stimulus.random_rare_settings import has_late_timers, random_late_timers
from cosim.stimulus.random_settings import has_low_lists_alone, random_high_limit, random_vl_weight
from cosim.stimulus.random_traps import random_trap_requests, random_trap_sweeps
from cosim.stimulus.register_reads import read_registers
from cosim.topology.topology import Port, Topology
from cosim.topology.topology_file import TopologyError
from wire.codes import DATA_VL_COUNTS, MTU, SERVICE_LEVELS, VL15, max_pkt_len, mtu_bytes, mtu_code
from wire.flow_control import CREDIT_WINDOW
from wire.packet import blocks_of_words
from wire.parameters import SwitchParameters, vl_arbitration_entries
from wire.registers import PORT_RESET_VALUES, PortRegister
from wire.stimulus import Control, Post
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
_DEEP_BUFFER = CREDIT_WINDOW + 1
"""Blocks of a buffer of which not all can be announced at once."""

_DEEP_SHARE = 0.1
_WINDOW_SHARE = 0.3
"""Of these, those of which just all can."""

_STORED_SHARE = 0.2
"""Of the switches, those that send no packet before all of it is there."""

_MANAGED_SHARE = 0.5
"""Of the random fabrics, those that a Subnet Manager brings up, ..."""

_MANAGED_PART = 0.9
"""... if it is done in this part of the run."""

_LFT_SIZES = (100, 1_024, 5_000)
_MTUS = tuple(mtu_bytes(code) for code in MTU)


@dataclass(frozen=True)
class CheckOptions:
    """What is checked. Everything else (buffers, cables, timers, widths, traffic, errors) follows from the seed.

    Attributes:
        ports: ports of the switch, each with an adapter.
        fabric: in place of that switch, a topology file's path, the name of one that comes with Ironband, or
            `RANDOM_FABRIC`.
        fabric_seed: the fabric alone follows from this, not from `seed`: nodes and cables; no settings or addresses do.
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
    fabric: str | None = None
    fabric_seed: int | None = None

    @property
    def command(self) -> str:
        """The line that runs this check again."""
        words = ["ironband", "check"]
        words += ["--ports", str(self.ports)] if self.fabric is None else ["--fabric", self.fabric]
        for name in ("vls", "mtu", "queueing", "cycles", "seed", "widths", "load", "sim"):
            words += [f"--{name}", str(getattr(self, name))]
        return shlex.join([*words, "--errors" if self.errors else "--no-errors"])


def check_scenario(options: CheckOptions) -> Scenario:
    """The switch and its adapters, or the topology's, with buffers, cables and timers drawn from the seed.

    Raises:
        ValueError: impossible parameters (pydantic's ValidationError, whose text has the reason).
        TopologyError: there is no such topology, or it cannot be built.
    """
    scenario = _drawn_scenario(options, _fabric_seed(options))
    if options.fabric_seed is None:
        return scenario
    # Registers have these, so they are no part of the fabric.
    of_run = _drawn_scenario(options, options.seed)
    links = (
        link.model_copy(update={"width": other.width}) for link, other in zip(scenario.links, of_run.links, strict=True)
    )
    return scenario.model_copy(update={"links": tuple(links), "ports": of_run.ports, "sl_to_vl": of_run.sl_to_vl})


def _drawn_scenario(options: CheckOptions, seed: int) -> Scenario:
    """All of it from one seed, but for the shape."""
    shape = _shape(options)
    random, windows = Random(f"{seed}/fabric"), Random(f"{seed}/windows")
    timers = Random(f"{seed}/timers of ports") if has_late_timers(seed) else None
    lft_size = _lft_size(options)
    largest = blocks_of_words(max_pkt_len(mtu_code(options.mtu)))

    def blocks() -> int:
        # Room for a stray that is too long: a host would wait forever for more than there is.
        least = largest + _STRAY_BLOCKS
        if random.random() < _DEEP_SHARE:
            deep = random.randint(max(least, _DEEP_BUFFER), _MOST_BLOCKS)
            return CREDIT_WINDOW if windows.random() < _WINDOW_SHARE else deep
        return min(_MOST_BLOCKS, random.randint(least, _MAX_BUFFER_PACKETS * least))

    def some(most: int, choices: tuple[int, ...], *, is_first: bool) -> int:
        """What a node has: the first the most, others mostly, so that links differ in VLs and MTU."""
        return most if is_first else random.choice((most, most, *(choice for choice in choices if choice <= most)))

    count = len(shape.links)
    is_wide = has_crowds_at_stuck_links(seed) or has_starved_copies(seed)
    width = "4X" if options.widths == "mixed" and is_wide else options.widths
    widths = [width] * count if width != "mixed" else _mixed(random, count)

    def link(ends: tuple[str, str], width: Literal["1X", "4X"]) -> Link:
        return Link(
            ends=ends if random.random() < 0.5 else ends[::-1], width=width, flight_cycles=random.choice(_FLIGHTS)
        )

    def settings(end: str) -> PortSettings:
        drawn = PortSettings(
            at=end,
            fcp_threshold=random.choice((0, 1, largest // 2, largest, 2 * largest)),
            fcp_period=random.choice(_FCP_PERIODS) + random.randint(0, 200),
            fc_watchdog=random.choice((5_000, PORT_RESET_VALUES[PortRegister.FC_WATCHDOG])),
            link_down_timeout=_LINK_DOWN_TIMEOUT + random.randint(0, 2_000),
            tick=random.choice((0, 1, 7, 31, 255)),
            local_phy_errors=random.choice((0, 1, 15)),
            overrun_errors=random.choice((0, 1, 2)),
        )
        if timers is None:
            return drawn
        is_switch = end.split("[")[0] in shape.switches
        return drawn.model_copy(update=random_late_timers(timers, is_switch=is_switch))

    def switch(ports: int, *, is_first: bool) -> Switch:
        return Switch(
            ports=ports,
            vls=some(options.vls, DATA_VL_COUNTS, is_first=is_first),
            mtu=some(options.mtu, _MTUS, is_first=is_first),
            buffer_blocks=blocks(),
            queueing=options.queueing,
            readers=1 if options.queueing == "fifo" else random.choice((1, 2)),
            forwarding="store-and-forward" if random.random() < _STORED_SHARE else "cut-through",
            lft_size=lft_size,
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
        sl_to_vl=tuple(random.randrange(8) | (timers is not None) for _ in range(SERVICE_LEVELS)),
        switches=switches,
        hosts=hosts,
        links=tuple(link(ends, width) for ends, width in zip(shape.links, widths, strict=True)),
        ports=tuple(settings(end) for ends in shape.links for end in ends),
    )


def _fabric_seed(options: CheckOptions) -> int:
    return options.seed if options.fabric_seed is None else options.fabric_seed


def _shape(options: CheckOptions) -> Shape:
    if options.fabric is None:
        return one_switch(options.ports)
    if options.fabric == RANDOM_FABRIC:
        return random_shape(Random(f"{_fabric_seed(options)}/shape"))
    return shape_of_topology(options.fabric)


def _lft_size(options: CheckOptions) -> int:
    """Entries of the linear forwarding tables of all switches."""
    if options.fabric != RANDOM_FABRIC:
        return SwitchParameters().lft_size
    return Random(f"{_fabric_seed(options)}/tables").choice(_LFT_SIZES)


def _arbitration(options: CheckOptions) -> VlArbitration:
    """What all ports begin with; each gets entries of its own later."""
    random = Random(f"{options.seed}/arbitration")
    most = vl_arbitration_entries(2)  # what every port has room for that has lists

    def entries() -> tuple[VlWeight, ...]:
        return tuple(random_vl_weight(random, options.vls) for _ in range(random.randint(0, most)))

    low, high = entries(), entries()
    return VlArbitration(low, () if has_low_lists_alone(options.seed) else high, random_high_limit(random))


def _mixed(random: Random, count: int) -> list[Literal["1X", "4X"]]:
    """Widths of so many links, both at least once if there are two."""
    widths: list[Literal["1X", "4X"]] = ["1X", "4X", *random.choices(("1X", "4X"), (1, 2), k=count - 2)]
    random.shuffle(widths)
    return widths[:count]


def check_experiment(options: CheckOptions, errors_given: Counter[str] | None = None) -> Experiment:
    """The experiment of a check.

    `errors_given` counts the errors ordered and the MADs, by kind, in each stimulus made of it.

    Raises:
        ValueError: impossible parameters, or fewer cycles than bring-up and reading the counters take.
        TopologyError: there is no such topology, or it cannot be built.
    """
    if has_late_timers(options.seed):
        # With errors registers are written at random, and all VLs are spoken of.
        options = replace(options, errors=False)
    topology, up, smps = _brought_up(options)
    first, *others = topology.lids
    for host in others:
        if topology.path(first, host) is None:
            raise TopologyError(
                f"{options.fabric}: no way from {first} to {host}, expected hosts in reach of each other"
            )

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
    # A Subnet Manager's packets come to where they came in the golden model: nothing is to happen to them.
    unset = up.controls[0].cycle if options.errors and not smps else 0

    def controls() -> Iterator[Control]:
        between = random_controls(topology, options.seed, up.start, last_post, errors=options.errors, injected=counts)
        early = random_power_up(topology, Random(f"{options.seed}/power up"), unset)
        return chain(early, up.controls, (one for one in between if one.cycle < end), reads(end))

    def packets() -> Iterator[Packet]:
        requests = random_congestion_requests(topology, options.seed, up.start, last_post)
        of_traps = random_trap_requests(topology, options.seed, up.start, last_post)
        of_sweeps = random_trap_sweeps(topology, options.seed, up.start, last_post)
        mads = random_mad_packets(topology, options.seed, up.start, last_post, counts) if options.errors else iter(())
        of_cc_traps = random_cc_trap_requests(topology, options.seed, up.start, last_post)
        streams = (random_packets(topology, traffic), requests, of_traps, of_sweeps, of_cc_traps, mads)
        return chain(smps, heapq.merge(*streams, key=attrgetter("cycle")))

    return Experiment(topology, up.start, end, options.cycles, packets, controls)


# The command asks, and then the check; a Subnet Manager takes seconds.
@lru_cache(maxsize=16)
def _brought_up(options: CheckOptions) -> tuple[Topology, BringUp, tuple[Packet, ...]]:
    """The fabric as it is configured, what brings it up over the test bus, and a Subnet Manager's SMPs if that does."""
    scenario = check_scenario(options)
    topology = scenario.topology
    size = next(node.mft_size for node in topology.fabric.nodes.values() if isinstance(node, SwitchParameters))
    groups = random_groups(list(topology.lids), size, Random(f"{options.seed}/groups"))
    topology = replace(topology, vl_arbitration=_arbitration(options), groups=groups)
    of_pairs = has_vls_of_pairs(options.seed)
    if options.fabric == RANDOM_FABRIC:
        if Random(f"{options.seed}/manager").random() < _MANAGED_SHARE:
            made = managed_bring_up(scenario, topology)
            if made.up.start <= _MANAGED_PART * options.cycles:
                return (
                    made.topology,
                    made.up,
                    tuple(_smp(made.topology, number, post) for number, post in enumerate(made.posts)),
                )
        topology = random_addresses(topology, Random(f"{options.seed}/addresses"), of_pairs=of_pairs)
    elif options.fabric_seed is not None and has_own_addresses(options.seed):
        topology = random_addresses(topology, Random(f"{options.seed}/addresses"), of_pairs=of_pairs)
    settings = {Port(*scenario.port_of(table.at)): table.registers for table in scenario.ports}
    return topology, bus_bring_up(topology, settings), ()


def _smp(topology: Topology, number: int, post: Post) -> Packet:
    """A Subnet Manager's SMP, posted as it was in the golden model, whose answers are RTL's, cycle for cycle."""
    return Packet(0, number, post.cycle, list(topology.fabric.nodes)[post.node], None, post.slot, VL15, post.data)
