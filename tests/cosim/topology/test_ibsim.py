"""ibsim is the judge of what a topology file means: ibnetdiscover prints there what is read here."""

from datetime import datetime

import pytest

from cosim.topology.subnet_text import format_topology
from cosim.topology.topology_file import parse_topology, read_topology
from sm.subnet import End
from tests.cosim.topology.ibsim import NET_EXAMPLES, discovered_by_ibsim, needs_ibsim

pytestmark = needs_ibsim

EXAMPLES = ["net", "net.1", "net.2sw2path", "net.2sw2path4hca", "net.2sw2path4hca2port"]

RECORDS = {
    "two ports of an adapter, and parallel links": """
Switch\t8 "S1"
[1]\t"H1"[1]
[2]\t"H1"[2]
[3]\t"S2"[3]
[5]\t"S2"[5]

Switch 8 "S2"
[3]\t"S1"[3]
[5]\t"S1"[5]
[8]\t"H2"[2]

Hca\t2 "H1"
[1]\t"S1"[1]
[2]\t"S1"[2]

Hca 2 "H2"
[2]\t"S2"[8]
""",
    "an alias, a module, names of other modules": """
module="pod"
Switch 4 "S1" # "the switch"
[1] "H1" w=1
@[2] "up" w=3
[3] "H2"

Hca 1 "H1"
[1] "S1"[1] w=1

Hca 1 "H2"
[1] "pod#S1"[3]

module=""
Switch 4 "Top"
[1] "pod@up" w=3
""",
    "a command that links": """
Switch 4 "S1"
@[3] "spare" s=7

Switch 4 "S2"
[1] "H1"

Ca 1 "H1"
[1] "S2"[1]

Switch 4 "S3"

do Link "S1"[1] "S2"[3]
do link "S3"[2] "S2"[4]
""",
    "widths, speeds and extended speeds": """
width=15
speed=7
extspeed=7
Switch 8 "S1"
[1] "S2"[1]
[2] "S2"[2] w=1
[3] "S2"[3] s=3 e=0
[4] "S2"[4] w=8 e=2
[5] "S2"[5] w=4 e=4
[6] "S2"[6] w=16 e=1
[7] "S2"[7] e=0 s=4

Switch 8 "S2"
[1] "S1"[1]
[2] "S1"[2]
[3] "S1"[3]
[4] "S1"[4]
[5] "S1"[5]
[6] "S1"[6] w=17
[7] "S1"[7]
""",
    "a dump with grouping and full information": """
#
# Topology file: generated on Sun Nov 22 20:00:00 2026
#
# Initiated from node 0002c90300001000 port 0002c90300001001

Chassis 1 (guid 0x8f10400410000)

# Spine Nodes
vendid=0x8f1
devid=0x5a30
sysimgguid=0x8f10400411a09\t\t# Chassis 1
switchguid=0x8f10400411a08(8f10400411a08)\t# ISR2012 Spine 1 Chip 1
Switch\t24 "S-0008f10400411a08"\t\t# "Spine 1 of chassis" enhanced port 0 lid 742 lmc 0
[1]\t"H-0002c90300001000"[1](2c90300001001) \t\t# "node 1 mlx4_0" lid 5 4xQDR s=4 w=2 v=4
[24][ext 7]\t"H-0002c90300001000"[2](2c90300001002) \t\t# "node 1 mlx4_0" lid 6 12xDDR s=2 w=8 v=4
[3]\t"R-0002c90300003000"[1](2c90300003001) \t\t# "a router" lid 9 4xSDR s=1 w=2 v=4

# Line Nodes
# Chassis Switches
# Chassis CAs
Non-Chassis Nodes

vendid=0x2c9
devid=0x673c
sysimgguid=0x2c90300001003
caguid=0x2c90300001000
Ca\t2 "H-0002c90300001000"\t\t# "node 1 mlx4_0"
[1](2c90300001001) \t"S-0008f10400411a08"[1]\t\t# lid 5 lmc 1 "Spine 1 of chassis" lid 742 4xQDR s=4 w=2 v=4
[2](2c90300001002) \t"S-0008f10400411a08"[24][ext 7]\t\t# lid 6 lmc 1 "Spine 1 of chassis" lid 742 12xDDR s=2 w=8 v=4

vendid=0x2c9
devid=0x673c
rtguid=0x2c90300003000
Rt\t1 "R-0002c90300003000"\t\t# "a router"
[1](2c90300003001) \t"S-0008f10400411a08"[3]\t\t# lid 0 lmc 0 "Spine 1 of chassis" lid 742 4xSDR s=1 w=2 v=4
""",
    "speeds of later years, HDR at two lanes": """
switchguid=0x10(10)
Switch\t41 "S-0000000000000010"\t\t# "MF0;leaf-1:MQM8700/U1" enhanced port 0 lid 1 lmc 0
[1]\t"H-0000000000000100"[1](101) \t\t# "n1 mlx5_0" lid 11 2xHDR
[2]\t"S-0000000000000011"[1]\t\t# "MF0;spine:MQM8700/U1" lid 2 4xHDR
[3]\t"S-0000000000000011"[2]\t\t# "MF0;spine:MQM8700/U1" lid 2 4xQDR
[4]\t"S-0000000000000011"[3]\t\t# "MF0;spine:MQM8700/U1" lid 2 4xEDR
[5]\t"S-0000000000000011"[4]\t\t# "MF0;spine:MQM8700/U1" lid 2 4xFDR
[6]\t"S-0000000000000011"[5]\t\t# "MF0;spine:MQM8700/U1" lid 2 1xSDR

switchguid=0x11(11)
Switch\t41 "S-0000000000000011"\t\t# "MF0;spine:MQM8700/U1" base port 0 lid 2 lmc 0
[1]\t"S-0000000000000010"[2]\t\t# "MF0;leaf-1:MQM8700/U1" lid 1 4xHDR
[2]\t"S-0000000000000010"[3]\t\t# "MF0;leaf-1:MQM8700/U1" lid 1 4xQDR
[3]\t"S-0000000000000010"[4]\t\t# "MF0;leaf-1:MQM8700/U1" lid 1 4xEDR
[4]\t"S-0000000000000010"[5]\t\t# "MF0;leaf-1:MQM8700/U1" lid 1 4xFDR
[5]\t"S-0000000000000010"[6]\t\t# "MF0;leaf-1:MQM8700/U1" lid 1 1xSDR

caguid=0x100
Ca\t1 "H-0000000000000100"\t\t# "n1 mlx5_0"
[1](101) \t"S-0000000000000010"[1]\t\t# lid 11 lmc 0 "MF0;leaf-1:MQM8700/U1" lid 1 2xHDR
""",
}


