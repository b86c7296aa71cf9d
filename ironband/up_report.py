"""What `ironband up` says: the Subnet Manager's work as it goes on, then the subnet as the field's tools print it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from cosim.analysis.observer import Observer
from cosim.experiments.subnet_bring_up import SubnetBringUpResult
from cosim.experiments.subnet_task import SubnetTask
from cosim.topology.link_rates import rate_text
from cosim.topology.subnet_differences import differences
from cosim.topology.subnet_text import format_topology, forwarding_table, host_line, link_lines, switch_line
from cosim.topology.topology_file import TopologyFile
from ironband.partitions_report import partition_lines, partitions_json
from ironband.progress import Console
from sm.events import (
    QUIET_EVENTS,
    Event,
    NodeFound,
    SweepEnded,
    SweepStarted,
    TablesWritten,
    TrapReceived,
    event_text,
)
from sm.lids import format_guid2lid
from sm.routing.figures import route_figures
from sm.subnet import Node, Subnet
from toolchain.atomic_files import OutputError, write_atomically
from wire.codes import LinkWidth, PortState
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.meaning import label
from wire.parameters import node_text, port_text

__all__ = ["SYMBOL_TIME_NS", "SubnetPrinter", "SubnetReport", "faults", "write_found"]

SYMBOL_TIME_NS: Final = 4
"""Of a cycle, at SDR."""

_MANY_NAMES: Final = 12
_PLURALS: Final = {"switch": "switches", "host": "hosts", "link": "links"}
_USUAL: Final = (NodeFound, SweepStarted, SweepEnded, TablesWritten, TrapReceived)


class SubnetPrinter(Observer):
    """Prints the Subnet Manager's events as they happen."""

    def __init__(self, console: Console, names: Mapping[int, str]) -> None:
        """`names` are those of the nodes, by GUID."""
        self._print = console.print_line
        self._names = names

    def head(self, topology: str, described: TopologyFile, host: str, out_of_reach: Sequence[str]) -> None:
        """The first lines: what the file has, where the Subnet Manager is, and what it cannot come to."""
        said = ", ".join(_plural(count, noun) for noun, count in _counts(described.subnet).items())
        self._print(f"{topology}: {said}; the Subnet Manager is at {node_text(host)}", "bold")
        if out_of_reach:
            rest = ", ..." if len(out_of_reach) > _MANY_NAMES else ""
            named = ", ".join(map(node_text, out_of_reach[:_MANY_NAMES])) + rest
            self._print(f"{node_text(host)} is not connected with {len(out_of_reach)} of them: {named}")
        for note in described.notes:
            self._print(note)
        self._print(f"{'cycle':>11}{'ns':>15}  event")

    def manage(self, host: str, cycle: int, event: Event) -> None:
        """One event."""
        if not isinstance(event, QUIET_EVENTS):
            style = "" if isinstance(event, _USUAL) else "bold magenta"
            self._print(f"{cycle:11,}{cycle * SYMBOL_TIME_NS:15,}  {event_text(event, self._names)}", style)


