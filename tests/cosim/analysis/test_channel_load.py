"""Channel loads: what a pattern asks of each link, as closed forms say."""

import pytest

from cosim.analysis.channel_load import busiest_link, channel_loads
from cosim.scenario.scenario_file import parse_scenario
from cosim.scenario.tables import Flow
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.destinations import destination_shares
from cosim.topology.topology import Port

TWO_SWITCHES = """
cycles = 1
[switches]
S = {ports = 3}
T = {ports = 3}
[hosts]
A = {}
B = {}
C = {}
D = {}
[[links]]
ends = ["A", "S[1]"]
[[links]]
ends = ["B", "S[2]"]
[[links]]
ends = ["C", "T[1]"]
[[links]]
ends = ["D", "T[2]"]
[[links]]
ends = ["S[3]", "T[3]"]
width = "4X"
"""


def loads(scenario, **keys) -> dict[Port, float]:
    flow = Flow.model_validate({"from": "*", "to": "*", "rate": 1.0, **keys})
    return channel_loads(scenario.topology, destination_shares(scenario, flow, "0"))


@pytest.mark.parametrize("pattern", ["uniform", "all_to_all", "permutation", "bit_complement"])
def test_what_spreads_evenly_fills_all_links_of_a_switch_alike(pattern):
    assert all(load == pytest.approx(1) for load in loads(uniform_load(8, cycles=1), pattern=pattern).values())


def test_the_link_of_a_hot_host_has_its_share_of_each_other():
    made = loads(uniform_load(8, cycles=1), pattern="hotspot", hot="H3", hot_share=0.25)
    assert made[Port("S", 3)] == pytest.approx(7 * 0.25)
    # Another host gets of six with a sixth of the rest, and of the hot one with a seventh.
    assert made[Port("S", 1)] == pytest.approx(6 * 0.75 / 6 + 1 / 7)


def test_between_two_switches_goes_what_is_for_the_other_side():
    made = loads(parse_scenario(TWO_SWITCHES, "two"))
    assert made[Port("S", 3)] == made[Port("T", 3)] == pytest.approx(2 * 2 / 3)


def test_a_narrow_link_is_busy_four_times_as_long():
    scenario = parse_scenario(TWO_SWITCHES.replace('"4X"', '"1X"'), "two")
    assert loads(scenario)[Port("S", 3)] == pytest.approx(4 * 2 * 2 / 3)
    flow = Flow.model_validate({"from": "*", "to": "*", "rate": 1.0})
    link, full = busiest_link(scenario.topology, destination_shares(scenario, flow, "0"))
    assert (link, full) == (Port("S", 3), pytest.approx(3 / 16))
