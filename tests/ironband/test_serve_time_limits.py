"""How long packets may wait in a switch: what OpenSM writes has its effect, and strangers' tools show it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.ironband.served import TELL, TWO_SWITCHES, needs_programs, scripted
from tests.ironband.verbs_programs import FOUR

pytestmark = needs_programs

SHORT = """
head_of_queue_lifetime 0x02
leaf_head_of_queue_lifetime 0x01
packet_life_time 0x03
vl_stall_count 0x05
leaf_vl_stall_count 0x02
"""
SHORT_LIFE = """
packet_life_time 0x03
leaf_vl_stall_count 0x00
"""
NO_LIMITS = """
leaf_head_of_queue_lifetime 0x14
packet_life_time 0x17
"""
"""OpenSM 3.3.23 writes the upper three of LifeTimeValue's five bits; the lower two stay 1, as they are at reset."""

RUN = 2_000
"""Packets that H2 gets meanwhile."""


def opensm(options: str) -> dict[str, str]:
    """Lines for a shell, by which OpenSM brings a fabric up with such options."""
    return {"opensm": f"cat > options <<'END'\n{options}END\nopensm -o -F options -f opensm.log"}


def values(said: str) -> dict[str, int]:
    """What infiniband-diags print: names and numbers."""
    return {name: int(value) for name, value in re.findall(r"^(\w+):\.+(\d+)$", said, re.MULTILINE)}


def test_limits_are_as_opensm_has_been_told(tmp_path):
    (tmp_path / "two.net").write_text(TWO_SWITCHES)
    lines = {
        "between_switches": "smpquery portinfo -D 0,1 7",
        "at_a_host": "smpquery portinfo -D 0,1 2",
        "switch": "smpquery switchinfo -D 0,1",
    }
    said = scripted(tmp_path, [], "two.net", opensm(SHORT) | lines)
    wide, leaf = values(said["between_switches"]), values(said["at_a_host"])
    assert (wide["HoqLife"], wide["VLStallCount"]) == (2, 5)
    assert (leaf["HoqLife"], leaf["VLStallCount"]) == (1, 2)
    assert values(said["switch"])["LifeTime"] == 3
    assert " ERR " not in (tmp_path / "opensm.log").read_text()


def beside_a_stalled_host(folder: Path, options: str) -> tuple[dict[str, int], dict[str, int], int]:
    """H4 sends to H3, which takes nothing, and to H2, to which H1 sends too.

    What perfquery says of the switch's port at H3, how many packets there were by their way, and how many H2 got.
    """
    (folder / "four.net").write_text(FOUR)
    flows = {"H4 H3": 0.5, "H4 H2": 0.4, "H1 H2": 0.3}
    lines = {
        "switch": "switch=$(smpquery portinfo -D 0,1 0 | sed -n 's/^Lid:\\.*//p')",
        "sent": "sent() { perfquery $switch 2 | sed -n 's/^PortXmitPkts:\\.*//p'; }",
        "stall": f"{TELL} stall H3",
        "start": "; ".join(f"{TELL} flow {way} {rate} 1024" for way, rate in flows.items()),
        "run": f"wait_until '[ $(sent) -ge {RUN} ]'",
        "stop": "; ".join(f"{TELL} stop {way}" for way in flows),
        "discards": "perfquery -D $switch 3; perfquery $switch 3",
        "got": f"{TELL} counters H2",
        "release": f"{TELL} release H3",
    }
    said = scripted(folder, [], "four.net", opensm(options) | lines)
    assert said["stall"] + said["release"] == "H3[1]: takes nothing but VL15\nH3[1]: takes all again\n"
    posted = dict(re.findall(r"(.*): stopped after ([\d,]+) packets", said["stop"].replace(" to ", " ")))
    (got,) = re.findall(r"rcv_pkts ([\d,]+)", said["got"])
    numbers = {way: int(count.replace(",", "")) for way, count in posted.items()}
    return values(said["discards"]), numbers, int(got.replace(",", ""))


def test_packets_for_a_host_that_takes_nothing_are_discarded_and_hold_up_nobody(tmp_path):
    counted, posted, got = beside_a_stalled_host(tmp_path, SHORT)
    assert counted["PortSwHOQLifetimeLimitDiscards"] > 10
    assert counted["PortSwLifetimeLimitDiscards"] == 0
    # In a stall of the VL the others are discarded without a wait.
    assert counted["PortXmitDiscards"] > counted["PortSwHOQLifetimeLimitDiscards"]
    assert posted["H4 H2"] > RUN // 3
    assert got >= posted["H4 H2"] + posted["H1 H2"]


def test_packets_do_not_live_longer_than_they_may(tmp_path):
    counted, _posted, _got = beside_a_stalled_host(tmp_path, SHORT_LIFE)
    assert counted["PortSwLifetimeLimitDiscards"] == counted["PortXmitDiscards"] > 10
    assert counted["PortSwHOQLifetimeLimitDiscards"] == 0


def test_without_limits_they_wait_and_hold_up_all_that_their_host_sends(tmp_path):
    counted, posted, _got = beside_a_stalled_host(tmp_path, NO_LIMITS)
    assert counted["PortXmitDiscards"] == 0
    assert posted["H4 H2"] < RUN // 6
