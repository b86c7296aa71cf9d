"""Subnet Managers hear of packets with wrong keys: by traps of adapters, and of switches that keep partitions apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.doors.real_programs import free_port, needs
from tests.ironband.served import TELL, needs_programs, scripted
from tests.ironband.test_serve_enforcement import PARTITIONS, PINGPONG
from tests.ironband.verbs_programs import FOUR, LISTENS, WRONG_Q_KEYS, needs_pyverbs

pytestmark = needs_programs

BY_MANAGER = pytest.mark.parametrize("manager", ["OpenSM", "Ironband"])


def heard(
    folder: Path, manager: str, lines: dict[str, str], *options: str, checks: bool = False
) -> tuple[dict[str, str], str]:
    """What commands say at four hosts, and what the Subnet Manager at H1 says.

    Five milliseconds pass at the end, in which a trap that is not repressed comes 75 times: SubnetTimeOut is 4.
    """
    (folder / "four.net").write_text(FOUR)
    (folder / "partitions.conf").write_text(PARTITIONS)
    (folder / "opensm.conf").write_text("subnet_timeout 4\n")
    lines = {**lines, "passed": f"{TELL} run 5"}
    if manager == "Ironband":
        ours = ["--bring-up", "sm", *(["--partitions", "partitions.conf", "--enforce", "both"] if checks else [])]
        said = scripted(folder, [*ours, *options], "four.net", lines)
        return said, said["all"]
    theirs = "opensm -F opensm.conf -d 2 -f opensm.log" + (" -P partitions.conf -Z both" if checks else "")
    begin = {"manager": f"IRONBAND_HOST=H1 {theirs} & echo $! > pid; wait_until 'grep -q UP opensm.log'"}
    end = {"heard": "wait_until 'grep -q log_trap_info opensm.log'", "end": "kill $(cat pid)"}
    said = scripted(folder, list(options), "four.net", {**begin, **lines, **end})
    return said, (folder / "opensm.log").read_text()


@needs_pyverbs
@BY_MANAGER
def test_of_a_datagram_with_a_wrong_q_key(tmp_path, manager):
    lines = {"sent": f"/usr/bin/python3 {WRONG_Q_KEYS} 1", "counts": "perfquery -x $(cat sent.out) 1"}
    said, log = heard(tmp_path, manager, lines, "--at", "H1,H2")
    lid = int(said["sent"])
    tells = {
        "OpenSM": rf"num:258 \(Bad Q_Key\) .* from LID:{lid} .*\n.*Bad Q_Key:0x22 on SL:0 from LID1:1 .* to LID2:{lid}",
        "Ironband": rf"trap 258 from LID {lid}: Q_Key 0x00000022 in a packet from LID 1 queue pair \w+ to LID {lid} ",
    }
    assert 1 <= len(re.findall(tells[manager], log)) < 10, log
    counts = dict(re.findall(r"^Port(\w+Pkts):\.+(\d+)", said["counts"], re.MULTILINE))
    for way in ("Xmit", "Rcv"):
        assert counts[f"Unicast{way}Pkts"] == counts[f"{way}Pkts"] != "0"
        assert counts[f"Multicast{way}Pkts"] == "0"


@needs("ibv_rc_pingpong")
@BY_MANAGER
def test_of_a_packet_that_the_switch_keeps_from_another_partition(tmp_path, manager):
    lines = {"functions": LISTENS + PINGPONG, "between_two": f"pingpong {free_port()} H1 H3"}
    _said, log = heard(tmp_path, manager, lines, checks=True)
    tells = {
        "OpenSM": r"from switch LID \d+, GUID 0x0000000000200000 port 3 : data_valid 0x000f, LID1 1, LID2 (\d+), "
        "PKey 0x8010, SL 0",
        "Ironband": r"port 3 rejects P_Key 0x8010 in a packet from LID 1 to LID (\d+)",
    }
    assert 1 <= len(re.findall(tells[manager], log)) < 40, log
