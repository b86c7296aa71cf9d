"""`ironband up`: bring a fabric up by Ironband's own Subnet Manager."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console

from cosim.cli.common import STDOUT, cycle_counter, input_errors, json_option, work_directory, write_json
from cosim.cli.up_report import UpReport, UpTeller
from cosim.compare import Names
from cosim.ibnetdiscover import format_topology
from cosim.output import output_file, whole_file
from cosim.scenario import parse_end
from cosim.simulation import ENGINES, PART_ENGINES
from cosim.subnet_differences import differences
from cosim.subnet_fabric import SubnetFabric, fabric_of
from cosim.topology_file import TopologyFile, read_topology
from cosim.up import LinkFailure, Up, UpResult, bring_up
from sm.lids import LidRange, format_guid2lid, parse_guid2lid
from wire.codes import LID_UNICAST_MAX
from wire.parameters import AdapterParameters, SwitchParameters
from wire.registers import PORT_RESET_VALUES, PortRegister

__all__ = ["up"]

_RTL_ENGINES = tuple(engine for engine in ENGINES if engine != "model")
_LINK_DOWN_TIMEOUT = PORT_RESET_VALUES[PortRegister.LINK_DOWN_TIMEOUT]
_MANY_NAMES = 12


@click.command()
@click.argument("topology")
@click.option(
    "--rtl",
    default="none",
    show_default=True,
    metavar="all|none|NAME,...",
    help="Which nodes are RTL; the others are the golden model. It runs beside RTL, too, and is compared.",
)
@click.option(
    "--sim", type=click.Choice(_RTL_ENGINES), default=_RTL_ENGINES[0], show_default=True, help="What simulates RTL."
)
@click.option("--sm", metavar="HOST", help="Where the Subnet Manager runs.  [default: the first host of the file]")
@click.option("--fail", metavar="LINK@CYCLE", help="Cut the link at a port, NODE[PORT] or HOST, in a cycle.")
@click.option(
    "--link-down-timeout",
    type=click.IntRange(1, (1 << 24) - 1),
    default=_LINK_DOWN_TIMEOUT,
    show_default=True,
    metavar="CYCLES",
    help="How long the ports of that link wait for it to come back.",
)
@click.option(
    "--discover", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write what was found to FILE."
)
@click.option(
    "--guid2lid",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Give out the LIDs of FILE, if it is there, and write to it which ones were given out.",
)
@click.option(
    "--seed", type=click.IntRange(0, (1 << 64) - 1), help="Draws the cycle in which the Subnet Manager begins."
)
@json_option
def up(
    topology: str,
    rtl: str,
    sim: str,
    sm: str | None,
    fail: str | None,
    link_down_timeout: int,
    discover: Path | None,
    guid2lid: Path | None,
    seed: int | None,
    json_file: str | None,
) -> int:
    """Bring up the fabric of TOPOLOGY, a file of ibsim or ibnetdiscover, with nothing but a Subnet Manager's SMPs.

    Exit status 1 if it does not come up as the file has it, or if RTL and golden model differ.
    """
    with input_errors():
        for file in (discover, guid2lid):
            if file is not None:
                output_file(file)
        described = read_topology(topology)
        lids = {} if guid2lid is None or not guid2lid.exists() else parse_guid2lid(guid2lid.read_text(), str(guid2lid))
        made = fabric_of(described, SwitchParameters(lft_size=_lft_size(described, lids)))
        task = Up(
            made.fabric,
            made.widths,
            _host(made, sm),
            engine="model" if rtl == "none" else sim,
            rtl=None if rtl in ("all", "none") else _nodes(made, rtl, sim),
            lids=lids,
            failure=None if fail is None else _failure(made, fail, link_down_timeout),
            seed=seed,
        )
        if task.failure is not None and task.failure.cycle < task.start:
            raise click.UsageError(f"--fail {fail}: cycle {task.failure.cycle}: expected {task.start} or later")
        console = Console(highlight=False, quiet=json_file == STDOUT, soft_wrap=True)
        teller = UpTeller(console, made.names)
        teller.head(f"{topology}: {_count(described)}; the Subnet Manager is at {task.host}")
        with work_directory() as work_dir, cycle_counter(f"up on {task.engine}", console) as progress:
            result = bring_up(task, work_dir, tell=teller.tell, progress=progress)
        files = _write(result, discover, guid2lid)
        given: list[tuple[str, str | int | None]] = [
            ("--rtl", rtl),
            ("--sim", sim),
            ("--sm", sm),
            ("--fail", fail),
            ("--seed", seed),
        ]
        if fail is not None:
            given.append(("--link-down-timeout", link_down_timeout))
        replay = ["ironband", "up", topology]
        replay += [word for name, value in given if value is not None for word in (name, str(value))]
        difference = result.comparison.difference if result.comparison else None
        report = UpReport(
            topology,
            made.names,
            task,
            result,
            _faults(described, task, result),
            difference.report(Names(made.fabric), shlex.join(replay), seen_by=task.engine) if difference else "",
            files,
        )
        report.print(console)
        if json_file is not None:
            write_json(json_file, report.json())
    return 0 if report.held else 1


def _lft_size(described: TopologyFile, lids: dict[int, LidRange]) -> int:
    """Room for every LID in a switch's table."""
    needed = sum(1 for _port in described.subnet.reachable_end_ports)
    highest = max((taken.last for taken in lids.values()), default=0)
    return max(SwitchParameters().lft_size, min(1 << (needed + highest).bit_length(), LID_UNICAST_MAX + 1))


