"""Topology files of ibsim and ibnetdiscover: what they say, and what is wrong with one, in one line."""

from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from cosim.topology.subnet_text import format_topology
from cosim.topology.topology_file import (
    TopologyError,
    find_topology,
    packaged_topologies,
    parse_topology,
    read_topology,
)
from sm.subnet import End, Speed, Subnet
from tests.files import TOPOLOGIES
from tests.sm.subnets import random_subnet
from wire.codes import LinkWidth
from wire.node_info import NodeType

PACKAGED = packaged_topologies()
FABRICS = ["back_to_back", "fat_tree", "odd", "parallel", "ring_4", "star"]
"""Fabrics of which there is an `.ibnetdiscover` file for the `.net` file.

infiniband-diags 44.0 wrote it, after ibsim 0.10 had read the `.net` file and OpenSM 3.3.23 had given out LIDs.
"""

WHEN = datetime(2026, 11, 7, 6, 5, 4)


def records(text: str) -> set[str]:
    """What stands between empty lines, but for the head with its date."""
    return {record.strip() for record in text.split("\n\n")[1:]}


def without_lids(subnet: Subnet) -> Subnet:
    for node in subnet.nodes.values():
        for port in node.end_ports.values():
            port.lid = port.lmc = 0
    return subnet


@pytest.mark.parametrize("name", FABRICS)
def test_a_net_file_means_what_ibsim_takes_it_for(name):
    """GUIDs, port GUIDs, descriptions, ids, widths and speeds: all of what ibnetdiscover saw of it."""
    hand_written = read_topology(PACKAGED.get(name, TOPOLOGIES / f"{name}.net")).subnet
    discovered = read_topology(TOPOLOGIES / f"{name}.ibnetdiscover").subnet
    assert without_lids(discovered) == hand_written


@pytest.mark.parametrize("name", FABRICS)
def test_what_is_written_is_what_ibnetdiscover_writes(name):
    text = (TOPOLOGIES / f"{name}.ibnetdiscover").read_text()
    subnet = parse_topology(text, name).subnet
    origin = End(next(iter(subnet.nodes)), 1)
    assert records(format_topology(subnet, origin, WHEN)) == records(text)


def test_the_head_names_date_and_origin():
    subnet = read_topology(PACKAGED["star"]).subnet
    assert format_topology(subnet, End(0x100000, 1), WHEN).splitlines()[:5] == [
        "#",
        "# Topology file: generated on Sat Nov  7 06:05:04 2026",
        "#",
        "# Initiated from node 0000000000100000 port 0000000000100001",
        "",
    ]


def test_a_node_without_a_system_image_guid_has_no_line_of_it():
    """0 says that the node belongs to no system of several (IBTA vol 1, 14.2.5.3)."""
    subnet = read_topology(PACKAGED["star"]).subnet
    assert format_topology(subnet, End(0x100000, 1), WHEN).count("sysimgguid") == 3
    subnet.nodes[0x200000].system_image_guid = 0
    assert format_topology(subnet, End(0x100000, 1), WHEN).count("sysimgguid") == 2


@pytest.mark.parametrize("seed", range(50))
def test_a_written_topology_is_read_again_as_it_was(seed):
    """Random fabrics with parallel links, cables from a switch to itself, dual-port hosts and islands."""
    subnet = random_subnet(seed)
    for number, node in enumerate(subnet.nodes.values()):
        node.description = f"node {number} of {seed}"
        node.system_image_guid = node.guid
        node.vendor_id, node.device_id = 0x2C9, number
    for lid, (end, port) in enumerate(subnet.reachable_end_ports, 1):
        port.lid, port.lmc = lid, 0 if subnet.nodes[end.guid].is_switch else lid % 8
    text = format_topology(subnet, End(next(iter(subnet.nodes)), 1), WHEN)
    assert parse_topology(text, "again").subnet == subnet


def test_a_hand_written_file_needs_names_and_links_only():
    topology = read_topology(PACKAGED["star"])
    assert topology.ids == {0x200000: "SW1", 0x100000: "H1", 0x100002: "H2"}
    assert [place.line for place in topology.places.values()] == [2, 6, 9]
    switch = topology.subnet.nodes[0x200000]
    assert (switch.type, switch.ports, switch.description) == (NodeType.SWITCH, 8, "SW1")
    assert [str(far) for _port, far in topology.subnet.neighbours(0x200000)] == [
        "0x0000000000100000[1]",
        "0x0000000000100002[1]",
    ]
    assert {(link.width, link.speed) for link in topology.subnet.links} == {(LinkWidth.X4, Speed.SDR)}


