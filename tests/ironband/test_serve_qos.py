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

_LOOK = """
smpquery vlarb -D 0,1 1; smpquery vlarb -D 0
smpquery portinfo -D 0,1 1 | grep -i 'limit\\|opervl'; smpquery portinfo -D 0 1 | grep -i 'limit\\|opervl'
smpquery sl2vl -D 0,1 1 | grep 'in  2'; smpquery sl2vl -D 0
"""


@pytest.mark.parametrize("text", ["qos TRUE\n", OPTIONS], ids=["its defaults", "some of all"])
def test_the_same_options_make_the_same_tables_as_opensm_writes(tmp_path, text):
    (tmp_path / "qos.conf").write_text(text)
    ours = managed("--qos", "qos.conf", "--vls", "4", "star", "--", "sh", "-c", _LOOK, cwd=tmp_path)
    opensm = f"opensm -o -Q -F qos.conf -f opensm.log > opensm.txt\n{_LOOK}"
    theirs = served("--vls", "4", "star", "--", "sh", "-c", opensm, cwd=tmp_path)
    assert "LowCap 8 HighCap 8" in theirs.stdout
    assert ours.stdout == theirs.stdout


def test_a_file_is_for_the_manager_that_reads_it(tmp_path):
    (tmp_path / "qos.conf").write_text("qos_max_vls 16\n")
    ended = managed("--qos", "qos.conf", "star", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "ironband: qos.conf:1: qos_max_vls: 16: expected 1..15\n")
    ended = served("--qos", "qos.conf", "star", cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (2, "ironband: --qos qos.conf: expected --bring-up sm, which reads it\n")
