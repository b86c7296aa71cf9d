"""OpenSM with quality of service, partitions, multicast, congestion control and time limits, all in one run.

What each does alone, other tests of `ironband serve` say. Here one OpenSM has written them all, from one file of
options and one of partitions, and each has its effect beside the others, as unmodified programs and packets show.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from pathlib import Path

import pytest

from cosim.topology.topology_file import read_topology
from ironband.inputs import topology_asked
from sm.subnet import Subnet
from tests.capture.reading import read_packets
from tests.doors.real_programs import free_port, needs
from tests.ironband.served import TELL, needs_programs, scripted
from tests.ironband.test_serve_congestion import values
from tests.ironband.test_serve_enforcement import PINGPONG, SENDS, SET_P_KEYS, Said
from tests.ironband.test_serve_multicast import FUNCTIONS, MESSAGES, sent, told
from tests.ironband.test_serve_partitions import route_text, routes
from tests.ironband.verbs_programs import LISTENS
from wire.opcodes import Opcode
from wire.packet import Packet, parse

pytestmark = [needs_programs, needs("mckey", package="rdmacm-utils")]

FIVE = "\n".join(
    [
        'Switch 5 "SW1"',
        *(f'[{host}] "H{host}"[1]' for host in range(1, 6)),
        *(f'Hca 1 "H{host}"\n[1] "SW1"[{host}]' for host in range(1, 6)),
        "",
    ]
)
"""OpenSM is at H1. H2 and H3 send to H4; H5 is in another partition."""

SLS, VLS, WEIGHTS = (0, 1), (0, 2), (34, 102)
"""Of two loads: service levels, the VLs that OpenSM maps them to, and the weights of these in blocks of 64 bytes."""

OPTIONS = f"""
qos TRUE
qos_max_vls 4
qos_high_limit 0
qos_vlarb_high 0:0
qos_vlarb_low {VLS[0]}:{WEIGHTS[0]},{VLS[1]}:{WEIGHTS[1]}
qos_sl2vl {VLS[0]},{VLS[1]},3,3,0,0,0,0,0,0,0,0,0,0,0,0
congestion_control TRUE
cc_sw_cong_setting_control_map 0x14
cc_sw_cong_setting_threshold 15
cc_sw_cong_setting_packet_size 4
cc_ca_cong_setting_control_map 0x0002
cc_ca_cong_setting_ccti_increase 1 1
cc_ca_cong_setting_ccti_timer 1 150
cc_ca_cong_setting_trigger_threshold 1 4
cc_cct 0:0,0:1,0:2,0:3,0:4,0:5,0:6,0:7
head_of_queue_lifetime 0x04
leaf_head_of_queue_lifetime 0x03
packet_life_time 0x0b
leaf_vl_stall_count 0x02
"""
"""Heads wait 33 us at most for a host, and the turn of a VL is over after 7 us."""

LOAD_BYTES = 1024
"""Of a packet's payload."""


def partitions(red: list[int], blue: int) -> str:
    """A partition of some hosts, with a group of IPoIB, and one of another; both at index 0.

    OpenSM's own host stays in the default one at index 0: it asks all adapters about congestion control by that.
    """
    guid = {host: f"{0x100001 + 2 * (host - 1):#x}=full" for host in (*red, blue)}
    return f"""
Default = 0x7fff : ALL=full ;
Red = 0x0010, indx0, ipoib, sl={SLS[1]} : {", ".join(guid[host] for host in red)} ;
Blue = 0x0020, indx0 : {guid[blue]} ;
"""