def test_what_a_real_fabric_s_dump_has_beside_is_read_over():
    """Chassis grouping, external port numbers, full port information."""
    text = """\
Chassis 1 (guid 0x2c90200410000)

# Spine Nodes
vendid=0x2c9
devid=0xcb20
sysimgguid=0xe41d2d0300000012\t\t# Chassis 1
switchguid=0xe41d2d0300000010(e41d2d0300000010)\t# MTX6000 spine 1
Switch\t36 "S-e41d2d0300000010"\t\t# "MF0;core:MSB7700/U1" enhanced port 0 lid 7 lmc 0
[1][ext 17]\t"H-7cfe900300000020"[1](7cfe900300000020) \t\t# "node001 HCA-1" lid 9 4xEDR s=4 w=2 v=4

Non-Chassis Nodes

vendid=0x2c9
devid=0x1013
sysimgguid=0x7cfe900300000020
caguid=0x7cfe900300000020
Ca\t1 "H-7cfe900300000020"\t\t# "node001 HCA-1"
[1](7cfe900300000020) \t"S-e41d2d0300000010"[1][ext 17]\t\t# lid 9 lmc 1 "MF0;core:MSB7700/U1" lid 7 4xEDR s=4 w=2 v=4
"""
    subnet = parse_topology(text, "dump").subnet
    switch, host = subnet.nodes.values()
    assert (switch.description, switch.enhanced_port_0, switch.device_id) == ("MF0;core:MSB7700/U1", True, 0xCB20)
    assert switch.end_ports[0].lid == 7
    assert (host.end_ports[1].guid, host.end_ports[1].lid, host.end_ports[1].lmc) == (0x7CFE900300000020, 9, 1)
    assert subnet.link(End(host.guid, 1)).speed == Speed.EDR


def test_a_description_may_stand_without_quotes_and_beside_a_lid():
    text = 'Switch 4 "S1"   # the first switch base port 0 lid 5 lmc 0\nSwitch 4 "S2" # lid 6 lmc 0\nSwitch 4 "S3"\n'
    nodes = list(parse_topology(text, "net").subnet.nodes.values())
    assert [node.description for node in nodes] == ["the first switch", "S2", "S3"]
    assert [node.end_ports[0].lid for node in nodes] == [5, 6, 0]


STAR = ['Switch 4 "S"', '[1] "A"[1]', '[2] "B"[1]', "", 'Ca 1 "A"', '[1] "S"[1]', "", 'Ca 2 "B"', '[1] "S"[2]']


