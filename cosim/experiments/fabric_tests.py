"""cocotb tests on a fabric: each in a simulation of its own, hosts left out where a test drives rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cosim.engines.session import run_cocotb
from cosim.simulators.cocotb_files import importable, tests_of
from cosim.simulators.cocotb_results import TestResult
from cosim.simulators.installed import Simulator
from cosim.stimulus.bus_bring_up import BringUp, bus_bring_up
from cosim.topology.topology import Topology, forwarding_tables, neighbours, port_named
from toolchain.errors import UserError
from verilog.design import fabric_design
from wire.codes import SERVICE_LEVELS, LinkWidth
from wire.parameters import AdapterParameters, FabricParameters
from wire.stimulus import Control

__all__ = ["run_fabric_tests"]


def run_fabric_tests(
    fabric: FabricParameters,
    widths: Sequence[LinkWidth],
    file: Path,
    simulator: Simulator,
    run_dir: Path,
    *,
    open_at: Sequence[str] = (),
    only: str | None = None,
    seed: int | None = None,
    waves: Path | None = None,
) -> Iterator[TestResult]:
    """Runs the tests of a file, one after the other, and gives each that passed.

    Args:
        fabric: what they run on.
        widths: of its links.
        file: of Python, with the tests.
        simulator: where.
        run_dir: a directory for the simulations.
        open_at: hosts, by name, in whose places ports are left open.
        only: this test alone.
        seed: cocotb's random seed.
        waves: records the waves of the only test to this file.

    Raises:
        UserError: no such file, test or host; waves of several tests; a test failed.
    """
    tests = tests_of(file)
    if only is not None and only not in tests:
        raise UserError(f"only {only!r}: expected a test of {file}: {', '.join(tests)}")
    chosen = tests if only is None else [only]
    if waves is not None and len(chosen) > 1:
        raise UserError(f"waves {waves}: expected only, one of {', '.join(tests)}, as each is a simulation of its own")
    near = neighbours(fabric)
    hosts = [name for name, node in fabric.nodes.items() if isinstance(node, AdapterParameters) and near[name]]
    lids = {name: lid for lid, name in enumerate(hosts, 1)}
    tables = forwarding_tables(fabric, lids)
    whole = Topology(fabric, lids, tables, tuple(widths), tuple(range(SERVICE_LEVELS)))
    opened = _without(fabric, open_at)
    design = fabric_design(opened)
    up = _of_the_rest(bus_bring_up(whole), fabric, opened)
    with importable(file) as module:
        for test in chosen:
            yield run_cocotb(
                simulator,
                design,
                opened,
                module,
                test,
                run_dir / test,
                seed=seed,
                lids=lids,
                bring_up=up,
                waves=waves,
            )


def _without(fabric: FabricParameters, hosts: Sequence[str]) -> FabricParameters:
    """The fabric with open ports in place of hosts."""
    if not hosts:
        return fabric
    gone = []
    for text in hosts:
        try:
            name = port_named(fabric, text).node
        except ValueError as error:
            raise UserError(f"open_at {error}") from None
        if not isinstance(fabric.nodes[name], AdapterParameters):
            raise UserError(f"open_at {text}: is a port of a switch, expected hosts")
        gone.append(name)
    ends = [((link.a, link.a_port), (link.b, link.b_port)) for link in fabric.links]
    open_ports = {far for near, far in (*ends, *(end[::-1] for end in ends)) if near[0] in gone}
    stay = [name for name in fabric.nodes if name not in gone]
    return FabricParameters(
        {name: fabric.nodes[name] for name in stay},
        tuple(link for link in fabric.links if link.a not in gone and link.b not in gone),
        # A node's identity depends on its place, unless it is said.
        {name: fabric.identity(name) for name in stay},
        tuple(sorted(port for port in open_ports if port[0] not in gone)),
    )


def _of_the_rest(up: BringUp, whole: FabricParameters, opened: FabricParameters) -> BringUp:
    """What of a bring-up is for the nodes that are still there, by their numbers there."""
    places = {list(whole.nodes).index(name): place for place, name in enumerate(opened.nodes)}
    controls: list[Control] = [
        control._replace(target=places[control.target]) for control in up.controls if control.target in places
    ]
    return BringUp(tuple(controls), up.start)
