"""Partitions: from the same partitions.conf Ironband's Subnet Manager makes what OpenSM makes."""

from __future__ import annotations

from collections import deque

import pytest

from cosim.topology.topology_file import read_topology
from ironband.inputs import topology_asked
from tests.ironband.command import one_line_error
from tests.ironband.served import managed, needs_programs, scripted, served
from tests.sm.test_partitions_file import NOT_TAKEN

pytestmark = needs_programs

FILES = {
    "no definition": "# nothing\n",
    "no rule for the default partition": """
        Storage = 0x8010 , defmember=full : 0x100001, 0x100003, 0x10000e ;
        Compute=0x0300 : ALL_CAS=full, 0x100003=limited ;
        : SELF ; Named , ipoib : ALL_SWITCHES, 0x100003=full
        0x123456 ;
        """,
    "all limited": "Default=0x7fff,ipoib:ALL=limited;\n",
    "in the order of bytes": "A=0x0001:ALL;B=0x0300:ALL=both;C=0x00ff:ALL;D=0x0102:ALL=l;E=0x7f00:ALL=full;A=1:SELF=f;",
    "index 0": "A=0x10, indx0 : ALL ; B=0x11, indx0 : 0x100003=full ; A=0x10 : 0x100001 ; Default:ALL=full;",
}


def routes(topology: str) -> dict[str, tuple[int, ...]]:
    """Directed routes to all nodes from the first host, by their names, with the linked ports of switches."""
    subnet = read_topology(topology_asked(topology)).subnet
    first = next(node for node in subnet.nodes.values() if not node.is_switch)
    found, waiting = {first.guid: ()}, deque([first.guid])
    while waiting:
        guid = waiting.popleft()
        for port, far in subnet.neighbours(guid):
            if far.guid not in found and (guid == first.guid or subnet.nodes[guid].is_switch):
                found[far.guid] = (*found[guid], port)
                waiting.append(far.guid)
    return {subnet.nodes[guid].description: route for guid, route in found.items()}


def end_port_tables(topology: str) -> str:
    """Shell commands that print the P_Key table of each end port."""
    return "\n".join(f"smpquery pkeys -D {route_text(route)}" for route in routes(topology).values())


def route_text(route: tuple[int, ...]) -> str:
    return ",".join(map(str, (0, *route)))


CASES = [
    ("star", "no rule for the default partition"),
    ("fat_tree", "in the order of bytes"),
    *(
        pytest.param("star", file, marks=pytest.mark.deep)
        for file in FILES
        if file != "no rule for the default partition"
    ),
    pytest.param("fat_tree", "index 0", marks=pytest.mark.deep),
]


@pytest.mark.parametrize(("topology", "file"), CASES)
def test_end_ports_have_the_tables_that_opensm_gives_them(tmp_path, topology, file):
    (tmp_path / "partitions.conf").write_text(FILES[file])
    look = end_port_tables(topology)
    ours = managed("--partitions", "partitions.conf", topology, "--", "sh", "-c", look, cwd=tmp_path)
    opensm = f"opensm -o -P partitions.conf -f opensm.log > opensm.txt 2>&1\n{look}"
    theirs = served(topology, "--", "sh", "-c", opensm, cwd=tmp_path)
    assert theirs.stdout.count("capacity") == len(routes(topology))
    assert ours.stdout == theirs.stdout
    assert "PARSE ERROR" not in (tmp_path / "opensm.log").read_text()


def test_what_is_refused_is_what_opensm_does_not_take(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"{number}.conf" for number in range(len(NOT_TAKEN))]
    for name, (line, _reason) in zip(names, NOT_TAKEN, strict=True):
        (tmp_path / name).write_text(f"# mine\n{line}\n")
        assert one_line_error(capsys, "up", "star", "--partitions", name).startswith(f"{name}:2: ")
    tries = "; ".join(f"opensm -o -P {name} -f {name}.log" for name in names)
    served("star", "--", "sh", "-c", tries, cwd=tmp_path)
    for name in names:
        assert "in error; retrying with default config" in (tmp_path / f"{name}.log").read_text(), name


PATHS = """
saquery -t 60000 -p | grep -e gid -e pkey
IRONBAND_HOST=H2 saquery -t 60000 -p | grep -e gid -e pkey
for key in 0x10 0x8010 0x300 0x8300 0x11 0x7fff 0xffff 0x9; do
    saquery -t 60000 --src-to-dst 1:3 --pkey $key | grep -e gid -e pkey || echo "no $key"
    saquery -t 60000 --src-to-dst 3:2 --pkey $key | grep -e gid -e pkey || echo "no $key"
done
"""
CLOSED = "A=0x10:0x100001=full,0x200000;B=0x300:ALL=full;C=0x11:0x100001,0x100003;Default:ALL=limited;"
"""The Subnet Manager at 0x100001 is a limited member of the default partition, like all."""
ASKABLE = CLOSED.replace("Default:ALL=limited;", "Default:ALL=limited,SELF=full;")
"""Two limited members do not hear each other: whom hosts are to ask is a full one."""


