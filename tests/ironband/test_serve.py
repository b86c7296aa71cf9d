"""`ironband serve`: the real OpenSM and infiniband-diags manage a simulated fabric."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cosim.topology.subnet_differences import differences
from cosim.topology.topology_file import packaged_topologies, parse_topology
from cosim.trace.compare import Comparison, Difference
from ironband import main
from tests.cosim.topology.ibsim import discovered_by_ibsim, needs_ibsim
from tests.ironband.command import COMMAND, one_line_error
from tests.ironband.served import TELL, TWO_SWITCHES, large_fat_tree, needs_programs, scripted, served
from wire.trace import Kind, Record

ROOT = Path(__file__).parents[2]
LID = "cat /sys/class/infiniband/ironband0/ports/1/lid"
SECOND_LID = "cat /sys/class/infiniband/ironband0/ports/2/lid"

ASKED = {
    "before": "ibstat",
    "opensm": "opensm -o -d 2 -D 0x43 -f opensm.log; cp $OSM_TMP_DIR/opensm-lfts.dump .",
    "after": "ibstat",
    "ibroute": "dump_fts",
    "far_lid": f"IRONBAND_HOST=H4 {LID}",
    "daemon": "opensm -B -d 2 -f daemon.log; for i in $(seq 300); do grep -q UP daemon.log && break; sleep 0.1; done",
    "ibnetdiscover": "ibnetdiscover",
    "ibswitches": "ibswitches",
    "ibhosts": "ibhosts",
    "ibnodes": "ibnodes",
    "iblinkinfo": "iblinkinfo",
    "ibtracert": f"ibtracert $({LID}) $(IRONBAND_HOST=H4 {LID})",
    "smpquery": "smpquery nodedesc -D 0,1; smpquery portinfo -D 0,1 7; smpquery portinfo -D 0,1 0",
    "perfquery": f"perfquery -x $(IRONBAND_HOST=H4 {LID}) 1",
    "sminfo": "sminfo; IRONBAND_HOST=H4 sminfo",
    "ibportstate": "ibportstate -D 0,1 7 query",
    "ibqueryerrors": "ibqueryerrors",
    "saquery": "IRONBAND_HOST=H4 saquery | grep -c NodeDescription; saquery -P 2 -p | grep -c dlid",
    "ibping": f"IRONBAND_HOST=H4 ibping -S & sleep 0.3; ibping -c 1 $(IRONBAND_HOST=H4 {LID}); kill $!",
    "ibstatus": "ibstatus",
    "second": f"smpquery -P 2 nodeinfo -D 0,2; smpquery -P 2 portinfo -D 0 2; perfquery -P 2 -x $({SECOND_LID}) 2",
    "other": f"smpquery -P 2 portinfo -D 0 1; perfquery $({SECOND_LID}) 1",
    "again": "ibnetdiscover",
    "reset": f"{TELL} reset H4; for i in $(seq 300); do [ $(grep -c UP daemon.log) -gt 1 ] && break; sleep 0.1; done; "
    "IRONBAND_HOST=H4 ibstat; grep UP daemon.log",
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(["--rtl", "none"], id="model"),
        pytest.param(["--rtl", "all"], id="rtl", marks=pytest.mark.slow),
        pytest.param(["--rtl", "SW1,H2"], id="mixed", marks=pytest.mark.slow),
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

    def test_the_subnet_manager_answers_near_and_far(self, said):
        assert said["sminfo"].count("SMINFO_MASTER") == 2

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
        assert said["reset"].count("SUBNET UP") >= 2
        assert "State: Active" in said["reset"]
        assert f"Base lid: {int(said['far_lid'], 16)}\n" in said["reset"]

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
def test_hosts_have_as_many_lids_as_opensm_gives_them(tmp_path):
    lines = {"opensm": "opensm -o -d 2 -l 7 -f opensm.log", "lids": "ibaddr -L"}
    answers = scripted(tmp_path, [], "fat_tree", lines)
    log = (tmp_path / "opensm.log").read_text()
    assert "SUBNET UP" in log
    assert " ERR " not in log
    assert answers["lids"] == "LID start 128 end 255\n"


@needs_programs
@pytest.mark.slow
def test_a_fat_tree_of_216_hosts_comes_up_and_tells_a_far_host_all_its_paths(tmp_path):
    (tmp_path / "large.net").write_text(large_fat_tree())
    lines = {
        "opensm": "opensm -B -d 2 -f opensm.log",
        "up": "for i in $(seq 900); do grep -q UP opensm.log && break; sleep 0.2; done",
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
    up = "for i in $(seq 50); do [ $(grep -c 'SUBNET UP' opensm.log) -ge {} ] && break; sleep 0.2; done"
    lines = {
        "opensm": f"opensm -B -d 2 -f opensm.log; {up.format(1)}",
        "before": f"ibtracert $({LID}) $(IRONBAND_HOST=H4 {LID})",
        "cut": f"{TELL} cut 'SW1[7]'; {TELL} flow H1 'H1[2]'; {TELL} stop H1 'H1[2]'; {up.format(2)}",
        "after": f"ibtracert $({LID}) $(IRONBAND_HOST=H4 {LID}); iblinkinfo",
    }
    answers = scripted(tmp_path, ["--link-down-timeout", "20000"], "two.net", lines)
    log = (tmp_path / "opensm.log").read_text()
    assert "num:128 (Link state change)" in log
    assert log.count("SUBNET UP") == 2
    assert "[8] -> switch port" in answers["after"]
    assert answers["after"].count("Active/  LinkUp") == 10


@needs_programs
def test_a_second_opensm_stands_by_and_takes_over(tmp_path):
    wait = "for i in $(seq 100); do grep -q {} && break; sleep 0.2; done"
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
        "opensm": "opensm -B -d 2 -f opensm.log; sleep 1",
        "dying": f"bash -c 'for i in $(seq 20); do {kill} done'; ibnetdiscover >/dev/null & kill -9 $!",
        "alive": "iblinkinfo | grep -c Active; sminfo",
    }
    answers = scripted(tmp_path, [], "star", lines)
    assert answers["alive"].startswith("4\n")
    assert "SMINFO_MASTER" in answers["alive"]


# Bad use.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["star", "--", "no-such-program"], "no-such-program: no such program"),
        (["star", "--host", "H9"], "--host H9: no such node; there are SW1, H1, H2"),
        (["star", "--host", "SW1"], "--host SW1: is a switch, expected a host"),
        (["star", "--rtl", "SW7"], "--rtl SW7: no such node; there are SW1, H1, H2"),
        (["none.net"], "none.net: No such file or directory"),
        (["star", "--at", "full"], "--at full: holds something else: expected a directory for a server alone"),
        (["star", "--at", "long" * 30], "--at .*: [0-9]+ bytes: expected a name of at most 90"),
    ],
)
def test_bad_use_is_told_in_a_line(capsys, arguments, says):
    Path("full").mkdir()
    Path("full/file").touch()
    assert re.fullmatch(says, one_line_error(capsys, "serve", *arguments))


def test_too_long_a_name_for_temporary_files_is_told_and_leaves_nothing(tmp_path):
    place = tmp_path / ("long" * 25)
    place.mkdir()
    ended = served("star", "--", "true", cwd=tmp_path, environment={"TMPDIR": str(place)})
    assert re.fullmatch(f"ironband: TMPDIR {place}: [0-9]+ bytes: expected a name of at most 90\n", ended.stderr)
    assert (ended.returncode, list(place.iterdir())) == (2, [])


def test_a_build_in_a_directory_with_a_space_is_preloaded_all_the_same(tmp_path):
    built = {"IRONBAND_SIM_BUILD": str(tmp_path / "my projects")}
    script = "cat /sys/class/infiniband_mad/abi_version"
    ended = served("star", "--", "sh", "-c", script, cwd=tmp_path, environment=built)
    assert (ended.stdout, ended.stderr) == ("5\n", "")
    refused = served("star", "--at", "a b", "--", "true", cwd=tmp_path, environment=built)
    assert re.fullmatch("ironband: .*/a b/.*: expected a name without spaces and colons\n", refused.stderr)
    assert (refused.returncode, (tmp_path / "a b").exists()) == (2, False)


def test_another_terminal_keeps_its_own_programs_and_what_it_preloads(tmp_path):
    with Server("star", "--at", "place", cwd=tmp_path):
        _wait_for(lambda: (tmp_path / "place" / "env").exists())
        told = subprocess.run(
            ["/bin/sh", "-c", ". place/env; echo $PATH; echo $LD_PRELOAD"],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/its/own", "LD_PRELOAD": "/its/own.so"},
            capture_output=True,
            text=True,
        )
    path, preloaded = told.stdout.splitlines()
    assert path == "/usr/bin:/its/own:/usr/sbin:/sbin"
    assert preloaded.endswith("libironband-shim.so:/its/own.so")


def test_a_directory_in_use_is_refused_and_left_alone(tmp_path):
    with Server("star", "--at", "place", cwd=tmp_path) as server:
        second = served("star", "--at", "place", "--", "true", cwd=tmp_path)
        assert (second.returncode, second.stderr) == (2, "ironband: --at place: a server is running there\n")
        assert (tmp_path / "place" / "socket").exists()
        assert server.poll() is None


def test_a_killed_servers_directory_is_taken_over(tmp_path):
    with Server("star", "--at", "place", cwd=tmp_path) as server:
        server.kill()
        server.wait()
    assert (tmp_path / "place" / "socket").exists()
    assert served("star", "--at", "place", "--", "true", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "place").exists()


def test_a_server_that_dies_ends_its_devices(tmp_path):
    program = """
