"""Widths and states that ports are told of about the loss of their link."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.bus_bring_up import WRITE_SHOWS
from cosim.stimulus.random_link_settings import link_ends, with_link_settings
from cosim.stimulus.random_links import sweeps
from wire.codes import LINK_WIDTHS, LinkWidth, PortPhysicalState, PortState
from wire.registers import PortRegister, place_of_address
from wire.stimulus import Control, Operation

TOPOLOGY = check_experiment(CheckOptions(ports=3, cycles=20_000, sim="model")).topology
DOWN, UP, FREE = 5_000, 5_200, 4_800
OUTAGE = [Control(DOWN, Operation.LINK_DOWN, 1), Control(UP, Operation.LINK_UP, 1)]


@pytest.fixture(scope="module")
def outages() -> list[list[Control]]:
    """Of link 1, each with settings."""
    drawn = [with_link_settings(TOPOLOGY, Random(seed), 1, OUTAGE, FREE, Counter()) for seed in range(4_000)]
    return [controls for controls in drawn if controls != OUTAGE]


def written(controls: list[Control], register: PortRegister) -> Iterator[tuple[int, int, int]]:
    """(cycle, node, value)."""
    for one in controls:
        if one.operation == Operation.BUS_WRITE and place_of_address(one.args[0])[1] == register:
            yield one.cycle, one.target, one.args[1]


def offered(controls: list[Control], cycle: int) -> int:
    """Widths in common, as far as they have been written before CYCLE."""
    ends = {TOPOLOGY.index[end.node]: LINK_WIDTHS for end in link_ends(TOPOLOGY, 1)}
    for when, node, value in written(controls, PortRegister.LINK_WIDTH_ENABLED):
        if when < cycle:
            ends[node] = value & LINK_WIDTHS
    first, other = ends.values()
    return first & other


def test_half_of_the_outages_have_settings_of_both_ends_of_their_link_alone():
    counted: Counter[str] = Counter()
    drawn = [with_link_settings(TOPOLOGY, Random(seed), 1, OUTAGE, FREE, counted) for seed in range(200)]
    assert 70 < sum(controls != OUTAGE for controls in drawn) == counted["link_setting"] < 130
    places = {(TOPOLOGY.index[end.node], end.number) for end in link_ends(TOPOLOGY, 1)}
    writes = [one for controls in drawn for one in controls if one.operation == Operation.BUS_WRITE]
    assert {(one.target, place_of_address(one.args[0])[0]) for one in writes} == places
    for controls in drawn:
        assert [one.cycle for one in controls] == sorted(one.cycle for one in controls)
        assert controls[0].cycle >= FREE
        assert [one for one in controls if one in OUTAGE] == OUTAGE


def test_links_come_back_narrow_and_4x_later(outages):
    narrow = []
    for controls in outages:
        losses = [one.cycle for one in controls if one.operation == Operation.LINK_DOWN]
        if len(losses) > 1 and not any(written(controls, PortRegister.LINK_DOWN_DEFAULT)):
            found = [offered(controls, lost - 50) for lost in (*losses[1:], controls[-1].cycle + 51)]
            assert all(widths == LinkWidth.X1 for widths in found[::2])
            assert all(widths & LinkWidth.X4 for widths in found[1::2])
            narrow.append(losses[1] - UP)
    assert 50 < sum(cycles > 1_000 for cycles in narrow) < len(narrow) - 50


def test_some_ends_have_no_width_in_common_for_a_while_or_until_a_sweep(outages):
    parted = [controls for controls in outages if any(not offered(controls, one.cycle + 1) for one in controls)]
    left = [controls for controls in parted if not offered(controls, controls[-1].cycle + 1)]
    assert 10 < len(left) < len(parted) - 10


def test_widths_are_written_in_adjacent_cycles_and_when_a_link_is_lost_or_found(outages):
    writes = [list(written(controls, PortRegister.LINK_WIDTH_ENABLED)) for controls in outages]
    adjacent = [one for each in writes for one in pairwise(each) if one[1][0] == one[0][0] + 1]
    assert sum(first[1] != second[1] for first, second in adjacent) > 100
    shown = Counter(cycle + WRITE_SHOWS for each in writes for cycle, *_ in each)
    for loss in (DOWN + 1, UP + 1):
        assert all(shown[cycle] for cycle in range(loss - 3, loss + 4))
    assert {value for each in writes for *_, value in each} == {LinkWidth.X1, LinkWidth.X4, LINK_WIDTHS, 0xFF}


def test_ports_sleep_when_their_link_is_lost_and_are_told_otherwise_in_the_cycles_about_it(outages):
    asleep = [controls for controls in outages if any(written(controls, PortRegister.LINK_DOWN_DEFAULT))]
    assert len(asleep) > 100
    shown = Counter()
    for controls in asleep:
        timeouts = dict(one[1:] for one in [*written(controls, PortRegister.LINK_DOWN_TIMEOUT)][::-1])
        sleeps = list(written(controls, PortRegister.LINK_DOWN_DEFAULT))
        assert sleeps[0][2] == PortPhysicalState.SLEEP
        for cycle, node, state in written(controls, PortRegister.PHYSICAL_STATE):
            shown["at once", cycle + WRITE_SHOWS - (DOWN + 2), state] += 1
            shown["timed out", cycle + WRITE_SHOWS - (DOWN + 2 + timeouts[node]), state] += 1
    for state in (PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED):
        for when in ("at once", "timed out"):
            assert all(shown[when, cycle, state] for cycle in (-1, 0, 1)), (when, state)
    downs = [list(written(controls, PortRegister.STATE)) for controls in asleep]
    assert {value for each in downs for *_, value in each} == {PortState.DOWN}
    assert 50 < sum(bool(each) for each in downs) < len(asleep) - 20


def test_some_sweeps_wake_every_port_and_give_links_back_their_widths():
    ports = {(TOPOLOGY.index[port.node], port.number) for port in TOPOLOGY.linked_ports()}
    controls = list(sweeps(TOPOLOGY, Random(1), 0, 100_000))
    assert all(first.cycle < second.cycle for first, second in pairwise(controls))
    of_register = {
        register: [one for one in controls if place_of_address(one.args[0])[1] == register]
        for register in (PortRegister.PHYSICAL_STATE, PortRegister.LINK_WIDTH_ENABLED, PortRegister.LINK_DOWN_DEFAULT)
    }
    values = {register: {one.args[1] for one in writes} for register, writes in of_register.items()}
    assert values == {
        PortRegister.PHYSICAL_STATE: {PortPhysicalState.POLLING},
        PortRegister.LINK_WIDTH_ENABLED: {LINK_WIDTHS},
        PortRegister.LINK_DOWN_DEFAULT: {PortPhysicalState.POLLING},
    }
    for writes in of_register.values():
        assert {(one.target, place_of_address(one.args[0])[0]) for one in writes} == ports
    wakes = len(of_register[PortRegister.PHYSICAL_STATE])
    arms = sum(
        place_of_address(one.args[0])[1] == PortRegister.STATE and one.args[1] == PortState.ARMED for one in controls
    )
    assert 0.1 * arms < wakes < 0.6 * arms