@dataclass(frozen=True)
class SubnetReport:
    """All that came of bringing a fabric up.

    Attributes:
        topology: name of the file.
        described: what is in it.
        names: of the nodes in the fabric, by GUID.
        out_of_reach: of those that the Subnet Manager's host is not connected with.
        routing: name of the routing engine.
        task: what was to be brought up.
        result: what came of it.
        faults: what is not as it should be, in words.
        difference: where RTL and model part, in words; empty if they do not.
        files: what was written.
    """

    topology: str
    described: TopologyFile
    names: Mapping[int, str]
    out_of_reach: list[str]
    routing: str
    task: SubnetTask
    result: SubnetBringUpResult
    faults: list[str]
    difference: str
    files: tuple[Path, ...]

    @property
    def held(self) -> bool:
        """Whether the exit status is 0."""
        return not self.faults and not self.difference

    @property
    def _subnet(self) -> Subnet:
        return self.result.manager.subnet

    @property
    def _hosts(self) -> list[Node]:
        return [node for node in self._subnet.nodes.values() if not node.is_switch]

    @property
    def _tables(self) -> dict[int, bytearray]:
        routes = self.result.manager.routes
        return {} if routes is None else routes.tables

    def print(self, console: Console) -> None:
        """The subnet, then the totals."""
        if not console.quiet:
            for text in self._listing():
                # Not by the console, which makes spaces of tabs.
                print(text, file=console.file)
        for name, value in self._totals():
            console.print_line(f"{name:<24}{value}")
        for fault in self.faults:
            console.print_line(f"wrong: {fault}", "bold red")
        if self.difference:
            console.print_line(self.difference, "bold red")
        for file in self.files:
            console.print_line(f"wrote {file}")

    def _listing(self) -> Iterator[str]:
        manager = self.result.manager
        yield ""
        yield from map(switch_line, self._subnet.switches)
        yield from map(host_line, self._hosts)
        yield ""
        if manager.found is not None:
            for node in [*self._hosts, *self._subnet.switches]:
                yield from link_lines(manager.found, node)
        yield ""
        for switch in self._subnet.switches:
            if switch.guid in self._tables:
                yield from forwarding_table(self._subnet, switch, manager.lids, self._tables[switch.guid])
                yield ""

    def _totals(self) -> Iterator[tuple[str, str]]:
        result = self.result
        mads = result.manager.mads
        yield "switches, hosts, links", f"{len(self._subnet.switches)}, {len(self._hosts)}, {len(self._subnet.links)}"
        if result.manager.routes is not None:
            figures = route_figures(self._subnet, result.manager.lids, self._tables)
            yield "links of a route", f"{figures.mean_hops:.2f} on average, {figures.max_hops} at most"
            if figures.max_load:
                spread = f"{figures.min_load} to {figures.max_load}, {figures.mean_load:.1f} on average"
                yield "routes of a link", spread
            yield "data VLs of routes", str(result.manager.routes.vls_needed)
        if result.manager.found is not None:
            yield from partition_lines(self.task.settings, result.manager.found)
        yield "SMPs", f"{mads.sent.total():,}, {mads.retried:,} of them sent again"
        yield "cycles", f"{result.cycles:,} ({result.cycles * SYMBOL_TIME_NS:,} ns)"
        yield "events", f"{result.records:,}"
        if result.comparison is None:
            yield "mismatches", "- (the golden model alone)"
        else:
            yield "events compared", f"{result.comparison.records:,}"
            yield "mismatches", str(int(result.comparison.difference is not None))

    def json(self) -> dict[str, Any]:
        """Machine-readable, units in the keys."""
        result, manager, task = self.result, self.result.manager, self.task
        comparison = result.comparison
        return {
            "command": "up",
            "topology": self.topology,
            "described": {_PLURALS[noun]: count for noun, count in _counts(self.described.subnet).items()},
            "remarks": list(self.described.remarks),
            "out_of_reach": list(map(node_text, self.out_of_reach)),
            "sm": node_text(task.host),
            "routing": self.routing,
            "lmc": task.settings.lmc,
            "failure": self._failure_json(),
            "engine": task.engine,
            "rtl": list(map(node_text, task.rtl_nodes)),
            "seed": task.seed,
            "held": self.held,
            "complete": result.complete,
            "start_cycle": task.start,
            "cycles": result.cycles,
            "symbol_time_ns": SYMBOL_TIME_NS,
            "smps": manager.mads.sent.total(),
            "smps_sent_again": manager.mads.retried,
            "smps_by_kind": {
                f"{label(method)} {label(attribute)}": count
                for (method, attribute), count in sorted(manager.mads.sent.items())
            },
            "records": result.records,
            "records_compared": comparison.records if comparison else 0,
            "mismatches": int(comparison.difference is not None) if comparison else None,
            "difference": self.difference or None,
            "faults": self.faults,
            "switches": [self._node_json(node) for node in self._subnet.switches],
            "hosts": [self._node_json(node) for node in self._hosts],
            "links": self._links_json(),
            "forwarding_tables": {
                f"0x{guid:016x}": {str(lid): port for lid, port in enumerate(table) if port != LFT_NO_ROUTE}
                for guid, table in self._tables.items()
            },
            "backup_ports": self._backups_json(),
            "vls_needed": None if manager.routes is None else manager.routes.vls_needed,
            "service_levels": self._service_levels_json(),
            **partitions_json(task.settings, manager.found),
            "events": [
                {
                    "cycle": cycle,
                    "time_ns": cycle * SYMBOL_TIME_NS,
                    "event": type(event).__name__,
                    "text": event_text(event, self.names),
                }
                for cycle, event in result.events
            ],
            "files": [str(path) for path in self.files],
        }

    def _failure_json(self) -> dict[str, Any] | None:
        failure = self.task.failure
        if failure is None:
            return None
        link = self.task.fabric.links[failure.link]
        ends = [port_text(link.a, link.a_port), port_text(link.b, link.b_port)]
        return {"link": ends, "cycle": failure.cycle, "timeout": failure.timeout}

    def _backups_json(self) -> dict[str, dict[str, list[int]]]:
        """By switch and LID, the other ports that the routing engine might have chosen, where there are any."""
        routes = self.result.manager.routes
        if routes is None:
            return {}
        return {
            f"0x{guid:016x}": {
                str(lid): list(ports) for lid in range(len(table)) if (ports := routes.backups(guid, lid))
            }
            for guid, table in routes.tables.items()
        }

    def _service_levels_json(self) -> dict[str, dict[str, int]]:
        """By the switches at both ends, the lower first: the SL of the paths between them, where it is not 0."""
        routes = self.result.manager.routes
        found: dict[str, dict[str, int]] = {}
        for (one, other), sl in ({} if routes is None else routes.layers).items():
            guids = [self._subnet.switches[number].guid for number in (one, other)]
            found.setdefault(f"0x{guids[0]:016x}", {})[f"0x{guids[1]:016x}"] = sl
        return found

    def _node_json(self, node: Node) -> dict[str, Any]:
        return {
            "guid": f"0x{node.guid:016x}",
            "description": node.description,
            "name": self.names.get(node.guid),
            "ports": node.ports,
            "end_ports": [
                {"port": number, "guid": f"0x{port.guid:016x}", "lid": port.lid, "lmc": port.lmc}
                for number, port in node.end_ports.items()
            ],
        }

    def _links_json(self) -> list[dict[str, Any]]:
        found = self.result.manager.found
        if found is None:
            return []
        return [
            {
                "ends": [{"guid": f"0x{end.guid:016x}", "port": end.port} for end in (link.a, link.b)],
                "width": label(LinkWidth(link.width)),
                "speed": link.speed.name,
                "in_file": rate_text(stated.width, stated.speed)
                if (stated := self.described.subnet.link(link.a))
                else None,
                "states": [label(PortState(found.state(end))) for end in (link.a, link.b)],
            }
            for link in self._subnet.links
        ]


