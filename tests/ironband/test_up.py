"""`ironband up`: what it prints, what it writes, and how it ends."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cosim.experiments.subnet_bring_up import bring_up_subnet
from cosim.topology.subnet_differences import differences
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import packaged_topologies, parse_topology, read_topology
from cosim.trace.compare import Comparison, Difference
from ironband import main, up_options
from ironband.up_options import rtl_nodes
from sm.lids import LidRange, parse_guid2lid
from sm.mad_client import MadClient
from sm.routing.up_down import RoutingError
from sm.subnet_manager import SubnetManager
from tests.files import TOPOLOGIES
from wire.trace import Kind, Record

STAR, FAT_TREE = (str(packaged_topologies()[name]) for name in ("star", "fat_tree"))
RING_5 = str(TOPOLOGIES / "ring_5.net")

TWO_PARTS = """
Switch 2 "SW1"
[1] "H1"
Switch 2 "SW2"
[1] "H2"
[2] "H3"
Ca 1 "H1"
[1] "SW1"[1]
Ca 1 "H2"
[1] "SW2"[1]
Ca 1 "H3"
[1] "SW2"[2]
"""
"""SW1 and H1 have no link to the others."""


def printed(capsys, *arguments: str) -> list[str]:
    assert main(["up", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def results(capsys, *arguments: str) -> dict:
    assert main(["up", *arguments, "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def one_line_error(capsys, *arguments: str) -> str:
    assert main(["up", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line.removeprefix("ironband: ")


def test_congestion_control_is_set_in_switches_and_in_hosts_adapters(capsys, tmp_path):
    (tmp_path / "cc.conf").write_text("congestion_control TRUE\n")
    lines = printed(capsys, STAR, "--qos", str(tmp_path / "cc.conf"))
    assert any(line.endswith("sets congestion control of 1 switch and 2 ports of adapters") for line in lines)
    assert not [line for line in lines if "without congestion control" in line]


def test_up_tells_of_the_work_then_prints_the_subnet(capsys):
    lines = printed(capsys, STAR)
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
    assert "wrote found.topo" in printed(capsys, FAT_TREE, "--discover", "found.topo")
    found, described = read_topology("found.topo"), read_topology(FAT_TREE)
    origin = next(end for end, _port in described.subnet.reachable_end_ports if end.guid == 0x100000)
    assert differences(described.subnet, found.subnet, origin) == []
    assert printed(capsys, "found.topo", "--sm", "H1")


def test_lids_are_remembered(capsys):
    Path("guid2lid").write_text("0x0000000000100003 0x0030 0x0030\n")
    printed(capsys, STAR, "--guid2lid", "guid2lid")
    kept = parse_guid2lid(Path("guid2lid").read_text(), "guid2lid")
    assert kept == {0x100001: LidRange(1, 1), 0x200000: LidRange(2, 2), 0x100003: LidRange(0x30, 0x30)}


def test_lids_beyond_the_usual_table_have_room(capsys):
    Path("guid2lid").write_text("0x0000000000100003 0xbfff 0xbfff\n")
    tables = results(capsys, STAR, "--guid2lid", "guid2lid")["forwarding_tables"]
    assert tables["0x0000000000200000"]["49151"] == 2


def test_a_link_that_fails_is_routed_around_and_hosts_that_are_gone_are_told(capsys):
    lines = printed(capsys, FAT_TREE, "--fail", "H8@400000", "--link-down-timeout", "5000")
    after = [line.split(maxsplit=2)[2] for line in lines if line[:11].strip().replace(",", "").isdigit()]
    after = after[next(i for i, text in enumerate(after) if text.startswith("trap 128")) :]
    assert 'lost CA 0x000000000010000e "H8"' in after
    assert "link H8[1] to L4[2] was lost" in after
    assert any(text.startswith("switch L4: wrote LFT blocks") for text in after)
    assert "switches, hosts, links  6, 7, 15" in lines


@pytest.mark.slow
def test_some_nodes_may_be_rtl(capsys):
    lines = printed(capsys, STAR, "--rtl", "H1,H2")
    assert lines[:-4] == printed(capsys, STAR)[:-3]
    compared, mismatches = lines[-2:]
    assert (compared.split()[:2], mismatches.split()) == (["events", "compared"], ["mismatches", "0"])
    assert results(capsys, STAR, "--rtl", "H1,H2")["rtl"] == ["H1", "H2"]


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
        *(
            ([STAR, "--fail", f"H1@{cycle}"], f"--fail H1@{cycle}: expected NODE[PORT]@CYCLE or HOST@CYCLE")
            for cycle in ("5_000", "+5000", " 5000", "\N{ARABIC-INDIC DIGIT FIVE}000", "9" * 5000, "")
        ),
        ([STAR, "--fail", "@5000"], "--fail @5000: expected NODE[PORT]@CYCLE or HOST@CYCLE"),
        ([STAR, "--fail", "SW1@5000"], "--fail SW1@5000: SW1 is a switch: expected NODE[PORT]@CYCLE"),
        ([STAR, "--fail", "H1[0]@5000"], "--fail H1[0]@5000: H1[0] has no link"),
        ([STAR, "--fail", "H1@10"], "--fail H1@10: cycle 10: expected 1000..1099511627775"),
        (
            [STAR, "--fail", "H1@1099511627776"],
            "--fail H1@1099511627776: cycle 1099511627776: expected 1000..1099511627775",
        ),
        (
            ["string"],
            "topology 'string': no such file, and Ironband comes with: fat_tree, hypercube_4, mesh_4x4, parallel, "
            "ring_4, ring_8, star, torus_4x4, tree_3",
        ),
        ([STAR, "--guid2lid", "/dev/full"], "/dev/full: is no regular file, expected a guid2lid file"),
        (["star", "--discover", STAR], f"--discover {STAR}: names the file of TOPOLOGY: expected another"),
        (
            ["star", "--guid2lid", "a", "--json", "b/../a"],
            "--json b/../a: names the file of --guid2lid: expected another",
        ),
        (
            ["star", "--discover", "a", "--guid2lid", "./a"],
            "--guid2lid a: names the file of --discover: expected another",
        ),
        ([STAR, "--partitions", "none.conf"], "none.conf: No such file or directory"),
        ([STAR, "--partitions", "b"], "b: Is a directory"),
        ([STAR, "--enforce", "in"], "--enforce in: expected --partitions FILE, which it is about"),
        ([STAR, "--discover", "no/where"], "no/where: cannot be written: No such file or directory"),
    ],
)
def test_bad_use_is_one_line(capsys, arguments, said):
    Path("b").mkdir()
    assert one_line_error(capsys, *arguments) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('Switch 2 "S"\n[1] "H"[1]\n', '2: "S"[1] is linked to unknown node "H"'),
        ('Switch 2 "S"\n[1] "S"[2]\n', '2: "S"[1] is a link to nowhere: "S"[2] has no line that leads back'),
        ('Switch 2 "S"\nSwitch 2 "S"\n', '2: name "S" is used twice: line 1 has it already'),
        ('Ca 65 "H"\n', '1: "H" cannot be built: ports 65: expected 1..64'),
        ("Switch\n", '1: malformed line \'Switch\': expected Switch|Ca|Rt PORTS "NAME" or [PORT] "NAME"[PORT]'),
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


def test_a_guid2lid_file_that_is_no_text_is_one_line_with_the_byte(capsys):
    Path("guid2lid").write_bytes(b"0x10 5 5\n\xff")
    line = one_line_error(capsys, STAR, "--guid2lid", "guid2lid")
    assert line == "guid2lid: byte 9 is not UTF-8, expected a guid2lid file"


def test_a_torus_has_credit_loops(capsys):
    assert [line for line in printed(capsys, "torus_4x4", "--vls", "2") if "credit loop" in line]


@pytest.mark.parametrize("routing", ["dor", "lash"])
def test_a_torus_has_no_credit_loop_by_two_vls(capsys, routing):
    lines = printed(capsys, "torus_4x4", "--vls", "2", "--routing", routing, "--json", "results.json")
    assert not [line for line in lines if "credit loop" in line]
    assert "data VLs of routes      2" in lines
    found = json.loads(Path("results.json").read_text())
    assert found["vls_needed"] == 2
    assert {sl for paths in found["service_levels"].values() for sl in paths.values()} == {1}


def test_routes_that_need_more_vls_than_links_have_are_refused(capsys):
    line = one_line_error(capsys, "torus_4x4", "--routing", "lash")
    assert line.startswith("routes without credit loops need 2 data VLs, and link 0x0000000000200000[1] to 0x")
    assert line.endswith(" has 1: expected more, or up/down routing, which needs 1")


def test_a_ring_is_told_to_be_no_fat_tree(capsys):
    lines = printed(capsys, "ring_4", "--routing", "fat-tree")
    assert [line for line in lines if "no fat tree, routed up/down: switches R1 and R4 are on one level" in line]


@pytest.mark.parametrize("name", packaged_topologies())
def test_topologies_that_come_with_ironband_come_up_by_name(capsys, name):
    found = results(capsys, name)
    described = read_topology(packaged_topologies()[name]).subnet
    assert (found["topology"], found["held"]) == (name, True)
    nodes = {"switches": len(found["switches"]), "hosts": len(found["hosts"]), "links": len(found["links"])}
    assert nodes == found["described"]
    assert sum(nodes.values()) == len(described.nodes) + len(described.links)


def test_a_file_goes_before_a_topology_of_its_name(capsys):
    Path("star").write_text('Ca 1 "A"\n[1] "B"\nCa 1 "B"\n[1] "A"\n')
    assert printed(capsys, "star")[0] == "star: 0 switches, 2 hosts, 1 link; the Subnet Manager is at A"


def test_help_lists_the_topologies_that_come_with_ironband(capsys):
    assert main(["up", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"Topologies that come with Ironband: {', '.join(packaged_topologies())}." in said


def test_what_the_host_is_not_connected_with_is_told(capsys):
    Path("apart.net").write_text(TWO_PARTS)
    assert printed(capsys, "apart.net")[:2] == [
        "apart.net: 2 switches, 3 hosts, 3 links; the Subnet Manager is at H1",
        "H1 is not connected with 3 of them: SW2, H2, H3",
    ]
    found = results(capsys, "apart.net", "--sm", "H3")
    assert found["described"] == {"switches": 2, "hosts": 3, "links": 3}
    assert found["out_of_reach"] == ["SW1", "H1"]


FAST = """
Switch 4 "S"
[1] "H1"[1] # "H1" lid 0 4xEDR
[2] "H2"[1] # "H2" lid 0 2xHDR
do error "S"[1] 5

