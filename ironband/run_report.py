"""What `ironband run` says: the story as it happens, the totals at the end, and the same as JSON."""

from __future__ import annotations

from collections import Counter as Counts
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosim.analysis.counter_readings import CounterReadings
from cosim.analysis.event import Event
from cosim.analysis.link_use import LinkUse
from cosim.analysis.measurement import Served, least_over_mean
from cosim.analysis.message_measurement import MessageMeasurement
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.analysis.story import Totals
from cosim.analysis.tail_drop import TailDrop
from cosim.experiments.experiment import Experiment
from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import Flow
from cosim.stimulus.flows import Stream
from cosim.topology.topology import Port
from cosim.trace.compare import Comparison
from ironband.message_report import message_flow_json, message_lines
from ironband.progress import Console
from wire.parameters import node_text
from wire.registers import Counter

__all__ = ["RunPrinter", "RunResults"]

_STYLES = {"stall": "bold red", "credit": "green", "drop": "bold magenta", "error": "bold magenta", "deliver": "cyan"}
_STYLES |= {"recovery": "bold yellow", "message": "cyan"}
_MAX_FLOWS = 40


@dataclass(frozen=True)
class RunResults:
    """All that a run gives."""

    scenario: Scenario
    experiment: Experiment
    sim: str
    events: list[Event]
    left_out: int
    totals: Totals
    deliveries: DeliveryCheck
    streams: list[tuple[Stream, Served]]
    messages: MessageMeasurement
    links: dict[Port, LinkUse]
    comparison: Comparison | None
    report: str
    counters: CounterReadings
    without_credits: TailDrop
    files: tuple[Path, ...]

    @property
    def held(self) -> bool:
        """Whether the exit status is 0."""
        faults = self.deliveries.fault_count + self.messages.fault_count
        return not faults and (self.comparison is None or self.comparison.difference is None)

    @property
    def cycles_compared(self) -> int:
        """How far RTL and model agree."""
        if self.comparison is None:
            return 0
        difference = self.comparison.difference
        return self.experiment.cycles if difference is None else difference.cycle

    @property
    def mismatches(self) -> int | None:
        """None on the engine `model`, where there is nothing to compare."""
        return None if self.comparison is None else int(self.comparison.difference is not None)

    @property
    def fairness(self) -> dict[str, float]:
        """Least served over mean of the streams of each flow that many hosts have and that has a rate."""
        amounts: dict[Flow, list[int]] = {}
        for stream, served in self.streams:
            if stream.flow.rate is not None:
                amounts.setdefault(stream.flow, []).append(served.payload_bytes)
        return {flow.label: least_over_mean(given) for flow, given in amounts.items() if len(given) > 1}

    def gbit_per_s(self, served: Served) -> float:
        """Payload delivered in the whole run."""
        nanoseconds = self.scenario.cycles * self.scenario.symbol_time_ns
        return served.payload_bytes * 8 / nanoseconds

    def json(self) -> dict[str, Any]:
        """Machine-readable, units in the keys."""
        symbol_time = self.scenario.symbol_time_ns
        return {
            "command": "run",
            "scenario": self.scenario.name,
            "sim": self.sim,
            "seed": self.scenario.seed,
            "held": self.held,
            "symbol_time_ns": symbol_time,
            "cycles": self.experiment.cycles,
            "traffic_start_cycle": self.experiment.start,
            "sent_packets": self.totals.sent,
            "delivered_packets": self.totals.delivered,
            "dropped_packets": self.totals.dropped,
            "lost_packets": self.deliveries.lost,
            "under_way_packets": self.deliveries.under_way,
            "injected_errors": self.totals.injected,
            "cycles_compared": self.cycles_compared,
            "records_compared": self.comparison.records if self.comparison else 0,
            "mismatches": self.mismatches,
            "difference": self.report or None,
            "faults": [*map(str, self.deliveries.faults), *self.messages.faults],
            "flows": [self._flow_json(stream, served) for stream, served in self.streams],
            "message_flows": [message_flow_json(served, symbol_time) for served in self.messages.served.values()],
            "links": {
                str(port): {"data_share": use.of_all, "data_share_of_capacity": use.of_capacity}
                for port, use in self.links.items()
            },
            "fairness_least_over_mean": self.fairness,
            "without_credits": {
                "sent_packets": self.without_credits.sent,
                "delivered_packets": self.without_credits.delivered,
                "dropped_packets": self.without_credits.dropped,
            },
            "counters": {
                str(port): {counter.name.lower(): value for counter, value in values.items()}
                for port, values in self.counters.values.items()
            },
            "events": [_event_json(event, symbol_time) for event in self.events],
            "events_left_out": self.left_out,
            "files": [str(path) for path in self.files],
        }

    def _flow_json(self, stream: Stream, served: Served) -> dict[str, Any]:
        return {
            "name": stream.name,
            "from": node_text(stream.source),
            "to": stream.flow.destination,
            "sl": stream.sl,
            "delivered_packets": served.packets,
            "payload_bytes": served.payload_bytes,
            "throughput_gbit_per_s": self.gbit_per_s(served),
            "host_wait_mean_cycles": served.waits.mean,
            "latency_mean_cycles": served.latencies.mean,
            "latency_p99_cycles": served.latencies.percentile(99),
            "latency_max_cycles": served.latencies.most,
        }


