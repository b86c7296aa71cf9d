"""`ironband run` with flows that have a transport: the stories that come with it, and what they come to."""

import json
from pathlib import Path

import pytest

from cosim.scenario.find_scenario import packaged_scenarios
from ironband import main

BUS = ["--sim", "model", "--bring-up", "bus"]


def results_of(capsys, scenario: str, *options: str, status: int = 0) -> dict:
    assert main(["run", scenario, *(options or BUS), "--json", "-", "--no-picture"]) == status
    return json.loads(capsys.readouterr().out)


def recovery(results: dict, start: str = "") -> list[str]:
    return [event["text"] for event in results["events"] if event["event"] == "recovery" and start in event["text"]]


def test_a_lost_packet_a_nak_a_retry(capsys):
    results = results_of(capsys, "retry", "--sim", "model")
    told = [event["text"] for event in results["events"]]
    wanted = [
        "finds PSN 3 bad: REMOTE",
        "gets a packet from behind PSN 3, which is missing: answers NAK PSN sequence error",
        "gets NAK PSN sequence error of PSN 3",
        "sends PSN 3 again to S[1]",
        "has had no answer to PSN 10 for 8,192 cycles, its Local ACK Timeout",
        "gets a packet from before PSN 12 once more",
    ]
    places = [told.index(text) for text in wanted]
    assert places == sorted(places)
    (flow,) = results["message_flows"]
    assert (flow["posted_messages"], flow["arrived_messages"], flow["retries"]) == (6, 6, 2)
    assert (flow["incidents"]["sequence_nak"], flow["incidents"]["timeout"]) == (1, 1)
    assert (results["held"], results["faults"]) == (True, [])


def test_a_receiver_that_is_not_ready(capsys):
    results = results_of(capsys, "rnr")
    (flow,) = results["message_flows"]
    assert flow["arrived_messages"] == 8
    naks = flow["incidents"]["rnr_nak"]
    assert naks == len(recovery(results, "has no receive request")) == len(recovery(results, "gets RNR NAK")) > 1
    assert flow["latency_max_cycles"] > 5_000 * 5


def test_a_victim_of_congestion(capsys):
    results = results_of(capsys, "congestion", "--sim", "model")
    share = {flow["name"]: flow["share_of_what_headers_leave"] for flow in results["message_flows"]}
    becns = {flow["name"]: flow["incidents"]["becn"] for flow in results["message_flows"]}
    assert share["victim P"] < 0.4
    assert share["victim C"] > 0.7
    assert {name for name, number in becns.items() if number} == {"hot C", "others C"}
    assert becns["hot C"] == len(recovery(results, "gets BECN"))


def test_a_cut_cable_and_a_completion_with_an_error(capsys):
    assert main(["run", "cut-cable", "--sim", "model", "--json", "cut.json", "--no-picture"]) == 0
    lines = capsys.readouterr().out.splitlines()
    results = json.loads(Path("cut.json").read_text())
    cut, whole = results["message_flows"]
    assert cut["failed_requests"] == {"RETRY_EXC_ERR": 1, "WR_FLUSH_ERR": 3}
    assert whole["failed_requests"] == {}
    last = cut["arrived_messages"]
    assert recovery(results)[-2:] == [
        f"cut: message {last} ends with RETRY_EXC_ERR",
        f"cut: messages {last + 1} to {last + 3} end flushed, WR_FLUSH_ERR",
    ]
    assert any("link S[2] to B[1] was lost" in event["text"] for event in results["events"])
    (heading,) = [line for line in lines if line.startswith("messages of ")]
    columns = ["posted", "arrived", "Gbit/s", "of", "link", "least", "median", "most"]
    assert heading.split("(")[0].split() == ["messages", "of", *columns]
    row = next(line.split() for line in lines if line.startswith("cut, RC rdma_write  "))
    assert row[3:5] == [str(last + 4), str(last)]
    assert "cut, RC rdma_write: 4 time-outs, 1 ended with RETRY_EXC_ERR, 3 ended with WR_FLUSH_ERR" in lines
    assert not any("Without credits" in line for line in lines), "that is of packets without a transport"


def test_two_senders_share_one_receiver(capsys):
    assert main(["run", "fair", *BUS, "--json", "fair.json", "--no-picture"]) == 0
    one, two = json.loads(Path("fair.json").read_text())["message_flows"]
    assert one["throughput_gbit_per_s"] == pytest.approx(two["throughput_gbit_per_s"], rel=0.02)
    assert one["share_of_what_headers_leave"] == pytest.approx(0.5, rel=0.02)
    assert one["payload_bytes"] == two["payload_bytes"]
    assert "write: the least served host got 1.000 of the mean" in capsys.readouterr().out.splitlines()


MIXED = """
cycles = 20_000
[switches.S]
ports = 3
[hosts.A]
ports = 2
[hosts.B]
[[links]]
ends = ["A[1]", "S[1]"]
[[links]]
ends = ["A[2]", "S[2]"]
[[links]]
ends = ["B", "S[3]"]
[[flows]]
from = "A[2]"
to = "B"
transport = "rc"
operation = "rdma_read"
count = 3
[[flows]]
from = "B"
to = "A"
size = 500
count = 5
[[flows]]
from = "A[1]"
to = "A[2]"
transport = "ud"
count = 4
"""


def test_flows_with_and_without_a_transport_are_told_side_by_side(capsys):
    Path("mixed.toml").write_text(MIXED)
    results = results_of(capsys, "mixed.toml", "--sim", "model")
    assert [flow["delivered_packets"] for flow in results["flows"]] == [5]
    ends = [(flow["name"], flow["from"], flow["to"], flow["arrived_messages"]) for flow in results["message_flows"]]
    assert ends == [("A[2]-B", "A[2]", "B", 3), ("A[1]-A[2]", "A[1]", "A[2]", 4)]
    assert (results["held"], results["lost_packets"], results["under_way_packets"]) == (True, 0, 0)
    assert results["without_credits"]["sent_packets"] == 5


def test_packets_without_a_transport_slow_down_too(capsys):
    incast = packaged_scenarios()["incast"].read_text().replace('"deliver"]', '"deliver", "recovery"]')
    Path("incast.toml").write_text(f"{incast}\n[congestion]\n")
    results = results_of(capsys, "incast.toml", "--sim", "model")
    assert recovery(results, "incast H1: gets BECN")
    assert (results["held"], results["faults"], results["lost_packets"]) == (True, [], 0)


def test_a_message_that_is_not_as_it_was_sent_is_status_1(capsys, monkeypatch):
    from cosim.hosts.message_memory import MessageContent

    part, parts = MessageContent.part, []

    def changed(self: MessageContent, number: int, offset: int, length: int) -> bytes:
        parts.append(number)
        data = part(self, number, offset, length)
        return data if len(parts) != 1 else data[:-1] + bytes([data[-1] ^ 1])

    monkeypatch.setattr(MessageContent, "part", changed)
    results = results_of(capsys, "rnr", status=1)
    (fault,) = results["faults"]
    assert "B: message 0 of A-B: byte 2047 is " in fault
    assert not results["held"]


# That a lost packet is recovered from alike, a test of all transports says (tests/cosim/hosts/test_message_hosts.py).
@pytest.mark.deep
@pytest.mark.parametrize("scenario", ["cut-cable", "retry", "rnr", "congestion"])
def test_rtl_and_model_agree_on_recovery(capsys, scenario):
    hardware, model = (results_of(capsys, scenario, "--sim", sim) for sim in ("verilator", "model"))
    assert hardware["mismatches"] == 0
    for what in ("events", "message_flows"):
        assert hardware[what] == model[what]
