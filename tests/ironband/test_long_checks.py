"""Long checks: RTL and golden model on random fabrics, traffic and errors, other ones each time."""

import json
import random
from itertools import count
from pathlib import Path

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
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


@pytest.mark.parametrize(("ports", "vls", "queueing"), [(3, 2, "voq"), (4, 4, "voq"), (5, 2, "fifo")])
def test_on_error_free_links_each_member_gets_each_packet_of_its_groups_once(ports, vls, queueing) -> None:
    def has_groups(seed: int) -> bool:
        options = CheckOptions(ports, vls, queueing=queueing, errors=False, seed=seed)
        return bool(check_experiment(options).topology.groups)

    seed = next(filter(has_groups, count(random.randrange(1 << 31))))
    switch = ["--ports", str(ports), "--vls", str(vls), "--queueing", queueing]
    options = [*switch, "--no-errors", "--cycles", "100000", "--seed", str(seed)]
    print("ironband check", *options)
    assert main(["check", "--sim", "verilator", *options, "--json", "results.json"]) == 0
    results = json.loads(Path("results.json").read_text())
    assert (results["mismatches"], results["faults"]) == (0, [])
    # Those on VL15 may find no room, and no others: `check` tells the rest as a fault.
    assert results["lost_packets"] <= results["packets_refused"].get("VL15_DROPPED", 0)
    assert results["delivered_packets"] > 100


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