def _counts(subnet: Subnet) -> dict[str, int]:
    """Nodes and links, by what one of them is called."""
    switches = len(subnet.switches)
    return {"switch": switches, "host": len(subnet.nodes) - switches, "link": len(subnet.links)}


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else _PLURALS[noun]}"


def faults(described: TopologyFile, task: SubnetTask, result: SubnetBringUpResult) -> list[str]:
    """What is not as it should be, in words; nothing of a run that a difference has ended before its time."""
    if result.comparison is not None and result.comparison.difference is not None:
        return []
    wrong = [] if result.complete else ["the Subnet Manager has not reached all that it wants"]
    subnet = described.subnet
    if task.failure is not None:
        subnet = subnet.without(subnet.links[task.failure.link])
    found = result.manager.found
    if found is None:
        return ["the Subnet Manager's own node does not answer"]
    return wrong + differences(subnet, found.subnet, found.origin)


def write_found(
    result: SubnetBringUpResult, discover: Path | None, guid2lid: Path | None
) -> tuple[list[Path], list[OutputError]]:
    """Writes the files asked for; which ones it could write, and why it could not write the others."""
    texts = {}
    if discover is not None and result.manager.found is not None:
        found = result.manager.found
        texts[discover] = format_topology(found.subnet, found.origin, datetime.now())
    if guid2lid is not None:
        texts[guid2lid] = format_guid2lid(result.manager.remembered_lids)
    written, errors = [], []
    for path, text in texts.items():
        try:
            write_atomically(path, text)
            written.append(path)
        except OutputError as error:
            errors.append(error)
    return written, errors