@pytest.mark.parametrize("text", [FILES["no rule for the default partition"], ASKABLE], ids=["open", "closed"])
def test_paths_have_the_p_keys_that_opensm_gives_them(tmp_path, text):
    (tmp_path / "partitions.conf").write_text(text)
    ours = managed("--partitions", "partitions.conf", "star", "--", "sh", "-c", PATHS, cwd=tmp_path)
    says = scripted(
        tmp_path,
        [],
        "star",
        {
            "opensm": "opensm -P partitions.conf -d 2 -f opensm.log & echo $! > pid; "
            "wait_until 'grep -q \"SUBNET UP\" opensm.log'",
            "paths": f"{PATHS}\nkill $(cat pid)",
        },
    )
    assert paths(ours.stdout) == paths(says["paths"])


def paths(said: str) -> list[list[str]]:
    """Each answer's lines; paths in one are in no certain order, so they are all sorted."""
    lines = said.split()
    return sorted(lines[at : at + 3] for at in range(0, len(lines) - 2, 3))


RECORDS = "\n".join(
    f"echo {host} {kind}; IRONBAND_HOST={host} saquery -t 60000 {kind} 2> errors"
    for host in ("H1", "H2")
    for kind in ("NR", "PIR", "LR")
)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [("A=0x10:0x100001=full,0x200000;", [3, 2]), (FILES["all limited"], [1, 1]), (CLOSED, [3, 3])],
    ids=["open", "all limited", "closed"],
)
def test_records_are_told_to_those_to_whom_opensm_tells_them(tmp_path, text, nodes):
    (tmp_path / "partitions.conf").write_text(text)
    options = ("--enforce", "off", "--partitions", "partitions.conf")
    ours = managed(*options, "star", "--", "sh", "-c", RECORDS, cwd=tmp_path)
    says = scripted(
        tmp_path,
        [],
        "star",
        {
            "opensm": "opensm -Z off -P partitions.conf -d 2 -f opensm.log & echo $! > pid; "
            "wait_until 'grep -q \"SUBNET UP\" opensm.log'",
            "records": f"{RECORDS}\nkill $(cat pid)",
        },
    )
    assert records(ours.stdout) == records(says["records"])
    assert [len(records(ours.stdout)[f"{host} NR"]) for host in ("H1", "H2")] == nodes


def records(said: str) -> dict[str, list[list[str]]]:
    """The ports that each host is told of in each kind of record; a dump's are in no certain order."""
    told: dict[str, list[list[str]]] = {}
    for line in said.splitlines():
        name, _dots, value = line.strip().partition("..")
        if line.startswith("H"):
            told[line] = []
        elif line.endswith("Record dump:"):
            list(told.values())[-1].append([])
        elif name in ("lid", "EndPortLid", "PortNum", "FromLID", "FromPort", "ToLID", "ToPort"):
            list(told.values())[-1][-1].append(value.strip("."))
    return {kind: sorted(records) for kind, records in told.items()}


def test_tables_are_told_to_who_is_trusted(tmp_path):
    (tmp_path / "partitions.conf").write_text("A=0x10:0x100001=full;")
    look = "saquery -t 60000 --smkey 1 PKTR 1 | grep -e LID -e Port -e 0xf; saquery -t 60000 PKTR 1 2>&1 | tail -1"
    ended = managed("--partitions", "partitions.conf", "star", "--", "sh", "-c", look, cwd=tmp_path)
    assert ended.stdout.split() == [
        "LID........................1",
        "Port.......................1",
        *("0xffff", "0x8010", *["0x0000"] * 6),
        *("ERROR:", "Query", "result", "returned", "0x0200,", "SA(SA_ERR_REQ_INVALID)"),
    ]


def test_a_program_at_a_host_in_two_partitions_sees_both(tmp_path):
    (tmp_path / "partitions.conf").write_text("A=0x10:0x100003=full;")
    look = "IRONBAND_HOST=H2 cat /sys/class/infiniband/rxe_ironband0/ports/1/pkeys/[012]"
    ended = managed("--partitions", "partitions.conf", "star", "--", "sh", "-c", look, cwd=tmp_path)
    assert ended.stdout.split() == ["0x7fff", "0x8010", "0x0000"]


def test_a_file_is_for_the_manager_that_reads_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "partitions.conf").write_text("A=0x10:ALL;")
    file = ("--partitions", "partitions.conf")
    said = one_line_error(capsys, "serve", "--bring-up", "none", *file, "star")
    assert said == "--partitions partitions.conf: expected --bring-up sm, which reads it"
