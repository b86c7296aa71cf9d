"""`ironband serve`: Ironband's own Subnet Manager brings the fabric up, and looks after it."""

from __future__ import annotations

import pytest

from tests.ironband.served import TELL, managed, needs_programs, scripted

pytestmark = needs_programs

_LINKS = "iblinkinfo -l | grep -c Active/"


@pytest.mark.parametrize("rtl", ["none", "all"])
def test_programs_find_the_fabric_up(tmp_path, rtl):
    ended = managed("--rtl", rtl, "star", "--", "sh", "-c", "ibstat && sminfo; iblinkinfo -l", cwd=tmp_path)
    assert "State: Active" in ended.stdout
    assert "Base lid: 1\n" in ended.stdout
    assert "SM lid: 1\n" in ended.stdout
    assert ended.stdout.count("Active/  LinkUp") == 4


def test_a_node_that_was_reset_is_brought_up_again(tmp_path):
    says = scripted(
        tmp_path,
        ["--bring-up", "sm"],
        "star",
        {
            "before": f"wait_until '[ $({_LINKS}) = 4 ]'",
            "reset": f"{TELL} reset H2",
            "after": f"{TELL} run 5; wait_until '[ $({_LINKS}) = 4 ]'; smpquery portinfo 3",
        },
    )
    assert "LinkState:.......................Active" in says["after"]


def test_a_link_that_comes_back_carries_data_again(tmp_path):
    says = scripted(
        tmp_path,
        ["--bring-up", "sm", "--link-down-timeout", "2000"],
        "star",
        {
            "cut": f"{TELL} cut 'SW1[2]'; {TELL} run 1",
            "down": f"wait_until '[ $({_LINKS}) = 2 ]' && echo ok",
            "restore": f"{TELL} restore 'SW1[2]'; {TELL} run 5",
            "up": f"wait_until '[ $({_LINKS}) = 4 ]' && echo ok",
        },
    )
    assert (says["down"], says["up"]) == ("ok\n", "ok\n")


def test_it_leaves_the_fabric_to_a_manager_that_comes(tmp_path):
    says = scripted(
        tmp_path,
        ["--bring-up", "sm", "--link-down-timeout", "2000"],
        "star",
        {
            "opensm": "opensm -d 2 -f opensm.log & manager=$!; wait_until 'grep -q \"SUBNET UP\" opensm.log'",
            "cut": f"{TELL} cut 'SW1[2]'; {TELL} run 1200; wait_until '[ $({_LINKS}) = 2 ]'",
            "restore": f"{TELL} restore 'SW1[2]'; {TELL} run 1200; wait_until '[ $({_LINKS}) = 4 ]' && echo up",
            "end": "kill $manager; wait $manager; grep ERR opensm.log",
        },
    )
    assert "H1[1]: another Subnet Manager; Ironband's own at H1[1] retires" in says["all"]
    assert says["restore"].endswith("up\n")
    assert "ERR" not in says["end"]
