"""`ironband serve`: offer a fabric to OpenSM, infiniband-diags and other programs that others wrote."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from cosim.engines.base import MODEL
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import packaged_topologies, read_topology
from doors.rdma_cm.address_file import read_addresses
from ironband.capture_options import capture_options
from ironband.common import DIRECTORY, FILE, SEED, STDOUT, VLS, input_errors, json_option
from ironband.inputs import topology_asked
from ironband.serve_directory import program_path, server_directory
from ironband.up_options import (
    lft_size,
    link_down_timeout_option,
    manager_host,
    partition_options,
    qos_option,
    read_partitions,
    read_qos,
    rtl_nodes,
    rtl_option,
    sim_option,
)
from sm.lids import MAX_LMC
from sm.settings import SubnetSettings
from wire.parameters import AdapterParameters, FabricParameters, SwitchParameters, adapter_port

__all__ = ["serve"]


@click.command(epilog=f"Topologies that come with Ironband: {', '.join(packaged_topologies())}.")
@click.argument("topology")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@rtl_option
@sim_option
@click.option("--alone", is_flag=True, help="RTL without the golden model beside it, which is faster.")
@click.option(
    "--bring-up",
    type=click.Choice(("sm", "none")),
    default="sm",
    help="Whether Ironband's own Subnet Manager manages the fabric; none if another is to.",
)
@click.option(
    "--at",
    "host",
    metavar="HOST[,HOST...]",
    help="Where programs are by default: at a machine with these adapters.  [default: the first with a link]",
)
@click.option(
    "--dir", "where", type=DIRECTORY, metavar="DIRECTORY", help="Where the server is found.  [default: a new one]"
)
@click.option(
    "--addresses",
    type=FILE,
    metavar="FILE",
    help="Lines ADDRESS HOST[PORT]: the ports' IP addresses.  [default: 127.87.0.0 and the LID]",
)
@click.option("--vls", type=VLS, default=1, help="Data VLs of every port.")
@qos_option
@partition_options
@link_down_timeout_option("How long ports wait for a link to come back.")
@click.option("--seed", type=SEED, default=0, help="Draws traffic and errors.")
@click.option("--operations", is_flag=True, help="In the end, tell how long programs' operations took in the fabric.")
@capture_options
@json_option
def serve(
    topology: str,
    command: tuple[str, ...],
    rtl: str,
    sim: str,
    alone: bool,
    bring_up: str,
    host: str | None,
    where: Path | None,
    addresses: Path | None,
    vls: int,
    qos: Path | None,
    partitions: Path | None,
    enforce: str | None,
    link_down_timeout: int,
    seed: int,
    operations: bool,
    capture_file: str | None,
    capture_at: tuple[str, ...],
    json_file: str | None,
) -> int:
    """Offer the fabric of TOPOLOGY to programs that others wrote.

    OpenSM and infiniband-diags are some, and programs of verbs. TOPOLOGY is a file of ibsim or ibnetdiscover, or the
    name of one that comes with Ironband. With -- COMMAND, run that at a host of the fabric and end with its exit
    status; without one, say how to run programs from other terminals, and do what lines on standard input or `ironband
    tell` say. Exit status 1 if RTL and golden model differ.
    """
    with input_errors():
        described = read_topology(topology_asked(topology))
        # How many LIDs a host gets, OpenSM's user chooses later.
        switch = SwitchParameters(vls=vls, lft_size=lft_size(described.subnet, {}, MAX_LMC))
        made = fabric_of(described, switch, AdapterParameters(vls=vls))
        named = (
            (None,)
            if host is None
            else (host,)
            if host in made.fabric.nodes
            else [name for name in host.split(",") if name] or (host,)
        )
        machine = [adapter_port(manager_host(made.fabric, name, "--at"))[0] for name in named]
        if len(set(machine)) < len(machine):
            raise click.UsageError(f"--at {host}: expected each host once")
        chosen = None if rtl in ("all", "none") else rtl_nodes(made.fabric, rtl, sim)
        for option, file in (("--qos", qos), ("--partitions", partitions)):
            if file is not None and bring_up != "sm":
                raise click.UsageError(f"{option} {file}: expected --bring-up sm, which reads it")
        settings = read_qos(qos, SubnetSettings(light_sweep_period=None, polling_period=None))
        settings = read_partitions(partitions, enforce, settings)
        given = None if addresses is None else read_addresses(addresses, _ports(made.fabric))
        if command and shutil.which(command[0], path=program_path()) is None:
            raise click.UsageError(f"{command[0]}: no such program")

        with server_directory(where) as directory:
            from cosim.experiments.link_capture import link_capture
            from doors.serving import ServeTask
            from ironband.serve_session import run_session

            task = ServeTask(
                made.fabric,
                made.widths,
                engine=MODEL if rtl == "none" else sim,
                rtl=chosen,
                compared=not alone,
                link_down_timeout=link_down_timeout,
                seed=seed,
                settings=settings if bring_up == "sm" else None,
                addresses=given,
            )
            with link_capture(made.fabric, made.widths, capture_file, capture_at) as taps:
                return run_session(
                    task,
                    taps,
                    topology,
                    described,
                    machine,
                    directory,
                    command,
                    json_file,
                    quiet=STDOUT in (json_file, capture_file),
                    tells_operations=operations,
                )


def _ports(fabric: FabricParameters) -> list[str]:
    """All ports of hosts, as `HOST[PORT]`."""
    hosts = (name for name, node in fabric.nodes.items() if isinstance(node, AdapterParameters))
    return [f"{adapter_port(name)[0]}[{fabric.identity(name).port}]" for name in hosts]
