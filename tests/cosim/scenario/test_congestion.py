"""`[congestion]`: what a user may write, and what switches and adapters get of it."""

import pytest

from cosim.experiments.experiment import chosen_settings
from cosim.scenario.congestion import Congestion
from cosim.scenario.find_scenario import ScenarioError
from cosim.scenario.scenario_file import parse_scenario
from cosim.topology.topology import Port
from verbs.congestion_control.settings import TABLE_ENTRIES, SlEntry, TableEntry
from wire.congestion_control import CcAttribute
from wire.registers import congestion_address

FABRIC = """
cycles = 1000
[hosts.A]
[hosts.B]
[switches.S]
ports = 3
[switches.T]
ports = 3
[[links]]
ends = ["A", "S[1]"]
[[links]]
ends = ["S[3]", "T[3]"]
[[links]]
ends = ["T[2]", "B"]
"""


def words_of(more: str, switch: str = "S") -> dict[int, int]:
    """What is written to a switch, by the word of its SwitchCongestionSetting."""
    scenario = parse_scenario(FABRIC + more, "x")
    written = chosen_settings(scenario, scenario.topology)[Port(switch, 0)]
    first = congestion_address(CcAttribute.SWITCH_CONGESTION_SETTING, 0)
    return {int(address) - first: value for address, value in written.items()}


def test_without_the_table_nothing_is_set() -> None:
    assert words_of("") == {}


def test_switches_get_what_the_table_says_and_their_ports_to_hosts_are_victims_too() -> None:
    said = "[congestion]\nthreshold = 3\npacket_size = 9\nmarking_rate = 77"
    assert words_of(said) == {8: 0x15, 16: 1 << 1, 25: 0x3009 << 16, 26: 77}
    assert words_of(said, "T")[16] == 1 << 2
    assert next(iter(words_of(said))) == 8
    assert 16 not in words_of(f'{said}\nvictims = "none"')


def test_one_may_say_which_switches_mark() -> None:
    said = '[congestion]\nswitches = ["T"]'
    assert words_of(said) == {}
    assert words_of(said, "T")


def test_adapters_get_a_table_of_delays_in_packet_times() -> None:
    made = Congestion(table=(0, 0.5, 1, 2.125, 16383), ccti_timer=3, ccti_increase=2, ccti_min=1, flows="sls")
    settings = made.adapter_settings
    delays = [TableEntry(0, 0), TableEntry(1, 1), TableEntry(0, 1), TableEntry(3, 17), TableEntry(0, 16383)]
    assert (list(settings.table[:5]), len(settings.table)) == (delays, TABLE_ENTRIES)
    assert (settings.ccti_limit, settings.by_sl) == (4, True)
    assert set(settings.entries) == {SlEntry(3, 2, 0, 1)}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("threshold = 16", "congestion.threshold: 16: expected less than or equal to 15"),
        ('switches = ["A"]', "congestion.switches: no switch 'A'; there are S, T"),
        ("table = []", "congestion.table: []: 0 entries: expected 1..128"),
        ("table = [0, 0.1]", "congestion.table: [0, 0.1]: 0.1: expected 0..16383, in steps of 1/8"),
        ("table = [8192.5]", "congestion.table: [8192.5]: 8192.5: expected at most 16383 / 2^n, in steps of 1 / 2^n"),
        ("table = [0, 1]\nccti_min = 2", "congestion: ccti_min 2: expected at most 1, the last entry"),
    ],
)
def test_what_cannot_be_is_an_error(said: str, error: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(f"{FABRIC}[congestion]\n{said}", "x")
    assert str(caught.value) == f"x: {error}"
