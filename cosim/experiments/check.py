"""`ironband check`: one switch, random traffic and errors, the RTL against the golden model."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import Literal

from cosim.analysis.scoreboard import DeliveryCheck
from cosim.experiments.experiment import Experiment, perform
from cosim.scenario.scenario import Host, Link, PortSettings, Scenario, Switch
from cosim.stimulus.bus_bring_up import BUS_READ_CYCLES, bus_bring_up, read_counters
from cosim.stimulus.injection import random_controls
from cosim.stimulus.random_packets import RandomTraffic, random_packets
from cosim.topology.topology import Port
from cosim.trace.compare import Difference, Names
from wire.codes import MTU, max_pkt_len, mtu_bytes, mtu_code
from wire.packet import blocks_of_words
from wire.registers import PORT_RESET_VALUES, PortRegister
from wire.stimulus import Control
from wire.trace import LINK_SOURCE, Kind, Record, Verdict
from wire.trace_layout import RxData

__all__ = ["CheckOptions", "CheckResult", "Widths", "check", "check_experiment", "check_scenario"]

Widths = Literal["mixed", "4X", "1X"]

_DRAIN_SHARE = 0.05
_FLIGHTS = (1, 2, 3, 8, 25, 40)
_FCP_PERIODS = (400, 3_000, PORT_RESET_VALUES[PortRegister.FCP_PERIOD])
_LINK_DOWN_TIMEOUT = 400
_MAX_BUFFER_PACKETS = 5
_STRAY_BLOCKS = 1
_MOST_BLOCKS = 4_095
_DEEP_BUFFER = 2_049
"""Blocks of a buffer of which not all can be announced at once."""

_DEEP_SHARE = 0.1
_VLS = (1, 2, 4, 8)
_MTUS = tuple(mtu_bytes(code) for code in MTU)


@dataclass(frozen=True)
class CheckOptions:
    """What is checked. Everything else (buffers, cables, timers, widths, traffic, errors) follows from the seed.

    Attributes:
        ports: ports of the switch, each with an adapter.
        vls: data VLs of the switch; some hosts have less.
        mtu: MTU in bytes of the switch; that of some hosts is smaller.
        queueing: of the switch.
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

    @property
    def command(self) -> str:
        """The line that runs this check again."""
        words = ["ironband", "check"]
        for name in ("ports", "vls", "mtu", "queueing", "cycles", "seed", "widths", "load", "sim"):
            words += [f"--{name}", str(getattr(self, name))]
        return shlex.join([*words, "--errors" if self.errors else "--no-errors"])


@dataclass(frozen=True)
class CheckResult:
    """What a check found.

    Attributes:
        cycles_compared: cycles in which RTL and model were the same; 0 on the engine `model`.
        records_compared: records of the trace that were the same.
        packets_sent: packets that adapters took from their hosts.
        packets_delivered: packets that arrived as they should.
        packets_lost: packets that a later one of their flow overtook.
        packets_under_way: packets offered and not delivered when the run ended.
        losses_explained: events in the trace each of which can have cost a packet.
        errors_given: errors ordered, by kind.
        injections_acted: INJECT records: injected errors that changed a row.
        verdicts: packets that a port refused or threw away, by reason.
        faults: what was wrong with deliveries, in words.
        difference: where RTL and model part, None if they do not.
        report: the difference in words, empty if there is none.
    """

    cycles_compared: int
    records_compared: int
    packets_sent: int
    packets_delivered: int
    packets_lost: int
    packets_under_way: int
    losses_explained: int
    errors_given: dict[str, int]
    injections_acted: int
    verdicts: dict[str, int]
    faults: tuple[str, ...]
    difference: Difference | None
    report: str

    @property
    def held(self) -> bool:
        """True if nothing was wrong."""
        return self.difference is None and not self.faults


