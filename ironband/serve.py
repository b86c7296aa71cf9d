"""`ironband serve`: offer a fabric to OpenSM, infiniband-diags and other programs that others wrote."""

from __future__ import annotations

import click

from cosim.engines.base import ENGINES, MODEL
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import find_topology, packaged_topologies, read_topology
from ironband.common import input_errors
from ironband.up_options import lft_size, manager_host, rtl_nodes
from wire.parameters import SwitchParameters

__all__ = ["serve"]

_RTL_ENGINES = tuple(engine for engine in ENGINES if engine != MODEL)


@click.command(
    context_settings={"ignore_unknown_options": False},
    epilog=f"Topologies that come with Ironband: {', '.join(packaged_topologies())}.",
)
@click.argument("topology")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--rtl",
    default="none",
    metavar="all|none|NAME,...",
    help="Which nodes are RTL; the others are the golden model. It runs beside RTL, too, and is compared.",
)
@click.option("--sim", type=click.Choice(_RTL_ENGINES), default=_RTL_ENGINES[0], help="What simulates RTL.")
@click.option("--alone", is_flag=True, help="Do not run the golden model beside RTL.")
@click.option("--host", metavar="HOST", help="Where programs are by default.  [default: the first host of the file]")
def serve(topology: str, command: tuple[str, ...], rtl: str, sim: str, alone: bool, host: str | None) -> int:
    """Offer the fabric of TOPOLOGY to OpenSM, infiniband-diags and other programs that others wrote.

    TOPOLOGY is a file of ibsim or ibnetdiscover, or the name of one that comes with Ironband. With -- COMMAND, run
    that at a host of the fabric and end with its exit status; without one, print how to run programs from other
    terminals. Exit status 1 if RTL and golden model differ.
    """
    with input_errors():
        described = read_topology(find_topology(topology))
        made = fabric_of(described, SwitchParameters(lft_size=lft_size(described.subnet, {}, 0)))
        host = manager_host(made.fabric, host, "--host")

        from cosim.experiments.serving import ServeTask
        from ironband.serve_session import run_session

        task = ServeTask(
            made.fabric,
            made.widths,
            engine=MODEL if rtl == "none" else sim,
            rtl=None if rtl in ("all", "none") else rtl_nodes(made.fabric, rtl, sim),
            compared=not alone,
        )
        return run_session(task, topology, host, command)