def _nodes(made: SubnetFabric, rtl: str, sim: str) -> list[str] | None:
    """The nodes that are RTL, in the fabric's order; None if they are all."""
    names = rtl.split(",")
    for name in names:
        _known(made, name, "--rtl")
    chosen = [name for name in made.fabric.nodes if name in names]
    if len(chosen) == len(made.fabric.nodes):
        return None
    if sim not in PART_ENGINES:
        allowed = " or ".join(PART_ENGINES)
        raise click.UsageError(f"--rtl {rtl}: {sim} simulates whole fabrics: expected --sim {allowed}")
    return chosen


def _host(made: SubnetFabric, sm: str | None) -> str:
    hosts = [name for name, node in made.fabric.nodes.items() if isinstance(node, AdapterParameters)]
    if not hosts:
        raise click.UsageError("the topology has no host: expected one for the Subnet Manager to run at")
    if sm is None:
        return hosts[0]
    _known(made, sm, "--sm")
    if sm not in hosts:
        raise click.UsageError(f"--sm {sm}: is a switch, expected a host")
    return sm


def _known(made: SubnetFabric, name: str, option: str) -> None:
    nodes = list(made.fabric.nodes)
    if name not in nodes:
        rest = ", ..." if len(nodes) > _MANY_NAMES else ""
        raise click.UsageError(f"{option} {name}: no such node; there are {', '.join(nodes[:_MANY_NAMES])}{rest}")


def _failure(made: SubnetFabric, text: str, timeout: int) -> LinkFailure:
    place, _at, cycle = text.rpartition("@")
    try:
        name, port = parse_end(place)
        number = int(cycle)
    except ValueError:
        raise click.UsageError(f"--fail {text}: expected NODE[PORT]@CYCLE or HOST@CYCLE") from None
    _known(made, name, "--fail")
    for index, link in enumerate(made.fabric.links):
        if (name, 1 if port is None else port) in ((link.a, link.a_port), (link.b, link.b_port)):
            return LinkFailure(index, number, timeout)
    raise click.UsageError(f"--fail {text}: {place} has no link")


def _faults(described: TopologyFile, task: Up, result: UpResult) -> list[str]:
    """What is not as it should be, in words."""
    faults = [] if result.complete else ["the Subnet Manager has not reached all that it wants"]
    subnet = described.subnet
    if task.failure is not None:
        subnet = subnet.without(subnet.links[task.failure.link])
    found = result.manager.found
    if found is None:
        return ["the Subnet Manager's own node does not answer"]
    return faults + differences(subnet, found.subnet, found.origin)


def _write(result: UpResult, discover: Path | None, guid2lid: Path | None) -> tuple[Path, ...]:
    """The files asked for; which ones were written."""
    texts = {}
    if discover is not None and result.manager.found is not None:
        found = result.manager.found
        texts[discover] = format_topology(found.subnet, found.origin, datetime.now())
    if guid2lid is not None:
        texts[guid2lid] = format_guid2lid(result.manager.remembered_lids)
    for path, text in texts.items():
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return tuple(texts)


def _count(described: TopologyFile) -> str:
    subnet = described.subnet
    switches = len(subnet.switches)
    counts = {"switch": switches, "host": len(subnet.nodes) - switches, "link": len(subnet.links)}
    return ", ".join(_plural(count, noun) for noun, count in counts.items())


def _plural(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"
