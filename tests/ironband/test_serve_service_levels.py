"""SLs of paths, and what else a QoS policy says of them: Ironband's Subnet Administrator answers what OpenSM's does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.ironband.command import one_line_error
from tests.ironband.served import managed, needs_programs, scripted, served
from tests.sm.test_qos_policy_file import FOR_NOTHING, NOT_TAKEN

pytestmark = needs_programs

TOPOLOGY = """
Switch 8 "SW1"
[1] "H1"[1]
[2] "R1"[1]
[3] "H 2"[1]

Hca 1 "H1"
[1] "SW1"[1]

Hca 1 "H 2"
[1] "SW1"[3]

Rt 1 "R1"
[1] "SW1"[2]
"""

PARTITIONS = """
A=0x10, sl=2, ipoib : 0x100001=full, 0x100003=full ;
B=0x11, sl=5, defmember=full : ALL ;
C=0x12, sl=1 : ALL=full ;
C=0x12 : SELF=full ;
D=0x13, sl=16 : ALL_ROUTERS=full, SELF ;
Default=0x7fff, sl=3 : ALL=full ;
"""

FULL = """
# Names may have blanks, which say nothing, and be in capitals.
port-groups
    port-group # by PortGUIDs
        name: Stor age
        use: SRP Targets, port-guid: none of this counts
        port-guid: 0x100003, 0x10000000000005-0x1000000000FFFA
    end-port-group
    port-group
        name: "Hosts"
        port-name: H1/P1, H 2/P1
    end-port-group
    port-group
        name: quoted   port-name: "H 2/P1" , SW1/P5, nobody/p1
    end-port-group
    port-group
        name: Switches
        node-type: SWITCH, Self
    end-port-group
    port-group
        name: members partition: D, E
        pkey: 0x8014-0x7001
    end-port-group
end-port-groups
qos-setup
end-qos-setup
qos-levels
    qos-level
        name: DEFAULT
        sl: 0
    end-qos-level
    qos-level
        name: WholeSet
        use: all there is
        sl: 0x1
        mtu-limit: 3
        rate-limit: 2
        packet-life: 8
        pkey: 0x9-0x10
    end-qos-level
    qos-level name: more
        sl: 04
    end-qos-level
end-qos-levels
qos-match-rules
    qos-match-rule
        qos-class: 7-9,
                   11
        qos-class: 12
        qos-level-name: WholeSet
    end-qos-match-rule
    qos-match-rule
        source: Storage
        destination: HOSTS, switches
        service-id: 0x77
        qos-level-name: more
    end-qos-match-rule
    qos-match-rule
        source: quoted
        service-id: 0x78
        pkey: 0x9010-0x11
        qos-level-name: more
    end-qos-match-rule
    qos-match-rule
        destination: quoted
        service-id: 0x78
        qos-level-name: wholeset
    end-qos-match-rule
    qos-match-rule
        source: members
        service-id: 0x79
        qos-level-name: MORE
    end-qos-match-rule
end-qos-match-rules
qos-ulps
    default : 3 # not of a file that has a level of this name
    any, service-id 0x77-0x79 : 9
end-qos-ulps
"""

SIMPLE = """
qos-ulps
    Default                       : 1
    sdp, port-num 30000           : 2
    sdp, port-num 10000-20000, 5  : 3
    SDP                           : 4
    rds                           : 5
    iser, port-num 900            : 6
    iser                          : 7
    any , service-id 0x6234       : 9
    ipoib, pkey 0x8010            : 8
    any, pkey 0x0011              : 10
    ipoib : 11   any, source-target-port-guid 0x100003, 0x100001 : 12
    srp, target-port-guid 0x100003 : 13
    any,target-port-guid 0x200000-0x2fffff:14
    any, source-port-guid 0x200000 : 15
end-qos-ulps
"""

_PARTITIONS_ASKED_FOR = ("0x10", "0x8011", "0x12", "0x13", "0xffff")
QUERIES = {
    None: ["", *(f"--pkey {key}{sl}" for key in _PARTITIONS_ASKED_FOR for sl in ("", " --sl 0", " --sl 5"))],
    FULL: [
        *("", *(f"-Q {qos_class}" for qos_class in (0, 7, 8, 9, 10, 11, 12, 13)), "-Q 8 --sl 1", "-Q 8 --sl 3"),
        *("-Q 8 --pkey 0x8010", "-Q 8 --pkey 0x8011", "-Q 8 -M 0x84", "-Q 8 -M 0x43", "-Q 8 -R 0x3", "-Q 8 -R 0x43"),
        *("--sl 0", "--sl 4", *(f"--service_id {number}" for number in (0x76, 0x77, 0x78, 0x79, 0x7A))),
        *("--service_id 0x77 --sl 4", "--service_id 0x77 --sl 4 -r 1", "--service_id 0x77 --sl 9"),
        *("--service_id 0x78 --pkey 0x11", "--service_id 0x78 --pkey 0x8010", "--service_id 0x78 --pkey 0x12"),
    ],
    SIMPLE: [
        *("", "--sl 1", "--sl 12", *(f"--pkey {key}" for key in (0x10, 0x8010, 0x11, 0x12, 0x7FFF, 0xFFFF))),
        *(f"--service_id {0x10000 + port}" for port in (0, 5, 6, 9999, 10000, 20000, 20001, 30000, 0xFFFF, 0x10000)),
        *(f"--service_id {number}" for number in (0x6234, 0x1060000 + 900, 0x1060CBC, 0x1060CBD, 0x10648CA)),
    ],
}


class Found(NamedTuple):
    """What a PathRecord says, but for what is kept of a query; a PacketLifeTime that is the subnet's is not told."""

    dlid: str
    slid: str
    num_path_revers: str
    pkey: str
    sl: str
    mtu: str
    rate: str
    pkt_life: str