def configured(
    folder: Path, options: list[str], topology: str, *, red: list[int], blue: int, then: dict[str, str]
) -> dict[str, str]:
    """OpenSM brings a fabric of four VLs up and stays; what programs say thereafter."""
    (folder / "options").write_text(OPTIONS)
    (folder / "partitions.conf").write_text(partitions(red, blue))
    (folder / "plan").write_text("".join(f"10.0.0.{host} H{host}\n" for host in red))
    lines = {
        "functions": LISTENS + PINGPONG + FUNCTIONS + SHELL,
        "opensm": "opensm -F options -P partitions.conf -d 2 -f opensm.log & echo $! > pid; "
        "wait_until 'grep -q \"SUBNET UP\" opensm.log'",
        **then,
        # What is on its way when OpenSM ends is in its log as an error.
        "end": "cat opensm.log; kill $(cat pid)",
    }
    said = scripted(folder, ["--vls", "4", "--addresses", "plan", *options], topology, lines)
    assert "SUBNET UP" in said["end"]
    assert " ERR " not in said["end"]
    assert said["settled"] == ""
    return said


SHELL = """
lid() { smpquery portinfo -D $1 | sed -n 's/^Lid:\\.*//p'; }
marks() { ibccquery SwitchCongestionSetting $(lid $1) | grep -q 'Threshold:\\.*0x0f'; }
slows_down() { ibccquery CongestionControlTable $(lid $1) | grep -q 'Multiplier:\\.*7$'; }
passes() {
    end=$(($(stamp) + $1))
    wait_until '[ $(stamp) -ge $end ]'
}
stamp() { ibccquery Timestamp $(lid 0,1) | sed -n 's/^Timestamp:\\.*//p'; }
"""
"""A shell's functions: the LID at a directed route, whether OpenSM has set congestion control there, and waiting until
so many times 1.024 us have passed in the fabric, which goes on by itself while there is traffic."""


def settled(switches: Iterable[str], adapters: Iterable[str]) -> str:
    """Shell commands that wait for congestion control, with which OpenSM goes on when the subnet is up."""
    return f"""
for way in {" ".join(switches)}; do wait_until "marks $way"; done
for way in {" ".join(adapters)}; do wait_until "slows_down $way"; done
"""


def group(sender: int, sender_way: str, hearer: int, hearer_way: str) -> dict[str, str]:
    """Both hosts are in the group of IPoIB at 239.1.2.3, and when it leads from one to the other, the first one sends.

    The ways are the hosts' directed routes.
    """
    join = "".join(f"mckey_at {host} -m 239.1.2.3 > {host}.heard 2>&1 & " for host in (sender, hearer))
    leads = f"ibtracert -m 0xc001 $(lid {sender_way}) $(lid {hearer_way})"
    return {
        "join": f"{join} wait_until '{leads}'",
        "send": f"mckey_at {sender} -s -m 239.1.2.3",
        "hear": f"wait_until 'grep -q return {hearer}.heard'; cat {hearer}.heard",
    }


def transfers(doing: str) -> list[str]:
    return [
        f"joined dgid: ff12:4001:8010::f01:203 mlid 0xc001 sl {SLS[1]}",
        f"{doing} data transfers",
        "data transfers complete",
        "return status 0",
    ]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("none", id="model"),
        pytest.param("all", id="rtl", marks=(pytest.mark.slow, pytest.mark.deep)),
    ],
)
def folder(request, tmp_path_factory) -> Path:
    """Where what programs said in the fabric of five hosts stands, by what they did, and the packets that H4 got."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "five.net").write_text(FIVE)
    options = ["--rtl", request.param, "--capture", "links.pcapng", "--capture-at", "H4:in"]
    ports = [free_port() for _ in range(4)]
    counters = "for port in 2 3 4 5; do perfquery -x $(lid 0,1) $port; done"
    then = {
        "settled": settled(["0,1"], ["0,1,2", "0,1,3"]),
        "before": counters,
        **group(3, "0,1,3", 4, "0,1,4"),
        "after": counters,
        "load": f"{TELL} flow H2 H4 1 {LOAD_BYTES} {SLS[0]}; {TELL} flow H3 H4 1 {LOAD_BYTES} {SLS[1]}; passes 1000; "
        f"{TELL} stop H2 H4; {TELL} stop H3 H4",
        "marks": "ibccquery CongestionLog $(lid 0,1)",
        "crowd": crowd(ports[0]),
        "steps": "ibccquery CongestionLog $(lid 0,1,2)",
        "in_one": f"pingpong {ports[1]} H2 H4",
        "between_two": f"pingpong {ports[2]} H2 H5",
        "gives_itself": f"IRONBAND_HOST=H5 {SET_P_KEYS} 0x8010 && pingpong {ports[3]} H5 H2",
        "errors": "ibqueryerrors --switch",
        "stalled": f"{TELL} stall H4; {TELL} flow H2 H4 1 512; passes 1000; {TELL} stop H2 H4; "
        f"perfquery -D $(lid 0,1) 4; perfquery $(lid 0,1) 4; {TELL} release H4",
    }
    configured(folder, options, "five.net", red=[2, 3, 4], blue=5, then=then)
    return folder


def crowd(port: int) -> str:
    """H2 writes to H4, at the service level on which OpenSM has adapters slow down, and H3 leaves it no peace."""
    write = f"ib_write_bw -S {SLS[1]} -n 20 -s 16384 -p {port}"
    return f"""
