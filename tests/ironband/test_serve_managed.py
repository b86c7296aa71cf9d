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


def test_its_subnet_administrator_answers_programs(tmp_path):
    says = scripted(
        tmp_path,
        ["--bring-up", "sm"],
        "star",
        {
            "nodes": "saquery -t 60000 | grep -c NodeDesc; IRONBAND_HOST=H2 saquery -t 60000 | grep -c NodeDesc",
            "paths": "saquery -t 60000 -p | grep -c dlid; saquery -t 60000 --src-to-dst H2:H1 | grep lid",
            "links": "saquery -t 60000 -x | grep -c ToLID",
            "ports": "saquery -t 60000 -s | grep -c EndPortLid",
            "nobody": "saquery -t 60000 -p --dgid fe80::9",
            "sminfo": "IRONBAND_HOST=H2 sminfo; saquery -t 60000 SMIR | grep State",
            "ibping": "IRONBAND_HOST=H2 ibping -S & "
            "wait_until 'ibping -c 1 -G 0x100003 | tee ping | grep -q \" 1 received\"'; cat ping; kill $!",
        },
    )
    assert says["nodes"].split() == ["3", "3"]
    assert says["paths"].split() == ["9", "dlid....................1", "slid....................3"]
    assert says["links"].split() == ["4"]
    assert says["ports"].split() == ["1"]
    assert "SA_ERR_REQ_INVALID_GID" in says["nobody"]
    assert "SMINFO_MASTER" in says["sminfo"]
    assert "SMState...............3" in says["sminfo"]
    assert "1 packets transmitted, 1 received" in says["ibping"]


def test_it_hands_over_to_an_opensm_of_higher_priority_and_takes_over_when_that_is_gone(tmp_path):
    state = "sminfo | grep -q SMINFO_MASTER && sminfo 1 | grep -q"
    says = scripted(
        tmp_path,
        ["--bring-up", "sm"],
        "star",
        {
            "opensm": "IRONBAND_HOST=H2 opensm -p 9 -d 2 -f opensm.log & "
            "echo $! > pid; wait_until 'grep -q \"SUBNET UP\" opensm.log'",
            "over": f"wait_until '{state} STANDBY'; sminfo; sminfo 1",
            "kill": "kill -9 $(cat pid)",
            "back": f"wait_until '{state} MASTER'; sminfo; saquery -t 60000 | grep -c NodeDescription",
        },
    )
    assert "sm lid 3" in says["over"]
    assert "hands over to the Subnet Manager at port 0x0000000000100003" in says["all"]
    assert "sm lid 1" in says["back"]
    assert says["back"].splitlines()[-1] == "3"


def test_an_opensm_of_no_higher_rank_stands_by_beside_it(tmp_path):
    says = scripted(
        tmp_path,
        ["--bring-up", "sm"],
        "star",
        {
            "opensm": "IRONBAND_HOST=H2 opensm -d 2 -f opensm.log & "
            "echo $! > pid; wait_until 'grep -q STANDBY opensm.log'",
            "sminfo": "sminfo; sminfo 3",
            "end": "kill $(cat pid)",
        },
    )
    assert "sm lid 1" in says["sminfo"]
    assert "SMINFO_STANDBY" in says["sminfo"]


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
    assert "H1[1]: another Subnet Manager; Ironband's own retires" in says["all"]
    assert says["restore"].endswith("up\n")
    assert "ERR" not in says["end"]


def test_programs_are_told_by_each_new_master_to_register_again(tmp_path):
    watch = "ibv_asyncwatch > {0} & echo $! > {0}.pid; wait_until 'grep -q FD {0}'"
    times = "wait_until '[ $(grep -c CLIENT_REREGISTER {}) = {} ]' && echo told"
    says = scripted(
        tmp_path,
        ["--bring-up", "sm"],
        "star",
        {
            "watch": f"{watch.format('1')}; IRONBAND_HOST=H2; export IRONBAND_HOST; {watch.format('2')}",
            "opensm": "IRONBAND_HOST=H2 opensm -p 9 -d 2 -f opensm.log & echo $! > pid",
            "over": f"{times.format('1', 1)}; {times.format('2', 1)}",
            "kill": "kill -9 $(cat pid)",
            "back": f"{times.format('1', 2)}; {times.format('2', 2)}; kill $(cat 1.pid) $(cat 2.pid)",
        },
    )
    assert (says["over"], says["back"]) == ("told\ntold\n", "told\ntold\n")
    assert says["all"].count("tells the clients of 2 ports to register again") == 2
