"""`ironband serve`: programs at different hosts connect by IP addresses, through the fabric."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.ironband.command import one_line_error
from tests.ironband.served import TELL, needs_programs, scripted

needs_rping = pytest.mark.skipif(
    shutil.which("rping") is None, reason="NOT TESTED with real programs: apt-get install rdmacm-utils"
)
needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="NOT TESTED against Wireshark: apt-get install tshark"
)
MANAGED = ["--bring-up", "sm"]
SERVER = "IRONBAND_HOST=H1 rping -s -C 3 > server.out 2>&1 & server=$!"
CONNECTS = (
    "for _ in $(seq 100); do IRONBAND_HOST=H2 timeout 300 rping -c -v -C 3 -a {address} && done=yes && break;"
    " kill -0 $server || break; sleep 0.1; done; [ $done ] || kill $server; wait $server"
)


def pings(printed: str) -> list[str]:
    return re.findall(r"ping data: (rdma-ping-\d: [^ ]{50})\n", printed)


def captured(capture: Path, only: str, fields: Sequence[str]) -> list[list[str]]:
    """Fields of each packet that a filter lets through, as Wireshark shows them."""
    command = ["tshark", "-n", "-r", str(capture), "-Y", only, "-T", "fields"]
    arguments = [argument for name in fields for argument in ("-e", name)]
    printed = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True, timeout=60).stdout
    return [line.split("\t") for line in printed.splitlines()]


EXPECTED = [f"rdma-ping-{index}: {bytes(range(65 + index, 115 + index)).decode()}" for index in range(3)]


@needs_rping
@pytest.mark.parametrize(("rtl", "given"), [("none", False), ("none", True), ("all", False)])
def test_programs_connect_by_the_addresses_of_their_hosts_ports(tmp_path, rtl, given):
    (tmp_path / "plan").write_text("10.0.0.1 H1\n10.0.0.2 H2[1]\n")
    address = "10.0.0.1" if given else "127.87.0.1"
    says = scripted(
        tmp_path,
        [*MANAGED, "--rtl", rtl, *(["--addresses", "plan"] if given else [])],
        "star",
        {"connect": f"{SERVER}\n{CONNECTS.format(address=address)}", "counters": f"{TELL} counters 'H2[1]'"},
    )
    assert pings(says["connect"]) == EXPECTED, says["connect"]
    # REQ, REP and RTU, and those that end it, and the pings.
    sent = re.search(r"xmit_pkts ([0-9,]+)", says["counters"])
    assert sent is not None, says["counters"]
    assert int(sent[1].replace(",", "")) > 15


@needs_rping
@needs_tshark
def test_wireshark_sees_how_programs_connect(tmp_path):
    capture = tmp_path / "cm.pcapng"
    options = [*MANAGED, "--capture", str(capture), "--capture-at", "H1[1]"]
    scripted(tmp_path, options, "star", {"connect": f"{SERVER}\n{CONNECTS.format(address='127.87.0.1')}"})
    fields = ("_ws.col.Info", "infiniband.cm.req.ip_cm.sip4", "infiniband.cm.req.ip_cm.dip4")
    seen = captured(capture, "infiniband.mad.mgmtclass == 7", fields)
    messages = [message for message, _source, _destination in seen]
    # The client may have been too early once or more.
    last = max(index for index, message in enumerate(messages) if message == "CM: ConnectRequest")
    assert messages[last + 1 : last + 3] == ["CM: ConnectReply", "CM: ReadyToUse"]
    assert set(messages[last + 3 :]) == {"CM: DisconnectRequest", "CM: DisconnectReply"}
    assert seen[last][1:] == ["127.87.0.3", "127.87.0.1"]


@needs_rping
@needs_programs
@needs_tshark
@pytest.mark.parametrize("manager", ["ours", "opensm"])
def test_a_connection_has_the_service_level_that_the_subnet_administrator_names(tmp_path, manager):
    """0x1061C06 is the service of TCP port 7174, rping's."""
    (tmp_path / "plan").write_text("10.0.0.1 H1\n10.0.0.2 H2\n")
    (tmp_path / "qos.conf").write_text("qos TRUE\nqos_policy_file policy.conf\n")
    (tmp_path / "policy.conf").write_text("qos-ulps\ndefault: 1\nany, service-id 0x1061C06: 3\nend-qos-ulps\n")
    capture = tmp_path / "sl.pcapng"
    options = ["--vls", "4", "--addresses", "plan", "--capture", str(capture), "--capture-at", "H2[1]"]
    lines = {"connect": f"{SERVER}\n{CONNECTS.format(address='10.0.0.1')}"}
    if manager == "ours":
        options += [*MANAGED, "--qos", "qos.conf"]
    else:
        opensm = (
            "opensm -Q -F qos.conf -d 2 -f opensm.log & echo $! > pid; wait_until 'grep -q \"SUBNET UP\" opensm.log'"
        )
        lines = {"opensm": opensm, **lines, "end": "kill $(cat pid)"}
    says = scripted(tmp_path, options, "star", lines)
    assert pings(says["connect"]) == EXPECTED, says["connect"]
    levels = ("infiniband.lrh.sl", "infiniband.lrh.vl")
    connected = captured(capture, "infiniband.bth.opcode < 0x20", levels)
    assert len(connected) > 15
    managing = captured(capture, "infiniband.mad.mgmtclass == 7", levels)
    assert {(sl, vl) for sl, vl in (*connected, *managing)} == {("3", "0x03")}


@needs_rping
def test_connections_come_about_where_packets_are_lost_and_not_where_a_cable_is_cut(tmp_path):
    says = scripted(
        tmp_path,
        [*MANAGED, "--seed", "3"],
        "star",
        {
            "errors": f'for port in 1 2; do {TELL} errors "SW1[$port]" lost_packet 30000; done',
            "connect": f"{SERVER}\n{CONNECTS.format(address='127.87.0.1')}",
            "end": f'for port in 1 2; do {TELL} errors "SW1[$port]" lost_packet 0; done',
            "cut": f"{TELL} cut 'SW1[1]'; IRONBAND_HOST=H2 rping -c -C 3 -a 127.87.0.1",
        },
    )
    assert pings(says["connect"])[-3:] == EXPECTED, says["connect"]
    # Which it is depends on whether the port has noticed yet.
    assert re.search("RDMA_CM_EVENT_(UNREACHABLE, error -110|ROUTE_ERROR, error -113)", says["cut"]), says["cut"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10.0.0.1 H9", "plan:1: port 'H9': expected one of H1[1], H2[1]"),
        ("10.0.0 H1", "plan:1: address '10.0.0': expected an IPv4 address such as 10.87.0.1"),
        (None, "plan: addresses cannot be read: No such file or directory"),
    ],
)
def test_a_plan_of_addresses_that_is_none_is_told_in_a_line_before_anything_is_made(capsys, monkeypatch, text, says):
    monkeypatch.setattr("ironband.serve.server_directory", lambda at: pytest.fail("there is a directory already"))
    if text is not None:
        Path("plan").write_text(f"{text}\n")
    assert one_line_error(capsys, "serve", "--addresses", "plan", "star", "--", "true") == says