Ca 1 "H1"
[1] "S"[1] # lid 0 lmc 0 "S" lid 0 4xEDR
Ca 1 "H2"
[1] "S"[2] # lid 0 lmc 0 "S" lid 0 2xHDR
"""


def test_what_the_file_has_and_the_fabric_has_not_is_told(capsys):
    Path("fast.net").write_text(FAST)
    remark = "fast.net:5: 'do error \"S\"[1] 5' is not done: of ibsim's console there is only link"
    assert printed(capsys, "fast.net")[1:3] == [
        "links of the file: 1 of 4xEDR (here 4xSDR), 1 of 2xHDR (here 1xSDR)",
        remark,
    ]
    found = results(capsys, "fast.net")
    assert found["remarks"] == [remark]
    assert [(link["in_file"], link["width"], link["speed"]) for link in found["links"]] == [
        ("4xEDR", "4X", "SDR"),
        ("2xHDR", "1X", "SDR"),
    ]


TWO_PORTS = """
Switch 4 "SW1"
[1] "H"[1]
[2] "SW2"[2]
Switch 4 "SW2"
[1] "H"[2]
[2] "SW1"[2]
[3] "K"[2]
Ca 2 "H"
[1] "SW1"[1]
[2] "SW2"[1]
Ca 2 "K"
[2] "SW2"[3]
"""


@pytest.mark.parametrize(
    ("options", "sm"), [([], "H[1]"), (["--sm", "H[2]"], "H[2]"), (["--sm", "K"], "K[2]"), (["--sm", "K[2]"], "K[2]")]
)
def test_a_subnet_manager_is_at_a_port_of_its_host_which_has_a_link_if_any_has(capsys, options, sm):
    Path("two.net").write_text(TWO_PORTS)
    found = results(capsys, "two.net", *options)
    assert (found["sm"], found["held"], found["out_of_reach"]) == (sm, True, [])
    ends = {host["name"]: [end["port"] for end in host["end_ports"]] for host in found["hosts"]}
    assert {name: sorted(ports) for name, ports in ends.items()} == {"H": [1, 2], "K": [2]}


def test_one_port_of_an_adapter_can_be_cut_off_and_the_other_stays(capsys):
    Path("two.net").write_text(TWO_PORTS)
    found = results(capsys, "two.net", "--fail", "H[2]@100000", "--link-down-timeout", "5000")
    assert (found["held"], found["failure"]["link"]) == (True, ["H[2]", "SW2[1]"])
    (left,) = [host["end_ports"] for host in found["hosts"] if host["name"] == "H"]
    assert [end["port"] for end in left] == [1]


def test_all_ports_of_an_adapter_are_rtl_if_it_is(capsys):
    fabric = fabric_of(parse_topology(TWO_PORTS, "two")).fabric
    assert rtl_nodes(fabric, "SW1,H,K[2]", "verilator") == ["SW1", "H.1", "H.2", "K.2"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sm", "H[3]"], "--sm H[3]: no such node; there are SW1, SW2, H[1], H[2], K[1], K[2]"),
        (["--sm", "H.1"], "--sm H.1: no such node; there are SW1, SW2, H[1], H[2], K[1], K[2]"),
        (["--fail", "K@100000"], "--fail K@100000: K has no link"),
    ],
)
def test_a_port_that_an_adapter_does_not_have_is_an_error_of_a_line(capsys, options, said):
    Path("two.net").write_text(TWO_PORTS)
    assert one_line_error(capsys, "two.net", *options) == said


def test_a_link_that_the_host_is_not_connected_with_cannot_be_cut(capsys):
    Path("apart.net").write_text(TWO_PARTS)
    line = one_line_error(capsys, "apart.net", "--fail", "SW2[1]@5000")
    assert line == "--fail SW2[1]@5000: H1 is not connected with SW2: expected a link in its reach"


def test_shortest_ways_around_a_ring_have_a_credit_loop_that_up_and_down_avoids(capsys):
    loops = [line for line in printed(capsys, RING_5) if " credit loop: " in line]
    assert [line.split("credit loop: ")[1] for line in loops] == ["R1[1] -> R5[1] -> R4[1] -> R3[1] -> R2[1]"]
    assert not [line for line in printed(capsys, RING_5, "--routing", "up-down") if "credit loop" in line]
    assert results(capsys, RING_5, "--routing", "up-down")["routing"] == "up-down"


@pytest.mark.parametrize("lmc", [0, 2, 7])
def test_a_host_has_two_to_the_lmc_lids_and_a_switch_one(capsys, lmc):
    found = results(capsys, "parallel", "--lmc", str(lmc))
    assert {port["lmc"] for node in found["switches"] for port in node["end_ports"]} == {0}
    ports = [port for node in found["hosts"] for port in node["end_ports"]]
    assert (found["lmc"], {port["lmc"] for port in ports}) == (lmc, {lmc})
    lids = [lid for port in ports for lid in range(port["lid"], port["lid"] + (1 << lmc))]
    assert len(set(lids)) == 4 << lmc
    for table in found["forwarding_tables"].values():
        assert {str(lid) for lid in lids} <= set(table)


def test_many_lids_of_hosts_have_room_in_the_table_above_those_of_ports_that_are_gone(capsys):
    Path("guid2lid").write_text("0x0000000000000099 0x0001 0x077d\n")
    found = results(capsys, STAR, "--lmc", "7", "--guid2lid", "guid2lid")
    assert [port["lid"] for node in found["hosts"] for port in node["end_ports"]] == [0x780, 0x800]
    assert found["forwarding_tables"]["0x0000000000200000"][str(0x87F)] == 2


def test_the_other_ports_that_would_do_are_in_the_results(capsys):
    found = results(capsys, "parallel")
    lids = {node["name"]: str(node["end_ports"][0]["lid"]) for node in found["switches"] + found["hosts"]}
    guids = {node["name"]: node["guid"] for node in found["switches"]}
    to_h3, others = (found[key][guids["SW1"]] for key in ("forwarding_tables", "backup_ports"))
    assert {to_h3[lids["H3"]], *others[lids["H3"]]} == {7, 8}
    assert lids["H1"] not in others, "H1 is at SW1 itself"


def test_routes_that_cannot_be_found_are_one_line(capsys, monkeypatch):
    def refuse(subnet, lids, previous):
        raise RoutingError("no way up and down")

    monkeypatch.setitem(up_options.ROUTING_ENGINES, "up-down", refuse)
    assert one_line_error(capsys, STAR, "--routing", "up-down") == "no way up and down"


def test_the_results_say_which_link_was_cut(capsys):
    assert results(capsys, STAR)["failure"] is None
    found = results(capsys, STAR, "--fail", "SW1[2]@200000", "--link-down-timeout", "5000")
    assert found["failure"] == {"link": ["H2[1]", "SW1[2]"], "cycle": 200_000, "timeout": 5_000}


@pytest.fixture
def differing(monkeypatch):
    """RTL differs from the model in the first record, before anything is found."""

    def differ(task, work_dir, observers, taps):
        result = bring_up_subnet(replace(task, engine="model", rtl=None), work_dir)
        record = Record(1, 0x101, Kind.ROW, 0, 0, 0)
        difference = Difference(1, 0x101, Kind.ROW, None, record, (), ())
        return replace(result, manager=SubnetManager(MadClient()), comparison=Comparison(0, -1, difference))

    monkeypatch.setattr("cosim.experiments.subnet_bring_up.bring_up_subnet", differ)


def test_a_difference_is_told_without_its_consequences(capsys, differing):
    assert main(["up", STAR, "--rtl", "H1"]) == 1
    output = capsys.readouterr().out
    assert "first difference: cycle 1, " in output
    assert "wrong: " not in output
    assert main(["up", STAR, "--rtl", "H1", "--json", "-"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["held"], found["faults"], found["mismatches"]) == (False, [], 1)


def test_a_replay_has_all_that_was_given_and_finds_the_files_as_they_were(capsys, differing):
    Path("guid2lid").write_text("0x0000000000100003 0x0030 0x0030\n")
    given = "--rtl H1 --sim icarus --sm H2 --routing up-down --vls 2 --lmc 1 --fail H1@50000 --link-down-timeout 7"
    files = "--guid2lid guid2lid --seed 3"
    assert main(["up", "star", *given.split(), *files.split(), "--discover", "found.topo"]) == 1
    assert f"replay: ironband up star {given} {files}" in capsys.readouterr().out.splitlines()
    assert Path("guid2lid").read_text() == "0x0000000000100003 0x0030 0x0030\n"
    assert not Path("found.topo").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("option", ["--discover", "--json"])
def test_a_file_that_cannot_be_written_is_named_after_the_report(capsys, option):
    assert main(["up", STAR, option, "/dev/full", "--guid2lid", "guid2lid"]) == 2
    output = capsys.readouterr()
    assert "switches, hosts, links  1, 2, 2" in output.out.splitlines()
    assert "wrote guid2lid" in output.out.splitlines()
    assert output.err == "ironband: /dev/full: cannot be written: No space left on device\n"


PARTITIONS = """
Storage=0x8010 : 0x100003=full, 0x123 ;
Spare : 0x77 ;
Compute , defmember=full : ALL_CAS ;
"""


def test_partitions_are_told_with_their_members(capsys):
    Path("partitions.conf").write_text(PARTITIONS)
    lines = printed(capsys, STAR, "--partitions", "partitions.conf")
    first = lines.index("partitions              3")
    assert lines[first + 1 : first + 4] == [
        "  0x0002 Compute        2 full",
        "  0x0010 Storage        1 full",
        "  0x7fff Default        1 full, 2 limited",
    ]
    assert "PortGUIDs of nobody     0x0000000000000123, 0x0000000000000077" in lines
    told = results(capsys, STAR, "--partitions", "partitions.conf", "--enforce", "out")
    hosts = ["0x0000000000100001", "0x0000000000100003"]
    assert told["partitions"][:2] == [
        {"p_key": "0x0002", "name": "Compute", "full": hosts, "limited": []},
        {"p_key": "0x0010", "name": "Storage", "full": hosts[1:], "limited": []},
    ]
    assert (told["enforce"], told["port_guids_of_nobody"]) == ("out", ["0x0000000000000123", "0x0000000000000077"])
    assert results(capsys, STAR)["partitions"] is None


def test_a_bad_partitions_file_is_one_line_with_its_place(capsys):
    Path("partitions.conf").write_text("\nStorage=0x10 : H1;\n")
    said = one_line_error(capsys, STAR, "--partitions", "partitions.conf")
    assert said.startswith("partitions.conf:2: PortGUID H1: expected a number, ALL, ")
    Path("partitions.conf").write_bytes(b"A=1:\xff;")
    said = one_line_error(capsys, STAR, "--partitions", "partitions.conf")
    assert said == "partitions.conf: byte 4 is not UTF-8, expected OpenSM's partitions"


def test_a_port_in_more_partitions_than_it_has_room_for_is_one_line(capsys):
    Path("partitions.conf").write_text(": 0x100003;" * 32)
    said = one_line_error(capsys, STAR, "--partitions", "partitions.conf")
    assert said == "port 0x0000000000100003 is in 33 partitions, and its P_Key table has room for 32"
