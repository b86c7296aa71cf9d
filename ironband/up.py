"""`ironband up`: bring a fabric up by Ironband's own Subnet Manager."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import click

from cosim.engines.simulation import ENGINES
from cosim.experiments.subnet_bring_up import SubnetBringUp, SubnetBringUpResult, bring_up_subnet
from cosim.topology.ibnetdiscover import format_topology
from cosim.topology.subnet_differences import differences
from cosim.topology.subnet_fabric import fabric_of, out_of_reach
from cosim.topology.topology_file import TopologyFile, find_topology, packaged_topologies, read_topology
from cosim.trace.compare import Names
from ironband.common import STDOUT, cycle_counter, input_errors, json_option, work_directory, write_json
from ironband.console import Console
from ironband.guid2lid_file import read_guid2lid
from ironband.up_options import ROUTING_ENGINES, check_distinct, lft_size, link_failure, manager_host, rtl_nodes
from ironband.up_report import SubnetPrinter, SubnetReport
from sm.lids import MAX_LMC, format_guid2lid
from toolchain.atomic_files import OutputError, output_file, write_atomically
from wire.parameters import SwitchParameters
from wire.registers import PORT_RESET_VALUES, PortRegister

__all__ = ["up"]

_RTL_ENGINES = tuple(engine for engine in ENGINES if engine != "model")
_LINK_DOWN_TIMEOUT = PORT_RESET_VALUES[PortRegister.LINK_DOWN_TIMEOUT]


@click.command(epilog=f"Topologies that come with Ironband: {', '.join(packaged_topologies())}.")
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
@click.option(
    "--routing",
    type=click.Choice(tuple(ROUTING_ENGINES)),
    default=next(iter(ROUTING_ENGINES)),
    show_default=True,
    help="How ways are found: the shortest ones, or up and then down, without credit loops.",
)
@click.option(
    "--lmc",
    type=click.IntRange(0, MAX_LMC),
    default=0,
    show_default=True,
    help="LIDs of a host are 2 to the power of this, each with a way of its own where there are several.",
)
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
    routing: str,
    lmc: int,
    fail: str | None,
    link_down_timeout: int,
    discover: Path | None,
    guid2lid: Path | None,
    seed: int | None,
    json_file: str | None,
) -> int:
    """Bring up the fabric of TOPOLOGY with nothing but a Subnet Manager's SMPs.

    TOPOLOGY is a file of ibsim or ibnetdiscover, or the name of one that comes with Ironband. Exit status 1 if it does
    not come up as the file has it, or if RTL and golden model differ.
    """
    with input_errors():
        path = find_topology(topology)
        json_path = None if json_file in (None, STDOUT) else Path(json_file)
        files = (("TOPOLOGY", path), ("--discover", discover), ("--guid2lid", guid2lid), ("--json", json_path))
        check_distinct(files)
        for file in (discover, guid2lid):
            if file is not None:
                output_file(file)
        described = read_topology(path)
        lids = {} if guid2lid is None else read_guid2lid(guid2lid)
        made = fabric_of(described, SwitchParameters(lft_size=lft_size(described.subnet, lids, lmc)))
        host = manager_host(made.fabric, sm)
        apart = out_of_reach(described, made, host)
        task = SubnetBringUp(
            made.fabric,
            made.widths,
            host,
            engine="model" if rtl == "none" else sim,
            rtl=None if rtl in ("all", "none") else rtl_nodes(made.fabric, rtl, sim),
            lids=lids,
            seed=seed,
        )
        task = replace(task, settings=replace(task.settings, routing=ROUTING_ENGINES[routing], lmc=lmc))
        if fail is not None:
            task = replace(task, failure=link_failure(task, fail, link_down_timeout, apart))
        console = Console(highlight=False, quiet=json_file == STDOUT, soft_wrap=True)
        teller = SubnetPrinter(console, made.names)
        teller.head(topology, described.subnet, host, apart)
        with work_directory() as work_dir, cycle_counter(f"up on {task.engine}", console) as progress:
            result = bring_up_subnet(task, work_dir, tell=teller.tell, progress=progress)
        difference = result.comparison.difference if result.comparison else None
        # After a difference a file would tell of half a bring-up, and the replay needs the LIDs that this one had.
        written, errors = _write(result, discover, guid2lid) if difference is None else ([], [])
        options = {
            "--rtl": rtl,
            "--sim": sim,
            "--sm": sm,
            "--routing": routing,
            "--lmc": lmc,
            "--fail": fail,
            "--link-down-timeout": None if fail is None else link_down_timeout,
            "--guid2lid": guid2lid,
            "--seed": seed,
        }
        given = (word for name, value in options.items() if value is not None for word in (name, str(value)))
        replay = shlex.join(["ironband", "up", topology, *given])
        report = SubnetReport(
            topology=topology,
            described=described.subnet,
            names=made.names,
            out_of_reach=apart,
            routing=routing,
            up=task,
            result=result,
            faults=_faults(described, task, result),
            difference=difference.report(Names(made.fabric), replay, seen_by=task.engine) if difference else "",
            files=tuple(written),
        )
        report.print(console)
        if json_file is not None:
            write_json(json_file, report.json())
        if errors:
            raise errors[0]
    return 0 if report.held else 1


def _faults(described: TopologyFile, task: SubnetBringUp, result: SubnetBringUpResult) -> list[str]:
    """What is not as it should be, in words; nothing of a run that a difference has ended before its time."""
    if result.comparison is not None and result.comparison.difference is not None:
        return []
    faults = [] if result.complete else ["the Subnet Manager has not reached all that it wants"]
    subnet = described.subnet
    if task.failure is not None:
        subnet = subnet.without(subnet.links[task.failure.link])
    found = result.manager.found
    if found is None:
        return ["the Subnet Manager's own node does not answer"]
    return faults + differences(subnet, found.subnet, found.origin)


def _write(
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
