"""`ironband show`: captures as lines, as a ladder, as a table of times; and never a traceback."""

import json
import random
import re
import secrets
import shlex
import subprocess
import threading
from pathlib import Path

import pytest

from capture.wire_packet import Direction, Way, WirePacket
from capture.writer import capture_writer
from ironband import main
from tests.capture.foreign import INFINIBAND, enhanced, interface, obsolete, pcap, section, simple
from tests.capture.samples import DIRECTIONS, FORMATS, damaged, good_packets
from tests.files import ROOT
from tests.ironband.command import COMMAND, one_line_error
from wire.crc import invert_vcrc
from wire.flow_control import FlowControlOp, FlowControlPacket
from wire.packet import build_ud_send
from wire.trace import Delimiter

FC = FlowControlPacket(FlowControlOp.NORMAL, 1404, 0, 2262).encode()


def ud(psn: int, slid: int = 1, dlid: int = 2) -> bytes:
    return build_ud_send(slid=slid, dlid=dlid, dest_qp=16, src_qp=7, q_key=1, psn=psn, payload=bytes(64)).wire


SHORT = [
    WirePacket(0, 1_000, True, FC),
    WirePacket(1, 1_004, False, ud(12)),
    WirePacket(0, 1_576, True, FC[:-1] + b"\0"),
    WirePacket(1, 3_076, False, ud(13)),
    WirePacket(0, 3_080, False, ud(1, 2, 1)[:-2] + invert_vcrc(ud(1, 2, 1)[-2:]), Delimiter.EBP),
    WirePacket(1, 5_148, False, ud(14)[:23], Delimiter.CUT),
]


@pytest.fixture
def capture(tmp_path) -> str:
    place = str(tmp_path / "short.pcapng")
    write(place, SHORT)
    return place


def write(place: str, packets: list[WirePacket]) -> None:
    with capture_writer(place, DIRECTIONS) as writer:
        for packet in packets:
            writer.write(packet)


def shown(capsys, *arguments: str) -> list[list[str]]:
    """The words of each line."""
    assert main(["show", *arguments]) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_an_analyser_shows_a_line_a_packet(capture, capsys):
    heading, *lines = shown(capsys, capture)
    assert " ".join(heading) == ("time ns idle ns direction packet bytes VL SLID DLID dest QP PSN FCTBS FCCL CRCs")
    assert [" ".join(line) for line in lines] == [
        "1,000 S[1] -> H2[1] normal flow control 6 0 1404 2262 right",
        "1,004 H2[1] -> S[1] UD_SEND_ONLY 98 0 1 2 16 12 right",
        "1,576 568 S[1] -> H2[1] normal flow control 6 0 1404 2262 LPCRC wrong",
        "3,076 1,672 H2[1] -> S[1] UD_SEND_ONLY 98 0 1 2 16 13 right",
        "3,080 1,496 S[1] -> H2[1] UD_SEND_ONLY 98 0 2 1 16 1 EBP, VCRC inverted",
        "5,148 1,672 H2[1] -> S[1] UD_SEND_ONLY 23 0 1 2 16 14 cut",
    ]


