"""`ironband serve`: what it takes and refuses, and what it leaves behind."""

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
from tests.ironband.served import beside, needs_programs, scripted, served, wait_for
from wire.trace import Kind, Record

ROOT = Path(__file__).parents[2]
LID = "cat /sys/class/infiniband/rxe_ironband0/ports/1/lid"
SECOND_LID = "cat /sys/class/infiniband/rxe_ironband0/ports/2/lid"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["star", "--", "no-such-program"], "no-such-program: no such program"),
        (["star", "--at", "H9"], "--at H9: no such node; there are SW1, H1, H2"),
        (["star", "--at", "SW1"], "--at SW1: is a switch, expected a host"),
        (["star", "--rtl", "SW7"], "--rtl SW7: no such node; there are SW1, H1, H2"),
        (["none.net"], "none.net: No such file or directory"),
        (["star", "--dir", "full"], "--dir full: holds something else: expected a directory for a server alone"),
        (["star", "--dir", "long" * 30], "--dir .*: [0-9]+ bytes: expected a name of at most 90"),
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
    refused = served("star", "--dir", "a b", "--", "true", cwd=tmp_path, environment=built)
    assert re.fullmatch("ironband: .*/a b/.*: expected a name without spaces and colons\n", refused.stderr)
    assert (refused.returncode, (tmp_path / "a b").exists()) == (2, False)


def test_another_terminal_keeps_its_own_programs_and_what_it_preloads(tmp_path):
    with Server("star", "--dir", "place", cwd=tmp_path):
        wait_for(lambda: (tmp_path / "place" / "env").exists())
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
    with Server("star", "--dir", "place", cwd=tmp_path) as server:
        second = served("star", "--dir", "place", "--", "true", cwd=tmp_path)
        assert (second.returncode, second.stderr) == (2, "ironband: --dir place: a server is running there\n")
        assert (tmp_path / "place" / "socket").exists()
        assert server.poll() is None


def test_a_killed_servers_directory_is_taken_over(tmp_path):
    with Server("star", "--dir", "place", cwd=tmp_path) as server:
        server.kill()
        server.wait()
    assert (tmp_path / "place" / "socket").exists()
    assert served("star", "--dir", "place", "--", "true", cwd=tmp_path).returncode == 0
    assert not (tmp_path / "place").exists()


@pytest.mark.parametrize("unread", [False, True], ids=["at rest", "with something unread"])
def test_a_server_that_dies_ends_its_devices(tmp_path, unread):
    program = f"""
from tests.doors.umad import *
import socket, time
device = opened()
agent = register(device)
Path("open").touch()
if {unread}:
    while not Path("stopped").exists():
        time.sleep(0.01)
    socket.socket(fileno=os.dup(device)).send(b"?")
    Path("sent").touch()
poll = select.poll()
poll.register(device, select.POLLIN)
assert poll.poll(30_000)
fails(errno.EIO, os.read, device, 320)
fails(errno.ENODEV, send, device, agent, directed((1,), NODE_INFO, 1))
fails(errno.ENODEV, opened)
"""
    with Server("star", "--dir", "place", cwd=tmp_path) as server:
        run = f". place/env; exec {sys.executable} program.py"
        (tmp_path / "program.py").write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}")
        with beside(["sh", "-c", run], cwd=tmp_path) as client:
            wait_for(lambda: (tmp_path / "open").exists())
            if unread:
                server.send_signal(signal.SIGSTOP)
                (tmp_path / "stopped").touch()
                wait_for(lambda: (tmp_path / "sent").exists())
            server.kill()
            assert client.wait(300) == 0


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
    # What we ignore ourselves, as under nohup, it would ignore too.
    command = ["env", "--default-signal", *COMMAND, "serve", "star", "--", "sh", "-c", script]
    with beside(command, cwd=tmp_path, env=environment) as process:
        wait_for(lambda: (tmp_path / "parent").exists() and (tmp_path / "parent").read_text())
        process.send_signal(number)
        assert process.wait(300) == 128 + number
    for name in ("child", "parent"):
        assert not _runs((tmp_path / name).read_text().strip())
    assert {entry.name for entry in tmp_path.iterdir()} == {"child", "parent"}


def test_a_difference_between_rtl_and_model_ends_the_serving_with_its_report(capsys, monkeypatch):
    record = Record(1, 0x101, Kind.ROW)
    comparison = Comparison(0, -1, Difference(1, 0x101, Kind.ROW, None, record, (), ()))
    monkeypatch.setattr("ironband.serve_session.serve_fabric", lambda *task: (comparison, 5))
    assert main(["serve", "star", "--", "true"]) == 1
    assert "first difference: cycle 1, H1[1]" in capsys.readouterr().out


