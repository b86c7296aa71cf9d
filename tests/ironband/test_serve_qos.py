"""Quality of service: Ironband's Subnet Manager writes what OpenSM writes from the same file."""

from __future__ import annotations

import pytest

from tests.ironband.served import managed, needs_programs, served

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
