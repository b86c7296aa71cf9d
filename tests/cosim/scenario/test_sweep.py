"""Sweeps: keys of a scenario with other values, in all combinations."""

from pathlib import Path

import pytest

from cosim.scenario.find_scenario import ScenarioError
from cosim.scenario.scenario_file import read_table
from cosim.scenario.sweep import Setting, combinations, parse_setting


def of_jam(*settings: str):
    """Combinations of settings of the traffic jam."""
    table, path = read_table("jam")
    return combinations(table, [parse_setting(one) for one in settings], "jam", "jam", path.parent)


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("flows[0].rate=0.1,0.2", Setting("flows[0].rate", (0.1, 0.2))),
        ("seed = 1, 2", Setting("seed", (1, 2))),
        ("links[*].width=1X,4X", Setting("links[*].width", ("1X", "4X"))),
        ('switches.S.queueing="voq"', Setting("switches.S.queueing", ("voq",))),
        ("flows[0].size=[0, 64],256", Setting("flows[0].size", ([0, 64], 256))),
    ],
)
def test_values_are_written_as_in_toml_and_texts_also_without_quotes(text, setting):
    assert parse_setting(text) == setting


@pytest.mark.parametrize("text", ["seed", "seed=", "=1", "seed=a,,b"])
def test_what_is_no_setting_is_refused(text):
    with pytest.raises(ScenarioError, match="expected KEY=VALUE,VALUE"):
        parse_setting(text)


def test_all_combinations_are_made_and_the_last_key_changes_first():
    runs = of_jam("switches.S.buffer_blocks=40,50", "flows[0].count=3,4")
    assert [values for values, _ in runs] == [(40, 3), (40, 4), (50, 3), (50, 4)]
    for (blocks, count), scenario in runs:
        assert (scenario.switches["S"].buffer_blocks, scenario.flows[0].count) == (blocks, count)


def test_a_star_stands_for_all_and_keys_that_the_file_does_not_give_are_set():
    ((_, scenario),) = of_jam("links[*].length_m=30", "hosts.*.send_blocks=64", "record.last=3")
    assert [link.length_m for link in scenario.links] == [30, 30]
    assert {host.send_blocks for host in scenario.hosts.values()} == {64}
    assert scenario.record.last == 3


def test_nodes_of_a_topology_file_have_keys_too(tmp_path: Path):
    (tmp_path / "two.net").write_text(
        'Switch 2 "S"\n[1] "A"[1]\n[2] "B"[1]\nCa 1 "A"\n[1] "S"[1]\nCa 1 "B"\n[1] "S"[2]\n'
    )
    ((_, scenario),) = combinations(
        {"topology": "two.net", "cycles": 10}, [Setting("switches.S.vls", (2,))], "x", "x", tmp_path
    )
    assert scenario.switches["S"].vls == 2


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("bogus=1", "bogus: no such key; there are title, symbol_time_ns, cycles, seed,"),
        ("name=1", "name: no such key"),
        ("flows[0].load=0.1", "flows[0].load: no such key; there are name, from, to, count, rate,"),
        (
            "flows[3].rate=1",
            "flows[3].rate: expected flows[NUMBER].KEY or flows[*].KEY; there are 1 of them, from 0 on",
        ),
        ("flows.rate=1", "flows.rate: expected flows[NUMBER].KEY"),
        ("stalls[*].host=1", "stalls[*].host: expected stalls[NUMBER].KEY or stalls[*].KEY; there are 0 of them"),
        ("switches.T.ports=3", "switches.T.ports: expected switches.NAME.KEY or switches.*.KEY; there are S"),
        ("hosts.*.ports.x=3", "hosts.*.ports.x: expected hosts.NAME.KEY"),
        ("hosts.*.colour=3", "hosts.*.colour: no such key; there are ports, vls,"),
        ("record=3", "record: expected record.KEY"),
        ("picture.panel=3", "picture.panel: no such key; there are panels,"),
        ("seed.x=3", "seed.x: no such key"),
        ("flows[0].rate=0.5,2", "jam: flows[0].rate: 2: expected less than or equal to 1"),
    ],
)
def test_a_key_or_a_value_that_cannot_be_is_told_with_what_can(setting, message):
    with pytest.raises(ScenarioError) as refused:
        of_jam(setting)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_a_key_is_given_once_and_runs_have_an_end():
    with pytest.raises(ScenarioError, match="seed: given twice"):
        of_jam("seed=1", "seed=2")
    many = ",".join(map(str, range(101)))
    with pytest.raises(ScenarioError, match=r"10,201 combinations of values: expected at most 1,000"):
        of_jam(f"seed={many}", f"cycles={many}")
