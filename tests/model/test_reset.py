"""RESET of a node in the golden model (docs/pipeline.md, section 2.2)."""

import random
from collections.abc import Iterator
from heapq import merge
from itertools import chain
from operator import attrgetter

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.bus_bring_up import bus_bring_up
from cosim.stimulus.injection import one_a_cycle, random_controls
from cosim.stimulus.random_packets import RandomTraffic, random_packets
from model.fabric import Fabric
from wire.codes import PortState
from wire.parameters import reset_cycles
from wire.registers import PORT_RESET_VALUES, PortRegister, lft_address, port_address
from wire.stimulus import Control, Operation, Post
from wire.trace import Kind, Record, port_of_source, port_source

TOPOLOGY = check_experiment(CheckOptions(ports=3, seed=7, widths="4X")).topology
FABRIC = TOPOLOGY.fabric
NODES = range(len(FABRIC.nodes))
LASTS = [reset_cycles(node) for node in FABRIC.nodes.values()]
START = bus_bring_up(TOPOLOGY).start


def lived(seed: int, end: int, *, errors: bool) -> tuple[list[Control], list[Post]]:
    """A life with traffic, from a seed. From the last packet on hosts take all there is; none is left at its end."""
    last = end - 2_500
    packets = random_packets(TOPOLOGY, RandomTraffic(seed, START, last, 0.2, strays=errors))
    happen = (
        control
        for control in random_controls(TOPOLOGY, seed, START, end, errors=errors, reset_share=0)
        if control.cycle < last or control.operation != Operation.RECV_STALL
    )
    taken = (Control(last, Operation.RECV_STALL, node) for node in NODES[1:])
    lives = one_a_cycle(chain(bus_bring_up(TOPOLOGY).controls, merge(happen, taken, key=attrgetter("cycle"))))
    return [control for control in lives if control.cycle < end], [packet.post(TOPOLOGY) for packet in packets]


def after(records: Iterator[Record], cycle: int) -> list[Record]:
    return [record for record in records if record.cycle >= cycle]


def test_nothing_of_what_was_before_is_left() -> None:
    """All nodes are reset, after whatever life: all that follows is the same."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    end = START + 6_000
    given = [Control(end + node, Operation.RESET, node) for node in NODES]
    quiet = [Control(end + cycle, Operation.RECV_STALL, node) for cycle, node in enumerate(NODES[1:], 20)]
    over = end + max(LASTS) + len(NODES) + 1
    second, posts = lived(seed, 12_000, errors=True)
    second = [control._replace(cycle=control.cycle + over) for control in second]
    posts = [post._replace(cycle=post.cycle + over) for post in posts]
    lives = []
    for number in range(3):
        controls, first = lived(seed + number, end, errors=False)
        everything = sorted([*first, *posts], key=attrgetter("cycle"))
        fabric = Fabric(FABRIC, [*controls, *given, *quiet, *second], everything)
        lives.append(after(fabric.run(over + 12_000), over))
    assert lives[0] == lives[1] == lives[2]
    assert len(lives[0]) > 200


@pytest.mark.parametrize("name", FABRIC.nodes)
def test_a_node_is_away_for_as_long_as_its_parameters_say(name: str) -> None:
    node = list(FABRIC.nodes).index(name)
    given = 300
    records = list(Fabric(FABRIC, [Control(given, Operation.RESET, node)]).run(given + LASTS[node] + 100))
    back = given + LASTS[node] + 1
    own = [record for record in records if port_of_source(record.source)[0] == node]
    assert not [record for record in own if given + 2 <= record.cycle < back]
    states = {(record.cycle, record.a) for record in records if record.kind == Kind.STATE and record.cycle > given}
    assert states == {(given + 3, PortState.DOWN), (back + 2, PortState.INITIALIZE)}


def test_registers_are_as_at_reset_and_what_is_accessed_meanwhile_is_lost() -> None:
    period, entry = port_address(1, PortRegister.FCP_PERIOD), lft_address(1)
    given, back = 100, 100 + LASTS[0] + 1
    controls = [
        Control(90, Operation.BUS_WRITE, 0, (period, 77, 0, 0)),
        Control(91, Operation.BUS_WRITE, 0, (entry, 2, 0, 0)),
        Control(96, Operation.BUS_READ, 0, (period, 0, 0, 0)),
        Control(97, Operation.BUS_READ, 0, (period, 0, 0, 0)),
        Control(98, Operation.BUS_READ, 0, (period, 0, 0, 0)),
        Control(given, Operation.RESET, 0),
        Control(given + 1, Operation.BUS_READ, 0, (period, 0, 0, 0)),
        Control(back - 1, Operation.BUS_WRITE, 0, (period, 78, 0, 0)),
        Control(back, Operation.BUS_READ, 0, (period, 0, 0, 0)),
        Control(back + 1, Operation.BUS_READ, 0, (entry, 0, 0, 0)),
    ]
    records = Fabric(FABRIC, controls).run(back + 50)
    assert [(one.cycle, one.b) for one in records if one.kind == Kind.BUS_READ] == [
        (100, 77),
        (101, 77),
        (back + 4, PORT_RESET_VALUES[PortRegister.FCP_PERIOD]),
        (back + 5, 255),
    ]


def test_a_host_sends_what_it_has_left_but_not_what_it_was_sending() -> None:
    host = 1
    packets = [bytes([n]) + bytes(2) + bytes([2, 0, 12, 0, 1]) + bytes(40) for n in range(3)]
    posts = [Post(cycle, host, 0, packet) for cycle, packet in zip((100, 100, 2_000), packets, strict=True)]
    back = 104 + LASTS[host] + 1
    records = Fabric(FABRIC, [Control(104, Operation.RESET, host)], posts).run(back + 200)
    sent = [record.cycle for record in records if (record.source, record.kind) == (port_source(host, 1), Kind.SEND)]
    assert sent == [101, back + 1, back + 1 + 13]


def test_a_node_that_is_not_there_cannot_be_reset() -> None:
    with pytest.raises(ValueError, match=r"control for node 9: expected 0\.\.3"):
        list(Fabric(FABRIC, [Control(5, Operation.RESET, 9)]).run(10))
