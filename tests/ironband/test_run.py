"""`ironband run`: the story that it reports, what it writes, and what it refuses."""

import json
from pathlib import Path

import pytest
import pywellen

from cosim.scenario.find_scenario import packaged_scenarios
from ironband import main
from tests.ironband.command import LOOPED, one_line_error
from wire.trace import RECORD

FIRST_LINES = """\
The traffic jam
2 links Active, traffic may start at cycle 883 (3,532 ns).

      cycle             ns  place    credits left  event
        883          3,532  A[1]      15 = 3 pkt  host has packets 0 to 4 to send, 256 bytes
"""
"""Brought up by register writes."""


def test_the_story_begins_with_discovery(capsys):
    assert main(["run", "jam", "--sim", "model"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # Of a cycle, ns, place and event.
    story = [line.split(maxsplit=3) for line in lines[4:14]]
    assert [(words[2], words[3]) for words in story] == [
        ("A[1]", "heavy sweep: start"),
        ("A[1]", 'found CA 0x001b000000000200 "A", 1 port'),
        ("A[1]", 'found Switch 0x001b000000000100 "S", 2 ports'),
        ("A[1]", 'found CA 0x001b000000000300 "B", 1 port'),
        ("A[1]", "switch S: wrote LFT blocks 0"),
        ("A[1]", "tells the clients of 2 ports to register again"),
        tuple(story[6][2:]),
        ("A[1]", "15 = 3 pkt  host has packets 0 to 4 to send, 256 bytes"),
        ("A[1]", "10 = 2 pkt  sends packet 0 to S[1]"),
        ("A[1]", "5 = 1 pkt  sends packet 1 to S[1]"),
    ]
    assert story[6][3].startswith("heavy sweep took ")
    assert story[7][0] in lines[1], "traffic starts when it may"


def test_the_story_has_the_guids_and_the_descriptions_of_a_topology_file(capsys):
    Path("two.net").write_text('Ca 1 "A" # "the first"\n[1] "B"\ncaguid=0x2c9000000\nCa 1 "B"\n[1] "A"\n')
    text = LOOPED.replace("50_000_000", "300").replace('from = "A"', 'from = "the_first"')
    nodes, flows = text.index("[hosts.A]"), text.index("[[flows]]")
    Path("two.toml").write_text(f'{text[:nodes]}topology = "two.net"\n{text[flows:]}')
    assert main(["run", "two.toml", "--sim", "model"]) == 0
    output = capsys.readouterr().out
    assert 'found CA 0x0000000000100000 "the first", 1 port' in output
    assert 'found CA 0x00000002c9000000 "B", 1 port' in output


TWO_PORTS = """
cycles = 400
[switches.S]
ports = 3
[hosts.A]
ports = 2
[hosts.B]
[[links]]
ends = ["A", "S[1]"]
[[links]]
ends = ["A[2]", "S[2]"]
[[links]]
ends = ["B", "S[3]"]
[[flows]]
from = "A[2]"
to = "B"
count = 3
[[flows]]
from = "B"
to = "A"
count = 1
[[stalls]]
host = "A"
from = 0
to = 300
"""


@pytest.mark.parametrize("bring_up", ["smp", "bus"])
def test_ports_of_a_host_send_and_get_each_for_itself(capsys, bring_up):
    Path("two.toml").write_text(TWO_PORTS)
    assert main(["run", "two.toml", "--sim", "model", "--bring-up", bring_up, "--json", "-", "--no-picture"]) == 0
    results = json.loads(capsys.readouterr().out)
    flows = [(flow["name"], flow["from"], flow["to"], flow["delivered_packets"]) for flow in results["flows"]]
    assert flows == [("A[2]-B", "A[2]", "B", 3), ("B-A", "B", "A", 1)]
    assert {event["place"] for event in results["events"] if event["event"] == "deliver"} == {"B[1]", "A[1]"}


def test_run_tells_the_story_of_the_jam(capsys):
    assert main(["run", "jam", "--sim", "model", "--bring-up", "bus"]) == 0
    output = capsys.readouterr().out
    assert output.startswith(FIRST_LINES)
    sends = [line.split() for line in output.splitlines() if "A[1]" in line and "sends packet" in line]
    assert [(words[3], words[5]) for words in sends] == [("10", "2"), ("5", "1"), ("0", "0"), ("0", "0"), ("0", "0")]
    for line in (
        "packets sent                      5",
        "packets delivered                 5",
        "packets dropped                   0",
        "mismatches                        -",
        "Without credits the same buffers would have dropped 2 of 5 packets.",
        "wrote out/jam/jam.svg",
        "wrote out/jam/jam.png",
    ):
        assert line in output.splitlines()
    assert sorted(path.name for path in Path("out/jam").iterdir()) == ["jam.png", "jam.svg"]


def test_credits_go_two_one_zero_in_the_results(capsys):
    assert main(["run", "jam", "--sim", "model", "--json", "-", "--no-picture"]) == 0
    results = json.loads(capsys.readouterr().out)
    sends = [event for event in results["events"] if event["event"] == "send" and event["place"] == "A[1]"]
    assert [event["credits_left_packets"] for event in sends] == [2, 1, 0, 0, 0]
    assert [event["packet"] for event in results["events"] if event["event"] == "deliver"] == [
        f"0/{number}" for number in range(5)
    ]
    assert results["events"][0]["time_ns"] == results["events"][0]["cycle"] * 4
    assert results["held"]
    assert results["mismatches"] is None
    assert results["without_credits"]["dropped_packets"] == 2
    assert results["events"][0]["event"] == "manage"
    # Five packets, and the SMPs to the switch and to B.
    assert results["counters"]["S[1]"]["rcv_pkts"] == 25
    assert results["counters"]["A[1]"]["xmit_wait"] > 0


def test_json_goes_to_a_file_beside_the_text(capsys):
    assert main(["run", "jam", "--sim", "model", "--json", "jam.json", "--out", "pictures", "--seed", "3"]) == 0
    assert "packets sent" in capsys.readouterr().out
    assert json.loads(Path("jam.json").read_text())["seed"] == 3
    assert sorted(path.name for path in Path("pictures").iterdir()) == ["jam.png", "jam.svg"]


def test_a_scenario_may_ask_for_the_trace(capsys):
    text = LOOPED.replace("50_000_000", "500") + "[record]\ntrace = true\nfirst = 2\nlast = 1\n"
    Path("short.toml").write_text(text)
    assert main(["run", "short.toml", "--sim", "model"]) == 0
    assert Path("out/short/trace.bin").stat().st_size % RECORD.size == 0
    assert Path("out/short/trace.bin").stat().st_size > 0
    output = capsys.readouterr().out
    assert " events left out\n" in output
    assert "wrote out/short/trace.bin" in output


def test_a_title_may_be_in_any_script(capsys):
    title = "$x_{$ 交通 \N{AUTOMOBILE}"
    Path("title.toml").write_text(f'title = "{title}"\n' + LOOPED.replace("50_000_000", "300"))
    assert main(["run", "title.toml", "--sim", "model"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith(title)
    assert output.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument 'SCENARIO'."),
        (
            ["run", "jom"],
            "scenario 'jom': no such file, and Ironband comes with: blocked-vl, congestion, ",
        ),
        (["run", "star"], "star: is a topology, which `ironband up` and `ironband serve` take: expected a scenario"),
        (["run", "jam", "--capture", "x.foo"], "x.foo: no format of captures by its suffix, allowed .erf, .pcap, .pc"),
        (["run", "jam", "--waves", f"{'x' * 250}.fst"], "cannot be written: File name too long"),
        (["run", "jam", "--waves", "x.vcd"], "waves x.vcd: verilator writes .fst files"),
        (["run", "jam", "--waves-cycles", "1:2"], "--waves-cycles 1:2: expected --waves, too"),
        (
            ["run", "jam", "--bring-up", "bus", "--no-picture", "--waves", "x.fst", "--waves-cycles", "900000:900000"],
            "--waves-cycles 900000:900000: expected FROM below",
        ),
        (["run", "jam", "--fast"], "No such option '--fast'."),
        (["run", "jam", "--sim", "spice"], "Invalid value for '--sim': 'spice' is not one of"),
        (["run", "x" * 300], "File name too long"),
        (["run", "jam", "--sim", "model", "--waves", "jam.fst"], "model"),
        (["run", "jam", "--sim", "model", "--json", "nowhere/jam.json"], "nowhere/jam.json: cannot be written"),
        (["run", "jam", "--sim", "model", "--json", "."], ".: cannot be written: Is a directory"),
        (["run", "jam", "--sim", "model", "--out", "/proc/jam"], "directory /proc/jam: cannot be written"),
    ],
)
def test_bad_use_is_one_line_and_status_2(capsys, arguments, message):
    assert message in one_line_error(capsys, *arguments)
    assert list(Path().iterdir()) == [], "nothing is left behind"


def test_a_topology_s_file_is_no_scenario_and_the_error_says_what_takes_it(capsys):
    Path("two.net").write_text('Ca 1 "A"\n[1] "B"\nCa 1 "B"\n[1] "A"\n')
    assert one_line_error(capsys, "run", "two.net").startswith("two.net: is a topology, which `ironband up` and")


@pytest.mark.parametrize("name", ["jam.svg", "jam.png"])
def test_a_disk_that_is_full_when_pictures_are_drawn_costs_no_totals(capsys, name):
    Path("out/jam").mkdir(parents=True)
    (Path("out/jam") / name).symlink_to("/dev/full")
    assert main(["run", "jam", "--sim", "model", "--json", "jam.json"]) == 2
    output = capsys.readouterr()
    assert output.err == f"ironband: out/jam/{name}: cannot be written: No space left on device\n"
    assert "packets delivered                 5\n" in output.out
    assert f"wrote out/jam/{name}" not in output.out
    assert json.loads(Path("jam.json").read_text())["delivered_packets"] == 5


def test_a_disk_that_is_full_when_the_trace_is_written_is_told_with_its_path(capsys):
    Path("short.toml").write_text(LOOPED.replace("50_000_000", "300") + "[record]\ntrace = true\n")
    Path("out/short").mkdir(parents=True)
    Path("out/short/trace.bin").symlink_to("/dev/full")
    line = one_line_error(capsys, "run", "short.toml", "--sim", "model")
    assert line == "out/short/trace.bin: cannot be written: No space left on device"


def test_malformed_toml_is_one_line_and_status_2(capsys):
    Path("broken.toml").write_text("cycles = = 3\n")
    assert one_line_error(capsys, "run", "broken.toml") == "broken.toml: Invalid value (at line 1, column 10)"


def test_a_flow_to_a_node_that_is_not_there_is_one_line_and_status_2(capsys):
    Path("broken.toml").write_text(LOOPED.replace('to = "B"', 'to = "C"'))
    line = one_line_error(capsys, "run", "broken.toml")
    assert line == "broken.toml: flows[0].to: no host 'C'; there are A, B"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"cycles = {'9' * 5000}", "broken.toml: Exceeds the limit"),
        (f"cycles = {'[' * 5000}", "broken.toml: nested too deeply, expected a scenario"),
        ("cycles = 5", "broken.toml: hosts: none given, expected at least one"),
        ('title = "two\\nlines"\ncycles = 5', "broken.toml: title: 'two\\nlines': expected characters"),
    ],
)
def test_what_is_no_scenario_is_one_line_and_status_2(capsys, text, message):
    Path("broken.toml").write_text(text)
    assert one_line_error(capsys, "run", "broken.toml").startswith(message)


