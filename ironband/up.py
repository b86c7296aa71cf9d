"""`ironband up`: bring a fabric up by Ironband's own Subnet Manager."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import click

from cosim.engines.base import MODEL
from cosim.experiments.subnet_task import SubnetTask
from cosim.topology.subnet_fabric import fabric_of, out_of_reach
from cosim.topology.topology_file import packaged_topologies, read_topology
from ironband.capture_options import capture_options
from ironband.common import FILE, SEED, STDOUT, VLS, input_errors, json_option, work_directory, write_json
from ironband.inputs import topology_asked
from ironband.up_options import (
    ROUTING_ENGINES,
    check_distinct,
    lft_size,
    link_down_timeout_option,
    link_failure,
    manager_host,
    partition_options,
    qos_option,
    read_guid2lid,
    read_partitions,
    read_qos,
    rtl_nodes,
    rtl_option,
    sim_option,
)
from sm.lids import MAX_LMC
from toolchain.atomic_files import output_file
from wire.parameters import AdapterParameters, SwitchParameters

__all__ = ["up"]


@click.command(epilog=f"Topologies that come with Ironband: {', '.join(packaged_topologies())}.")
@click.argument("topology")
@rtl_option
@sim_option
@click.option("--sm", metavar="HOST", help="Where the Subnet Manager runs.  [default: the first host of the file]")
@click.option(
    "--routing",
    type=click.Choice(tuple(ROUTING_ENGINES)),
    default=next(iter(ROUTING_ENGINES)),
    help="How ways are found. All but min-hop are without credit loops, dor and lash by SLs on several VLs.",
)
@click.option("--vls", type=VLS, default=1, help="Data VLs of every port.")
@click.option(
    "--lmc",
    type=click.IntRange(0, MAX_LMC),
    default=0,
    help="LIDs of a host are 2 to the power of this, each with a way of its own where there are several.",
)
@click.option("--fail", metavar="LINK@CYCLE", help="Cut the link at a port, NODE[PORT] or HOST, in a cycle.")
@link_down_timeout_option("How long the ports of that link wait for it to come back.")
@click.option("--discover", type=FILE, metavar="FILE", help="Write what was found to FILE.")
@click.option(
    "--guid2lid",
    type=FILE,
    metavar="FILE",
    help="Give out the LIDs of FILE, if it is there, and write to it which ones were given out.",
)
@qos_option
@partition_options
@click.option("--seed", type=SEED, help="Draws the cycle in which the Subnet Manager begins.")
@capture_options
@json_option
def up(
    topology: str,
    rtl: str,
    sim: str,
    sm: str | None,
    routing: str,
    vls: int,
    lmc: int,
    fail: str | None,
    link_down_timeout: int,
    discover: Path | None,
    guid2lid: Path | None,
    qos: Path | None,
    partitions: Path | None,
    enforce: str | None,
    seed: int | None,
    capture_file: str | None,
    capture_at: tuple[str, ...],
    json_file: str | None,
) -> int:
    """Bring up the fabric of TOPOLOGY by a Subnet Manager's SMPs alone.

    TOPOLOGY is a file of ibsim or ibnetdiscover, or the name of one that comes with Ironband. Exit status 1 if it does
    not come up as the file has it, or if RTL and golden model differ.
    """
    with input_errors():
        path = topology_asked(topology)
        json_path = None if json_file in (None, STDOUT) else Path(json_file)
        files = (
            ("TOPOLOGY", path),
            ("--discover", discover),
            ("--guid2lid", guid2lid),
            ("--qos", qos),
            ("--partitions", partitions),
            ("--json", json_path),
        )
        check_distinct(files)
        for file in (discover, guid2lid):
            if file is not None:
                output_file(file)
        described = read_topology(path)
        lids = {} if guid2lid is None else read_guid2lid(guid2lid)
        switch = SwitchParameters(vls=vls, lft_size=lft_size(described.subnet, lids, lmc))
        made = fabric_of(described, switch, AdapterParameters(vls=vls))
        host = manager_host(made.fabric, sm)
        apart = out_of_reach(made.fabric, host)
        task = SubnetTask(
            made.fabric,
            made.widths,
            host,
            engine=MODEL if rtl == "none" else sim,
            rtl=None if rtl in ("all", "none") else rtl_nodes(made.fabric, rtl, sim),
            lids=lids,
            seed=seed,
        )
        settings = read_qos(qos, replace(task.settings, routing=ROUTING_ENGINES[routing], lmc=lmc))
        task = replace(task, settings=read_partitions(partitions, enforce, settings))
        if fail is not None:
            task = replace(task, failure=link_failure(task, fail, link_down_timeout, apart))

        from cosim.analysis.observer import CycleListener
        from cosim.experiments.link_capture import link_capture
        from cosim.experiments.subnet_bring_up import bring_up_subnet
        from cosim.trace.compare import Names
        from ironband.progress import cycle_counter, text_console
        from ironband.up_report import SubnetPrinter, SubnetReport, faults, write_found

        console = text_console(json_file, capture_file)
        printer = SubnetPrinter(console, made.names)
        printer.head(topology, described, host, apart)
        with (
            link_capture(task.fabric, task.widths, capture_file, capture_at) as taps,
            work_directory() as work_dir,
            cycle_counter(f"up on {task.engine}", console) as progress,
        ):
            result = bring_up_subnet(task, work_dir, [printer, CycleListener(progress)], taps)
        difference = result.comparison.difference if result.comparison else None
        # After a difference a file would be of half a bring-up, and the replay needs the LIDs that this one had.
        written, errors = write_found(result, discover, guid2lid) if difference is None else ([], [])
        options = {
            "--rtl": rtl,
            "--sim": sim,
            "--sm": sm,
            "--routing": routing,
            "--vls": vls,
            "--lmc": lmc,
            "--fail": fail,
            "--link-down-timeout": None if fail is None else link_down_timeout,
            "--guid2lid": guid2lid,
            "--qos": qos,
            "--partitions": partitions,
            "--enforce": enforce,
            "--seed": seed,
        }
        given = (word for name, value in options.items() if value is not None for word in (name, str(value)))
        replay = shlex.join(["ironband", "up", topology, *given])
        report = SubnetReport(
            topology=topology,
            described=described,
            names=made.names,
            out_of_reach=apart,
            routing=routing,
            task=task,
            result=result,
            faults=faults(described, task, result),
            difference=difference.report(Names(made.fabric), replay, seen_by=task.engine) if difference else "",
            files=tuple(written),
        )
        report.print(console)
        if json_file is not None:
            write_json(json_file, report.json())
        if errors:
            raise errors[0]
    return 0 if report.held else 1
