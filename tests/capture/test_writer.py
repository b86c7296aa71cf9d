"""Captures are written while a run goes: whole packets only, in formats that are told by their suffixes."""

import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capture.wire_packet import Direction, Way, WirePacket
from capture.writer import capture_writer
from tests.capture.reading import read_packets, read_with_directions
from tests.capture.samples import DIRECTIONS, FORMATS, damaged, good_packets
from toolchain.atomic_files import OutputError
from toolchain.errors import UserError
from wire.trace import Delimiter

each_format = pytest.mark.parametrize("suffix", FORMATS)

FAST = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

rows = st.integers(0, 200).flatmap(lambda count: st.binary(min_size=4 * count + 2, max_size=4 * count + 2))
packets = st.builds(
    WirePacket,
    st.integers(0, 1),
    st.integers(0, 1 << 61),
    st.booleans(),
    rows.filter(lambda data: data[-1] != 0),
    st.sampled_from(Delimiter),
    way=st.none(),
    lost=st.just(0),
)


def write(path: Path, given: list[WirePacket]) -> None:
    with capture_writer(str(path), DIRECTIONS) as capture:
        for packet in given:
            capture.write(packet)


def names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


@each_format
@FAST
@given(given=st.lists(packets, min_size=1, max_size=20))
def test_what_was_written_is_read_again(suffix, tmp_path, given):
    path = tmp_path / f"any{suffix}"
    # A direction has its number by the first packet that is read.
    given[0] = given[0]._replace(direction=0)
    if suffix != ".pcapng":
        # 32 bits of seconds.
        given = [packet._replace(time_ns=packet.time_ns % (4 * 10**18)) for packet in given]
    write(path, given)
    assert read_packets(path) == given


@each_format
def test_marked_damaged_and_cut_packets_are_read_as_what_they_are(suffix, tmp_path):
    random = Random(5)
    given = [damaged(packet, number % 4, random) for number, packet in enumerate(good_packets(5, 200))]
    given[0] = given[0]._replace(direction=0)
    path = tmp_path / f"bad{suffix}"
    write(path, given)
    assert read_packets(path) == given


def test_directions_have_their_names(tmp_path):
    path = tmp_path / "named.pcapng"
    write(path, good_packets(1, 20))
    assert set(read_with_directions(path)[1]) == {"S[1] -> H2[1]", "H2[1] -> S[1]"}


@each_format
def test_a_capture_can_be_read_while_it_grows_and_gets_its_name_when_it_is_whole(suffix, tmp_path):
    path, part = tmp_path / f"run{suffix}", tmp_path / f"run{suffix}.part"
    given = [packet._replace(direction=0) for packet in good_packets(2, 30)]
    with capture_writer(str(path), DIRECTIONS) as capture:
        for packet in given[:20]:
            capture.write(packet)
        capture.flush()
        assert read_packets(part) == given[:20]
        assert not path.exists()
        for packet in given[20:]:
            capture.write(packet)
    assert read_packets(path) == given
    assert not part.exists()


@pytest.mark.parametrize("how", [KeyboardInterrupt, SystemExit, UserError])
def test_a_run_that_ends_early_leaves_a_whole_capture(how, tmp_path):
    path = tmp_path / "run.pcapng"
    given = [packet._replace(direction=0) for packet in good_packets(3, 30)]

    def run() -> None:
        with capture_writer(str(path), DIRECTIONS) as capture:
            for packet in given:
                capture.write(packet)
            raise how

    with pytest.raises(how):
        run()
    assert read_packets(path) == given
    assert names(tmp_path) == ["run.pcapng"]


ENDLESS = """
import sys
from capture.wire_packet import Direction, WirePacket
from capture.writer import capture_writer
with capture_writer(sys.argv[1], [Direction("A")]) as capture:
    capture.write(WirePacket(0, 0, False, bytes(3002)))
    capture.flush()
    print("on", flush=True)
    number = 0
    while True:
        number += 1
        capture.write(WirePacket(0, number, False, bytes(3002)))
"""


