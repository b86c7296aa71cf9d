"""A campaign's file: the runs that its tables stand for, and what is wrong with one, in a line."""

from dataclasses import fields
from pathlib import Path

import pytest

from cosim.experiments.check_experiment import CheckOptions
from ironband.campaign.campaign_file import CampaignError, read_campaign
from ironband.campaign.tables import TABLES

NAMED = 'database = "c.sqlite"\n'


def campaign(folder: Path, text: str):
    file = folder / "c.toml"
    file.write_text(NAMED + text)
    return read_campaign(file)


def test_lists_are_multiplied_and_what_is_twice_is_run_once(tmp_path):
    made = campaign(
        tmp_path,
        '[[check]]\nseeds = "7..9"\nports = [2, 3]\nerrors = false\n'
        "[[check]]\nseeds = [9, 10]\nports = 3\nerrors = false",
    )
    assert made.database == tmp_path / "c.sqlite"
    found = [(run.options.seed, run.options.ports, run.options.errors) for run in made.runs]
    assert found == [(seed, ports, False) for seed in (7, 8, 9) for ports in (2, 3)] + [(10, 3, False)]
    assert made.runs[0].replay == (
        "ironband check --ports 2 --vls 2 --mtu 256 --queueing voq --cycles 20000 --seed 7 --widths mixed --load 0.7"
        " --sim verilator --no-errors"
    )


def test_each_option_that_makes_a_check_is_a_key():
    keys = {field.alias or name for name, field in TABLES["check"].model_fields.items()}
    assert keys == {field.name for field in fields(CheckOptions)} - {"fabric_seed", "seed"} | {"seeds", "coverage"}


def test_a_mutant_is_a_run_and_some_of_them_have_a_build_in_common(tmp_path):
    runs = campaign(tmp_path, "[[mutate]]\ncount = 300\nchecks = 2").runs
    assert [run.number for run in runs] == list(range(1, 301))
    assert len({run.build for run in runs}) == 2
    assert runs[299].replay == "ironband mutate --node switch --count 300 --seed 1 --checks 2 --cycles 20000"


def test_a_sweep_is_a_run_for_each_combination(tmp_path):
    runs = campaign(
        tmp_path,
        '[[sweep]]\nscenario = "jam"\nset = {"links[*].width" = ["1X", "4X"], "flows[0].size" = [64, 256]}',
    ).runs
    assert [run.parameters["set"] for run in runs] == [
        {"links[*].width": width, "flows[0].size": size} for width in ("1X", "4X") for size in (64, 256)
    ]
    assert runs[0].replay == """ironband sweep jam --set 'links[*].width="1X"' --set 'flows[0].size=64' --sim model"""
    assert len({run.key("") for run in runs}) == 4


def test_a_curve_is_a_run_for_each_load_of_both_kinds_of_switches(tmp_path):
    text = '[[curves]]\nloads = [0.5, 1]\n%s\n[[curves]]\nloads = 0.5\ntopology = "fat_tree"\nqueueing = "voq"'
    runs = campaign(tmp_path, text % "ports = 3").runs
    assert [(run.queueing, run.offered, run.parameters["sim"]) for run in runs] == [
        *((queueing, load, "verilator") for queueing in ("voq", "fifo") for load in (0.5, 1)),
        ("voq", 0.5, "model"),
    ]
    assert runs[4].replay.startswith("ironband curves --topology fat_tree --size 256 ")


def test_a_run_has_another_key_with_other_sources_and_another_file(tmp_path):
    scenario, topology = tmp_path / "s.toml", tmp_path / "t.net"
    scenario.write_text('cycles = 99\n[hosts.A]\n[hosts.B]\n[[links]]\nends = ["A", "B"]\n')
    topology.write_text('Switch 2 "S"\n[1] "A"\n[2] "B"\n\nHca 1 "A"\n[1] "S"[1]\n\nHca 1 "B"\n[1] "S"[2]\n')
    text = '[[check]]\nfabric = "t.net"\n[[sweep]]\nscenario = "s.toml"\nset = {seed = 1}\n'
    text += '[[curves]]\ntopology = "t.net"\nloads = 0.1\nqueueing = "voq"'
    before = {run.key("x") for run in campaign(tmp_path, text).runs}
    assert before == {run.key("x") for run in campaign(tmp_path, text).runs}
    scenario.write_text(scenario.read_text().replace("99", "98"))
    topology.write_text(topology.read_text() + "\n")
    after = [run.key("x") for run in campaign(tmp_path, text).runs]
    assert len(after) == 3
    assert not before & {*after, *(run.key("y") for run in campaign(tmp_path, text).runs)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no runs: expected [[check]], [[mutate]], [[sweep]], [[curves]], one or more"),
        ("[[chekc]]", "chekc: unknown key"),
        ("check = 3", "check: 3: expected a valid list"),
        ("[[check]]\nport = 3", "check[0].port: unknown key"),
        ("[[check]]\nports = [3, 65]", "check[0].ports: 65: expected less than or equal to 64"),
        ("[[check]]\nports = '3'", "check[0].ports: '3': expected a valid integer"),
        ("[[check]]\nvls = 3", "check[0].vls: 3: expected 1, 2, 4, 8 or 15"),
        ("[[check]]\nload = 0", "check[0].load: 0: expected greater than 0"),
        ("[[check]]\nseeds = []", "check[0]: seeds: []: expected one value or more"),
        ("[[check]]\nseeds = '5'", "check[0]: seeds: '5': expected a number, a list of them, or a range such as"),
        ("[[check]]\nseeds = '5..4'", "check[0]: seeds: '5..4': expected one value or more"),
        ("[[check]]\nseeds = '1..99999999'", "check[0]: 99,999,999 combinations of values: expected at most 100,000"),
        ("[[check]]\nseeds = -1", "check[0].seeds: -1: expected greater than or equal to 0"),
        ("[[check]]\nfabric = 'ring_5'", "check[0]: topology 'ring_5': no such file"),
        ("[[check]]\nfabric = 'ring_4'\nports = 3", "check[0]: ports, fabric: expected one of them"),
        ("[[check]]\n[[check]]\nsim = 'spice'", "check[1].sim: 'spice': expected 'verilator', 'icarus', 'amaranth'"),
        ("[[mutate]]\ncount = 0", "mutate[0].count: 0: expected greater than or equal to 1"),
        ("[[sweep]]\nscenario = 'jam'", "sweep[0].set: missing, it must be given"),
        ("[[sweep]]\nscenario = 'jom'\nset = {seed = 1}", "sweep[0]: scenario 'jom': no such file"),
        ("[[sweep]]\nscenario = 'jam'\nset = {fly = 1}", "sweep[0]: fly: no such key"),
        ("[[curves]]", "curves[0].loads: missing, it must be given"),
        ("[[curves]]\nloads = 0.5\npattern = 'transpose'", "curves[0]: 'transpose' of 8 hosts: expected a square"),
        ("[[curves]]\nloads = 0.5\nhot = 'A'", "curves[0]: --hot, --hot-share: expected with --pattern hotspot"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(tmp_path, text, message):
    with pytest.raises(CampaignError) as raised:
        campaign(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path / 'c.toml'}: {message}")
    assert "\n" not in str(raised.value)
