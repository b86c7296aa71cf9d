"""`ironband serve` of adapters with several ports, each of which programs may be at."""

import re

from tests.ironband.served import TELL, TWO_SWITCHES, needs_programs, scripted

SECOND_LID = "cat /sys/class/infiniband/rxe_ironband0/ports/2/lid"


@needs_programs
def test_opensm_runs_at_the_second_port_of_an_adapter_as_at_the_first(tmp_path):
    (tmp_path / "two.net").write_text(TWO_SWITCHES)
    lines = {
        "opensm": "opensm -g 0x100002 -B -d 2 -f opensm.log; wait_until 'grep -q UP opensm.log'",
        "sminfo": "sminfo",
        "own": SECOND_LID,
        "capable": "smpquery portinfo -P 2 -D 0 | grep -c IsSM; smpquery portinfo -P 1 -D 0 | grep -c IsSM",
        "discovered": "ibnetdiscover -P 2 | grep Initiated",
    }
    answers = scripted(tmp_path, [], "two.net", lines)
    log = (tmp_path / "opensm.log").read_text()
    assert "SUBNET UP" in log
    assert " ERR " not in log
    assert re.search(r"sm lid (\d+) sm guid 0x100002,", answers["sminfo"])[1] == str(int(answers["own"], 16))
    assert answers["capable"].splitlines()[:2] == ["1", "0"]
    assert "port 0000000000100002" in answers["discovered"]


@needs_programs
def test_a_port_of_an_adapter_is_cut_off_and_restored_and_the_other_stays(tmp_path):
    (tmp_path / "two.net").write_text(TWO_SWITCHES)
    up = "wait_until '[ $(grep -c UP opensm.log) -ge {} ]'"
    states = "ibstat rxe_ironband0 1 | grep State; ibstat rxe_ironband0 2 | grep State"
    lines = {
        "opensm": f"opensm -B -d 2 -f opensm.log; {up.format(1)}",
        "cut": f"{TELL} cut 'H1[2]'; {up.format(2)}; {states}; ibnetdiscover",
        "restored": f"{TELL} restore 'H1[2]'; {TELL} run 1100; {up.format(3)}; {states}; ibnetdiscover",
    }
    answers = scripted(tmp_path, ["--link-down-timeout", "20000"], "two.net", lines)
    assert re.findall(r"State: (\w+)", answers["cut"]) == ["Active", "Down"]
    assert re.findall(r"State: (\w+)", answers["restored"]) == ["Active", "Active"]
    record = r'^Ca\t2 "H-0000000000100000".*\n((?:\[.*\n)+)'
    ports = [
        re.findall(r"^\[(\d)\]", re.findall(record, answers[name], re.M)[0], re.M) for name in lines if name != "opensm"
    ]
    assert ports == [["1"], ["1", "2"]]


@needs_programs
def test_an_adapter_is_reset_with_all_its_ports_or_one_of_them_alone(tmp_path):
    (tmp_path / "two.net").write_text(TWO_SWITCHES)
    lines = {
        "opensm": "opensm -o -f opensm.log",
        "before": "smpquery -P 1 portinfo -D 0; smpquery -P 2 portinfo -D 0",
        "one": f"{TELL} reset 'H1[2]'; {TELL} run 1",
        "after_one": "smpquery -P 1 portinfo -D 0; smpquery -P 2 portinfo -D 0",
        "both": f"{TELL} reset H1; {TELL} run 1",
        "after_both": "smpquery -P 1 portinfo -D 0; smpquery -P 2 portinfo -D 0",
    }
    answers = scripted(tmp_path, [], "two.net", lines)
    assert re.match(r"H1\[2\]: reset, which takes [\d,]+ cycles\n", answers["one"])
    assert re.match(r"H1: reset, which takes [\d,]+ cycles\n", answers["both"])

    def seen(name: str) -> list[tuple[bool, str]]:
        """Of each port, whether it has a LID, and its state."""
        lids, states = (re.findall(rf"^{field}:\.+(\w+)", answers[name], re.M) for field in ("Lid", "LinkState"))
        return [(lid != "0", state) for lid, state in zip(lids, states, strict=True)]

    assert seen("before") == [(True, "Active")] * 2
    assert seen("after_one") == [(True, "Active"), (False, "Initialize")]
    assert seen("after_both") == [(False, "Initialize")] * 2


def test_lines_name_each_port_of_an_adapter(tmp_path):
    (tmp_path / "two.net").write_text(TWO_SWITCHES)
    lines = {
        "cut": "cut 'H1[2]'",
        "restore": "restore 'SW2[1]'",
        "errors": "errors 'H1[2]' bit_flip 0",
        "flow": "flow 'H1[2]' H1",
        "counters": "counters 'H1[1]'",
        "no_port": "cut 'H1[3]'",
        "no_host": "flow 'H1[3]' H1",
    }
    said = scripted(tmp_path, [], "two.net", {name: f"{TELL} {line}" for name, line in lines.items()})
    assert {name: said[name].splitlines()[0] for name in lines} == {
        "cut": "H1[2]-SW2[1]: cut",
        "restore": "H1[2]-SW2[1]: restored",
        "errors": "H1[2]: sends without bit_flip",
        "flow": "H1[2] to H1: 256 bytes, 0.5 of the link, SL 0",
        "counters": "H1[1]: all 0",
        "no_port": "ironband: H1[3]: no such node; there are SW1, SW2, H1[1], H1[2], H2, H4",
        "no_host": "ironband: H1[3]: no such host; there are H1, H2, H4",
    }
