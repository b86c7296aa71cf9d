"""Injected errors: what each does to the rows of a link, and that there is one operation a cycle."""

from collections import Counter
from dataclasses import replace
from itertools import count, pairwise

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.scenario.scenario_file import parse_scenario
from cosim.stimulus.bus_bring_up import bus_bring_up
from cosim.stimulus.injection import RANDOM_KINDS, has_long_stalls, one_a_cycle, random_controls, scenario_controls
from cosim.stimulus.row_errors import link_error
from wire.registers import LFT_PAGE, SL_TO_VL_PAGE, PortRegister, place_of_address
from wire.stimulus import Control, Operation, injection_target

_LIMITS = (PortRegister.NEIGHBOR_MTU, PortRegister.OPERATIONAL_VLS)
_TABLES = {LFT_PAGE: 8, **dict.fromkeys(range(SL_TO_VL_PAGE, SL_TO_VL_PAGE + 64), 4)}
"""Bits of their entries, by page."""


def test_operations_that_collide_move_to_the_next_free_cycle():
    given = [Control(cycle, Operation.LINK_UP, target) for target, cycle in enumerate((5, 5, 5, 6, 20))]
    moved = list(one_a_cycle(iter(given)))
    assert [(control.cycle, control.target) for control in moved] == [(5, 0), (6, 1), (7, 2), (8, 3), (20, 4)]


def test_a_read_that_would_come_too_late_is_not_given():
    kinds = [Operation.LINK_UP] * 3 + [Operation.BUS_READ] * 3
    given = [Control(5, kind, target) for target, kind in enumerate(kinds)]
    moved = list(one_a_cycle(iter(given), latest_read=4))
    assert [(control.cycle, control.target) for control in moved] == [(5, 0), (6, 1), (7, 2), (8, 3), (9, 4)]


SCENARIO = """
cycles = 1000
[hosts.A]
vls = 2
[hosts.B]
vls = 2
[[links]]
ends = ["A", "B"]
[[stalls]]
host = "B"
from = 10
to = 30
vls = [0, 15]
[[stalls]]
host = "B"
from = 20
to = 40
vls = [1]
[[errors]]
kind = "link_down"
from = "B"
at = 50
[[errors]]
kind = "ebp"
from = "B"
at = 20
"""


def test_stalls_and_errors_of_a_scenario_become_operations():
    scenario = parse_scenario(SCENARIO, "x.toml")
    controls = list(scenario_controls(scenario, scenario.topology, 100))
    assert [(control.cycle, control.operation, control.target, control.args[0]) for control in controls] == [
        (110, Operation.RECV_STALL, 1, 0b101),
        (120, Operation.RECV_STALL, 1, 0b111),
        (121, Operation.INJECT, injection_target(0, 1), link_error("ebp").args()[0]),
        (130, Operation.RECV_STALL, 1, 0b010),
        (140, Operation.RECV_STALL, 1, 0b000),
        (150, Operation.LINK_DOWN, 0, 0),
    ]


def test_random_errors_are_of_every_kind_and_counted():
    experiment = check_experiment(CheckOptions(cycles=20_000))
    counted: Counter[str] = Counter()
    controls = list(random_controls(experiment.topology, 1, 0, 1_000_000, errors=True, injected=counted))
    assert set(counted) == set(RANDOM_KINDS)
    operations = Counter(control.operation for control in controls)
    others = (
        "invented_smp",
        "overrun",
        "link_down",
        "width",
        "link_setting",
        "reset",
        "port_down",
        "register_slip",
        "counter_write",
        "setting",
        "refused_write",
        "time_limit",
        "partition",
        "multicast",
    )
    in_rows = sum(counted.values()) - sum(counted[kind] for kind in others)
    rows_of_smp = 73
    assert operations[Operation.INJECT] > in_rows + counted["invented_packet"] + rows_of_smp * counted["invented_smp"]
    assert operations[Operation.LINK_DOWN] == operations[Operation.LINK_UP] >= counted["link_down"]
    assert counted["reset"] < operations[Operation.RESET] <= 2 * counted["reset"]
    cycles = [control.cycle for control in controls]
    assert all(later > earlier for earlier, later in pairwise(cycles))


