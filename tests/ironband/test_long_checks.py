"""Long checks: RTL and golden model on random fabrics, traffic and errors, other ones each time."""

import random

import pytest

from cosim.topology.topology_file import packaged_topologies
from ironband import main

pytestmark = pytest.mark.deep

SWITCHES = [
    "--ports 2",
    "--ports 3 --queueing fifo",
    "--ports 4 --vls 4",
    "--ports 5 --mtu 1024",
    "--ports 6 --mtu 512",
    "--ports 7 --vls 8",
    "--ports 8",
    "--ports 8 --queueing fifo",
    "--ports 4 --vls 8 --mtu 4096",
]


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_long_check_holds(switch: str) -> None:
    options = [*switch.split(), "--cycles", "200000", "--seed", str(random.randrange(1 << 32))]
    print("ironband check", *options)
    assert main(["check", "--sim", "verilator", *options]) == 0


def test_a_wide_switch_holds() -> None:
    options = ["--ports", "36", "--cycles", "20000", "--seed", str(random.randrange(1 << 32))]
    print("ironband check", *options)
    assert main(["check", "--sim", "verilator", *options]) == 0


@pytest.mark.parametrize("topology", sorted(packaged_topologies()))
def test_a_check_of_each_topology_that_comes_with_ironband_holds(topology: str) -> None:
    options = ["--fabric", topology, "--cycles", "100000", "--seed", str(random.randrange(1 << 32))]
    print("ironband check", *options)
    assert main(["check", "--sim", "verilator", *options]) == 0


@pytest.mark.parametrize("switch", SWITCHES[:2])
def test_a_check_on_icarus_holds(switch: str) -> None:
    options = [*switch.split(), "--cycles", "20000", "--seed", str(random.randrange(1 << 32))]
    print("ironband check", *options)
    assert main(["check", "--sim", "icarus", *options]) == 0