def test_garbage_at_the_socket_is_told_and_survived(tmp_path):
    with Server("star", "--dir", "place", cwd=tmp_path) as server:
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
        output, _errors = server.communicate(timeout=300)
    assert output.count("what it sent is no request") == 5
    assert server.returncode == 0


# Hands in the laboratory.


def test_lines_do_what_they_say_or_are_refused(tmp_path):
    with Server("star", "--bring-up", "none", "--dir", "place", cwd=tmp_path):
        for line, says in (
            ("cut SW1[2]", "H2[1]-SW1[2]: cut"),
            ("restore H2", "H2[1]-SW1[2]: restored"),
            ("errors H1 bit_flip 5000", "H1: a bit_flip in what it sends, once in 5,000 cycles on the average"),
            ("errors H1 bit_flip 0", "H1: sends without bit_flip"),
            ("flow H1 H2 0.5 512", "H1 to H2: 512 bytes, 0.5 of the link, SL 0"),
            ("stop H1 H2", "H1 to H2: stopped after 0 packets"),
            ("stall H2", "H2[1]: takes nothing but VL15"),
            ("release H2", "H2[1]: takes all again"),
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
            ("errors H1 bit_flip 5000.5", "CYCLES 5000.5: expected 0, or 1000..1099511627776"),
            ("flow H1 H2 0.5 512 1.5", "SL 1.5: expected a whole number 0..15"),
            ("flow H1 H2 0.5 99.9", "BYTES 99.9: expected a whole number 8..4096"),
            ("flow H1 H1", "flow H1 H1: expected two hosts"),
            ("stop H1 H2", "stop H1 H2: no such flow; there are: none"),
        ):
            told = _tell(tmp_path, *line.split())
            assert told.stderr.startswith(f"ironband: {says}")
            assert (told.stdout, told.stderr.count("\n"), told.returncode) == ("", 1, 2)


def test_standard_input_takes_the_same_lines(tmp_path):
    ended = subprocess.run(
        [*COMMAND, "serve", "star"],
        cwd=tmp_path,
        input="time\nfly\nquit\n",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0
    *_head, now, refused, last = ended.stdout.splitlines()
    assert now.startswith("cycle ")
    assert refused.startswith("'fly': expected cut PORT")
    assert last == "ends"


def test_a_line_that_does_not_end_is_dropped_and_told_once(tmp_path):
    lines = "time" + " " * 100_000 + "\ntime\n" + "x" * 5_000 + "\n" + "y" * 50_000
    ended = subprocess.run(
        [*COMMAND, "serve", "star"], cwd=tmp_path, input=f"{lines}\nquit\n", capture_output=True, text=True, timeout=300
    )
    *_head, first, now, second, third, last = ended.stdout.splitlines()
    assert now.startswith("cycle ")
    assert {first, second, third} == {"a line has more than 4096 bytes, which are dropped up to its end"}
    assert last == "ends"
    with Server("star", "--dir", "place", cwd=tmp_path):
        assert _tell(tmp_path, "x" * 5_000).stderr.startswith("ironband: a line has more than 4096 bytes")


def test_nobody_to_tell_is_an_error_of_a_line(capsys, monkeypatch):
    monkeypatch.delenv("IRONBAND_DIR", raising=False)
    assert "IRONBAND_DIR is not set" in one_line_error(capsys, "tell", "time")
    assert one_line_error(capsys, "tell", "--dir", "nowhere", "time") == "nowhere: no server there answers"
    assert "say what?" in one_line_error(capsys, "tell", "--dir", "nowhere", "")


def test_an_idle_server_spends_no_processor_time(tmp_path):
    with Server("star", "--dir", "place", cwd=tmp_path) as server:
        times = [_tell(tmp_path, "time").stdout]
        wait_for(lambda: times.append(_tell(tmp_path, "time").stdout) or times[-1] == times[-2])
        before = _processor_time(server)
        time.sleep(1)
        assert _processor_time(server) - before < 0.1
        assert _tell(tmp_path, "time").stdout == times[-1]


def _runs(process: str) -> bool:
    """Whether a process runs: it may have ended and be there until somebody asks how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


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
        self.__exit__()
        raise AssertionError("the server did not start")

    def __exit__(self, *exception: object) -> None:
        self._process.terminate()
        try:
            self._process.communicate(timeout=60)
        finally:
            self._process.kill()
            self._process.communicate()


def _tell(cwd: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "tell", "--dir", "place", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
