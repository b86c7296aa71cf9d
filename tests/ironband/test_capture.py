"""`--capture`: what passes the links, as others read it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from ironband import main
from tests.capture.reading import read_packets, read_with_directions
from tests.ironband.command import one_line_error
from tests.ironband.served import needs_programs, served
from wire.crc import vcrc_good

JAM = ["run", "jam", "--sim", "model", "--bring-up", "bus", "--no-picture"]
needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not here: captures are not judged by Wireshark"
)


def tshark(path: Path, *options: str) -> list[str]:
    ended = subprocess.run(["tshark", "-r", path, *options], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.parametrize("suffix", ["pcapng", "pcap", "erf"])
def test_a_run_is_captured_in_every_format(tmp_path, suffix):
    assert main([*JAM, "--capture", f"jam.{suffix}", "--capture-at", "A", "--capture-at", "B", "--json", "told"]) == 0
    packets, _directions = read_with_directions(tmp_path / f"jam.{suffix}")
    sent = json.loads((tmp_path / "told").read_text())["sent_packets"]
    # Each of them passes both links.
    assert sum(not packet.is_link for packet in packets) == 2 * sent == 10
    assert all(vcrc_good(packet.data) for packet in packets)
    assert [packet.time_ns for packet in packets] == sorted(packet.time_ns for packet in packets)
    assert {path.name for path in tmp_path.iterdir()} == {"told", f"jam.{suffix}"}


@needs_tshark
def test_wireshark_sees_the_packets_where_they_were_and_when(tmp_path):
    assert main([*JAM, "--capture", "jam.pcapng"]) == 0
    path = tmp_path / "jam.pcapng"
    assert tshark(path, "-Y", "_ws.malformed") == []
    fields = ("frame.time_epoch", "frame.interface_name", "infiniband.lrh.dlid", "infiniband_link.fccl")
    rows = tshark(path, "-T", "fields", *(word for field in fields for word in ("-e", field)))
    packets, directions = read_with_directions(path)
    assert len(rows) == len(packets)
    for row, packet in zip(rows, packets, strict=True):
        time, interface, dlid, fccl = row.split("\t")
        assert round(float(time) * 10**9) == packet.time_ns
        assert interface == directions[packet.direction]
        if packet.is_link:
            assert int(fccl, 0) == int.from_bytes(packet.data[2:4], "big") & 0xFFF
        else:
            assert int(dlid) == int.from_bytes(packet.data[2:4], "big")


def test_only_what_a_port_sends_is_captured_on_request(tmp_path):
    assert main([*JAM, "--capture", "jam.erf", "--capture-at", "A:out"]) == 0
    assert {packet.direction for packet in read_packets(tmp_path / "jam.erf")} == {0}


@needs_tshark
@pytest.mark.parametrize("suffix", ["pcapng", "pcap", "erf"])
def test_a_host_captures_its_own_data_packets_with_its_own_clock(tmp_path, suffix):
    path = tmp_path / f"jam.{suffix}"
    at = [word for place in ("A", "A:host", "B:host") for word in ("--capture-at", place)]
    assert main([*JAM, "--capture", path.name, *at]) == 0
    assert tshark(path, "-Y", "_ws.malformed") == []
    fields = ("frame.interface_name", "frame.packet_flags_direction", "frame.time_epoch", "infiniband.bth.psn")
    rows = tshark(path, "-T", "fields", *(word for field in fields for word in ("-e", field)))
    if suffix == "pcapng":
        hosts = {"A[1] host": ("0x00000002", []), "B[1] host": ("0x00000001", [])}
        for interface, way, time, psn in (row.split("\t") for row in rows):
            if interface in hosts:
                assert way == hosts[interface][0]
                assert time.endswith("000")
                hosts[interface][1].append(psn)
        assert [psns for _way, psns in hosts.values()] == [["0", "1", "2", "3", "4"]] * 2
    packets, _directions = read_with_directions(path)
    assert len(rows) == len(packets)
    assert [packet.time_ns for packet in packets] == sorted(packet.time_ns for packet in packets)


@needs_programs
@needs_tshark
def test_wireshark_reads_how_opensm_brings_a_fabric_up(tmp_path):
    ended = served("star", "--capture", "star.pcapng", "--", "opensm", "-o", "-f", "opensm.log", cwd=tmp_path)
    assert ended.returncode == 0
    path = tmp_path / "star.pcapng"
    assert tshark(path, "-Y", "_ws.malformed") == []
    told = tshark(path, "-Y", "infiniband.mad.method == 0x02", "-T", "fields", "-e", "_ws.col.Info")
    assert any("SubnSet(LinearForwardingTable)" in line for line in told)
    assert sum("SubnSet(PortInfo)" in line for line in told) >= 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--capture", "jam.txt"], "jam.txt: no format of captures by its suffix, allowed .erf, .pcap, .pcapng"),
        (["--capture", "no/jam.erf", "--capture-at", "A"], "no/jam.erf: cannot be written: No such file or directory"),
        (["--capture", "jam.pcap", "--capture-at", "C"], "C: no such node; there are S, A, B"),
        (["--capture", "jam.pcap", "--capture-at", "S"], "S: is a switch, expected S[PORT]"),
        (["--capture-at", "A"], "--capture-at A: nothing is captured without --capture"),
        (["--capture", "-", "--json", "-"], "--capture - --json -: expected one of them to be a file"),
        (["--capture", "/dev/full"], "/dev/full: cannot be written: No space left on device"),
    ],
)
def test_bad_use_is_one_line_and_status_2(capsys, arguments, message):
    assert one_line_error(capsys, *JAM, *arguments) == message
