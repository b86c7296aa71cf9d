"""Which checks mutants are put through."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cosim.experiments.check_experiment import check_experiment
from cosim.experiments.mutation_task import MutationTask
from cosim.stimulus.injection import has_long_stalls, has_many_outages, is_calm
from cosim.stimulus.random_addresses import has_vls_of_pairs
from cosim.stimulus.random_congestion import has_congestion_control, has_open_victims
from cosim.stimulus.random_counters import has_crowded_reads, has_crowds_at_stuck_links, has_whole_counters
from cosim.stimulus.random_expiries import has_long_deferrals, has_mass_expiries
from cosim.stimulus.random_groups import has_groups
from cosim.stimulus.random_links import has_many_changes
from cosim.stimulus.random_mads import has_many_mads, mostly_about
from cosim.stimulus.random_overruns import has_bursts_anywhere, has_overrun_bursts
from cosim.stimulus.random_packets import (
    has_bursts_to_agent,
    has_mostly_multicast,
    has_shortest_packets,
    has_starved_copies,
    has_steps,
)
from cosim.stimulus.random_rare_settings import (
    has_calls_from_sleep,
    has_generous_limits,
    has_late_lists,
    has_late_stalls,
    has_late_timers,
    has_lone_weights,
    has_narrow_cables,
    has_read_backs,
)
from cosim.stimulus.random_settings import has_low_lists_alone, has_moving_p_keys, has_settled_limits
from cosim.stimulus.random_traps import has_trap_sweeps
from cosim.stimulus.rare_fields import has_long_leases, has_other_lids, has_rare_fields
from cosim.stimulus.rare_rows import (
    has_endless_packets,
    has_marked_link_packets,
    has_met_errors,
    has_rare_rows_at_adapters,
    has_swept_credits,
)
from wire.sma import SmaAttribute

TASK = MutationTask()
FIRST = range(1, 23)
LATER = range(FIRST.stop, FIRST.stop + 6 * 15)
RARE = range(LATER.stop, LATER.stop + 4 * 12)
RAREST = range(RARE.stop, RARE.stop + 4 * 9)
STARVED = range(RAREST.stop, RAREST.stop + 3)
AT_LINKS = range(STARVED.stop, STARVED.stop + 3 * 3)
OF_ADAPTERS = range(AT_LINKS.stop, TASK.checks + 1)
OPTIONS = {number: TASK.options(number) for number in range(1, TASK.checks + 1)}


def test_all_checks_are_of_one_fabric_and_have_seeds_of_their_own():
    assert len({options.seed for options in OPTIONS.values()}) == TASK.checks
    fabrics = {repr(check_experiment(OPTIONS[number]).topology.fabric.nodes) for number in (1, 2, 7)}
    assert len(fabrics) == 1


def cycles_of(component: str, numbers: range) -> int:
    return sum(OPTIONS[number].cycles for number in TASK.checks_of(component) if number in numbers)


def test_the_first_are_1_360_000_cycles_and_more_of_what_has_little_to_do_in_them():
    assert cycles_of("port_1.counters", FIRST) == 1_360_000
    assert cycles_of("agent_port.agent.decode", FIRST) == 1_360_000 + 4 * 500_000
    one_more = ("input_2.inspection", "matcher.grant_0.vl_arbiter", "port_0.flow_control", "output_1.head_of_queue")
    assert {cycles_of(component, FIRST) for component in one_more} == {1_360_000 + 500_000}


def test_behind_them_come_others_for_each_component_of_what_it_has_to_do_with():
    assert {OPTIONS[number].cycles for number in LATER} == {100_000}
    assert cycles_of("input_1.store.queues", LATER) == 5_400_000
    assert cycles_of("port_1.counters", LATER) == 3_000_000
    assert cycles_of("agent_port.agent.decode", LATER) == 2_400_000
    assert cycles_of("congestion_2", LATER) == 1_800_000


def test_what_is_of_no_component_has_to_do_with_all():
    assert TASK.checks_of("") == [*OPTIONS]


def test_parts_of_an_adapter_go_through_what_parts_of_a_switch_like_them_go_through():
    adapter = replace(TASK, node="adapter")
    like = {
        "port": "port_1",
        "port.counters": "port_2.counters",
        "received.queues.queues_48": "input_1.store.queues.queues_48",
        "posted.buffer": "input_0.store.buffer",
        "own_lid": "input_1.own_lid",
        "host_receive": "output_0",
        "agent_port.agent.decode": "agent_port.agent.decode",
    }
    for part, of_switch in like.items():
        assert [one for one in adapter.checks_of(part) if one not in OF_ADAPTERS] == TASK.checks_of(of_switch)


def test_then_come_four_of_each_of_what_is_rare_elsewhere():
    rare = (
        has_late_lists,
        has_late_stalls,
        has_narrow_cables,
        has_mass_expiries,
        has_bursts_to_agent,
        has_steps,
        has_vls_of_pairs,
        has_open_victims,
        has_rare_fields,
        has_trap_sweeps,
        has_many_changes,
        has_read_backs,
    )
    assert len(RARE) == 4 * len(rare)
    for number, has in zip(RARE, rare * 4, strict=True):
        assert has(OPTIONS[number].seed)
    assert not any(has(options.seed) for number, options in OPTIONS.items() if number < RARE.start - 45 for has in rare)


def test_behind_these_come_four_of_each_of_what_is_in_none_before():
    rarest = (
        has_generous_limits,
        has_lone_weights,
        has_overrun_bursts,
        has_endless_packets,
        has_met_errors,
        has_swept_credits,
        has_long_leases,
        has_late_timers,
        has_crowds_at_stuck_links,
    )
    assert len(RAREST) == 4 * len(rarest)
    for number, has in zip(RAREST, rarest * 4, strict=True):
        assert has(OPTIONS[number].seed)
    assert not any(has(OPTIONS[number].seed) for number in range(1, RAREST.start) for has in rarest)


@pytest.mark.parametrize(
    ("has", "numbers"),
    [
        (has_starved_copies, STARVED),
        (has_calls_from_sleep, AT_LINKS[::3]),
        (has_bursts_anywhere, AT_LINKS[1::3]),
        (has_long_deferrals, AT_LINKS[2::3]),
    ],
)
def test_then_come_three_each_of_copies_without_credits_no_sleep_no_room_on_any_vl_and_deferrals(has, numbers):
    assert len(numbers) == 3
    for number in range(1, numbers.stop):
        if is_calm(OPTIONS[number].seed):
            assert has(OPTIONS[number].seed) == (number in numbers)


def test_last_come_those_that_are_for_adapters_alone_as_there_are_for_switches():
    at_adapters = (
        (has_other_lids, has_many_mads),
        *((has_rare_rows_at_adapters, rare) for rare in (has_endless_packets, has_met_errors, has_swept_credits)),
        (has_rare_rows_at_adapters, has_marked_link_packets),
    )
    assert len(OF_ADAPTERS) == 3 * len(at_adapters)
    for number, have in zip(OF_ADAPTERS, at_adapters * 3, strict=True):
        assert all(has(OPTIONS[number].seed) for has in have)
    adapter = replace(TASK, node="adapter")
    parts = ("port.counters", "port.receiver", "agent_port.agent.decode", "registers", "posted_mad")
    for number in OF_ADAPTERS:
        assert any(number in adapter.checks_of(part) for part in parts)
        assert not any(number in TASK.checks_of(part) for part in ("port_1.counters", "agent_port.agent.decode"))
    assert not any(
        has_other_lids(options.seed) and has_many_mads(options.seed)
        for number, options in OPTIONS.items()
        if number not in OF_ADAPTERS
    )


def test_they_are_of_counters_at_their_ends_and_of_nodes_and_hosts_that_are_often_gone():
    later = [OPTIONS[number].seed for number in LATER]
    for has in (has_crowded_reads, has_whole_counters, has_many_outages, has_long_stalls):
        assert sum(map(has, later)) >= 3


def test_among_them_are_such_as_ask_most_of_a_part():
    """P_Key tables, agents, Sets, limits, counters, copies, links mostly idle, full ones with low or high lists."""
    assert all(is_calm(OPTIONS[number].seed) and has_moving_p_keys(OPTIONS[number].seed) for number in (2, 10, 19))
    assert all(has_many_mads(OPTIONS[number].seed) for number in (4, 12, 17, 18, 20))
    assert {mostly_about(OPTIONS[number].seed) for number in (4, 17, 20)} == {None}
    assert {mostly_about(OPTIONS[number].seed) for number in (12, 18)} == {SmaAttribute.PORT_INFO}
    assert all(has_settled_limits(OPTIONS[number].seed) for number in (9, 22))
    assert all(has_shortest_packets(OPTIONS[number].seed) for number in (5, 13))
    assert all(has_groups(OPTIONS[number].seed) and has_mostly_multicast(OPTIONS[number].seed) for number in (6, 14))
    assert [has_low_lists_alone(OPTIONS[number].seed) for number in (8, 16, 21)] == [True, False, False]
    assert all(has_congestion_control(OPTIONS[number].seed) for number in (16, 21))
    assert OPTIONS[7].load < 0.1 < OPTIONS[6].load == OPTIONS[8].load == OPTIONS[16].load == 1.0
    assert [number for number, options in OPTIONS.items() if not options.errors] == [3, 11]