@pytest.mark.parametrize(
    ("line", "text", "error"),
    [
        (3, '[2] "C"[1]', '3: "S"[2] is linked to unknown node "C"'),
        (3, '[1] "B"[1]', '3: port "S"[1] is used twice: line 2 has it already'),
        (3, '[3] "A"[1]', '3: port "A"[1] is used twice: "S"[3] leads to it, but line 6 links it to "S"[1]'),
        (3, '[2] "B"[2]', '3: "S"[2] is a link to nowhere: "B"[2] has no line that leads back'),
        (3, '[2] "B"[3]', '3: "S"[2] is linked to "B"[3]: expected a port of 1..2'),
        (3, '[2] "S"[2]', '3: "S"[2] is linked to itself, expected another port'),
        (3, '[5] "B"[1]', '3: port 5 of "S" is out of range: expected 1..4'),
        (3, '[0] "B"[1]', '3: port 0 of "S" is out of range: expected 1..4'),
        (3, "[2] B[1]", "3: malformed port line '[2] B[1]': expected [PORT] \"NAME\"[PORT]"),
        (3, '[2] "B"[1] x=1', "3: port option 'x': expected w, s or e"),
        (3, '[2] "B"[1] w=32', "3: width 32: expected a number of 1..31"),
        (3, '[2] "B"[1] w=8', '3: the ends "S"[2] and "B"[1] share no width: one has 12X, the other 4X'),
        (3, '[2] "B"[1] s=4', '3: the ends "S"[2] and "B"[1] share no speed'),
        (3, '[2] "B"[1] # "B" lid 2 3xSDR', "3: link 3xSDR: expected a width of 1x, 2x, 4x, 8x, 12x and a speed of"),
        (4, '[2] "A"[1]', '4: port "S"[2] is used twice: line 3 has it already'),
        (4, "width=4 lanes", "4: malformed line 'width=4 lanes': expected Switch|Ca|Rt PORTS \"NAME\" or [PORT]"),
        (4, "depth=4", "4: depth=: unknown setting"),
        (4, "caguid=one", "4: caguid one: expected a number of 0..0xffffffffffffffff"),
        (4, "vendid=0x1000000", "4: vendid 0x1000000: expected a number of 0..16777215"),
        (5, 'Ca 1 "S"', '5: name "S" is used twice: line 1 has it already'),
        (5, 'Ca 1 ""', '5: node name "": expected one without # and @'),
        (5, 'Ca 1 "A@B"', '5: node name "A@B": expected one without # and @'),
        (5, f'Ca 1 "{"A" * 65}"', f'5: node description "{"A" * 65}": expected at most 64 bytes'),
        (5, 'Ca 1 "A" # "x\0y"', "5: node description 'x\\x00y': expected one without NUL, which ends it"),
        (5, 'Ca 0 "A"', '5: "A" has 0 ports: expected 1..254'),
        (5, 'Switch 255 "A"', '5: "A" has 255 ports: expected 1..254'),
        (5, 'Hub 4 "A"', "5: malformed line 'Hub 4 \"A\"': expected Switch|Ca"),
        (5, "", "6: a port's line belongs to no node: expected it right after a node's line"),
        (6, '[1] "S"[1] # lid 49152 lmc 0 "S" lid 1 4xSDR', "6: lid 49152: expected 0..49151"),
        (6, '[1] "S"[1] # lid 8 lmc 8 "S" lid 1 4xSDR', "6: lmc 8: expected 0..7"),
        (6, '[1](100003) "S"[1]', "9: port GUID 0x100003 is used twice: line 6 has it already"),
        (
            4,
            "caguid=0xffffffffffffffff",
            '5: GUID 0xffffffffffffffff of "A": expected room for its ports\' GUIDs below',
        ),
        (5, f'Ca {"9" * 5000} "A"', "5: malformed line 'Ca 99999999"),
        (7, "caguid=0x100000", '8: GUID 0x100000 of "B" is used twice: line 5 has it already'),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_reason(line, text, error):
    lines = list(STAR)
    lines[line - 1] = text
    with pytest.raises(TopologyError) as caught:
        parse_topology("\n".join(lines), "star.net")
    assert str(caught.value).startswith(f"star.net:{error}")
    assert "\n" not in str(caught.value)


MODULES = """
module="A"
Switch 4 "S"
@[1] "up" w=3
[2] "S"[3] # "S" lid 0 4xHDR
[3] "S"[2] # "S" lid 0 4xHDR

module=""
Rt 1 "R"
[1] "A@up" w=2
do unlink "A#S"[4]
"""


@pytest.mark.parametrize("seed", range(300))
def test_a_damaged_file_is_a_topology_or_a_wrong_one(seed):
    """Characters changed, lost and doubled give only TopologyErrors, with a line that exists."""
    random = Random(seed)
    files = [TOPOLOGIES / "odd.net", TOPOLOGIES / "odd.ibnetdiscover", PACKAGED["parallel"]]
    text = random.choice([MODULES, *(file.read_text() for file in files)])
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(text))
        text = text[:place] + random.choice(["", text[place] * 2, *'[]()"#=+@ \t\n01x9fSC']) + text[place + 1 :]
    try:
        parse_topology(text, "damaged.net")
    except TopologyError as error:
        file, line, reason = str(error).split(":", 2)
        assert file == "damaged.net"
        assert 1 <= int(line) <= len(text.split("\n"))
        assert reason.strip()


def test_more_nodes_than_lids_are_told_at_the_one_too_many():
    switches = [f'Switch 2 "S{number}"' for number in range(1, 0xC000)]
    assert len(parse_topology("\n".join(switches), "big.net").subnet.nodes) == 0xBFFF
    with pytest.raises(TopologyError, match=r"^big.net:49152: more than 49151 \(0xBFFF\) LIDs are needed$"):
        parse_topology("\n".join([*switches, 'Switch 2 "one more"']), "big.net")
    switches[1:2] = ['[1] "H"', 'Ca 1 "H"', '[1] "S1"[1]', 'Switch 2 "S2"']
    with pytest.raises(TopologyError, match=r"^big.net:49154: more than 49151 \(0xBFFF\) LIDs are needed$"):
        parse_topology("\n".join(switches), "big.net")


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, ": No such file or directory"),
        (b"\nSwitch \xff", ":2: byte 0xff is not UTF-8, expected a topology file"),
        (b"# nothing\n", ": no nodes, expected a topology of ibsim or ibnetdiscover"),
    ],
)
def test_a_file_that_is_no_topology_is_told(tmp_path, data, error):
    path = tmp_path / "some.net"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(TopologyError) as caught:
        read_topology(path)
    assert str(caught.value) == f"{path}{error}"


def written(folder: Path, **texts: str) -> dict[str, Path]:
    """Files of a folder, by their names without `.net`."""
    paths = {name: folder / f"{name}.net" for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text)
    return paths


