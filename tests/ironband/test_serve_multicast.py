"""Multicast groups: hosts that join, leave and ask are answered as OpenSM answers them, to the field."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.ironband.served import managed, needs_programs, scripted

pytestmark = needs_programs

GROUPS = """
Default=0x7fff, ipoib, sl=3, TClass=1 : # without quality of service
    mgid=ff12:401b::707,sl=1
    mgid=ff12:401b::ffff:ffff,scope=5
    mgid=ff15:401b::ffff:ffff,scope=5
    mgid=ff12:601b::16,scope=2,scope=5,TClass=3,FlowLabel=9
    mgid=ff12::1,sl=1,Q_Key=0xDEADBEEF,rate=3,mtu=2
    ALL=full;
A=0x10, i, m=5, r=6, Q_Key=0x77, scope=8 : 0x100001=full, 0x100003;
A=0x10, ipoib, mtu=2 : 0x100001 ;
B=0x20, ipoib : 0x100003=full;
C=0x30 : ALL=full;
"""
ASK = f"""
for host in H1 H2; do
    IRONBAND_HOST=$host saquery -t 60000 -g
    IRONBAND_HOST=$host saquery -t 60000 -m
done
for host in H1 H2; do
    IRONBAND_HOST=$host {sys.executable} {Path(__file__).parent / "ask_for_groups.py"}
done
ibroute -M -D 0,1 2>&1
"""
"""Both hosts stay members of the broadcast group. What the switch holds of it is as OpenSM has it for its
MulticastFDBCap."""


def test_groups_are_as_opensm_has_them(tmp_path):
    (tmp_path / "partitions.conf").write_text(GROUPS)
    # Of the time that its MADs take, which is the life time of its groups' packets, OpenSM says what ours does.
    (tmp_path / "opensm.conf").write_text("subnet_timeout 4\n")
    ours = managed("--partitions", "partitions.conf", "star", "--", "sh", "-c", ASK, cwd=tmp_path)
    assert ours.returncode == 0, ours.stderr
    theirs = scripted(
        tmp_path,
        [],
        "star",
        {
            "opensm": "opensm -F opensm.conf -P partitions.conf -d 2 -f opensm.log & echo $! > pid; "
            "wait_until 'grep -q \"SUBNET UP\" opensm.log'",
            "asked": f"{ASK}\nkill $(cat pid)",
        },
    )["asked"]
    assert ours.stdout == theirs
    assert theirs.count("group dump") == 7 + 8
    assert theirs.count("gone 0x300 \n") == 2
