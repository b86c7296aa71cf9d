"""Aliases, modules and commands of ibsim's language, and links by them."""

import pytest

from cosim.topology.topology_file import TopologyError, TopologyFile, parse_topology
from sm.subnet import Speed
from wire.codes import LinkWidth


def read(text: str) -> TopologyFile:
    return parse_topology(text, "net")


def links(topology: TopologyFile) -> set[str]:
    return {
        f"{topology.ids[link.a.guid]}[{link.a.port}]-{topology.ids[link.b.guid]}[{link.b.port}]"
        for link in topology.subnet.links
    }


def test_a_link_to_an_alias_stands_at_one_end_alone():
    topology = read('Switch 4 "S1"\n@[2] "up"\n[1] "S2"[1]\n\nSwitch 4 "S2"\n[1] "S1"[1]\n[3] "@up"')
    assert links(topology) == {"S1[1]-S2[1]", "S1[2]-S2[3]"}


def test_an_alias_may_be_linked_before_it_is_known():
    assert links(read('Switch 4 "S1"\n[3] "@up"\nSwitch 4 "S2"\n@[1] "up"')) == {"S1[3]-S2[1]"}


def test_an_alias_has_widths_and_speeds_of_its_own():
    (link,) = read('Switch 2 "S1"\n@[1] "up" w=11 e=2 s=7\nSwitch 2 "S2"\n[1] "@up" w=8 s=7 e=3').subnet.links
    assert (link.width, link.speed) == (LinkWidth.X12, Speed.EDR)


def test_a_module_comes_before_the_names_of_its_nodes():
    topology = read(
        'module = "A"\nSwitch 4 "S"\n@[4] "up"\n[1] "S"[2]\n[2] "S"[1]\nmodule="B"\nSwitch 4 "S"\n'
        '@[2] "up"\n[4] "A@up"\nmodule="A"\nCa 1 "H"\n[1] "B@up"\nmodule=""\nSwitch 2 "top"\n[1] "top"[2]\n'
        '[2] "top"[1]\n'
        'do link "A#S"[3] "B#S"[1]'
    )
    assert list(topology.ids.values()) == ["A#S", "B#S", "A#H", "top"]
    assert links(topology) == {"A#S[1]-A#S[2]", "A#S[4]-B#S[4]", "A#H[1]-B#S[2]", "A#S[3]-B#S[1]", "top[1]-top[2]"}
    assert topology.subnet.nodes[0x200000].description == "A#S"


def test_an_alias_of_the_own_module_needs_no_name_of_it():
    topology = read('module="A"\nSwitch 2 "S"\n@[1] "up"\nSwitch 2 "T"\n[2] "@up"')
    assert links(topology) == {"A#S[1]-A#T[2]"}


@pytest.mark.parametrize("command", ['do link "S"[1] "T"[2]', 'do LINK "S"[1]  "T"[2] # spare', 'do\tLink "@x" "T"[2]'])
def test_a_command_may_link_ports(command):
    assert links(read(f'Switch 2 "S"\n@[1] "x"\nSwitch 2 "T"\n{command}')) == {"S[1]-T[2]"}


def test_what_nothing_comes_of_is_kept_for_somebody_to_know():
    topology = read(
        "ibwarn: [17] sim_connect: attached\npdebug=1\n"
        'Switch 2 "S"\n[1] "S"[2] # "S" lid 0 4x???\nsrc/query_smp.c:199; umad: bad status 110\n'
        '[2] "S"[1] # "S" lid 0 4xEDR\ndo error "S"[1] 10\ndo !more\n'
    )
    assert topology.remarks == (
        "net:1: 'ibwarn: [17] sim_connect: attached' is read over",
        "net:2: 'pdebug=1' is read over",
        "net:4: link 4x??? has the usual for what is not known",
        "net:5: 'src/query_smp.c:199; umad: bad status 110' is read over",
        "net:7: 'do error \"S\"[1] 10' is not done: of ibsim's console there is only link",
        "net:8: 'do !more' is not done: of ibsim's console there is only link",
    )
    assert topology.notes == ("net:1: 'ibwarn: [17] sim_connect: attached' is read over, and 5 more such",)
    assert links(topology) == {"S[1]-S[2]"}


def test_nothing_is_said_of_a_file_that_all_comes_of():
    assert read('Switch 2 "S"').notes == ()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('Switch 2 "S"\n[1] "@x"', '2: "S"[1] is linked to unknown alias "@x"'),
        ('Switch 2 "S"\n@[3] "x"', '2: port 3 of "S" is out of range: expected 1..2'),
        ('Switch 2 "S"\n@[1] "x"\n@[2] "x"', '3: alias "@x" is used twice: line 2 has it already'),
        ('Switch 2 "S"\n@[1] "x@y"', '2: alias name "x@y": expected one without # and @'),
        ('Switch 2 "S"\n@[1] x', "2: malformed line '@[1] x': expected @[PORT] \"ALIAS\""),
        ('@[1] "x"', "1: a port's line belongs to no node: expected it right after a node's line"),
        (
            'Switch 2 "S"\n@[1] "x"\nSwitch 2 "T"\n[1] "@x"\n[2] "@x"',
            '5: port "S"[1] is used twice: "T"[2] leads to it, b',
        ),
        (
            'Switch 2 "S"\n@[1] "x"\nSwitch 2 "T"\n[1] "@x"[2]',
            '4: "T"[1] is linked to "@x"[2]: expected 1, or none at an',
        ),
        (
            'Switch 2 "S"\n@[1] "x"\n[1] "T"[2]\nSwitch 2 "T"\n[2] "S"[1]\n[1] "@x"',
            '6: port "S"[1] is used twice: "T"[1] l',
        ),
        ('Switch 2 "S"\n@[1] "x"\n[1] "@x"', '3: "S"[1] is linked to itself, expected another port'),
        ('module="a#b"', '1: module name "a#b": expected one without # and @'),
        ("module=a", "1: module=: unknown setting"),
        ("module a", "1: malformed line 'module a': expected module=\"NAME\""),
        ('Switch 2 "S"\ndo link "S"[1] "T"[1]', '2: link of unknown node "T"'),
        ('Switch 2 "S"\ndo link "S"[1] "S"[3]', '2: link of "S"[3]: expected a port of 1..2'),
        ('Switch 2 "S"\ndo link "S"[1] "S"', '2: link "S": expected a port'),
        ('Switch 2 "S"\ndo link "S"[1] "S"[1]', '2: port "S"[1] is used twice: line 2 has it already'),
        (
            'Switch 2 "S"\n[1] "S"[2]\n[2] "S"[1]\ndo link "S"[1] "S"[2]',
            '4: port "S"[1] is used twice: line 2 has it alre',
        ),
    ],
)
def test_what_is_wrong_is_told(text, error):
    with pytest.raises(TopologyError) as caught:
        read(text)
    assert str(caught.value).startswith(f"net:{error}")
    assert "\n" not in str(caught.value)