def test_an_included_file_is_looked_for_as_ibsim_does_then_beside_the_one_that_does_it(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    written(tmp_path / "here", both='Switch 2 "here"')
    path = written(
        tmp_path / "there",
        both='Switch 2 "there"',
        one='Switch 2 "beside"',
        all='include "both.net"\ninclude "one.net"',
    )["all"]
    monkeypatch.chdir(tmp_path / "here")
    topology = read_topology(path)
    assert list(topology.ids.values()) == ["here", "beside"]
    assert [str(place) for place in topology.places.values()] == ["both.net:1", f"{tmp_path}/there/one.net:1"]
    assert [file.path.name for file in topology.files] == ["all.net", "both.net", "one.net"]


def test_ports_end_with_the_included_file(tmp_path):
    path = written(tmp_path, part='Switch 2 "S"\n[1] "S"[2]', all='include "part.net"\n[2] "S"[1]')["all"]
    with pytest.raises(TopologyError, match=r"all\.net:2: a port's line belongs to no node"):
        read_topology(path)


def test_settings_and_modules_go_on_after_an_included_file(tmp_path):
    path = written(tmp_path, ids='devid=7\nmodule="A"', all='include "ids.net"\nSwitch 2 "S"')["all"]
    topology = read_topology(path)
    assert topology.ids == {0x200000: "A#S"}
    assert topology.subnet.nodes[0x200000].device_id == 7


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('Switch 2 "S"\nSwitch 2 "U"\nSwitch 2 "S"', 'b.net:3: name "S" is used twice: line 1 has it already (includ'),
        ('Switch 2 "T"', 'b.net:1: name "T" is used twice: a.net:1 has it already (included at a.net:2)'),
        (
            'include "a.net"',
            'b.net:1: include "a.net": it is being read already, expected a file that does not include',
        ),
        (
            'include "b.net"',
            'b.net:1: include "b.net": it is being read already, expected a file that does not include',
        ),
        ('include "c.net"', 'b.net:1: include "c.net": No such file or directory (included at a.net:2)'),
        ('include "."', 'b.net:1: include ".": Is a directory (included at a.net:2)'),
        ('[1] "T"', "b.net:1: a port's line belongs to no node: expected it right after a node's line (included at a"),
        (
            'Switch 2 "S"\n[2] "T"[2]',
            'b.net:2: "S"[2] is a link to nowhere: "T"[2] has no line that leads back (included',
        ),
    ],
)
def test_what_is_wrong_in_an_included_file_is_told_with_both_places(tmp_path, monkeypatch, text, error):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, a='Switch 2 "T"\ninclude "b.net"', b=text)
    with pytest.raises(TopologyError) as caught:
        read_topology("a.net")
    assert str(caught.value).startswith(error)


def test_an_included_file_that_is_no_text_is_told_with_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, a='include "b.net"')
    (tmp_path / "b.net").write_bytes(b"# one\n# \xe9\n")
    with pytest.raises(TopologyError, match=r"^b\.net:2: byte 0xe9 is not UTF-8, expected a topology file"):
        read_topology("a.net")


def test_files_that_include_others_too_deep_or_too_often_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, **{f"f{level}": f'include "f{level + 1}.net"\n' * 10 for level in range(10)}, f10="")
    with pytest.raises(
        TopologyError, match=r'^f8\.net:1: include "f9\.net": expected at most 9 files within each other'
    ):
        read_topology("f0.net")
    with pytest.raises(TopologyError, match=r'^f9\.net:\d+: include "f10\.net": expected at most 1,000 in all'):
        read_topology("f5.net")


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_files_of_other_systems_are_read(tmp_path, start, end):
    path = tmp_path / "some.net"
    path.write_bytes(start + (TOPOLOGIES / "odd.ibnetdiscover").read_bytes().replace(b"\n", end))
    assert read_topology(path).subnet == read_topology(TOPOLOGIES / "odd.ibnetdiscover").subnet


def test_speeds_of_all_years_are_kept_and_written_again():
    rates = [f"{width}x{speed.name}" for width in (1, 2, 4, 8, 12) for speed in Speed]
    ports = 2 * len(rates)
    lines = [f'Switch {ports} "S"']
    for number, rate in enumerate(rates):
        one, other = 2 * number + 1, 2 * number + 2
        lines += [f'[{one}] "S"[{other}] # "S" lid 0 {rate}', f'[{other}] "S"[{one}] # "S" lid 0 {rate}']
    subnet = parse_topology("\n".join(lines), "all").subnet
    text = format_topology(subnet, End(0x200000, 1), WHEN)
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("[")] == [
        rate for rate in rates for _end in range(2)
    ]
    assert parse_topology(text, "again").subnet == subnet


def test_a_topology_that_comes_with_ironband_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {"fat_tree", "parallel", "ring_4", "star"} < set(PACKAGED)
    assert find_topology("ring_4") == PACKAGED["ring_4"]
    assert find_topology("mine.net") == Path("mine.net")
    with pytest.raises(TopologyError, match=r"^topology 'mine': no such file, and Ironband comes with: fat_tree, "):
        find_topology("mine")
    (tmp_path / "ring_4").touch()
    assert find_topology("ring_4") == Path("ring_4"), "files go before"