IRONBAND_HOST=H4 {write} & wait_until 'listens {port}'
{TELL} flow H3 H4 1 512 {SLS[1]}
IRONBAND_HOST=H2 {write} localhost
{TELL} stop H3 H4
wait $!
"""


@pytest.fixture
def said(folder) -> dict[str, str]:
    return {file.stem: file.read_text() for file in folder.glob("*.out")}


@pytest.fixture(scope="module")
def load(folder) -> list[Packet]:
    """Of the packets that H4 got, those of the two loads, in their order."""
    packets = [parse(captured.data) for captured in read_packets(folder / "links.pcapng") if not captured.is_link]
    return [
        packet for packet in packets if packet.bth.opcode == Opcode.UD_SEND_ONLY and len(packet.payload) == LOAD_BYTES
    ]


def test_loads_of_two_service_levels_share_a_link_by_the_weights_of_their_vls(load):
    assert {(packet.lrh.sl, packet.lrh.vl) for packet in load} == set(zip(SLS, VLS, strict=True))
    order = [packet.lrh.sl for packet in load]
    first = max(order.index(sl) for sl in SLS)
    last = min(len(order) - order[::-1].index(sl) for sl in SLS)
    # Packets leave in a turn as long as any weight is left, and the last of them may overdraw it.
    turns = [ceil(weight / load[0].blocks) for weight in WEIGHTS]
    assert last - first > 50 * sum(turns), "or the first and the last turn, which are cut, are more than 2 %"
    shares = [order[first:last].count(sl) / (last - first) for sl in SLS]
    assert shares == pytest.approx([packets / sum(turns) for packets in turns], abs=0.02)


def test_the_switch_marks_what_waits_at_the_port_that_two_hosts_crowd(load, said):
    log = values(said["marks"])
    assert int(log["LogEventsCounter"][0]) > 100
    assert int(log["PortMap"][0], 16) == 1 << 4
    assert {packet.lrh.sl for packet in load if packet.bth.fecn} == set(SLS)


def test_adapters_whose_packets_are_marked_slow_down(said):
    assert said["crowd"].count("BW average") == 2, "at either end"
    log = values(said["steps"])
    assert int(log["ThresholdEventCounter"][0]) > 0
    assert int(log["ThresholdCongestionEventMap"][0], 16) == 1 << SLS[1]


def test_the_switch_refuses_a_packet_of_a_partition_that_a_port_does_not_have(said):
    programs = Said(said)
    assert programs.gets_through("in_one")
    assert not programs.gets_through("between_two")
    assert not programs.gets_through("gives_itself")
    refused = {(port, name): count for (port, name), count in programs.switch.items() if "Constraint" in name}
    assert refused == {(5, "PortXmitConstraintErrors"): SENDS, (5, "PortRcvConstraintErrors"): SENDS}


def test_members_of_the_group_hear_what_is_sent_to_it_and_nobody_else(said):
    assert told(said["send"]) + told(said["hear"]) == transfers("initiating") + transfers("receiving")
    assert sent(said["before"], said["after"], "Multicast") == [0, 0, MESSAGES, 0]


def test_packets_for_a_host_that_takes_nothing_are_discarded(said):
    counted = {name: int(count) for name, (count, *_) in values(said["stalled"]).items() if "Discards" in name}
    assert counted["PortSwHOQLifetimeLimitDiscards"] > 2
    assert counted["PortSwLifetimeLimitDiscards"] == 0
    # In a stall of the VL the others are discarded without a wait.
    assert counted["PortXmitDiscards"] > counted["PortSwHOQLifetimeLimitDiscards"]


def tables(subnet: Subnet, ways: list[str]) -> str:
    """Shell commands that print what OpenSM has written to each switch, and to its ports that have a link."""
    return "\n".join(
        f"smpquery switchinfo -D {way}\n"
        + "\n".join(
            f"smpquery vlarb -D {way} {port}; smpquery portinfo -D {way} {port}; smpquery sl2vl -D {way} {port}; "
            f"smpquery pkeys -D {way} {port}"
            for port, _far in subnet.neighbours(switch.guid)
        )
        for switch, way in zip(subnet.switches, ways, strict=True)
    )


FABRICS = [
    "ring_4",
    "parallel",
    *(
        pytest.param(name, marks=pytest.mark.deep)
        for name in ("fat_tree", "mesh_4x4", "torus_4x4", "hypercube_4", "tree_3")
    ),
]


@pytest.mark.parametrize("topology", FABRICS)
def test_every_fabric_comes_up_with_all_of_it(tmp_path, topology):
    subnet = read_topology(topology_asked(topology)).subnet
    ways = {name: route_text(route) for name, route in routes(topology).items()}
    of_switches = [ways.pop(switch.description) for switch in subnet.switches]
    last = len(ways)
    then = {
        "settled": settled(of_switches, ways.values()),
        "tables": tables(subnet, of_switches),
        **group(2, ways["H2"], last, ways[f"H{last}"]),
    }
    said = configured(tmp_path, [], topology, red=[2, last], blue=3, then=then)
    ends = [far for switch in subnet.switches for _port, far in subnet.neighbours(switch.guid)]
    at_switches = [subnet.nodes[end.guid].is_switch for end in ends]
    read = values(said["tables"])
    assert read["LifeTime"] == ["11"] * len(subnet.switches)
    assert read["HoqLife"] == ["4" if is_switch else "3" for is_switch in at_switches]
    assert read["OperVLs"] == ["VL0-3"] * len(ends)
    lines = said["tables"].splitlines()
    assert lines.count(f"VL    : |{row(VLS)}") == len(ends)
    assert lines.count(f"WEIGHT: |{row(WEIGHTS)}") == len(ends)
    mappings = sum((node.ports + 1) * len(list(subnet.neighbours(node.guid))) for node in subnet.switches)
    assert said["tables"].count(f": | {VLS[0]}| {VLS[1]}| 3| 3|{' 0|' * 12}") == mappings
    checks = [str(int(not is_switch)) for is_switch in at_switches]
    assert read["PartEnforceInb"] == read["PartEnforceOutb"] == checks
    assert [said["tables"].count(f"   0: {key:#x} 0xffff 0x0000") for key in (0x8010, 0x8020)] == [2, 1]
    assert told(said["send"]) + told(said["hear"]) == transfers("initiating") + transfers("receiving")


def row(entries: tuple[int, int]) -> str:
    """Eight entries as smpquery prints them."""
    return "".join(f"{entry:<#4x}|" for entry in (*entries, *[0] * 6))
