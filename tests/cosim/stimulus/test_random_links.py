"""What happens to links as a whole, and to the states of their ports, at random."""

from collections import Counter
from itertools import groupby, pairwise
from random import Random

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.random_links import random_changes, random_outages, random_port_downs, random_restarts
from wire.codes import LinkWidth, PortState, max_pkt_len, mtu_code
from wire.parameters import reset_cycles
from wire.registers import PortRegister, port_address
from wire.stimulus import Control, Injection, Operation, Trigger, injection_target

TOPOLOGY = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology


class Never(Random):
    """Draws nothing that has a share."""

    def random(self) -> float:
        return 1.0


def outages(reset_share: float, counted: Counter[str], settings: Random | None = None) -> list[Control]:
    """Of ports that are told nothing, if SETTINGS does not draw it."""
    drawn = settings or Never()
    return list(random_outages(TOPOLOGY, Random(1), 0, 4_000_000, counted, reset_share, Random(2), drawn))


def test_a_link_that_is_lost_is_found_again_before_another_is():
    counted: Counter[str] = Counter()
    of_links = (Operation.LINK_DOWN, Operation.LINK_UP)
    controls = [one for one in outages(0, counted, Random(3)) if one.operation in of_links]
    assert [one.operation for one in controls] == [*of_links] * (len(controls) // 2)
    for down, up in zip(controls[::2], controls[1::2], strict=True):
        assert down.target == up.target
        assert down.cycle < up.cycle
    assert len(controls) // 2 == counted["link_down"] + 2 * counted["width"]
    assert counted["width"] > 5


def test_some_plugs_are_loose_and_damage_what_is_on_their_links():
    counted: Counter[str] = Counter()
    controls = outages(0, counted)
    brief = [
        down.target
        for down, up in pairwise(controls)
        if down.operation == Operation.LINK_DOWN and up.operation == Operation.LINK_UP and up.cycle == down.cycle + 1
    ]
    assert len(brief) > 100
    injected = [one for one in controls if one.operation == Operation.INJECT]
    assert {one.target for one in injected} == set(range(2 * len(TOPOLOGY.fabric.links)))
    assert counted["bit_flip"] > 5 < counted["stray_symbol"]


def test_of_some_ports_set_down_the_neighbour_does_not_hear_for_a_while():
    counted: Counter[str] = Counter()
    controls = list(random_port_downs(TOPOLOGY, Random(1), 0, 4_000_000, counted))
    cycles = [control.cycle for control in controls]
    assert cycles == sorted(set(cycles))
    ports = {(TOPOLOGY.index[port.node], port.number): port for port in TOPOLOGY.linked_ports()}
    heard = 0
    for control, following in pairwise(controls):
        if control.operation == Operation.BUS_WRITE:
            direction = TOPOLOGY.link_at(ports[control.target, control.args[0] >> 16])
            heard += following.operation == Operation.BUS_WRITE
        else:
            assert direction is not None
            assert control.target == injection_target(*direction)
            assert Injection.of(control.args).trigger == Trigger.LINK
    assert 5 < heard < counted["port_down"] - 5
    assert counted["lost_flow_control"] == sum(one.operation == Operation.INJECT for one in controls)


def test_a_width_is_written_while_both_ports_are_down_for_longer_than_a_packet_takes():
    widths = {port_address(port.number, PortRegister.WIDTH) for port in TOPOLOGY.linked_ports()}
    controls = outages(0, Counter())
    downs = [place for place, one in enumerate(controls) if one.operation == Operation.LINK_DOWN]
    changes = [controls[place : place + 6] for place in downs if controls[place + 1].operation == Operation.BUS_WRITE]
    assert len(changes) > 10
    for _, *states, first, second, up in changes:
        assert {one.args[1] for one in states} == {PortState.DOWN}
        assert {one.target for one in states} == {first.target, second.target}
        assert first.args[0] in widths
        assert first.args[1] == second.args[1]
        assert up.operation == Operation.LINK_UP
        longest = max(max_pkt_len(mtu_code(node.mtu)) for node in TOPOLOGY.fabric.nodes.values())
        assert up.cycle > second.cycle + 4 * longest


def test_some_adapters_are_in_haste_when_their_link_comes_back_1x():
    index = {TOPOLOGY.index[host] for host in TOPOLOGY.lids}
    state, width = (port_address(1, register) for register in (PortRegister.STATE, PortRegister.WIDTH))
    hasty = [
        (write.args[1], write.cycle - down.cycle)
        for down, write in pairwise(outages(0, Counter()))
        if down.args[0] == state and write.args[0] == width and down.target == write.target in index
        if write.cycle == down.cycle + 1
    ]
    assert {learnt for learnt, _ in hasty} == {LinkWidth.X1, LinkWidth.X4}
    assert len(hasty) > 50


def test_some_nodes_are_reset_again_when_they_begin_to_live_or_soon_after():
    lasts = [reset_cycles(node) for node in TOPOLOGY.fabric.nodes.values()]
    resets = [one for one in outages(1, Counter()) if one.operation == Operation.RESET]
    behind = Counter(
        again.cycle - first.cycle - lasts[first.target]
        for first, again in pairwise(resets)
        if first.target == again.target
    )
    assert behind[0] > 5
    assert sum(behind[cycles] for cycles in range(1, 33)) > 5
    assert sum(count for cycles, count in behind.items() if cycles < 0) > 5


def test_states_of_both_ends_of_a_link_are_written_behind_down():
    counted: Counter[str] = Counter()
    controls = list(random_restarts(TOPOLOGY, Random(1), 0, 400_000, counted))
    cycles = [control.cycle for control in controls]
    assert cycles == sorted(set(cycles))
    states = {port_address(port.number, PortRegister.STATE) for port in TOPOLOGY.linked_ports()}
    assert {control.args[0] for control in controls} <= states
    values = Counter(control.args[1] for control in controls)
    assert values[PortState.DOWN] >= counted["port_down"] > 5
    assert set(values) == {PortState.DOWN, PortState.ARMED, PortState.ACTIVE}
    assert len({control.target for control in controls}) == len(TOPOLOGY.fabric.nodes)


def test_a_switchs_port_is_set_down_more_than_a_thousand_times_in_a_row():
    counted: Counter[str] = Counter()
    controls = list(random_changes(TOPOLOGY, Random(1), 0, 60_000, counted))
    assert controls[-1].cycle < 60_000
    assert {control.args[1] for control in controls} == {PortState.DOWN}
    assert {control.target for control in controls} == {TOPOLOGY.index["S"]}
    rows = [
        sum(1 for _ in row)
        for is_near, row in groupby(b.cycle - a.cycle <= 3 for a, b in pairwise(controls))
        if is_near
    ]
    assert len(rows) == counted["port_down"] > 3
    assert sum(row > 700 for row in rows) >= len(rows) - 1, "the last one may end early"
    assert max(rows) > 1_024
