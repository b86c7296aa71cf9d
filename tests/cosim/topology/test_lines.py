"""Single lines of topology files, in the forms in which people have them."""

import pytest

from cosim.topology.lines import Gap, Linked, NodeHead, PortLine, read_line
from cosim.topology.place import Wrong
from wire.node_info import NodeType

DISCOVERED = '[1](2c903) \t"S-0000000000000010"[36][ext 17]\t\t# lid 9 lmc 1 "far" lid 7 4xEDR'


@pytest.mark.parametrize(
    ("comment", "description"),
    [
        ('# "node001 HCA-1"', "node001 HCA-1"),
        ('# "rack "7" host"', 'rack "7" host'),
        ('# "a # b = c @ d"', "a # b = c @ d"),
        ('# "MF0;core:MSB7700/U1"', "MF0;core:MSB7700/U1"),
        ('# "trailing "', "trailing "),
        ('# "lid 5 lmc 3"', "lid 5 lmc 3"),
        ('# "gw" (scp)', "gw"),
        ('# ""', ""),
        ("#", ""),
        ("", ""),
        ('# a 19" rack', 'a 19" rack'),
        ('# the "big" one', 'the "big" one'),
        ('# "Überwacht 東京"', "Überwacht 東京"),
    ],
)
def test_a_description_may_have_any_character(comment, description):
    head = read_line(f'Ca\t2 "H"\t\t{comment}'.strip())
    assert head == NodeHead(NodeType.CA, 2, "H", description, False, None)


@pytest.mark.parametrize("description", ['"spine 1"', '"base port 0 lid 9 lmc 9"', '"a "b" c"'])
@pytest.mark.parametrize("kind", ["base", "enhanced"])
def test_a_switch_has_its_port_0_after_its_description(description, kind):
    head = read_line(f'Switch\t36 "S"\t\t# {description} {kind} port 0 lid 7 lmc 1')
    assert head == NodeHead(NodeType.SWITCH, 36, "S", description[1:-1], kind == "enhanced", (7, 1))


@pytest.mark.parametrize(("word", "kind"), [("Ca", NodeType.CA), ("Hca", NodeType.CA), ("Rt", NodeType.ROUTER)])
def test_nodes_with_ports_that_have_lids(word, kind):
    assert read_line(f'{word} 2 "N"') == NodeHead(kind, 2, "N", "", False, None)


@pytest.mark.parametrize(
    ("line", "far", "lid", "rate"),
    [
        (DISCOVERED, Linked("S-0000000000000010", 36), (9, 1), ("4", "EDR")),
        (f"{DISCOVERED} s=4 w=2 v=4", Linked("S-0000000000000010", 36), (9, 1), ("4", "EDR")),
        (f"{DISCOVERED} slot 3", Linked("S-0000000000000010", 36), (9, 1), ("4", "EDR")),
        ('[1](2c903)\t"S"[24]  # lid 18 lmc 0 "an old dump" lid 1', Linked("S", 24), (18, 0), None),
        ('[1](2c903) "H"[2](2c905) # "lid 3 1xSDR" lid 1 2xHDR', Linked("H", 2), None, ("2", "HDR")),
        ('[1](2c903) "H"[2] # "n" lid 1 ?????', Linked("H", 2), None, ("??", "???")),
        ('[1](2c903) "H"[2] # "n" lid 1 4x2.5', Linked("H", 2), None, ("4", "2.5")),
        ('[1](2c903)"H"', Linked("H", None), None, None),
        ('[1] (2c903) "pod@up"', Linked("pod@up", None), None, None),
        ('[1](0x2c903)\t"H"[1](0x2c907)', Linked("H", 1), None, None),
    ],
)
def test_ports_of_adapters(line, far, lid, rate):
    assert read_line(line) == PortLine(1, "2c903", far, (), lid, rate)


@pytest.mark.parametrize(
    ("text", "options"),
    [("w=1", (("w", "1"),)), (" w = 0x3 s=7\te=2 # w=9", (("w", "0x3"), ("s", "7"), ("e", "2"))), ("", ())],
)
def test_options_of_ports(text, options):
    line = read_line(f'[3] "S1" [4]{text}')
    assert line == PortLine(3, None, Linked("S1", 4), options, None, None)


@pytest.mark.parametrize(
    "line", ["", "Chassis 1", "Chassis 1 (guid 0x8f10400410000)", "Non-Chassis Nodes", "Hostname: gw 1"]
)
def test_what_ends_the_ports_of_a_node(line):
    assert read_line(line) == Gap()


@pytest.mark.parametrize("line", ["#", "# Spine Nodes", "# Reported max hops discovered: 3", "# Total MADs used: 44"])
def test_comments(line):
    assert read_line(line) is None


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('Switch\t : 0x0000000000200000 ports 8 devid 0x0 vendid 0x0 "S"', "is of a list of nodes"),
        (
            'Ca\t: 0x0000000000100000 ports 1 "H"',
            "is of a list of nodes, as ibnetdiscover -l prints: expected a topology",
        ),
        ("SW   742 24 0x0008f10400411a08 12x QDR - CA  1252  1 0x2 ( 'a' - 'b' )", "is of a report of ports"),
        ('> [3]\t"H-0000000000100000"[1](100001)', "is a difference, as ibnetdiscover --diff prints"),
        ("CA: H1 HCA-1:", "is of iblinkinfo"),
        ("           2    1[  ] ==( 4X           2.5 Gbps Active/  LinkUp)==>", "is of iblinkinfo"),
        ("Switch: 0x0000000000200000 S:", "is of iblinkinfo: expected a topology, as ibnetdiscover alone prints"),
        ("{", "malformed line '{': expected Switch|Ca|Rt PORTS"),
        ('include "', 'malformed line \'include "\': expected include "FILE"'),
    ],
)
def test_what_is_no_topology_is_told_for_what_it_is(line, what):
    with pytest.raises(Wrong) as caught:
        read_line(line.strip())
    assert what in str(caught.value)