_SUBNETS_LIFE = {"0x84": "", "0x92": ""}
"""SubnetTimeOut is ours and OpenSM's."""


def asked(*queries: str) -> str:
    """Shell commands that ask for PathRecords, each time with these options of saquery."""
    return "\n".join(f"echo '= {query}'; saquery -t 60000 -p {query} 2>&1" for query in queries)


def answered(said: str) -> dict[str, list[Found]]:
    """The paths that each query has found; a dump's are in no certain order."""
    found: dict[str, list[dict[str, str]]] = {}
    for line in said.splitlines():
        name, _dots, value = line.strip().partition("..")
        if line.startswith("= "):
            found[query := line.removeprefix("= ")] = []
        elif line.startswith("PathRecord dump"):
            found[query].append({})
        elif name in Found._fields:
            found[query][-1][name] = value.strip(".")
    for paths in found.values():
        for path in paths:
            path["pkt_life"] = _SUBNETS_LIFE.get(path["pkt_life"], path["pkt_life"])
    return {query: sorted(Found(**path) for path in paths) for query, paths in found.items()}


def compared(tmp_path: Path, ours: list[str], theirs: str, queries: list[str]) -> dict[str, list[Found]]:
    """What our Subnet Administrator answers, which is what OpenSM's does."""
    (tmp_path / "r.net").write_text(TOPOLOGY)
    (tmp_path / "partitions.conf").write_text(PARTITIONS)
    look = asked(*queries)
    files = ["--partitions", "partitions.conf", *ours]
    ended = managed(*files, "r.net", "--", "sh", "-c", look, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    opensm = f"opensm -P partitions.conf {theirs} -d 2 -f opensm.log & echo $! > pid"
    lines = {
        "opensm": f"{opensm}; wait_until 'grep -q \"SUBNET UP\" opensm.log'",
        "paths": f"{look}\nkill $(cat pid)",
    }
    said = scripted(tmp_path, [], "r.net", lines)["paths"]
    found = answered(ended.stdout)
    assert found == answered(said)
    assert found.keys() == set(queries)
    return found


@pytest.mark.parametrize(("policy", "different"), [(None, 4), (FULL, 4), (SIMPLE, 15)], ids=["none", "full", "simple"])
def test_paths_are_those_that_opensm_finds_by_the_same_policy(tmp_path, policy, different):
    named = "" if policy is None else "qos_policy_file policy.conf\n"
    (tmp_path / "policy.conf").write_text(policy or "")
    (tmp_path / "qos.conf").write_text(f"qos TRUE\n{named}")
    paths = compared(tmp_path, ["--qos", "qos.conf"], "-Q -F qos.conf", QUERIES[policy])
    assert len({path.sl for query, found in paths.items() if "--sl" not in query for path in found}) == different
    assert "Error in QoS Policy File" not in (tmp_path / "opensm.log").read_text()


def test_without_qos_no_partition_has_an_sl_as_in_opensm(tmp_path):
    paths = compared(tmp_path, [], "", [""])
    assert {path.sl for path in paths[""]} == {"0x0"}


def test_what_is_refused_of_a_policy_is_what_opensm_does_not_take_or_does_nothing_with(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [text for text, _line, _reason in (*NOT_TAKEN, *FOR_NOTHING)]
    names = [f"{number}.conf" for number in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        Path(name).write_text(text)
        Path("qos.conf").write_text(f"qos_policy_file {name}\n")
        assert one_line_error(capsys, "up", "star", "--qos", "qos.conf").startswith(f"{name}:")
    tries = "; ".join(f"opensm -o -Q -Y {name} -f {name}.log > /dev/null 2>&1" for name in names)
    served("star", "--", "sh", "-c", tries, cwd=tmp_path)
    wrong = ["ERR AC" in Path(f"{name}.log").read_text() for name in names]
    assert wrong == [True] * len(NOT_TAKEN) + [False] * len(FOR_NOTHING)


def test_a_policy_that_is_not_there_is_told_but_for_the_one_that_opensm_writes_of_none(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("qos.conf").write_text("qos_policy_file nowhere.conf\n")
    assert one_line_error(capsys, "up", "star", "--qos", "qos.conf") == "nowhere.conf: No such file or directory"
    Path("qos.conf").write_text("qos_policy_file /etc/opensm/qos-policy.conf\n")
    assert managed("--qos", "qos.conf", "star", "--", "true", cwd=tmp_path).returncode == 0