def test_a_missing_simulator_is_one_line_and_status_2(capsys, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda tool, path=None: None)
    assert "iverilog is missing" in one_line_error(capsys, "run", "jam", "--sim", "icarus")


def story(capsys, scenario: str, *options: str) -> list[str]:
    """What a run of a scenario prints, without the lines that say what was compared."""
    assert main(["run", scenario, "--no-picture", *options]) == 0
    output = capsys.readouterr().out.splitlines()
    return [line for line in output if not line.startswith(("cycles compared", "mismatches"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sim", "bring_up", "packets", "cycles"),
    [
        ("verilator", "smp", 5, 2_500),
        ("icarus", "bus", 4, 1_650),
        pytest.param("amaranth", "bus", 4, 1_650, marks=pytest.mark.deep),
    ],
)
def test_every_engine_tells_the_same_story_and_none_differs_from_the_model(capsys, sim, bring_up, packets, cycles):
    """The jam's; on slow engines without its last packet, which has room in the switch as the one before it has.

    Icarus records waves meanwhile.
    """
    jam = packaged_scenarios()["jam"].read_text()
    assert jam.count("count = 5") == jam.count("cycles = 2500") == 1
    text = jam.replace("count = 5", f"count = {packets}").replace("cycles = 2500", f"cycles = {cycles}")
    Path("jam.toml").write_text(text)
    options = ["jam.toml", "--bring-up", bring_up]
    waves = ["--waves", "waves/jam.fst"] if sim == "icarus" else []
    lines = story(capsys, *options, "--sim", sim, "--json", "jam.json", *waves)
    if waves:
        lines.remove("wrote waves/jam.fst")
        assert Path("waves/jam.fst").stat().st_size > 10_000
    assert lines == story(capsys, *options, "--sim", "model")
    results = json.loads(Path("jam.json").read_text())
    assert results["mismatches"] == 0
    assert results["cycles_compared"] == results["cycles"] > cycles + 800
    assert results["records_compared"] > 100
    assert results["delivered_packets"] == packets
    assert any("stalls with packet" in line for line in lines)


def flows_of(capsys, scenario: str) -> dict[str, dict]:
    """What each flow got in a scenario."""
    assert main(["run", scenario, "--sim", "model", "--json", "-", "--no-picture"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert (results["held"], results["faults"]) == (True, [])
    assert results["files"] == []
    assert [path for path in Path().iterdir() if path.name != scenario] == []
    return {f"{flow['name']} {flow['from']}": flow for flow in results["flows"]} | {"results": results}


def drops(results: dict) -> list[dict]:
    """What was refused or thrown away, as far as the story was told."""
    return [event for event in results["events"] if event["event"] == "drop"]


@pytest.mark.slow
def test_saturation_fills_the_links_and_is_fair(capsys):
    found = flows_of(capsys, "saturation")
    shares = [link["data_share_of_capacity"] for link in found["results"]["links"].values()]
    assert sum(shares) / len(shares) > 0.95
    assert found["results"]["fairness_least_over_mean"]["uniform"] > 0.95


def test_incast_drops_nothing_and_is_fair(capsys):
    found = flows_of(capsys, "incast")["results"]
    assert (found["dropped_packets"], found["lost_packets"]) == (0, 0)
    assert found["fairness_least_over_mean"]["incast"] > 0.95
    assert found["links"]["S[8]"]["data_share_of_capacity"] > 0.98


def test_a_blocked_head_of_line_costs_the_fifo_twice_the_time(capsys):
    found = flows_of(capsys, "head-of-line")
    assert found["cold F1"]["latency_mean_cycles"] > 1.9 * found["cold V1"]["latency_mean_cycles"]
    assert found["hot F1"]["latency_mean_cycles"] == found["hot V1"]["latency_mean_cycles"]


def test_a_blocked_vl_does_not_stop_the_other(capsys):
    found = flows_of(capsys, "blocked-vl")
    assert found["free A"]["latency_max_cycles"] < 1_500
    assert found["blocked A"]["latency_max_cycles"] > 4_000
    assert any(event["event"] == "stall" for event in found["results"]["events"])


def test_a_burst_of_errors_costs_the_packets_it_hits_and_the_credits_heal(capsys):
    found = flows_of(capsys, "error-burst")["results"]
    assert (found["sent_packets"], found["delivered_packets"], found["lost_packets"]) == (14, 10, 4)
    assert found["injected_errors"] == 7
    credits = [event["credits_left_blocks"] for event in found["events"] if event["place"] == "A[1]"]
    assert [left for left in credits if left is not None][-1] == 68


def test_a_slow_host_slows_its_senders_and_loses_nothing(capsys):
    found = flows_of(capsys, "slow-host")
    assert found["results"]["links"]["S[3]"]["data_share"] > 0.95
    assert found["results"]["dropped_packets"] == 0
    assert found["results"]["links"]["S[4]"]["data_share"] < 0.4


def test_a_member_that_stalls_gets_every_packet_of_its_group_and_keeps_none_from_the_others(capsys):
    found = flows_of(capsys, "multicast")
    results = found["results"]
    assert (results["dropped_packets"], results["lost_packets"]) == (0, 0)
    sends = {
        (event["place"], event["text"].split(" to ")[0]): event["cycle"]
        for event in results["events"]
        if event["event"] == "send"
    }
    stalled = next(event for event in results["events"] if event["event"] == "stall")
    assert (stalled["place"], stalled["text"].split(":")[0]) == ("S[4]", "stalls with news 4 waiting")
    assert all(sends[port, "sends news 4"] < stalled["cycle"] + 300 for port in ("S[2]", "S[3]"))
    assert sends["S[2]", "sends mail 5"] < stalled["cycle"] + 1_000
    assert sends["S[4]", "sends news 4"] < sends["S[2]", "sends news 5"], "it waits behind the copy for Slow"
    assert sends["S[4]", "sends news 4"] > stalled["cycle"] + 5_000
    links = results["links"]
    assert links["S[3]"]["data_share"] > links["S[4]"]["data_share"] > 0.25


def test_partitions_keep_out_who_is_no_member_and_disturb_nobody_else(capsys):
    found = flows_of(capsys, "partitions")
    assert [found[f"{name} A1"]["delivered_packets"] for name in ("stray", "forged")] == [0, 0]
    # None of them waits for those that are refused: each packet is as fast as if it were alone.
    for flow in ("alpha A1", "beta B2", "alpha to Server A2", "beta to Server B1"):
        assert found[flow]["delivered_packets"] >= 5
        assert found[flow]["latency_max_cycles"] == found[flow]["latency_mean_cycles"]
    results = found["results"]
    errors = {
        (port, name): count
        for port, counts in results["counters"].items()
        for name, count in counts.items()
        if name.endswith("constraint_errors") and count
    }
    assert errors == {("S[1]", "rcv_constraint_errors"): 5, ("S[3]", "xmit_constraint_errors"): 7}
    assert results["dropped_packets"] == 5 + 7
    refusals = {event["text"].replace(event["packet"].split("/")[1], "N", 1) for event in drops(results)}
    assert refusals == {
        "refuses stray N, XMIT_CONSTRAINT: its P_Key 0x8001 matches none in the table of S[3]",
        "refuses forged N, RCV_CONSTRAINT: its P_Key 0x8002 matches none in the port's table",
    }


GROUP_OF_TWO_PARTITIONS = """
title = "A group with members in two partitions"
cycles = 4_000
switches.S.ports = 4
groups.all = { mlid = 0xc001, members = ["A1", "A2", "B1"] }

[partitions]
alpha = { key = 1, full = ["A1", "A2"] }
beta = { key = 2, full = ["B1"] }
default = { key = 0x7fff, limited = ["A1", "A2", "B1"] }

[hosts]
A1 = {}
A2 = {}
B1 = {}

[[links]]
ends = ["A1", "S[1]"]
[[links]]
ends = ["A2", "S[2]"]
[[links]]
ends = ["B1", "S[3]"]

[[flows]]
name = "alpha"
from = "A1"
to = "all"
partition = "alpha"
size = 1024
rate = 0.5
"""


def test_a_group_s_packets_leave_by_the_ports_of_their_partition_alone_and_the_manager_hears_of_others(capsys):
    Path("group.toml").write_text(GROUP_OF_TWO_PARTITIONS)
    found = flows_of(capsys, "group.toml")
    assert found["alpha A1"]["delivered_packets"] >= 5
    results = found["results"]
    assert {event["place"] for event in results["events"] if event["event"] == "deliver"} == {"A2[1]"}
    assert {(event["place"], event["text"].partition(": ")[2]) for event in drops(results)} == {
        ("S[3]", "its partition is not the port's")
    }
    counters = results["counters"]["S[3]"]
    assert (counters["xmit_constraint_errors"], counters["xmit_discards"]) == (results["dropped_packets"], 0)
    told = [event["text"] for event in results["events"] if "trap 259" in event["text"]]
    assert told[0].startswith("hears by trap 259 from LID 2: port 3 rejects P_Key 0x8001")


def test_a_credit_loop_stands_still_until_hoqlife_ends_it(capsys):
    found = flows_of(capsys, "credit-loop")
    results = found["results"]
    assert results["dropped_packets"] == 5
    assert all("HOQLife" in event["text"] for event in drops(results))
    # What is dropped has come in just behind the first row of the packet before it. HOQLife is 4.096 us x 2^2, and is
    # met to a quarter of it.
    sent = min(event["cycle"] for event in results["events"] if event["event"] == "send" and event["place"] == "S1[2]")
    dropped = min(event["cycle"] for event in drops(results))
    assert 0.75 * 4_096 <= dropped - sent <= 4_096
    assert min(found[f"H{number} H{number}"]["delivered_packets"] for number in range(1, 6)) > 25
    assert {f"S{number}[2]" for number in range(1, 6)} == {
        port for port, counts in results["counters"].items() if counts["xmit_discards"]
    }


def test_service_levels_share_a_link_by_weight_and_the_high_list_goes_first(capsys):
    found = flows_of(capsys, "service-levels")
    bulk, gold, urgent = (found[f"{name} {host}"] for name, host in (("bulk", "A"), ("gold", "B"), ("urgent", "C")))
    assert gold["delivered_packets"] / bulk["delivered_packets"] == pytest.approx(3, rel=0.02)
    assert found["results"]["links"]["S[4]"]["data_share"] > 0.97
    # It waits for the packet that is on its way, and for one of the others by the limit of 0.
    assert urgent["latency_mean_cycles"] < 0.2 * gold["latency_mean_cycles"]


def test_each_switch_that_stores_and_forwards_costs_a_packet_its_length(capsys):
    found = flows_of(capsys, "cut-through")
    cut, stored = found["cut through A"], found["stored C"]
    words = (2_048 + 32) // 4
    assert stored["latency_mean_cycles"] - cut["latency_mean_cycles"] == 3 * (words - 1)
    assert stored["latency_max_cycles"] - cut["latency_max_cycles"] == 3 * (words - 1)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["partitions", "credit-loop"])
def test_rtl_and_model_agree_on_packets_that_are_refused_and_given_up(capsys, name):
    assert main(["run", name, "--json", "results.json", "--no-picture"]) == 0
    results = json.loads(Path("results.json").read_text())
    assert results["mismatches"] == 0
    assert results["cycles_compared"] == results["cycles"]
    assert results["dropped_packets"] >= 5


@pytest.mark.deep
@pytest.mark.parametrize("name", ["service-levels", "multicast", "cut-through"])
def test_rtl_and_model_agree_on_packets_that_wait_for_others_and_none_is_lost(capsys, name):
    assert main(["run", name, "--json", "results.json", "--no-picture"]) == 0
    results = json.loads(Path("results.json").read_text())
    assert results["mismatches"] == 0
    assert results["cycles_compared"] == results["cycles"]
    assert (results["dropped_packets"], results["lost_packets"]) == (0, 0)


@pytest.mark.deep
def test_rtl_and_model_agree_on_a_burst_of_errors_and_waves_are_recorded_on_request(capsys):
    assert main(["run", "error-burst", "--json", "burst.json", "--waves", "waves/burst.fst"]) == 0
    results = json.loads(Path("burst.json").read_text())
    assert (results["mismatches"], results["lost_packets"], results["injected_errors"]) == (0, 4, 7)
    assert "wrote waves/burst.fst" in capsys.readouterr().out
    names = [variable.full_name for variable in pywellen.Waveform("waves/burst.fst").all_vars()]
    assert len(names) > 1_000
    assert [name for name in names if "$" in name or name.rpartition(".")[2].startswith("_")] == []