@pytest.mark.skipif(
    not NET_EXAMPLES.exists(),
    reason="NOT TESTED with ibsim's own examples: this image leaves out the documentation of ibsim-utils",
)
@pytest.mark.parametrize("name", EXAMPLES)
def test_ibsims_own_examples_mean_what_ibsim_takes_them_for(name, tmp_path):
    path = NET_EXAMPLES / name
    assert parse_topology(discovered_by_ibsim(path, tmp_path), "ibsim").subnet == read_topology(path).subnet


@pytest.mark.parametrize("what", list(RECORDS))
@pytest.mark.parametrize("end_of_line", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_file_means_what_ibsim_takes_it_for(what, end_of_line, tmp_path):
    path = tmp_path / "some.net"
    path.write_bytes(RECORDS[what].replace("\n", end_of_line).encode())
    seen = parse_topology(discovered_by_ibsim(path, tmp_path), "ibsim").subnet
    assert seen == read_topology(path).subnet


def test_a_file_may_include_another_several_times(tmp_path):
    (tmp_path / "pod.net").write_text('Switch 4 "S"\n[1] "H"\n@[2] "up" e=2\n\nCa 1 "H"\n[1] "S"\n\n')
    path = tmp_path / "some.net"
    path.write_text(
        'module="A"\ninclude "pod.net"\nmodule="B"\ninclude "pod.net"\nmodule=""\n'
        'Switch 4 "Top"\n[1] "A@up" e=2\n[2] "B@up" e=2\n\n'
    )
    read = read_topology(path)
    assert sorted(read.ids.values()) == ["A#H", "A#S", "B#H", "B#S", "Top"]
    assert parse_topology(discovered_by_ibsim(path, tmp_path), "ibsim").subnet == read.subnet


@pytest.mark.parametrize("what", list(RECORDS))
def test_what_is_written_is_read_by_ibsim_as_it_was(what, tmp_path):
    subnet = parse_topology(RECORDS[what], "some").subnet
    path = tmp_path / "written.net"
    path.write_text(format_topology(subnet, End(next(iter(subnet.nodes)), 1), datetime(2026, 11, 7)))
    assert read_topology(path).subnet == subnet
    for options in ([], ["-g"], ["-f"], ["-g", "-f"]):
        assert parse_topology(discovered_by_ibsim(path, tmp_path, *options), "ibsim").subnet == subnet


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("-l", "is of a list of nodes, as ibnetdiscover -l prints"),
        ("-p", "is of a report of ports, as ibnetdiscover -p"),
    ],
)
def test_what_ibnetdiscover_prints_instead_of_a_topology_is_told(option, what, tmp_path):
    path = tmp_path / "some.net"
    path.write_text(RECORDS["a command that links"])
    text = discovered_by_ibsim(path, tmp_path, option)
    with pytest.raises(ValueError, match=what):
        parse_topology(text, "list")