def _event_json(event: Event, symbol_time_ns: float) -> dict[str, Any]:
    return {
        "cycle": event.cycle,
        "time_ns": event.cycle * symbol_time_ns,
        "place": str(event.place),
        "event": event.name,
        "text": event.text,
        "packet": event.packet,
        "vl": event.vl,
        "credits_left_blocks": event.credit_blocks,
        "credits_left_packets": event.credit_packets,
        "buffer_used_blocks": event.buffer_blocks,
        "last_row_cycle": event.until,
    }


class RunPrinter:
    """Prints the story: coloured on a terminal, plain in a pipe."""

    def __init__(self, console: Console, symbol_time_ns: float, places: list[str]) -> None:
        self._print = console.print_line
        self._symbol_time_ns = symbol_time_ns
        self._width = max((len(place) for place in places), default=0)
        self._fabric: tuple[Scenario, Experiment] | None = None
        self.events: list[Event] = []

    def head(self, scenario: Scenario, experiment: Experiment) -> None:
        """The title, and with the first event the fabric and the heading of the columns: before, there may be none."""
        self._print(scenario.title or scenario.name, "bold")
        self._fabric = scenario, experiment

    def _begin(self) -> None:
        """What is said once, when the simulation has begun."""
        if self._fabric is None:
            return
        (scenario, experiment), self._fabric = self._fabric, None
        start = self._nanoseconds(experiment.start)
        links = len(scenario.links)
        self._print(f"{links} links Active, traffic may start at cycle {experiment.start:,} ({start} ns).")
        for note in scenario.notes:
            self._print(note)
        self._print()
        self._print(f"{'cycle':>11}  {'ns':>13}  {'place':{self._width}}  {'credits left':>14}  event", "bold")

    def event(self, event: Event) -> None:
        """One line."""
        self._begin()
        self.events.append(event)
        left = ""
        if event.credit_blocks is not None:
            left = f"{event.credit_blocks:,} = {event.credit_packets:,} pkt"
        line = f"{event.cycle:>11,}  {self._nanoseconds(event.cycle):>13}  {event.place!s:{self._width}}  {left:>14}"
        self._print(f"{line}  {event.text}".rstrip(), _STYLES.get(event.name, ""))

    def skip(self, number: int) -> None:
        """A gap in a long story."""
        self._begin()
        self._print(f"{'...':>11}  {number:,} events left out", "dim")

    def tail(self, results: RunResults) -> None:
        """Totals, contrast, and what was wrong."""
        self._begin()
        totals = results.totals
        self._print()
        self._total("packets sent", f"{totals.sent:,}")
        self._total("packets delivered", f"{totals.delivered:,}")
        self._total("packets dropped", f"{totals.dropped:,}")
        if results.deliveries.lost or results.deliveries.under_way:
            self._total("packets lost", f"{results.deliveries.lost:,}")
            self._total("packets not delivered at the end", f"{results.deliveries.under_way:,}")
        if totals.injected:
            self._total("errors injected", f"{totals.injected:,}")
        self._total(
            "cycles compared", f"{results.cycles_compared:,}" if results.comparison else "- (the golden model alone)"
        )
        self._total("mismatches", "-" if results.mismatches is None else f"{results.mismatches:,}")
        self._flows(results)
        if results.messages.served:
            self._print()
            for line, style in message_lines(list(results.messages.served.values()), results.scenario.symbol_time_ns):
                self._print(line, style)
        other = results.without_credits
        if results.streams:
            self._print()
            text = f"Without credits the same buffers would have dropped {other.dropped:,} of {other.sent:,} packets."
            self._print(text)
        self._counters(results.counters)
        for fault in results.deliveries.faults:
            self._print(f"wrong delivery: {fault}", "bold red")
        for text in results.messages.faults:
            self._print(f"wrong message: {text}", "bold red")
        if results.report:
            self._print()
            self._print(results.report, "bold red")

    def wrote(self, path: Path) -> None:
        """A file that is there now."""
        self._print(f"wrote {path}")

    def _total(self, name: str, value: str) -> None:
        self._print(f"{name:<34}{value}")

    def _flows(self, results: RunResults) -> None:
        """What each flow got, and how full the links to the hosts were; nothing where there is one burst only."""
        rated = any(stream.flow.rate is not None for stream, _ in results.streams)
        if len(results.streams) < 2 and not rated:
            return
        shown = results.streams[:_MAX_FLOWS]
        often = Counts(stream.name for stream, _ in shown)
        names = [
            f"{stream.name} of {node_text(stream.source)}" if often[stream.name] > 1 else stream.name
            for stream, _ in shown
        ]
        width = max(map(len, ("flow", *names)))
        self._print()
        heading = (
            f"{'flow':{width}}  {'delivered':>9}  {'Gbit/s':>7}  {'waits in host':>13}  {'latency':>9}  {'p99':>9}"
        )
        self._print(f"{heading}  (of payload; means, in cycles)", "bold")
        for name, (stream, served) in zip(names, shown, strict=True):
            speed = f"{results.gbit_per_s(served):.2f}" if stream.flow.rate is not None else "-"
            line = f"{name:{width}}  {served.packets:>9,}  {speed:>7}  {served.waits.mean:>13,.0f}"
            latencies = served.latencies
            self._print(f"{line}  {latencies.mean:>9,.0f}  {latencies.percentile(99):>9,}")
        if len(shown) < len(results.streams):
            self._print(f"and {len(results.streams) - len(shown):,} more")
        for name, fairness in results.fairness.items():
            self._print(f"{name}: the least served host got {fairness:.3f} of the mean")
        if rated:
            self._links({port: use for port, use in results.links.items() if use.data_rows}, results)

    def _links(self, used: dict[Port, LinkUse], results: RunResults) -> None:
        """How full the links to the hosts were."""
        topology = results.experiment.topology
        names = {port: f"{port} to {topology.far_end(port)}" for port in list(used)[:_MAX_FLOWS]}
        width = max(map(len, (*names.values(), "link")))
        self._print()
        self._print(f"{'link':{width}}  of all rows  of free rows  (data; free is what flow control leaves)", "bold")
        for port, name in names.items():
            self._print(f"{name:{width}}  {used[port].of_all:>11.3f}  {used[port].of_capacity:>12.3f}")
        if len(used) > 1:
            everything = LinkUse(topology, (), 0, 0)
            for use in used.values():
                everything.add(use)
            self._print(f"{'all':{width}}  {everything.of_all:>11.3f}  {everything.of_capacity:>12.3f}")

    def _counters(self, readings: CounterReadings) -> None:
        """What the ports counted besides data and packets, where it is not 0."""
        usual = (Counter.XMIT_DATA, Counter.RCV_DATA, Counter.XMIT_PKTS, Counter.RCV_PKTS)
        for port, values in readings.values.items():
            if counted := {counter: value for counter, value in values.items() if value and counter not in usual}:
                texts = (f"{counter.name.lower()} {value:,}" for counter, value in counted.items())
                self._print(f"counters of {port}: {', '.join(texts)}")

    def _nanoseconds(self, cycle: int) -> str:
        digits = 0 if self._symbol_time_ns.is_integer() else 1
        return f"{cycle * self._symbol_time_ns:,.{digits}f}"
