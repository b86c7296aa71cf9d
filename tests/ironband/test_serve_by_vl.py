"""Counters by VL: a stranger's perfquery finds each at its own VL, of the VLs that there are."""

import re
import sys
from pathlib import Path

import pytest

from tests.ironband.served import needs_programs, scripted
from tests.ironband.verbs_programs import FOUR

pytestmark = needs_programs

SET = f"{sys.executable} {Path(__file__).parent / 'set_by_vl.py'} $switch 2"
WAITS = "".join(f"{100 + vl:04x}" for vl in range(16))
"""PortVLXmitWait of each VL v as it is on the wire: 100 + v."""
ASKED = {
    "opensm": "opensm -o -d 2 -f opensm.log; switch=$(smpquery portinfo -D 0,1 0 | sed -n 's/^Lid:\\.*//p')",
    "waits_of_0_and_2": f"{SET} 0x1C 0x0005 {WAITS} && perfquery --vlxmitcounters $switch 2",
    "waits": f"{SET} 0x1C 0xFFFA {WAITS} && perfquery --vlxmitcounters $switch 2",
    "errors_of_1": f"{SET} 0x1B 0x0002 ffffffff && perfquery --vlxmitflowctlerrors $switch 2",
    "errors": f"{SET} 0x1B 0xFFFD 9fffffff && perfquery --vlxmitflowctlerrors $switch 2",
    "errors_of_all": "perfquery --vlxmitflowctlerrors -a $switch",
    "cleared": "perfquery -R --vlxmitcounters $switch 2; perfquery --vlxmitcounters $switch 2",
    "cleared_errors": "perfquery -R --vlxmitflowctlerrors $switch 2; perfquery --vlxmitflowctlerrors $switch 2",
}


def by_vl(said: str, name: str) -> dict[int, int]:
    """The VLs of which a counter is not 0; there are 16 of it."""
    found = {int(vl): int(value) for vl, value in re.findall(rf"^{name}(\d+):\.+(\d+)$", said, re.MULTILINE)}
    assert sorted(found) == list(range(16)), said
    return {vl: value for vl, value in found.items() if value}


@pytest.mark.parametrize(
    "rtl", ["none", pytest.param("all", marks=(pytest.mark.slow, pytest.mark.deep))], ids=["model", "rtl"]
)
def test_perfquery_finds_each_counter_at_its_vl(tmp_path, rtl):
    """Four data VLs and VL15. What others are set to has no effect."""
    (tmp_path / "four.net").write_text(FOUR)
    said = scripted(tmp_path, ["--vls", "4", "--rtl", rtl], "four.net", ASKED)
    waits, errors = "PortVLXmitWait", "PortVLXmitFlowCtlUpdateErrors"
    assert by_vl(said["waits_of_0_and_2"], waits) == {0: 100, 2: 102}
    assert by_vl(said["waits"], waits) == {0: 100, 1: 101, 2: 102, 3: 103, 15: 115}
    assert by_vl(said["errors_of_1"], errors) == {1: 3}
    assert by_vl(said["errors"], errors) == {0: 2, 1: 3, 2: 3, 3: 3}
    assert by_vl(said["errors_of_all"], errors) == {0: 2, 1: 3, 2: 3, 3: 3}
    assert by_vl(said["cleared"], waits) == {}
    assert by_vl(said["cleared_errors"], errors) == {}