def check_scenario(options: CheckOptions) -> Scenario:
    """One switch and its adapters, with buffers, cables and timers drawn from the seed.

    Raises:
        ValueError: parameters that cannot be (pydantic's ValidationError, whose text has the reason).
    """
    random = Random(f"{options.seed}/fabric")
    largest = blocks_of_words(max_pkt_len(mtu_code(options.mtu)))

    def blocks() -> int:
        # Room for a stray that is too long: a host would wait for ever for more than there is.
        least = largest + _STRAY_BLOCKS
        if random.random() < _DEEP_SHARE:
            return random.randint(max(least, _DEEP_BUFFER), _MOST_BLOCKS)
        return min(_MOST_BLOCKS, random.randint(least, _MAX_BUFFER_PACKETS * least))

    def adapter(vls: int, mtu: int) -> Host:
        return Host(vls=vls, mtu=mtu, receive_blocks=blocks(), send_blocks=blocks())

    def other(most: int, choices: tuple[int, ...]) -> int:
        """What a host has: mostly the most, sometimes less, so that links differ in VLs and MTU."""
        return random.choice((most, most, *(choice for choice in choices if choice <= most)))

    widths = [options.widths] * options.ports if options.widths != "mixed" else _mixed(random, options.ports)

    def link(port: int) -> Link:
        ends = (f"S[{port}]", f"H{port}")
        return Link(
            ends=ends if random.random() < 0.5 else ends[::-1],
            width=widths[port - 1],
            flight_cycles=random.choice(_FLIGHTS),
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

    switch = Switch(
        ports=options.ports,
        vls=options.vls,
        mtu=options.mtu,
        buffer_blocks=blocks(),
        queueing=options.queueing,
        readers=1 if options.queueing == "fifo" else random.choice((1, 2)),
    )
    numbers = range(1, options.ports + 1)
    # The first host has all VLs and the whole MTU.
    first = adapter(options.vls, options.mtu)
    others = [adapter(other(options.vls, _VLS), other(options.mtu, _MTUS)) for _ in numbers[1:]]
    return Scenario(
        name="check",
        cycles=options.cycles,
        seed=options.seed,
        sl_to_vl=tuple(random.randrange(8) for _ in range(16)),
        switches={"S": switch},
        hosts={f"H{port}": host for port, host in zip(numbers, (first, *others), strict=True)},
        links=tuple(link(port) for port in numbers),
        ports=tuple(settings(end) for port in numbers for end in (f"S[{port}]", f"H{port}")),
    )


def _mixed(random: Random, count: int) -> list[Literal["1X", "4X"]]:
    """Widths of so many links, both at least once."""
    widths: list[Literal["1X", "4X"]] = ["1X", "4X", *random.choices(("1X", "4X"), (1, 2), k=count - 2)]
    random.shuffle(widths)
    return widths


def check_experiment(options: CheckOptions, errors_given: Counter[str] | None = None) -> Experiment:
    """The experiment of a check.

    `errors_given` counts the errors ordered, by kind, in the first stimulus made of it.

    Raises:
        ValueError: parameters that cannot be, or fewer cycles than bring-up and reading the counters take.
    """
    scenario = check_scenario(options)
    topology = scenario.topology
    settings = {Port(*scenario.port_of(table.at)): table.registers for table in scenario.ports}
    up = bus_bring_up(topology, settings)
    reads = len(read_counters(topology, 0))
    end = options.cycles - reads - BUS_READ_CYCLES - 1
    if end <= up.start:
        raise ValueError(f"cycles {options.cycles}: expected more than {up.start + reads + BUS_READ_CYCLES + 1}")
    last_post = end - int((end - up.start) * _DRAIN_SHARE)
    traffic = RandomTraffic(options.seed, up.start, last_post, options.load, strays=options.errors)
    counts = [errors_given if errors_given is not None else Counter()]

    def controls() -> Iterator[Control]:
        count = counts.pop() if counts else Counter()
        between = random_controls(topology, options.seed, up.start, last_post, errors=options.errors, injected=count)
        return chain(up.controls, (one for one in between if one.cycle < end), read_counters(topology, end))

    return Experiment(topology, up.start, end, options.cycles, lambda: random_packets(topology, traffic), controls)


def check(
    options: CheckOptions,
    work_dir: Path,
    *,
    progress: Callable[[int], None] = lambda cycle: None,
    waves: Path | None = None,
) -> CheckResult:
    """Run a check. `progress` gets the cycle of each record.

    Raises:
        ValueError: parameters that cannot be.
        What the engines raise (cosim.engines.simulation.run).
    """
    errors_given: Counter[str] = Counter()
    experiment = check_experiment(options, errors_given)
    deliveries = DeliveryCheck(experiment.topology, experiment.packets())
    losses = _Losses(experiment)

    def observe(record: Record) -> None:
        progress(record.cycle)
        losses.observe(record)

    comparison = perform(
        experiment, options.sim, work_dir, observe=observe, on_delivery=deliveries.deliver, waves=waves
    )
    deliveries.advance(experiment.end)
    difference = comparison.difference if comparison else None
    faults = [str(fault) for fault in deliveries.faults]
    if deliveries.fault_count > len(faults):
        faults.append(f"and {deliveries.fault_count - len(faults)} more")
    needless = {name: count for name, count in losses.verdicts.items() if name != Verdict.VL15_DROPPED.name}
    if needless and not options.errors:
        faults.append(f"packets refused without any error: {needless}")
    if deliveries.lost > losses.explained:
        faults.append(f"{deliveries.lost} packets lost, only {losses.explained} of them to an error")
    names = Names(experiment.topology.fabric)
    return CheckResult(
        cycles_compared=difference.cycle if difference else options.cycles if comparison else 0,
        records_compared=comparison.records if comparison else 0,
        packets_sent=losses.sent,
        packets_delivered=deliveries.delivered,
        packets_lost=deliveries.lost,
        packets_under_way=deliveries.under_way,
        losses_explained=losses.explained,
        errors_given=dict(sorted(errors_given.items())),
        injections_acted=losses.acted,
        verdicts=dict(sorted(losses.verdicts.items())),
        faults=tuple(faults),
        difference=difference,
        report=difference.report(names, options.command, seen_by=options.sim) if difference else "",
    )


class _Losses:
    """Counts what can have cost packets: refused, discarded, or sent on a link and never heard of."""

    def __init__(self, experiment: Experiment) -> None:
        topology = experiment.topology
        self._far = {}
        for port in topology.linked_ports():
            far = topology.far_end(port)
            if far is not None:
                self._far[topology.source(far)] = topology.source(port)
        self._on_links: Counter[int] = Counter()
        self._refused = 0
        self.sent = 0
        self.acted = 0
        self.verdicts: Counter[str] = Counter()

    def observe(self, record: Record) -> None:
        match record.kind:
            case Kind.TX_DATA:
                self._on_links[record.source] += 1
            case Kind.RX_DATA:
                self._on_links[self._far[record.source]] -= 1
                verdict = RxData.verdict.read(record)
                if verdict != Verdict.GOOD:
                    self._refused += 1
                    self.verdicts[Verdict(verdict).name] += 1
            case Kind.TX_DISCARD | Kind.SCRAP:
                self._refused += 1
                self.verdicts[Kind(record.kind).name] += 1
            case Kind.SEND:
                self.sent += 1
            case Kind.INJECT if record.source & LINK_SOURCE:
                self.acted += 1

    @property
    def explained(self) -> int:
        """Packets that may have been lost to what is in the trace."""
        return self._refused + sum(max(0, count) for count in self._on_links.values())