from tests.cosim.doors.umad import *
device = opened()
agent = register(device)
Path("open").touch()
poll = select.poll()
poll.register(device, select.POLLIN)
assert poll.poll(30_000)
fails(errno.EIO, os.read, device, 320)
fails(errno.ENODEV, send, device, agent, directed((1,), NODE_INFO, 1))
fails(errno.ENODEV, opened)
"""
    with Server("star", "--at", "place", cwd=tmp_path) as server:
        run = f". place/env; exec {sys.executable} program.py"
        (tmp_path / "program.py").write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}")
        client = subprocess.Popen(["sh", "-c", run], cwd=tmp_path)
        _wait_for(lambda: (tmp_path / "open").exists())
        server.kill()
        assert client.wait(30) == 0


def test_a_command_ends_the_serving_with_its_status(tmp_path):
    assert served("star", "--", "sh", "-c", "exit 7", cwd=tmp_path).returncode == 7
    assert served("star", "--", "sh", "-c", "kill -9 $$", cwd=tmp_path).returncode == 128 + 9


@needs_programs
@needs_ibsim
def test_programs_see_the_fabric_that_they_see_in_ibsim(tmp_path):
    (tmp_path / "pod.net").write_text('Switch 4 "S"\n[1] "H"\n@[2] "up"\n\nCa 1 "H"\n[1] "S"\n\n')
    file = tmp_path / "all.net"
    file.write_text(
        'module="A"\ninclude "pod.net"\nmodule="B"\ninclude "pod.net"\nmodule=""\n'
        'Switch 4 "Top" # "top of pods"\n[1] "A@up"\n[2] "B@up"\n\ndo link "A#S"[4] "B#S"[4]\n'
    )
    served_text = scripted(tmp_path, [], "all.net", {"seen": "ibnetdiscover"})["seen"]
    seen, judged = (
        parse_topology(text, "discovered").subnet for text in (served_text, discovered_by_ibsim(file, tmp_path))
    )
    assert len(seen.links) == 5
    assert differences(judged, seen, seen.links[0].a) == []


@needs_programs
def test_a_topology_that_changes_under_its_server_is_told_once(tmp_path):
    star = packaged_topologies()["star"].read_text()
    (tmp_path / "part.net").write_text(star)
    (tmp_path / "all.net").write_text('include "part.net"\n')
    ask = "smpquery nodeinfo -D 0"
    script = f"{ask}; {ask}; echo >> part.net; {ask}; {ask}; rm all.net; {ask}"
    ended = served("all.net", "--", "sh", "-c", f"({script}) > asked", cwd=tmp_path)
    assert (tmp_path / "asked").read_text().count("NodeType") == 5
    assert [line.split(": ", 1)[1] for line in ended.stderr.splitlines()] == [
        "part.net has changed; what is served is what it was at the start",
        "all.net is gone; what is served is what it was at the start",
    ]


def test_rates_that_links_do_not_have_are_told(tmp_path):
    (tmp_path / "fast.net").write_text(
        'Ca 1 "A"\n[1] "B" # lid 0 lmc 0 "B" lid 0 12xQDR\nCa 1 "B"\n[1] "A" # lid 0 lmc 0 "A" lid 0 12xQDR\n'
    )
    ended = served("fast.net", "--", "true", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "links of the file: 1 of 12xQDR (here 4xSDR)\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_server_leaves_nothing(tmp_path, number):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    script = "sleep 1000 & echo $! > child; echo $$ > parent; wait"
    process = subprocess.Popen([*COMMAND, "serve", "star", "--", "sh", "-c", script], cwd=tmp_path, env=environment)
    _wait_for(lambda: (tmp_path / "parent").exists() and (tmp_path / "parent").read_text())
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    for name in ("child", "parent"):
        assert not Path(f"/proc/{(tmp_path / name).read_text().strip()}").exists()
    assert {entry.name for entry in tmp_path.iterdir()} == {"child", "parent"}


def test_a_difference_between_rtl_and_model_ends_the_serving_with_its_report(capsys, monkeypatch):
    record = Record(1, 0x101, Kind.ROW)
    comparison = Comparison(0, -1, Difference(1, 0x101, Kind.ROW, None, record, (), ()))
    monkeypatch.setattr("ironband.serve_session.serve_fabric", lambda *task: (comparison, 5))
    assert main(["serve", "star", "--", "true"]) == 1
    assert "first difference: cycle 1, H1[1]" in capsys.readouterr().out


def test_garbage_at_the_socket_is_told_and_survived(tmp_path):
    with Server("star", "--at", "place", cwd=tmp_path) as server:
        for message in (b"x", bytes(16), bytes(range(200)), b"\xff" * 5000):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.connect(str(tmp_path / "place" / "socket"))
                connection.send(message)
                assert connection.recv(10) == b""
        ends = socket.socketpair()
        with ends[0], ends[1], socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(str(tmp_path / "place" / "socket"))
            socket.send_fds(connection, [b"\x01\x00\x00\x00" + b"\xff" * 12], [ends[1].fileno()])
            assert connection.recv(10) == b""
        told = _tell(tmp_path, "time")
        assert told.returncode == 0
        assert _tell(tmp_path, "quit").stdout == "ends\n"
        output, _errors = server.communicate(timeout=30)
    assert output.count("what it sent is no request") == 5
    assert server.returncode == 0


# Hands in the laboratory.


def test_lines_do_what_they_say_or_are_refused(tmp_path):
    with Server("star", "--at", "place", cwd=tmp_path):
        for line, says in (
            ("cut SW1[2]", "H2[1]-SW1[2]: cut"),
            ("restore H2", "H2[1]-SW1[2]: restored"),
            ("errors H1 bit_flip 5000", "H1: a bit_flip in what it sends, once in 5,000 cycles on the average"),
            ("errors H1 bit_flip 0", "H1: sends without bit_flip"),
            ("flow H1 H2 0.5 512", "H1 to H2: 512 bytes, 0.5 of the link, SL 0"),
            ("stop H1 H2", "H1 to H2: stopped after 0 packets"),
            ("counters SW1[5]", "SW1[5]: all 0"),
            ("reset H2", "H2: reset, which takes 2,590 cycles"),
        ):
            told = _tell(tmp_path, *line.split())
            assert (told.stdout, told.stderr, told.returncode) == (f"{says}\n", "", 0)
        for line, says in (
            ("dance", "'dance': expected cut PORT | restore PORT"),
            ("cut SW1", "SW1: is a switch, expected SW1[PORT]"),
            ("cut SW1[9]", "SW1[9]: expected port 1..8"),
            ("cut SW1[3]", "SW1[3]: has no link"),
            ("reset H7", "H7: no such node; there are SW1, H1, H2"),
            ("restore H1", "H1[1]-SW1[1]: is not cut"),
            ("flow H1 H3", "H3: no such host; there are H1, H2"),
            ("flow H1 H2 2", "RATE 2: expected 0.0001..1"),
            ("flow H1 H2 0.5 4096", "BYTES 4096: expected at most the smallest MTU, 2048"),
            ("errors H1 rust 9", "errors of kind 'rust': expected bit_flip"),
            ("errors H1 bit_flip 0.5", "CYCLES 0.5: expected 0, or 1000..1099511627776"),
            ("flow H1 H1", "flow H1 H1: expected two hosts"),
            ("stop H1 H2", "stop H1 H2: no such flow; there are: none"),
        ):
            told = _tell(tmp_path, *line.split())
            assert told.stderr.startswith(f"ironband: {says}")
            assert (told.stdout, told.stderr.count("\n"), told.returncode) == ("", 1, 2)


def test_standard_input_takes_the_same_lines(tmp_path):
    ended = subprocess.run(
        [*COMMAND, "serve", "star"], cwd=tmp_path, input="time\nfly\nquit\n", capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0
    *_head, now, refused, last = ended.stdout.splitlines()
    assert now.startswith("cycle ")
    assert refused.startswith("'fly': expected cut PORT")
    assert last == "ends"


def test_nobody_to_tell_is_an_error_of_a_line(capsys, monkeypatch):
    monkeypatch.delenv("IRONBAND_DIR", raising=False)
    assert "IRONBAND_DIR is not set" in one_line_error(capsys, "tell", "time")
    assert one_line_error(capsys, "tell", "--at", "nowhere", "time") == "nowhere: no server there answers"
    assert "say what?" in one_line_error(capsys, "tell", "--at", "nowhere", "")


def test_an_idle_server_spends_no_processor_time(tmp_path):
    with Server("star", "--at", "place", cwd=tmp_path) as server:
        before = _tell(tmp_path, "time").stdout, _processor_time(server)
        time.sleep(1)
        assert _processor_time(server) - before[1] < 0.1
        assert _tell(tmp_path, "time").stdout == before[0]


def _processor_time(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """A server in the background."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self._cwd = cwd
        self._process = subprocess.Popen(
            [*COMMAND, "serve", *arguments],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> subprocess.Popen[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("Here, or"):
                return self._process
        raise AssertionError("the server did not start")

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)


def _tell(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "tell", "--at", "place", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


def _wait_for(condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
