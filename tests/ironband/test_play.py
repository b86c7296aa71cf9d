"""`ironband play`: what it prints, and what it says of captures and fabrics that do not fit."""

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from capture.wire_packet import Direction, WirePacket
from capture.writer import capture_writer
from ironband import main
from tests.capture.foreign import ERF, ETHERNET, INFINIBAND, enhanced, erf, interface, pcap, section
from tests.ironband.command import one_line_error
from wire.crc import lpcrc, vcrc
from wire.flow_control import FLOW_CONTROL
from wire.packet import build_ud_send

ROOT = Path(__file__).parents[2]
JAM = ["run", "jam", "--sim", "model", "--bring-up", "bus", "--no-picture", "--capture", "jam.pcapng"]
INTO = ["--into", "jam", "--bring-up", "bus"]


def jam_at_host_a() -> None:
    """What `JAM` captures with `--capture-at A`."""
    shutil.copy(ROOT / "docs" / "link.pcapng", "jam.pcapng")


def printed(capsys, *arguments: str, status: int = 0) -> list[str]:
    capsys.readouterr()
    assert main(["play", *arguments]) == status
    return capsys.readouterr().out.splitlines()


def results(capsys, *arguments: str, status: int = 0) -> dict:
    return json.loads("\n".join(printed(capsys, *arguments, "--json", "-", status=status)))


def data(slid: int, dlid: int, *, vl: int = 0, payload: int = 64) -> bytes:
    """LRH to ICRC."""
    return build_ud_send(slid=slid, dlid=dlid, vl=vl, sl=vl, dest_qp=5, src_qp=6, q_key=7, payload=bytes(payload)).data


def credits(fctbs: int, fccl: int) -> bytes:
    body = FLOW_CONTROL.pack(op=0, fctbs=fctbs % 4096, vl=0, fccl=fccl % 4096)
    return body + lpcrc(body) + bytes(2)


def test_a_jam_played_back_is_told_packet_by_packet(capsys):
    jam_at_host_a()
    lines = printed(capsys, "jam.pcapng", *INTO)
    assert lines[:3] == [
        "jam.pcapng into jam, times as they stand",
        "  A[1] -> S[1]: enters S[1]",
        "  S[1] -> A[1]: is compared with what S[1] sends",
    ]
    data_lines = [line.split("  ")[-1].strip() for line in lines if "UD_SEND_ONLY" in line]
    assert data_lines == ["accepted; sent on by S[2]"] * 5
    assert sum(line.endswith("sent, as captured") for line in lines) == 8
    assert "  S[1] -> A[1]: 8 of 8 as captured" in lines
    few = printed(capsys, "jam.pcapng", *INTO, "--lines", "2")
    assert few[5:7] + few[8:10] == lines[5:7] + lines[-10:-8]
    assert few[7].split() == ["...", "12", "packets", "more"]
    none = printed(capsys, "jam.pcapng", *INTO, "--lines", "0")
    assert none[3:] == lines[-8:]


def test_what_is_said_for_machines(capsys):
    assert main(JAM) == 0
    told = results(capsys, "jam.pcapng", *INTO)
    assert (told["held"], told["times_kept"], told["mismatches"]) == (True, True, None)
    assert told["entries"] == {"A[1] -> S[1]": "S[1]", "B[1] -> S[2]": "S[2]"}
    assert told["received"]["S[1]"] == {"data": {"GOOD": 5}, "flow_control": {"GOOD": 3}}
    assert told["as_captured"].keys() == {"S[1] -> A[1]", "S[2] -> B[1]"}
    assert told["packets_read"] == told["packets_played"] + sum(told["as_captured"].values())
    assert told["not_as_captured"] == []


def test_the_first_difference_is_told_and_is_status_1(capsys):
    jam_at_host_a()
    Path("small.toml").write_text(
        ROOT.joinpath("cosim/scenario/packaged/jam.toml")
        .read_text()
        .replace("buffer_blocks = 15", "buffer_blocks = 14")
    )
    lines = printed(capsys, "jam.pcapng", "--into", "small.toml", "--bring-up", "bus", status=1)
    assert lines[-1] == (
        "S[1] -> A[1]: the capture has at 24 ns init flow control, VL 0, FCTBS 0 FCCL 15, "
        "sent back is at 24 ns init flow control, VL 0, FCTBS 0 FCCL 14"
    )
    assert "  S[1] data OVERRUN             1" in lines


def test_a_subnet_manager_s_work_is_played_back_into_its_fabric(capsys):
    assert main(["up", "star", "--capture", "star.erf"]) == 0
    ways = ["--at", "A=SW1[1]", "--at", "D=SW1[2]"]
    told = results(capsys, "star.erf", "--into", "star", *ways)
    assert told["received"]["SW1[1]"]["data"] == {"GOOD": 26}
    capsys.readouterr()
    assert main(["up", "star", "--capture", "star.pcapng"]) == 0
    told = results(capsys, "star.pcapng", "--into", "star")
    assert told["as_captured"] == {"SW1[1] -> H1[1]": 29, "SW1[2] -> H2[1]": 9}


