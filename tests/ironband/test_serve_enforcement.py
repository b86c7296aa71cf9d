"""Partitions that a Subnet Manager has made hold in the switch, whatever hosts do: unmodified programs say so."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.doors.real_programs import free_port, needs
from tests.ironband.served import needs_programs, scripted
from tests.ironband.verbs_programs import FOUR, LISTENS

pytestmark = [needs_programs, needs("ibv_rc_pingpong")]

PARTITIONS = """
Red = 0x0010, indx0 : 0x100001=full, 0x100003=full ;
Blue = 0x0020, indx0 : 0x100005=full, 0x100007=full ;
"""
"""H1 and H2 are in one, H3 and H4 in the other; what programs use that do not choose is at index 0."""

SET_P_KEYS = f"{sys.executable} {Path(__file__).parent / 'set_p_keys.py'}"

PINGPONG = """pingpong() {
    IRONBAND_HOST=$3 ibv_rc_pingpong -e -n 20 -p $1 > server.out 2>&1 &
    wait_until "listens $1 || ! kill -0 $!"
    IRONBAND_HOST=$2 ibv_rc_pingpong -e -n 20 -p $1 localhost
    status=$?
    kill $! 2> /dev/null
    return $status
}
"""
"""A shell's function: at a TCP port, from a host to another one."""

SENDS = 1 + 7
"""How often ibv_rc_pingpong has a packet sent that nothing answers: its retry count is 7."""

TRIED = "transport retry counter exceeded (12)"


@dataclass(frozen=True)
class Said:
    """What programs said, and what they could see of ports' errors afterwards."""

    said: dict[str, str]

    def gets_through(self, name: str) -> bool:
        assert ("20 iters in" in self.said[name]) != (TRIED in self.said[name]), self.said[name]
        return TRIED not in self.said[name]

    @property
    def switch(self) -> dict[tuple[int, str], int]:
        """The switch's counts of errors, by port and name, as ibqueryerrors finds them."""
        ports = re.findall(r"GUID 0x200000 port (\d+): (.*)", self.said["errors"])
        return {
            (int(port), name): int(count)
            for port, counts in ports
            for name, count in re.findall(r"\[(\w+) == (\d+)\]", counts)
        }

    @property
    def violations(self) -> dict[str, int]:
        """Packets with a wrong P_Key that have reached an adapter."""
        counts = re.findall(r"^PkeyViolations:\.+(\d+)", self.said["violations"], re.MULTILINE)
        return {f"H{host}": int(count) for host, count in enumerate(counts, 1) if count != "0"}


def tried(folder: Path, manager: str, how: str, rtl: str) -> Said:
    """Who gets through to whom: in a partition, between two, and a host that gives itself a P_Key."""
    (folder / "four.net").write_text(FOUR)
    (folder / "partitions.conf").write_text(PARTITIONS)
    ours = ["--bring-up", "sm", "--partitions", "partitions.conf", "--enforce", how]
    opensm = f"opensm -P partitions.conf -Z {how} -d 2 -f opensm.log & echo $! > pid"
    ports = [free_port() for _ in range(3)]
    lines = {
        "functions": LISTENS + PINGPONG,
        "manager": f"{opensm}; wait_until 'grep -q UP opensm.log'" if manager == "OpenSM" else "true",
        "in_one": f"pingpong {ports[0]} H1 H2",
        "between_two": f"pingpong {ports[1]} H1 H3",
        "gives_itself": f"IRONBAND_HOST=H4 {SET_P_KEYS} 0x8010 && pingpong {ports[2]} H4 H1",
        "errors": "ibqueryerrors --switch",
        "violations": "for port in 1 2 3 4; do smpquery portinfo -D 0,1,$port 1; done",
        "end": "[ ! -e pid ] || kill $(cat pid)",
    }
    return Said(scripted(folder, ["--rtl", rtl, *([] if manager == "OpenSM" else ours)], "four.net", lines))


STRANGERS = [("OpenSM", "none"), ("Ironband", "none"), pytest.param("OpenSM", "all", marks=pytest.mark.deep)]


@pytest.mark.parametrize(("manager", "rtl"), STRANGERS)
def test_the_switch_keeps_partitions_apart(tmp_path, manager, rtl):
    found = tried(tmp_path, manager, "both", rtl)
    assert found.gets_through("in_one")
    assert not found.gets_through("between_two")
    assert not found.gets_through("gives_itself")
    # No adapter has seen what it would have refused: it was the switch.
    assert found.switch == {(3, "PortXmitConstraintErrors"): SENDS, (4, "PortRcvConstraintErrors"): SENDS}
    assert found.violations == {}


@pytest.mark.parametrize("manager", ["OpenSM", "Ironband"])
def test_without_the_switch_adapters_refuse_and_who_lies_gets_through(tmp_path, manager):
    found = tried(tmp_path, manager, "off", "none")
    assert found.gets_through("in_one")
    assert not found.gets_through("between_two")
    assert found.gets_through("gives_itself")
    assert found.switch == {}
    assert found.violations == {"H3": SENDS}


# That Ironband sets the same as OpenSM, one way or the other, is said of tables (test_serve_partitions_switches.py).
@pytest.mark.parametrize("manager", ["OpenSM", pytest.param("Ironband", marks=pytest.mark.deep)])
def test_a_switch_that_checks_one_way_refuses_what_goes_that_way(tmp_path, manager):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    arriving, leaving = tried(tmp_path / "in", manager, "in", "none"), tried(tmp_path / "out", manager, "out", "none")
    assert arriving.switch == {(4, "PortRcvConstraintErrors"): SENDS}
    assert arriving.violations == {"H3": SENDS}
    assert set(leaving.switch) == {(3, "PortXmitConstraintErrors"), (4, "PortXmitConstraintErrors")}
    assert leaving.violations == {}
    for found in (arriving, leaving):
        assert found.gets_through("in_one")
        assert not found.gets_through("gives_itself")