def test_a_ladder_has_two_ends(capture, capsys):
    assert main(["show", capture, "--view", "ladder", "--until", "3076"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "        time ns  S[1]                                                             H2[1]",
        "          1,000  |-- normal flow control, VL 0, FCTBS 1404 FCCL 2262 ------------>|",
        "          1,004  |<--------------------- UD_SEND_ONLY, VL 0, LID 1 to 2, PSN 12 --|",
        "          1,576  |-- normal flow control, VL 0, FCTBS 1404 FCCL 2262, LPCRC wrong >|",
    ]


def test_a_ladder_of_three_ends_is_refused_and_its_link_can_be_chosen(tmp_path, capsys):
    place = str(tmp_path / "links.pcapng")
    names = ("S[1] -> H1[1]", "S[2] -> H2[1]")
    with capture_writer(place, [Direction(name) for name in names]) as writer:
        writer.write(WirePacket(0, 0, True, FC))
        writer.write(WirePacket(1, 4, True, FC))
    assert main(["show", place, "--view", "ladder"]) == 2
    said = "ironband: a ladder has two ends, here S[1] and H1[1]: S[2] -> H2[1] too (--port chooses)\n"
    assert capsys.readouterr().err == said
    assert len(shown(capsys, place, "--view", "ladder", "--port", "H2")) == 2


def test_intervals_are_from_start_to_start_of_the_packets_chosen(capture, capsys):
    assert main(["show", capture, "--view", "intervals", "--kind", "data", "--bin", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "         interval ns  H2[1] -> S[1]",
        "               2,072              2",
        "                 all              2",
    ]


@pytest.mark.parametrize(
    ("options", "times"),
    [
        (["--kind", "link"], ["1,000", "1,576"]),
        (["--port", "H2[1] -> S[1]"], ["1,004", "3,076", "5,148"]),
        (["--port", "S"], ["1,000", "1,004", "1,576", "3,076", "3,080", "5,148"]),
        (["--port", "H2[1]", "--lid", "2", "--since", "3076", "--until", "3081"], ["3,076", "3,080"]),
        (["--opcode", "ud send only", "--opcode", "0x11"], ["1,004", "3,076", "3,080", "5,148"]),
        (["--opcode", "17"], []),
        (["--lid", "3"], []),
    ],
)
def test_packets_are_chosen_by_port_lid_opcode_kind_and_time(options, times, capture, capsys):
    assert [line[0] for line in shown(capsys, capture, *options)[1:]] == times


def test_json_has_totals_and_intervals(capture, capsys):
    assert main(["show", capture, "--json", "-", "--view", "intervals"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["packets"] == 6
    assert result["directions"]["S[1] -> H2[1]"] == {
        "bytes": 110,
        "data_packets": 1,
        "link_packets": 2,
        "vcrc_wrong": 1,
        "icrc_wrong": 0,
        "lpcrc_wrong": 1,
        "ended_by_ebp": 1,
        "cut": 0,
    }
    assert result["bin_ns"] == 1000
    assert result["intervals"] == [
        {"from_ns": 0, "packets": {"S[1] -> H2[1]": 1}},
        {"from_ns": 1000, "packets": {"S[1] -> H2[1]": 1}},
        {"from_ns": 2000, "packets": {"H2[1] -> S[1]": 2}},
    ]


def test_idle_times_go_by_the_rate_of_the_link(tmp_path, capsys):
    place = tmp_path / "plain.pcap"
    place.write_bytes(pcap(INFINIBAND, [(0, 0, None, ud(1)), (0, 10_000, None, ud(2))], nanoseconds=True))
    assert shown(capsys, str(place))[2][1] == "9,900"
    assert shown(capsys, str(place), "--gbps", "2.5")[2][1] == "9,600"


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    place = str(tmp_path / "long.erf")
    write(place, good_packets(1, 3000))
    command = f"{' '.join(map(repr, COMMAND))} show {place} | head -n 1"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.startswith("        time ns")
    assert ended.stderr == ""


def test_what_comes_before_damage_is_shown(capture, capsys):
    data = Path(capture).read_bytes()
    Path(capture).write_bytes(data[:-5])
    assert main(["show", capture]) == 2
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == len(SHORT)
    assert output.err.startswith(f"ironband: {capture}: byte ")
    assert output.err.endswith("after 5 packets: the file ends 67 bytes into a record\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--port", "X[1]"], "no packet at X[1]; its directions are: S[1] -> H2[1], H2[1] -> S[1]"),
        (["--opcode", "fly"], "'fly': expected a name such as UD_SEND_ONLY, or 0..0xff"),
        (["--opcode", "256"], "'256': expected a name such as UD_SEND_ONLY, or 0..0xff"),
        (["--lid", "65536"], "65536 is not in the range 0<=x<=65535"),
        (["--view", "pie"], "'pie' is not one of 'packets', 'ladder', 'intervals'"),
        (["--json", "no/where"], "no/where: cannot be written: No such file or directory"),
    ],
)
def test_bad_use_is_one_line(options, said, capture, capsys):
    assert said in one_line_error(capsys, "show", capture, *options)


def damaged_files(directory: Path, seed: int, count: int):
    """Captures with wrong bytes, missing bytes and bytes of another."""
    drawn = random.Random(seed)
    good = []
    for number, suffix in enumerate(FORMATS):
        place = directory / f"good{suffix}"
        packets = [damaged(packet, drawn.randrange(4), drawn) for packet in good_packets(number, 12)]
        write(str(place), packets)
        good.append(place.read_bytes())
    order = ">"
    odd = section(order) + interface(INFINIBAND, [(9, b"\x8a"), (2, b"odd")], order) + simple(ud(1), order)
    good.append(odd + obsolete(0, 7, ud(2), order) + enhanced(0, 9, ud(3), [(2, bytes(4)), (1, b"x")], order))
    good.append(pcap(INFINIBAND, [(1, 2, None, ud(1)), (1, 3, None, ud(2))], order=order))
    for number in range(count):
        data = bytearray(drawn.choice(good))
        for _ in range(drawn.choice((1, 1, 2, 5, 30))):
            place = (
                min(int(drawn.expovariate(1 / 80)), len(data) - 1)
                if drawn.random() < 0.6
                else drawn.randrange(len(data))
            )
            match drawn.randrange(5):
                case 0:
                    data[place] = drawn.choice((0, 1, 0x7F, 0x80, 0xFF, drawn.randrange(256)))
                case 1:
                    data[place] ^= 1 << drawn.randrange(8)
                case 2:
                    del data[place : place + drawn.choice((1, 2, 4, 40))]
                case 3:
                    other = drawn.choice(good)
                    begin = drawn.randrange(len(other))
                    data[place:place] = other[begin : begin + drawn.choice((1, 4, 28, 100))]
                case _:
                    del data[place + 1 :]
            data = data or bytearray(1)
        file = directory / f"damaged{number}"
        file.write_bytes(data)
        yield file


@pytest.mark.parametrize(("seed", "count"), [(1, 300), pytest.param(None, 10_000, marks=pytest.mark.deep)])
def test_a_damaged_capture_is_at_most_one_line_and_never_a_traceback(seed, count, tmp_path, capsys):
    seed = secrets.randbits(32) if seed is None else seed
    print(f"seed {seed}")
    views = (["--json", "-"], [], ["--view", "ladder"], ["--view", "intervals"])
    refused = 0
    for number, file in enumerate(damaged_files(tmp_path, seed, count)):
        status = main(["show", str(file), *views[number % len(views)]])
        error = capsys.readouterr().err
        assert (status, len(error.splitlines())) in ((0, 0), (2, 1)), f"{file.name}: {error}"
        assert error == "" or error.startswith("ironband: ")
        refused += status == 2
        file.unlink()
    assert refused > count // 4


def test_a_capture_is_followed_as_it_comes(tmp_path):
    """Lines are there before the next packet is."""
    with subprocess.Popen([*COMMAND, "show", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        data = section() + interface(INFINIBAND) + enhanced(0, 7, ud(1))
        process.stdin.write(data)
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(2)]
        process.stdin.close()
        assert process.wait() == 0
        watchdog.cancel()
    assert lines[1].split()[:1] == [b"7,000"]


def test_the_page_shows_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "show.md").read_text()
    examples = re.findall(r"^\$ ironband (show .*)\n((?:.+\n)+)```", page, re.MULTILINE)
    assert len(examples) == 3
    for line, printed in examples:
        assert main(shlex.split(line)) == 0
        assert capsys.readouterr().out == printed


@pytest.mark.parametrize("port", ["A", "A[1]", "A[1] host"])
def test_what_a_host_captured_is_found_by_its_port(capsys, tmp_path, port):
    place = str(tmp_path / "host.pcapng")
    hosts = [Direction("A[1] host", is_host=True), Direction("B[1] host", is_host=True)]
    with capture_writer(place, hosts) as writer:
        writer.write(WirePacket(0, 5_000, False, ud(12), way=Way.OUT))
        writer.write(WirePacket(1, 9_000, False, ud(12), way=Way.IN))
    (_heading, row) = shown(capsys, place, "--port", port)
    assert row[:4] == ["5,000", "A[1]", "host", "UD_SEND_ONLY"]
