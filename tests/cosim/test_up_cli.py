"""`ironband up`: what it prints, what it writes, and how it ends."""

import json
from pathlib import Path

import pytest

from cosim.cli import main
from cosim.subnet_differences import differences
from cosim.topology_file import read_topology
from sm.lids import LidRange, parse_guid2lid

FOLDER = Path(__file__).parent / "topology_files"
STAR, FAT_TREE = str(FOLDER / "star.net"), str(FOLDER / "fat_tree.net")


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def told(capsys, *arguments: str) -> list[str]:
    assert main(["up", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def results(capsys, *arguments: str) -> dict:
    assert main(["up", *arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def one_line_error(capsys, *arguments: str) -> str:
    assert main(["up", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("ironband: ")


def test_up_tells_of_the_work_then_prints_the_subnet(capsys):
    lines = told(capsys, STAR)
    assert lines[0] == f"{STAR}: 1 switch, 2 hosts, 2 links; the Subnet Manager is at H1"
    for line in (
        "      1,000          4,000  heavy sweep: start",
        'Switch\t: 0x0000000000200000 ports 8 "SW1" base port 0 lid 2 lmc 0',
        'Ca\t: 0x0000000000100000 ports 1 "H1"',
        "CA: H1:",
        "Switch: 0x0000000000200000 SW1:",
        "Unicast lids [0x0-0x3] of switch Lid 2 guid 0x0000000000200000 (SW1):",
        "0x0003 002 : (Channel Adapter portguid 0x0000000000100003: 'H2')",
        "switches, hosts, links  1, 2, 2",
        "mismatches              - (the golden model alone)",
    ):
        assert line in lines
    found = [line for line in lines if " found " in line]
    assert [line.split('"')[1] for line in found] == ["H1", "SW1", "H2"]


def test_the_results_have_all_that_is_printed(capsys):
    found = results(capsys, FAT_TREE, "--sm", "H3")
    assert (found["command"], found["sm"], found["held"], found["complete"]) == ("up", "H3", True, True)
    assert sum(found["smps_by_kind"].values()) == found["smps"] <= 200
    assert (len(found["switches"]), len(found["hosts"]), len(found["links"])) == (6, 8, 16)
    assert {state for link in found["links"] for state in link["states"]} == {"Active"}
    lids = {port["lid"] for node in found["switches"] + found["hosts"] for port in node["end_ports"]}
    assert lids == set(range(1, 15))
    assert {frozenset(map(int, table)) for table in found["forwarding_tables"].values()} == {frozenset(lids)}
    assert found["events"][0] == {
        "cycle": 1000,
        "time_ns": 4000,
        "event": "SweepStarted",
        "text": "heavy sweep: start",
    }
    assert (found["mismatches"], found["faults"]) == (None, [])


def test_runs_are_alike_and_the_seed_makes_them_differ(capsys):
    first, again, other = (results(capsys, STAR, "--seed", seed) for seed in ("1", "1", "2"))
    assert first == again
    assert first["start_cycle"] != other["start_cycle"]


def test_what_is_found_is_written(capsys):
    assert "wrote found.topo" in told(capsys, FAT_TREE, "--discover", "found.topo")
    found, described = read_topology("found.topo"), read_topology(FAT_TREE)
    origin = next(end for end, _port in described.subnet.reachable_end_ports if end.guid == 0x100000)
    assert differences(described.subnet, found.subnet, origin) == []
    assert told(capsys, "found.topo", "--sm", "H1")


def test_lids_are_remembered(capsys):
    Path("guid2lid").write_text("0x0000000000100003 0x0030 0x0030\n")
    told(capsys, STAR, "--guid2lid", "guid2lid")
    kept = parse_guid2lid(Path("guid2lid").read_text(), "guid2lid")
    assert kept == {0x100001: LidRange(1, 1), 0x200000: LidRange(2, 2), 0x100003: LidRange(0x30, 0x30)}


def test_lids_beyond_the_usual_table_have_room(capsys):
    Path("guid2lid").write_text("0x0000000000100003 0xbfff 0xbfff\n")
    tables = results(capsys, STAR, "--guid2lid", "guid2lid")["forwarding_tables"]
    assert tables["0x0000000000200000"]["49151"] == 2


def test_a_link_that_fails_is_routed_around_and_hosts_that_are_gone_are_told(capsys):
    lines = told(capsys, FAT_TREE, "--fail", "H8@400000", "--link-down-timeout", "5000")
    after = [line.split(maxsplit=2)[2] for line in lines if line[:11].strip().replace(",", "").isdigit()]
    after = after[next(i for i, text in enumerate(after) if text.startswith("trap 128")) :]
    assert 'lost CA 0x000000000010000e "H8"' in after
    assert "link H8[1] to L4[2] was lost" in after
    assert any(text.startswith("switch L4: wrote LFT blocks") for text in after)
    assert "switches, hosts, links  6, 7, 15" in lines


@pytest.mark.slow
def test_one_node_may_be_rtl(capsys):
    lines = told(capsys, STAR, "--rtl", "H2")
    assert lines[:-4] == told(capsys, STAR)[:-3]
    compared, mismatches = lines[-2:]
    assert (compared.split()[:2], mismatches.split()) == (["events", "compared"], ["mismatches", "0"])
    assert results(capsys, STAR, "--rtl", "H2")["rtl"] == ["H2"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.net"], "none.net: No such file or directory"),
        ([STAR, "--sm", "H9"], "--sm H9: no such node; there are SW1, H1, H2"),
        ([STAR, "--sm", "SW1"], "--sm SW1: is a switch, expected a host"),
        ([STAR, "--rtl", "SW2"], "--rtl SW2: no such node; there are SW1, H1, H2"),
        (
            [STAR, "--rtl", "SW1", "--sim", "amaranth"],
            "--rtl SW1: amaranth simulates whole fabrics: expected --sim verilator or icarus",
        ),
        ([STAR, "--fail", "H1"], "--fail H1: expected NODE[PORT]@CYCLE or HOST@CYCLE"),
        ([STAR, "--fail", "H1@soon"], "--fail H1@soon: expected NODE[PORT]@CYCLE or HOST@CYCLE"),
        ([STAR, "--fail", "SW1[8]@5000"], "--fail SW1[8]@5000: SW1[8] has no link"),
        ([STAR, "--fail", "H1@10"], "--fail H1@10: cycle 10: expected 1000 or later"),
        ([STAR, "--discover", "no/where"], "no/where: cannot be written: No such file or directory"),
    ],
)
def test_bad_use_is_one_line(capsys, arguments, said):
    assert one_line_error(capsys, *arguments) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Switch 2 "S"\n[1] "H"[1]\n', '2: "S"[1] is linked to unknown node "H"'),
        ('Switch 2 "S"\n[1] "S"[2]\n', '2: "S"[1] is a link to nowhere: "S"[2] has no line that leads back'),
        ('Switch 2 "S"\nSwitch 2 "S"\n', '2: name "S" is used twice: line 1 has it already'),
        ('Ca 1 "H"\n', '1: "H" has no link: expected one'),
        ("Switch\n", '1: malformed line \'Switch\': expected Switch|Ca PORTS "NAME" or [PORT] "NAME"[PORT]'),
    ],
)
def test_a_bad_topology_is_one_line_with_its_place(capsys, text, said):
    Path("bad.net").write_text(text)
    assert one_line_error(capsys, "bad.net") == f"bad.net:{said}"


def test_a_topology_without_hosts_has_no_place_for_a_subnet_manager(capsys):
    Path("bare.net").write_text('Switch 2 "S"\n')
    assert (
        one_line_error(capsys, "bare.net") == "the topology has no host: expected one for the Subnet Manager to run at"
    )


def test_a_bad_guid2lid_file_is_one_line_with_its_place(capsys):
    Path("guid2lid").write_text("\n0x10 5\n")
    assert one_line_error(capsys, STAR, "--guid2lid", "guid2lid") == "guid2lid:2: '0x10 5': expected 0xGUID 0xLID 0xLID"
