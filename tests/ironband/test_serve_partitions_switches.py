"""Switch ports at hosts hold the P_Keys, and check them, as OpenSM has it from the same partitions.conf."""

from __future__ import annotations

import json

import pytest

from cosim.topology.topology_file import read_topology
from ironband import main
from ironband.inputs import topology_asked
from tests.ironband.served import managed, needs_programs, served
from tests.ironband.test_serve_partitions import FILES, route_text, routes

pytestmark = needs_programs

CASES = [
    ("star", "all limited", "both"),
    ("star", "in the order of bytes", "in"),
    ("star", "in the order of bytes", "out"),
    ("fat_tree", "index 0", "both"),
    *(pytest.param("star", file, "both", marks=pytest.mark.deep) for file in FILES if file != "all limited"),
    pytest.param("star", "in the order of bytes", "off", marks=pytest.mark.deep),
    pytest.param("fat_tree", "no rule for the default partition", "in", marks=pytest.mark.deep),
]


def switch_ports(topology: str) -> str:
    """Shell commands that print the P_Key table of each linked switch port, and what it checks."""
    subnet = read_topology(topology_asked(topology)).subnet
    ways = routes(topology)
    return "\n".join(
        f"smpquery pkeys -D {way} {port}; smpquery portinfo -D {way} {port} | grep PartEnf"
        for node in subnet.switches
        for port, _far in subnet.neighbours(node.guid)
        for way in [route_text(ways[node.description])]
    )


@pytest.mark.parametrize(("topology", "file", "how"), CASES)
def test_switch_ports_have_the_tables_that_opensm_gives_them(tmp_path, topology, file, how):
    (tmp_path / "partitions.conf").write_text(FILES[file])
    look = switch_ports(topology)
    file_options = ("--partitions", "partitions.conf", "--enforce", how)
    ours = managed(*file_options, topology, "--", "sh", "-c", look, cwd=tmp_path)
    opensm = f"opensm -o -P partitions.conf -Z {how} -f opensm.log > opensm.txt 2>&1\n{look}"
    theirs = served(topology, "--", "sh", "-c", opensm, cwd=tmp_path)
    assert ours.stdout == theirs.stdout
    assert "32 pkeys capacity for this port" in ours.stdout
    for name, checking in (("Inb", ("both", "in")), ("Outb", ("both", "out"))):
        assert (f"{f'PartEnforce{name}:':.<33}1" in ours.stdout) == (how in checking)


def test_up_tells_which_switch_ports_check(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "partitions.conf").write_text(FILES["index 0"])
    assert main(["up", "star", "--partitions", "partitions.conf", "--enforce", "out", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["checks"] == [
        {"guid": "0x0000000000200000", "port": port, "in": False, "out": True} for port in (1, 2)
    ]
    assert main(["up", "star", "--partitions", "partitions.conf"]) == 0
    assert "ports that check P_Keys 2 of 2 of switches at hosts" in capsys.readouterr().out.splitlines()