@pytest.mark.parametrize("arguments", [[], [*INTO, "--times", "shifted"]])
def test_a_run_s_capture_goes_into_a_fabric_that_is_up_when_its_link_is(capsys, arguments):
    jam_at_host_a()
    told = results(capsys, "jam.pcapng", *arguments)
    assert (told["times_kept"], told["as_captured"], told["initial_left_out"]) == (False, {}, 1)
    assert told["received"] == {"S[1]": {"data": {"GOOD": 5}, "flow_control": {"GOOD": 2}}}


def test_of_the_directions_of_a_link_that_to_the_switch_is_played(capsys):
    assert main(JAM) == 0
    told = results(capsys, "jam.pcapng")
    assert told["entries"] == {"A[1] -> S[1]": "S[1]", "B[1] -> S[2]": "S[2]"}


def test_what_a_host_captured_of_a_link_that_was_captured_too_is_not_played(capsys):
    places = ["--capture-at", "A", "--capture-at", "A:host", "--capture", "both.pcapng"]
    assert main(["run", "jam", "--sim", "model", "--bring-up", "bus", "--no-picture", *places]) == 0
    found = results(capsys, "both.pcapng")
    assert found["entries"] == {"A[1] -> S[1]": "S[1]"}
    assert found["received"]["S[1]"]["data"] == {"GOOD": 5}


def test_a_host_s_own_capture_is_sent_by_hosts_of_its_lids(capsys):
    """Without VCRCs and flow control, both ways in one, since 1970, faster than a link is."""
    records = [(1_700_000_000, 10 * n, None, data(*((7, 9) if n % 3 else (9, 7)), vl=n % 2)) for n in range(30)]
    Path("host.pcap").write_bytes(pcap(INFINIBAND, [*records, (1_700_000_000, 900, None, data(7, 0x55))]))
    told = results(capsys, "host.pcap")
    assert (told["held"], told["into"], told["times_kept"]) == (True, None, False)
    assert told["received"] == {"S[1]": {"data": {"GOOD": 21}}, "S[2]": {"data": {"GOOD": 10}}}
    lines = printed(capsys, "host.pcap", "--lines", "100")
    ways = [line.rpartition("accepted; ")[2] for line in lines if "accepted" in line]
    assert sorted(ways) == ["sent on by S[1]"] * 10 + ["sent on by S[2]"] * 20 + ["sent on by S[3]"]


def test_a_link_that_was_up_already_goes_on_with_credits_counted_anew(capsys):
    """An analyser's capture of both ways, which begins far from 0 and with the VCRCs."""
    records = []
    sent = {0: 1404, 1: 547}
    for number in range(60):
        way = number % 2
        body = data(3, 4) if way == 0 else data(4, 3)
        if number % 10 in (2, 3):
            limit = sent[1 - way] + 100
            records.append(erf(25, credits(sent[way], limit), seconds=number * 2**-22 + 5, flags=4 | way))
        else:
            records.append(erf(21, body + vcrc(body), seconds=number * 2**-22 + 5, flags=4 | way))
            sent[way] += 2
    Path("link.erf").write_bytes(b"".join(records))
    told = results(capsys, "link.erf")
    assert told["entries"] == {"A": "S[1]", "B": "S[2]"}
    everything = {"data": {"GOOD": 24}, "flow_control": {"GOOD": 6}}
    assert told["received"] == {"S[1]": everything, "S[2]": everything}
    lines = printed(capsys, "link.erf", "--lines", "100")
    fctbs = [int(line.split()[9]) for line in lines if "H1[1] -> S[1]  normal" in line]
    assert fctbs == [0, 8, 16, 24, 32, 40]
    # What they answer each other goes on, by the credits that the capture gives.
    assert sum("accepted; sent on by S[" in line for line in lines) == 48


def test_packets_that_no_host_can_send_are_told(capsys):
    good = data(1, 2)
    marked = erf(21, good + bytes(2), flags=0x14)
    Path("a.pcap").write_bytes(pcap(ERF, [(0, 0, None, marked), (0, 0, None, erf(21, good + vcrc(good)))]))
    told = results(capsys, "a.pcap")
    assert (told["packets_played"], told["packets_not_sent"]) == (1, 1)


def test_packets_too_dense_for_the_link_come_as_soon_as_they_can(capsys):
    with capture_writer("a.pcapng", [Direction("H[1] -> S[1]")]) as writer:
        body = data(1, 2)
        for number in range(8):
            writer.write(
                WirePacket(0, 10 * number, number == 4, credits(8, 600)[:6] if number == 4 else body + vcrc(body))
            )
    told = results(capsys, "a.pcapng")
    assert (told["packets_played"], told["packets_moved"]) == (8, 7)
    assert told["received"]["S[1]"] == {"data": {"GOOD": 7}, "flow_control": {"GOOD": 1}}
    # At ten times the rate a cycle is shorter, and there are more of them between two packets.
    assert results(capsys, "a.pcapng", "--gbps", "100")["packets_moved"] == 0