def test_an_interrupt_at_any_time_leaves_whole_packets(tmp_path):
    path = tmp_path / "endless.erf"
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "on\n"
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=30)
    found = read_packets(path)
    assert [packet.time_ns for packet in found] == list(range(len(found)))
    assert names(tmp_path) == ["endless.erf"]


@each_format
def test_a_full_disk_is_one_line_that_names_the_file_and_nothing_is_left(suffix, tmp_path):
    path = tmp_path / f"run{suffix}"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OutputError, match=rf"{path}: cannot be written: File too large"):
            write(path, good_packets(4, 2_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    assert names(tmp_path) == []


def test_a_full_device_is_one_line():
    with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left on device"):
        write(Path("/dev/full"), good_packets(4, 10))


def test_a_pipe_is_written_itself_and_a_reader_that_goes_away_ends_the_capture_alone(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heads = []

    def read() -> None:
        with pipe.open("rb") as reader:
            heads.append(reader.read(4))

    thread = threading.Thread(target=read)
    thread.start()
    with capture_writer(str(pipe), DIRECTIONS) as capture:
        thread.join()
        for packet in good_packets(4, 200):
            capture.write(packet)
            capture.flush()
        assert capture.reader_gone
    assert heads == [bytes.fromhex("0a0d0d0a")]
    assert names(tmp_path) == ["pipe"]


def test_two_runs_do_not_write_the_same_capture(tmp_path):
    path = str(tmp_path / "run.erf")
    with (
        capture_writer(path, DIRECTIONS),
        pytest.raises(OutputError, match=r"run\.erf: cannot be written: another process is writing it"),
        capture_writer(path, DIRECTIONS),
    ):
        pass
    assert names(tmp_path) == ["run.erf"]


@pytest.mark.parametrize(
    ("name", "directions", "said"),
    [
        ("run.cap", 2, "run.cap: no format of captures by its suffix, allowed .erf, .pcap, .pcapng"),
        ("run", 2, "run: no format of captures by its suffix, allowed .erf, .pcap, .pcapng"),
        (
            "run.erf",
            6,
            "run.erf: 6 directions of links, .erf can tell 4 apart: name fewer links, or take .pcapng",
        ),
        ("no/where/run.erf", 2, "no/where/run.erf: cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(name, directions, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as raised, capture_writer(name, [Direction(str(n)) for n in range(directions)]):
        pass
    assert str(raised.value) == said
    assert names(tmp_path) == []


def test_a_pcapng_file_tells_any_number_of_directions_apart(tmp_path):
    path = tmp_path / "wide.pcapng"
    links = [f"S[{port}] -> H{port}[1]" for port in range(1, 65)]
    given = [WirePacket(number, 4 * number, False, bytes(30)) for number in range(64)]
    with capture_writer(str(path), [Direction(name) for name in links]) as capture:
        for packet in given:
            capture.write(packet)
    assert read_with_directions(path) == (given, links)


HOSTS = [Direction("A[1] host", is_host=True), Direction("B[1] host", is_host=True)]


@each_format
def test_what_a_host_captured_is_read_in_whole_microseconds(suffix, tmp_path):
    path = tmp_path / f"host{suffix}"
    seen = [WirePacket(number % 2, 7_000 * number, False, bytes(34), way=Way.OUT, lost=number) for number in range(4)]
    with capture_writer(str(path), HOSTS) as capture:
        for packet in seen:
            capture.write(packet)
        capture.end_host(0, 21_000, 4, 6)
    packets, directions = read_with_directions(path)
    assert packets == [packet._replace(way=None, lost=0) for packet in seen]
    assert directions == (["A[1] host", "B[1] host"] if suffix == ".pcapng" else ["A", "B"])


def test_a_pcap_file_of_hosts_alone_counts_microseconds(tmp_path):
    magics = []
    for directions in (HOSTS, [*HOSTS, *DIRECTIONS]):
        with capture_writer(str(tmp_path / "host.pcap"), directions):
            pass
        magics.append((tmp_path / "host.pcap").read_bytes()[:4][::-1].hex())
    assert magics == ["a1b2c3d4", "a1b23c4d"]
