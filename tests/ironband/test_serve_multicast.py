"""Multicast groups: hosts that join, leave and ask are answered as OpenSM answers them, to the field; programs that
join by rdma_cm hear each other."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.doors.real_programs import needs
from tests.ironband.served import managed, needs_programs, scripted
from tests.ironband.verbs_programs import FOUR

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


ADDRESSES = "".join(f"10.0.0.{number} H{number}\n" for number in range(1, 5))
MGID = "ff12:4001:ffff::f01:203"
"""Of 239.1.2.3, for programs of the port space UDP."""

FUNCTIONS = r"""
mckey_at() {
    host=$1; shift
    IRONBAND_HOST=H$host timeout 600 mckey -b 10.0.0.$host "$@"
}
members() { saquery --smkey 1 -t 60000 -m | grep -A 2 "MGID[.]*$1\$" | grep -c PortGid; }
leads_to() { ibroute -M -G 0x200000 | grep -q "^0xc001        $1 *\$"; }
"""
"""Of a shell: a program at a host by its number; how many members a group has; to which ports the switch sends."""

OPENSM = "opensm -d 2 -f opensm.log & echo $! > pid; wait_until 'grep -q \"SUBNET UP\" opensm.log'"
JOINS = """
for host in 1 2 4; do
    IRONBAND_HOST=H$host mckey -b 10.0.0.$host -m 239.1.2.3 > $host.out 2>&1 & echo $! > $host.pid
done
"""

COUNT = "for port in 2 4; do perfquery -x -G 0x200000 $port; done"
MESSAGES = 10
"""For which mckey waits, if it is not told another number."""


def sent(before: str, after: str, kind: str = "") -> list[int]:
    """How many packets of a kind have left by each port that was counted at, in between."""
    counts = [map(int, re.findall(rf"Port{kind}XmitPkts:\.+(\d+)", says)) for says in (before, after)]
    return [after - before for before, after in zip(*counts, strict=True)]


def told(says: str) -> list[str]:
    """What mckey tells of a group, and of what it has sent or received."""
    return re.findall(
        r"^joined dgid: .*|^\w+ data transfers|^data .* complete|^return .*", says.replace("mckey: ", ""), re.M
    )


def transfers(doing: str, mgid: str = MGID) -> list[str]:
    """The same, if all is well."""
    return [
        f"joined dgid: {mgid} mlid 0xc001 sl 0",
        f"{doing} data transfers",
        "data transfers complete",
        "return status 0",
    ]


@needs("mckey")
@pytest.mark.parametrize(
    ("manager", "rtl"),
    [
        ("Ironband", "none"),
        ("OpenSM", "none"),
        *(pytest.param(one, "all", marks=[pytest.mark.slow, pytest.mark.deep]) for one in ("Ironband", "OpenSM")),
    ],
)
def test_members_of_a_group_hear_what_is_sent_to_it_and_who_has_left_does_not(tmp_path, manager, rtl):
    (tmp_path / "four.net").write_text(FOUR)
    (tmp_path / "plan").write_text(ADDRESSES)
    options = ["--addresses", "plan", "--rtl", rtl, *(["--bring-up", "sm"] if manager == "Ironband" else [])]
    says = scripted(
        tmp_path,
        options,
        "four.net",
        {
            "functions": FUNCTIONS,
            "manager": OPENSM if manager == "OpenSM" else "true",
            "join": f"{JOINS}\nwait_until '[ $(members {MGID}) = 3 ] && leads_to \"x x   x\"'",
            "asked": "saquery -t 60000 -g; saquery --smkey 1 -t 60000 -m",
            "leave": f"kill -9 $(cat 4.pid); wait_until '[ $(members {MGID}) = 2 ] && leads_to \"x x\"'",
            "before": COUNT,
            "send": "mckey_at 3 -s -m 239.1.2.3; wait $(cat 1.pid) $(cat 2.pid)",
            "after": COUNT,
            "over": f"wait_until '[ $(members {MGID}) = 0 ]'; saquery -t 60000 -g; [ ! -e pid ] || kill $(cat pid)",
        },
    )
    assert told(says["send"]) == transfers("initiating"), says["all"]
    for host in (1, 2):
        assert told((tmp_path / f"{host}.out").read_text()) == transfers("receiving")
    assert sent(says["before"], says["after"], "Multicast") == [MESSAGES, 0]
    # H2 has its answers from the Subnet Administrator, too.
    assert sent(says["before"], says["after"], "Unicast")[0] <= 4
    assert sent(says["before"], says["after"])[1] == 0
    assert says["asked"].count(MGID) == 1 + 3
    assert [host for host in range(1, 5) if f"NodeDescription.........H{host}" in says["asked"]] == [1, 2, 4]
    assert re.findall(r"MGID\.+(.*)", says["over"]) == ["ff12:401b:ffff::ffff:ffff"]


WAYS = {
    "-m 239.1.2.9 -p 0x2": "ff12:401b:ffff::f01:209",
    "-m ff15::abcd": "ff12:6001:ffff::abcd",
    "-M ff1e::1:2": "ff1e::1:2",
}


@pytest.mark.deep
@needs("mckey")
def test_programs_join_groups_of_ipoib_and_by_mgids_and_only_to_send(tmp_path):
    (tmp_path / "four.net").write_text(FOUR)
    (tmp_path / "plan").write_text(ADDRESSES)
    start = "\n".join(f"mckey_at 1 {way} > {index}.received &" for index, way in enumerate(WAYS))
    wait = " && ".join(f"[ $(members {mgid}) = 1 ]" for mgid in WAYS.values())
    send = "\n".join(f"mckey_at 3 -s -o {way} > {index}.sent" for index, way in enumerate(WAYS))
    scripted(
        tmp_path,
        ["--addresses", "plan", "--bring-up", "sm"],
        "four.net",
        {"functions": FUNCTIONS, "receive": f"{start}\nwait_until '{wait}'", "send": f"{send}\nwait"},
    )
    for index, mgid in enumerate(WAYS.values()):
        for doing, suffix in (("receiving", "received"), ("initiating", "sent")):
            lines = told((tmp_path / f"{index}.{suffix}").read_text())
            assert [re.sub("mlid 0xc00[1-4]", "mlid 0xc001", line) for line in lines] == transfers(doing, mgid)