def test_a_damaged_capture_is_played_up_to_there(capsys):
    jam_at_host_a()
    whole = Path("jam.pcapng").read_bytes()
    Path("cut.pcapng").write_bytes(whole[:-9])
    capsys.readouterr()
    message = one_line_error(capsys, "play", "cut.pcapng", *INTO)
    assert message.startswith("cut.pcapng: byte ")
    assert "after 15 packets: the file ends " in message
    assert main(["play", "cut.pcapng", *INTO]) == 2
    assert "packets played        8" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.pcap"], "gone.pcap: cannot be read: No such file or directory"),
        (
            ["text.pcap"],
            "text.pcap: no capture: it begins with 68 65 6c 6c, expected a pcapng or pcap file, or ERF records",
        ),
        (
            ["ethernet.pcap"],
            "ethernet.pcap: packets of link type 1 (Ethernet), allowed 197 (ERF) and 247 (InfiniBand); RoCE, in ",
        ),
        (["ethernet.pcapng"], "ethernet.pcapng: no InfiniBand packet among 1 records"),
        (["empty.pcap"], "empty.pcap: there is no packet in it"),
        (["jam.pcapng", "--into", "jim"], "--into jim: no such file, and Ironband comes with: blocked-vl, "),
        (["jam.pcapng", "--into", "retry"], "--into retry: expected a scenario without a transport"),
        (["jam.pcapng", "--into", "jam", "--at", "A=S[1]"], "--at A: no such direction; jam.pcapng has A[1] -> S[1], "),
        (["jam.pcapng", "--into", "jam", "--at", "A[1] -> S[1]=S[3]"], "--at A[1] -> S[1]=S[3]: expected port 1..2"),
        (
            ["jam.pcapng", "--into", "jam", "--at", "A[1] -> S[1]=C"],
            "--at A[1] -> S[1]=C: no such node; there are S, A, B",
        ),
        (
            ["jam.pcapng", "--into", "jam", "--at", "A[1] -> S[1]=B", "--at", "S[1] -> A[1]=B"],
            "--at A[1] -> S[1]=B[1]: another direction enters this port",
        ),
        (
            ["jam.pcapng", "--into", "incast"],
            "no direction is named after a link of incast: expected --at NAME=PORT, of ",
        ),
        (
            ["jam.pcapng", "--at", "A[1] -> S[1]=S[1]"],
            "--at: the default fabric is made for the capture: expected --into, too",
        ),
        (["jam.pcapng", "--at", "S[1]"], "Invalid value for '--at': 'S[1]': expected NAME=PORT, each NAME once"),
        (["host.pcap", "--into", "head-of-line", "--at", "A=VOQ[7]"], "--at A=VOQ[7]: expected port 1..6"),
        (
            ["host.pcap", "--into", "ring_4", "--at", "A=R1[1]"],
            "A: a capture without flow control is sent by hosts, and R1[1] has none",
        ),
        (
            ["jam.pcapng", *INTO, "--sim", "amaranth"],
            "amaranth simulates whole fabrics only: expected verilator or icarus where some nodes are RTL",
        ),
        (
            ["jam.pcapng", "--times", "kept"],
            "--times kept: the default fabric is made for the capture: expected --into",
        ),
        (["-"], "-: a pipe, and a capture is read more than once: expected a file"),
        (["pipe"], "pipe: a pipe, and a capture is read more than once: expected a file"),
        (["jam.pcapng", "--gbps", "nan"], "Invalid value for '--gbps': nan is not in the range 0.1<=x<=10000."),
        (["jam.pcapng", "--waves-cycles", "1:2"], "--waves-cycles 1:2: expected --waves, too"),
        (["jam.pcapng", "--waves", "a.fst"], "waves a.fst: the model has no wires to record"),
    ],
)
def test_what_cannot_be_played_is_one_line(capsys, arguments, message):
    if arguments[0] == "jam.pcapng":
        jam_at_host_a()
    os.mkfifo("pipe")
    Path("text.pcap").write_text("hello, hello, hello")
    Path("ethernet.pcap").write_bytes(pcap(ETHERNET, [(0, 0, None, bytes(60))]))
    Path("ethernet.pcapng").write_bytes(section() + interface(ETHERNET) + enhanced(0, 0, bytes(60)))
    Path("empty.pcap").write_bytes(pcap(INFINIBAND, []))
    Path("host.pcap").write_bytes(pcap(INFINIBAND, [(0, 0, None, data(1, 2))]))
    assert one_line_error(capsys, "play", *arguments).startswith(message)


def test_the_page_shows_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "play.md").read_text()
    ((line, shown),) = re.findall(r"^\$ ironband (play .*)\n((?:.*\n)+?)```", page, re.MULTILINE)
    assert main(shlex.split(line)) == 0
    assert capsys.readouterr().out == shown