def test_a_register_that_slipped_is_right_again_afterwards():
    topology = replace(check_experiment(CheckOptions(ports=3, vls=4, mtu=1024, cycles=30_000)).topology, groups={})
    values = {(w.target, w.args[0]): w.args[1] for w in bus_bring_up(topology).controls}
    slipped, slips = set(), 0
    # A seed without congestion control, which writes much else.
    for one in random_controls(topology, 3, 0, 1_000_000, errors=True, reset_share=0):
        address, value = (one.target, one.args[0]), one.args[1]
        page, offset = place_of_address(one.args[0])
        is_limit = 0 < page <= 64 and offset in _LIMITS
        if one.operation != Operation.BUS_WRITE or address not in values or not (is_limit or page in _TABLES):
            continue
        if not (1 <= value <= values[address] if is_limit else value < 1 << _TABLES[page]):
            continue  # what nothing takes
        if address in slipped:
            assert value == values[address]
            slipped.remove(address)
        elif value != values[address]:
            slipped.add(address)
            slips += 1
    assert not slipped
    assert slips > 20


def test_without_errors_hosts_still_pause_counters_are_read_and_arbitration_changes():
    experiment = check_experiment(CheckOptions(cycles=20_000))
    controls = list(random_controls(experiment.topology, 1, 0, 100_000, errors=False))
    assert {control.operation for control in controls} == {
        Operation.RECV_STALL,
        Operation.BUS_READ,
        Operation.BUS_WRITE,
    }


def test_the_same_seed_gives_the_same_operations():
    topology = check_experiment(CheckOptions(cycles=20_000)).topology

    def drawn(seed: int) -> list[Control]:
        return list(random_controls(topology, seed, 0, 50_000, errors=True))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_in_some_runs_links_are_left_alone_and_all_else_goes_on():
    topology = check_experiment(CheckOptions(cycles=20_000)).topology
    on_links = {Operation.INJECT, Operation.LINK_DOWN, Operation.RESET}
    drawn: list[Counter[str]] = []
    for seed in range(10):
        given: Counter[str] = Counter()
        controls = list(random_controls(topology, seed, 0, 30_000, errors=True, injected=given))
        is_calm = on_links.isdisjoint(control.operation for control in controls)
        assert given["refused_write"]
        assert given["register_slip"]
        if is_calm:
            drawn.append(given)
    assert 1 <= len(drawn) <= 6
    assert all(not given["port_down"] for given in drawn)


def test_some_ports_are_read_many_times_in_a_row():
    topology = check_experiment(CheckOptions(cycles=20_000)).topology
    controls = list(random_controls(topology, 1, 0, 100_000, errors=False))
    reads = [(one.cycle, one.target, one.args[0] >> 16) for one in controls if one.operation == Operation.BUS_READ]
    spans = [
        (last[0] - first[0], {one[1:] for one in reads[at : at + 7]})
        for at, (first, last) in enumerate(zip(reads, reads[6:], strict=False))
    ]
    assert any(cycles < 30 and len(ports) == 1 for cycles, ports in spans)


def test_in_some_runs_hosts_stall_for_many_times_what_a_head_may_wait():
    topology = check_experiment(CheckOptions(cycles=20_000)).topology

    def longest(seed: int) -> int:
        controls = random_controls(topology, seed, 0, 200_000, errors=False)
        stalls = [one for one in controls if one.operation == Operation.RECV_STALL]
        begun: dict[int, int] = {}
        lasts = []
        for one in stalls:
            if one.args[0]:
                begun[one.target] = one.cycle
            elif one.target in begun:
                lasts.append(one.cycle - begun.pop(one.target))
        return max(lasts)

    seeds = {has: next(seed for seed in count(1) if has_long_stalls(seed) == has) for has in (False, True)}
    assert longest(seeds[False]) <= 2_100 < 20_000 < longest(seeds[True])
