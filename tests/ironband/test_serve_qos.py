"""Quality of service: Ironband's Subnet Manager writes what OpenSM writes from the same file."""

from __future__ import annotations

import pytest

from tests.ironband.served import managed, needs_programs, scripted, served

pytestmark = needs_programs

OPTIONS = """
qos TRUE
qos_max_vls 4
qos_high_limit 3
qos_vlarb_high 0:4,1:8
qos_vlarb_low 2:16,3:32,9:1
qos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,3,2,1,0
"""

OF_KINDS = f"""
qos_ca_high_limit 200
qos_ca_vlarb_low 1:7,2:9
qos_swe_vlarb_high 3:1
qos_swe_sl2vl 3,3,3,3,2,2,2,2,1,1,1,1,0,0,0,0
qos_rtr_high_limit 0
qos_rtr_sl2vl 0,0,0,0,1,1,1,1,0,0,0,0,1,1,1,1
qos_sw0_vlarb_high 2:2
{OPTIONS}
"""

WITH_A_ROUTER = """
Switch 8 "SW1"
[1] "H1"[1]
[2] "R1"[1]

Hca 1 "H1"
[1] "SW1"[1]

Rt 1 "R1"
[1] "SW1"[2]
"""

_LOOK = """
smpquery vlarb -D 0,1 1; smpquery vlarb -D 0; smpquery vlarb -D 0,1,2
for port in '0,1 1' '0 1' '0,1,2 1'; do smpquery portinfo -D $port | grep -i 'limit\\|opervl'; done
smpquery sl2vl -D 0,1 1 | grep 'in  2'; smpquery sl2vl -D 0; smpquery sl2vl -D 0,1,2
"""


@pytest.mark.parametrize("text", ["qos TRUE\n", OPTIONS, OF_KINDS], ids=["its defaults", "some of all", "of kinds"])
def test_the_same_options_make_the_same_tables_as_opensm_writes(tmp_path, text):
    (tmp_path / "qos.conf").write_text(text)
    (tmp_path / "r.net").write_text(WITH_A_ROUTER)
    ours = managed("--qos", "qos.conf", "--vls", "4", "r.net", "--", "sh", "-c", _LOOK, cwd=tmp_path)
    opensm = f"opensm -o -Q -F qos.conf -f opensm.log > opensm.txt\n{_LOOK}"
    theirs = served("--vls", "4", "r.net", "--", "sh", "-c", opensm, cwd=tmp_path)
    assert "LowCap 8 HighCap 8" in theirs.stdout
    assert ours.stdout == theirs.stdout


def test_a_file_is_for_the_manager_that_reads_it(tmp_path):
    (tmp_path / "qos.conf").write_text("qos_max_vls 16\n")
    ended = managed("--qos", "qos.conf", "star", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "ironband: qos.conf:1: qos_max_vls: 16: expected 1..15\n")
    ended = served("--qos", "qos.conf", "star", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "ironband: --qos qos.conf: expected --bring-up sm, which reads it\n")


SERVICE_LEVELS = """
A=0x10, sl=2, ipoib : 0x100001=full, 0x100003=full ;
B=0x11, sl=5, defmember=full : ALL ;
C=0x12, sl=1 : ALL=full ;
C=0x12 : SELF=full ;
D=0x13, sl=16 : ALL=full ;
Default=0x7fff, sl=3 : ALL=full ;
"""
_ASKED_FOR = [
    f"--pkey {key}{sl}" for key in ("0x10", "0x8011", "0x12", "0x13", "0xffff") for sl in ("", " --sl 0", " --sl 5")
]


def asked(*queries: str) -> str:
    """Shell commands that ask for PathRecords, each time with these options of saquery."""
    return "\n".join(f"echo '= {query}'; saquery -t 60000 -p {query} 2>&1" for query in queries)


def answered(said: str) -> dict[str, list[tuple[str, ...]]]:
    """The ends, P_Key, SL, MTU and rate of each path that a query has found; a dump's are in no certain order."""
    paths: dict[str, list[dict[str, str]]] = {}
    for line in said.splitlines():
        name, _dots, value = line.strip().partition("..")
        if line.startswith("= "):
            found = paths[line] = []
        elif line.startswith("PathRecord dump"):
            found.append({})
        elif found and name in ("slid", "dlid", "pkey", "sl", "mtu", "rate"):
            found[-1][name] = value.strip(".")
    return {query: sorted(tuple(path.values()) for path in found) for query, found in paths.items()}


def compared(tmp_path, ours: list[str], theirs: str, look: str) -> dict[str, list[tuple[str, ...]]]:
    """What our Subnet Administrator answers, which is what OpenSM's does."""
    ended = managed(*ours, "star", "--", "sh", "-c", look, cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    opensm = f"opensm {theirs} -d 2 -f opensm.log & echo $! > pid; wait_until 'grep -q \"SUBNET UP\" opensm.log'"
    said = scripted(tmp_path, [], "star", {"opensm": opensm, "paths": f"{look}\nkill $(cat pid)"})["paths"]
    assert answered(ended.stdout) == answered(said)
    return answered(ended.stdout)


def test_paths_have_the_sl_of_their_partition_that_opensm_gives_them(tmp_path):
    (tmp_path / "partitions.conf").write_text(SERVICE_LEVELS)
    (tmp_path / "qos.conf").write_text("qos TRUE\n")
    look = asked("", *(f"--slid 1 --dlid 3 {more}" for more in _ASKED_FOR))
    ours = ["--qos", "qos.conf", "--partitions", "partitions.conf"]
    paths = compared(tmp_path, ours, "-Q -F qos.conf -P partitions.conf", look)
    assert {(key, sl) for _dlid, _slid, key, sl, _mtu, _rate in paths["= "]} == {("0x8010", "0x2"), ("0x8011", "0x5")}
    assert [sl for _d, _s, _key, sl, _mtu, _rate in paths["= --slid 1 --dlid 3 --pkey 0x12 --sl 5"]] == ["0x5"]


def test_without_qos_no_partition_has_an_sl_as_in_opensm(tmp_path):
    (tmp_path / "partitions.conf").write_text(SERVICE_LEVELS)
    paths = compared(tmp_path, ["--partitions", "partitions.conf"], "-P partitions.conf", asked(""))
    assert {sl for _dlid, _slid, _key, sl, _mtu, _rate in paths["= "]} == {"0x0"}
