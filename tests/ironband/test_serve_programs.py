"""`ironband serve`: the real OpenSM and infiniband-diags manage a simulated fabric."""

import json
import re
from pathlib import Path

import pytest

from tests.ironband.served import TELL, TWO_SWITCHES, large_fat_tree, needs_programs, scripted

ROOT = Path(__file__).parents[2]
LID = "cat /sys/class/infiniband/rxe_ironband0/ports/1/lid"
SECOND_LID = "cat /sys/class/infiniband/rxe_ironband0/ports/2/lid"


def _retrained(enabled: int) -> str:
    """A port of a link between switches enables widths, and is started anew until OpenSM has it Active again."""
    port = "-D 0,1 7"
    active = f'[ "$(ibportstate {port} query | grep -c "LinkState:.*Active")" = 2 ]'
    return f"ibportstate {port} width {enabled}; ibportstate {port} reset; wait_until '{active}'; " + (
        f"ibportstate {port} query; iblinkinfo"
    )


ASKED = {
    "before": "ibstat",
    "opensm": "opensm -o -d 2 -D 0x43 -f opensm.log; cp $OSM_TMP_DIR/opensm-lfts.dump .",
    "after": "ibstat",
    "ibroute": "dump_fts",
    "far_lid": f"IRONBAND_HOST=H4 {LID}",
    "daemon": "opensm -B -d 2 -f daemon.log; wait_until 'grep -q UP daemon.log'",
    "ibnetdiscover": "ibnetdiscover",
    "ibswitches": "ibswitches",
    "ibhosts": "ibhosts",
    "ibnodes": "ibnodes",
    "iblinkinfo": "iblinkinfo",
    "ibtracert": f"ibtracert $({LID}) $(IRONBAND_HOST=H4 {LID})",
    "smpquery": "smpquery nodedesc -D 0,1; smpquery portinfo -D 0,1 7; smpquery portinfo -D 0,1 0",
    "perfquery": f"perfquery -x $(IRONBAND_HOST=H4 {LID}) 1",
    "sminfo": "sminfo; IRONBAND_HOST=H4 sminfo; sminfo -D 0",
    "ibportstate": "ibportstate -D 0,1 7 query",
    "ibqueryerrors": "ibqueryerrors",
    # OpenSM has a minute to answer: saquery's second is one by the clock, however busy the processors are.
    "saquery": "IRONBAND_HOST=H4 saquery -t 60000 | grep -c NodeDescription; saquery -t 60000 -P 2 -p | grep -c dlid",
    "ibping": f"IRONBAND_HOST=H4 ibping -S & far=$(IRONBAND_HOST=H4 {LID}); "
    "wait_until 'ibping -c 1 $far | tee ping | grep -q \" 1 received\"'; cat ping; kill $!",
    "ibstatus": "ibstatus",
    "second": f"smpquery -P 2 nodeinfo -D 0,2; smpquery -P 2 portinfo -D 0 2; perfquery -P 2 -x $({SECOND_LID}) 2",
    "other": f"smpquery -P 2 portinfo -D 0 1; perfquery $({SECOND_LID}) 1",
    "again": "ibnetdiscover",
    "reset": f"up=$(grep -c UP daemon.log); {TELL} reset H4; wait_until '[ $(grep -c UP daemon.log) -gt $up ]'; "
    "IRONBAND_HOST=H4 ibstat",
    "narrow": _retrained(1),
    "wide": _retrained(3),
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(["--rtl", "none"], id="model"),
        # `test_serve_enforcement` has OpenSM on RTL each time.
        pytest.param(["--rtl", "all"], id="rtl", marks=(pytest.mark.slow, pytest.mark.deep)),
        # That a mixed fabric does the same, tests/cosim/engines/test_mixed.py shows on each run.
        pytest.param(["--rtl", "SW1,H2"], id="mixed", marks=(pytest.mark.slow, pytest.mark.deep)),
    ],
)
def said(request, tmp_path_factory):
    """What the programs say in one fabric, one after the other."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "two.net").write_text(TWO_SWITCHES)
    answers = scripted(folder, request.param, "two.net", ASKED)
    return answers | {"folder": str(folder)}


@needs_programs
class TestPrograms:
    def test_opensm_brings_the_subnet_up_without_an_error(self, said):
        log = (Path(said["folder"]) / "opensm.log").read_text()
        assert "SUBNET UP" in log
        assert " ERR " not in log
        assert "status" not in said["opensm"]

    def test_ibstat_shows_the_port_before_and_after(self, said):
        assert "State: Initializing" in said["before"]
        assert "Base lid: 0\n" in said["before"]
        assert "State: Active" in said["after"]
        assert "Physical state: LinkUp" in said["after"]
        assert re.search(r"Base lid: [1-9]", said["after"])

    def test_switches_hold_the_tables_that_opensm_dumped(self, said):
        def routes(text: str) -> set[tuple[str, str, str]]:
            found, guid = set(), ""
            for line in text.splitlines():
                if switch := re.search(r"guid (0x[0-9a-f]+)", line):
                    guid = switch[1]
                if entry := re.match(r"(0x[0-9a-f]{4}) (\d+)", line):
                    found.add((guid, *entry.groups()))
            return found

        dumped = routes((Path(said["folder"]) / "opensm-lfts.dump").read_text())
        assert len(dumped) == 12
        assert routes(said["ibroute"]) == dumped

    def test_each_port_of_an_adapter_is_known_by_its_own_guid_and_lid(self, said):
        assert re.findall(r"Number of ports: (\d)", said["after"]) == ["2"]
        lids = re.findall(r"Base lid: (\d+)", said["after"])
        assert len(lids) == len(set(lids) - {"0"}) == 2
        assert re.findall(r"Port GUID: 0x0*(\w+)", said["after"]) == ["100001", "100002"]
        assert said["after"].count("State: Active") == 2
        (record,) = re.findall(r'^Ca\t2 "H-0000000000100000".*\n((?:\[.*\n)+)', said["ibnetdiscover"], re.M)
        ends = re.findall(r'^\[(\d)\]\((\w+)\) \t"(.*)"\[\d\]\t\t# lid (\d+)', record, re.M)
        assert ends == [
            ("1", "100001", "S-0000000000200000", lids[0]),
            ("2", "100002", "S-0000000000200001", lids[1]),
        ]

    def test_a_program_at_the_second_port_leaves_by_that_and_asks_about_that(self, said):
        assert "status" not in said["second"]
        assert re.findall(r"^Guid:\.+0x0*(\w+)", said["second"], re.M) == ["200001"]
        assert re.findall(r"^(?:LocalPort|PortSelect):\.+(\d)", said["second"], re.M) == ["1", "2", "2"]
        assert re.search(r"^LinkState:\.+Active", said["second"], re.M)
        assert re.search(r"PortXmitPkts:\.+[1-9]", said["second"])

    def test_the_agent_of_a_port_answers_for_no_other_port(self, said):
        assert "LinkState" not in said["other"]
        assert "PortXmitPkts" not in said["other"]

    def test_all_nodes_are_listed(self, said):
        assert {line.split('"')[1] for line in said["ibswitches"].splitlines()} == {"SW1", "SW2"}
        assert {line.split('"')[1] for line in said["ibhosts"].splitlines()} == {"H1", "H2", "H4"}
        assert len(said["ibnodes"].splitlines()) == 5

    def test_all_links_are_active(self, said):
        assert said["iblinkinfo"].count("Active/  LinkUp") == 12

    def test_what_was_discovered_does_not_change(self, said):
        def nodes(text: str) -> list[str]:
            return [line for line in text.splitlines() if not line.startswith("#")]

        assert nodes(said["ibnetdiscover"]) == nodes(said["again"])
        assert len(re.findall(r"^(?:Switch|Ca)\t", said["ibnetdiscover"], re.M)) == 5

    def test_a_route_is_traced(self, said):
        assert [line.split('"')[1] for line in said["ibtracert"].splitlines()] == ["H1", "SW1", "SW2", "H4", "H4"]

    def test_an_agent_answers_by_a_directed_route(self, said):
        assert "SW1" in said["smpquery"]
        assert len(re.findall(r"LinkState:\.+Active", said["smpquery"])) == 2

    def test_port_0_has_a_width_that_tools_know(self, said):
        assert len(re.findall(r"LinkWidthActive:\.+4X", said["smpquery"])) == 2
        assert "undefined" not in said["smpquery"]

    def test_counters_are_read_in_band(self, said):
        assert re.search(r"PortXmitPkts:\.+[1-9]", said["perfquery"])

    def test_the_subnet_manager_answers_near_and_far_and_its_own_host(self, said):
        assert said["sminfo"].count("SMINFO_MASTER") == 3

    def test_a_port_and_its_peer_are_told(self, said):
        assert re.search(r"LinkState:\.+Active", said["ibportstate"])
        assert "Peer PortInfo" in said["ibportstate"]

    def test_error_free_links_have_no_errors(self, said):
        assert "5 nodes checked, 0 bad nodes found" in said["ibqueryerrors"]

    def test_the_sa_answers_in_several_segments(self, said):
        nodes, paths = map(int, said["saquery"].split())
        assert nodes == 6
        assert paths >= 4 * 4

    def test_two_programs_ping_each_other(self, said):
        assert "1 packets transmitted, 1 received" in said["ibping"]

    def test_opensm_hears_of_a_host_that_was_reset_and_brings_it_up_anew(self, said):
        assert said["reset"].startswith("H4: reset, which takes ")
        assert "State: Active" in said["reset"]
        assert f"Base lid: {int(said['far_lid'], 16)}\n" in said["reset"]

    @pytest.mark.parametrize(("link", "width"), [("narrow", "1X"), ("wide", "4X")])
    def test_a_link_trains_anew_with_the_width_that_is_enabled(self, said, link, width):
        assert re.findall(r"LinkWidthActive:\.+(\w+)", said[link])[-2:] == [width] * 2
        assert len(re.findall(r"\( 1X .*Active/  LinkUp\)", said[link])) == (2 if width == "1X" else 0)
        assert len(re.findall(r"\( +[14]X .*Active/  LinkUp\)", said[link])) == 12

    def test_scripts_find_the_port_in_sysfs(self, said):
        assert re.search(r"state:\s+4: ACTIVE", said["ibstatus"])
        assert re.search(r"rate:\s+10 Gb/sec \(4X\)", said["ibstatus"])


@needs_programs
def test_mads_counted_at_the_door_are_those_on_the_first_link(tmp_path):
    lines = {"opensm": "opensm -o -d 2 -f opensm.log", "counted": f"{TELL} counters H1"}
    answers = scripted(tmp_path, ["--json", "results"], "star", lines)
    results = json.loads((tmp_path / "results").read_text())
    (counted,) = re.findall(r"xmit_pkts (\d+)", answers["counted"])
    assert results["mads_sent"]["H1"] == int(counted)
    assert results["time_outs"] == 0


@needs_programs
def test_what_was_discovered_can_be_served_and_is_discovered_again(tmp_path):
    (tmp_path / "two.net").write_text(TWO_SWITCHES)
    discover = {"opensm": "opensm -o -d 2 -f opensm.log", "found": "ibnetdiscover"}
    first = scripted(tmp_path, [], "two.net", discover)["found"]
    (tmp_path / "found.topo").write_text(first)
    second = scripted(tmp_path, [], "found.topo", discover)["found"]

    def ends(text: str) -> list[str]:
        return sorted(
            re.sub(r"lid \d+", "", line) for line in text.splitlines() if line.startswith(("[", "Ca", "Switch"))
        )

    assert ends(first) == ends(second)


@needs_programs
@pytest.mark.parametrize("engine", ["updn", "ftree", "minhop"])
def test_opensm_routes_by_any_of_its_engines(tmp_path, engine):
    lines = {"opensm": f"opensm -o -d 2 -R {engine} -f opensm.log", "links": "iblinkinfo | grep -c Active"}
    scripted(tmp_path, [], "fat_tree", lines)
    log = (tmp_path / "opensm.log").read_text()
    assert "SUBNET UP" in log
    assert " ERR " not in log


@needs_programs
def test_a_ring_of_two_vls_is_routed_in_layers_and_one_of_one_vl_is_not(tmp_path):
    layered = {}
    for vls in ("1", "2"):
        scripted(
            tmp_path, ["--vls", vls], "ring_4", {"opensm": "rm -f opensm.log; opensm -o -d 2 -R lash -f opensm.log"}
        )
        log = (tmp_path / "opensm.log").read_text()
        assert "SUBNET UP" in log
        layered[vls] = "lash tables configured on all switches" in log
    assert layered == {"1": False, "2": True}


@needs_programs
def test_hosts_have_as_many_lids_as_opensm_gives_them(tmp_path):
    lines = {"opensm": "opensm -o -d 2 -l 7 -f opensm.log", "lids": "ibaddr -L"}
    answers = scripted(tmp_path, [], "fat_tree", lines)
    log = (tmp_path / "opensm.log").read_text()
    assert "SUBNET UP" in log
    assert " ERR " not in log
    assert answers["lids"] == "LID start 128 end 255\n"


@needs_programs
@pytest.mark.slow
@pytest.mark.deep
def test_a_fat_tree_of_216_hosts_comes_up_and_tells_a_far_host_all_its_paths(tmp_path):
    (tmp_path / "large.net").write_text(large_fat_tree())
    lines = {
        "opensm": "opensm -B -d 2 -f opensm.log",
        "up": "wait_until 'grep -q UP opensm.log'",
        "nodes": "IRONBAND_HOST=H11_17 saquery | grep -c NodeDescription",
        "paths": "IRONBAND_HOST=H11_17 saquery -p | grep -c dlid",
    }
    answers = scripted(tmp_path, [], "large.net", lines)
    assert "SUBNET UP" in (tmp_path / "opensm.log").read_text()
    assert answers["nodes"] == "234\n"
    assert int(answers["paths"]) == 234 * 234


@needs_programs
def test_a_cut_link_is_heard_of_and_routed_around(tmp_path):
    (tmp_path / "two.net").write_text(TWO_SWITCHES)
    up = "wait_until '[ $(grep -c UP opensm.log) -ge {} ]'"
    lines = {
        "opensm": f"opensm -B -d 2 -f opensm.log; {up.format(1)}",
        "before": f"ibtracert $({LID}) $(IRONBAND_HOST=H4 {LID})",
        "cut": f"{TELL} cut 'SW1[7]'; {TELL} flow H1 'H1[2]'; {TELL} stop H1 'H1[2]'; {up.format(2)}",
        "after": f"ibtracert $({LID}) $(IRONBAND_HOST=H4 {LID}); iblinkinfo",
    }
    answers = scripted(tmp_path, ["--link-down-timeout", "20000"], "two.net", lines)
    log = (tmp_path / "opensm.log").read_text()
    assert "num:128 (Link state change)" in log
    assert "[8] -> switch port" in answers["after"]
    assert answers["after"].count("Active/  LinkUp") == 10


@needs_programs
def test_a_second_opensm_stands_by_and_takes_over(tmp_path):
    wait = "wait_until 'grep -q {}'"
    opensm = "opensm -F conf -d 2"
    lines = {
        "conf": "printf 'sminfo_polling_timeout 300\\npolling_retry_number 2\\n' > conf",
        "first": f"{opensm} -p 5 -f first.log & echo $! > pid; {wait.format('SUBNET.UP first.log')}",
        "second": f"IRONBAND_HOST=H2 {opensm} -p 3 -B -f second.log; {wait.format('STANDBY second.log')}",
        "kill": f"kill -9 $(cat pid); {wait.format('SUBNET.UP second.log')}",
        "sminfo": "sminfo",
    }
    answers = scripted(tmp_path, [], "star", lines)
    log = (tmp_path / "second.log").read_text()
    assert log.index("Entering STANDBY") < log.index("Entering MASTER") < log.index("SUBNET UP")
    assert "SMINFO_MASTER" in answers["sminfo"]


@needs_programs
def test_nobody_answers_where_nobody_is_and_that_is_told_at_once(tmp_path):
    answers = scripted(tmp_path, [], "star", {"asked": "smpquery -t 100000 nodeinfo -D 0,1,5"})
    assert "status" in answers["asked"]
    assert re.search(r"H1\[1\]: nothing can answer Get\(NodeInfo\), directed route 1,5 any more", answers["all"])


@needs_programs
def test_programs_that_die_leave_the_others_served(tmp_path):
    kill = "smpquery -t 50000 portinfo -D 0,1 1 >/dev/null & sleep 0.0$((RANDOM % 5)); kill -9 $! 2>/dev/null; "
    lines = {
        "opensm": "opensm -B -d 2 -f opensm.log; wait_until 'grep -q UP opensm.log'",
        "dying": f"bash -c 'for i in $(seq 20); do {kill} done'; ibnetdiscover >/dev/null & kill -9 $!",
        "alive": "iblinkinfo | grep -c Active; sminfo",
    }
    answers = scripted(tmp_path, [], "star", lines)
    assert answers["alive"].startswith("4\n")
    assert "SMINFO_MASTER" in answers["alive"]
