"""`ironband check`: one switch, random traffic and errors, the RTL against the golden model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cosim.analysis.observer import CycleListener, Observer
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.engines.base import NO_TAPS, Taps, Waves, waves_around
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.experiments.perform import perform
from cosim.stimulus.row_errors import starts_data
from cosim.topology.topology import Topology
from cosim.trace.compare import Difference, Names
from wire.codes import is_multicast_lid
from wire.mad_packet import is_of_management
from wire.parameters import SwitchParameters
from wire.row_crc import PERIOD
from wire.stimulus import Control, Injection, Operation
from wire.trace import LINK_SOURCE, Kind, Record, Verdict, port_of_source
from wire.trace_layout import RxData, TxData

__all__ = ["CheckResult", "check"]

_INTO_NODE = (Kind.RX_DATA, Kind.SEND)
_OUT_OF_NODE = (Kind.TX_DATA, Kind.TX_DISCARD, Kind.SCRAP, Kind.DELIVER)
_STORED = (Verdict.GOOD, Verdict.PHYSICAL, Verdict.REMOTE, Verdict.LENGTH)
"""Some of the latter are not, or are in part."""


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
        errors_given: errors ordered and MADs given, by kind.
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


def check(
    options: CheckOptions,
    work_dir: Path,
    *,
    progress: Callable[[int], None] = lambda cycle: None,
    waves: Waves | None = None,
    taps: Taps = NO_TAPS,
) -> CheckResult:
    """Run a check. `progress` gets the cycle of each record; `taps` look at its links.

    Raises:
        ValueError: impossible parameters.
        What the engines raise (cosim.engines.simulation.run).
    """
    errors_given: Counter[str] = Counter()
    experiment = check_experiment(options, errors_given)
    # With errors groups change while packets to them are under way, and not all of their ports may take these.
    deliveries = DeliveryCheck(experiment.topology, left_out=is_of_management, misses_multicast=options.errors)
    losses = _Losses(experiment.topology)
    observers = [CycleListener(progress), losses, deliveries]

    def controls() -> Iterator[Control]:
        for control in experiment.controls():
            losses.control(control)
            yield control

    watched = replace(experiment, controls=controls)
    comparison = perform(watched, options.sim, work_dir, observers, waves=waves, taps=taps, rows=PERIOD)
    difference = comparison.difference if comparison else None
    if difference is not None and difference.kind == Kind.ROWS:
        difference = _first_row(options, work_dir, progress) or difference
    faults = [str(fault) for fault in deliveries.faults]
    if deliveries.fault_count > len(faults):
        faults.append(f"and {deliveries.fault_count - len(faults)} more")
    refused = {name: count for name, count in losses.verdicts.items() if name != Verdict.VL15_DROPPED.name}
    if refused and not options.errors:
        faults.append(f"packets refused without any error: {refused}")
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
        report=difference.report(
            names, options.command, waves_around(options.sim, difference.cycle), seen_by=options.sim
        )
        if difference
        else "",
    )


def _first_row(options: CheckOptions, work_dir: Path, progress: Callable[[int], None]) -> Difference | None:
    """The first row that differs, found by another run."""
    again = perform(check_experiment(options), options.sim, work_dir, [CycleListener(progress)], rows=1)
    return again.difference if again else None


class _Losses(Observer):
    """Counts what can have cost packets: refused, discarded, sent on a link and never heard of, in a node reset."""

    def __init__(self, topology: Topology) -> None:
        self._far = {}
        for port in topology.linked_ports():
            far = topology.far_end(port)
            if far is not None:
                self._far[topology.source(far)] = topology.source(port)
        self._on_links: Counter[int] = Counter()
        self._inside: Counter[int] = Counter()
        self._reset: set[int] = set()
        nodes = enumerate(topology.fabric.nodes.values())
        self._switches = {index for index, node in nodes if isinstance(node, SwitchParameters)}
        self._grouped = bool(topology.groups)
        self._refused = 0
        self._invented = 0
        self.sent = 0
        self.acted = 0
        self.verdicts: Counter[str] = Counter()

    def control(self, control: Control) -> None:
        """This will be done."""
        if control.operation == Operation.RESET:
            self._reset.add(control.target)
        elif control.operation == Operation.INJECT and starts_data(Injection.of(control.args)):
            self._invented += 1

    def observe(self, record: Record) -> None:
        """Follow one record."""
        if (record.kind in _INTO_NODE or record.kind in _OUT_OF_NODE) and not self._has_copies(record):
            stored = record.kind != Kind.RX_DATA or RxData.verdict.read(record) in _STORED
            self._inside[port_of_source(record.source)[0]] += stored if record.kind in _INTO_NODE else -1
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
            case Kind.DELIVER if port_of_source(record.source)[0] in self._switches:
                # An entry of the LFT led there; nobody but the agent knows whether it was a MAD.
                self._refused += 1
            case Kind.SEND:
                self.sent += port_of_source(record.source)[0] not in self._switches
            case Kind.INJECT if record.source & LINK_SOURCE:
                self.acted += 1

    def _has_copies(self, record: Record) -> bool:
        """Whether it is of a packet that a switch may send several times, so that it is not known whether it has it.

        What is discarded of such a one explains as much as it takes from what is in the switch; and of what its agent
        gets nobody says where it was to go.
        """
        if not self._grouped or port_of_source(record.source)[0] not in self._switches:
            return False
        match record.kind:
            case Kind.RX_DATA:
                return is_multicast_lid(RxData.dlid.read(record))
            case Kind.TX_DATA:
                return is_multicast_lid(TxData.dlid(record))
        return record.kind == Kind.DELIVER

    @property
    def explained(self) -> int:
        """Packets that may have been lost to what is in the trace; one that nobody sent may stand for one that was."""
        inside = (self._inside[node] for node in self._reset)
        return self._refused + self._invented + sum(max(0, count) for count in (*self._on_links.values(), *inside))
