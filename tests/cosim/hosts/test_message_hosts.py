"""Messages of flows between hosts: all transports, losses, slow receivers, cut cables, the same on every engine."""

from __future__ import annotations

from dataclasses import replace
from random import Random, SystemRandom

import pytest

from cosim.analysis.link_use import LinkUse
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.experiments.experiment import scenario_experiment
from cosim.hosts.message_hosts import MessageHosts
from cosim.scenario.scenario_file import parse_scenario
from cosim.stimulus.message_events import MessageStep
from cosim.stimulus.packet import is_of_transport
from cosim.topology.topology import Port
from tests.cosim.hosts.message_runs import run, star
from tests.cosim.recorder import Recorder
from tests.files import TOPOLOGIES
from verbs.completions import CompletionStatus
from verbs.incidents import Incident
from wire.stimulus import Delivery
from wire.trace import Kind

OPERATIONS = [
    ("rc", "send", 5_000),
    ("rc", "rdma_write", 5_000),
    ("rc", "rdma_write_with_imm", 5_000),
    ("rc", "rdma_read", 5_000),
    ("rc", "fetch_add", 8),
    ("rc", "cmp_swap", 8),
    ("uc", "send", 5_000),
    ("uc", "rdma_write", 5_000),
    ("uc", "rdma_write_with_imm", 5_000),
    ("ud", "send", 2_000),
]


def flow(transport: str, operation: str = "send", size: int = 2_048, **keys: object) -> str:
    given = {"count": 10, **keys} if "rate" not in keys else keys
    values = {"transport": transport, "operation": operation, "message_bytes": size, **given}
    return "\n".join(f"{key} = {value!r}" for key, value in values.items())


def ends(source: str, destination: str) -> dict[str, str]:
    return {"from": source, "to": destination}


@pytest.mark.parametrize(("transport", "operation", "size"), OPERATIONS)
def test_messages_of_all_transports_arrive_as_they_were_sent(transport, operation, size, tmp_path):
    result = run(star(flow(transport, operation, size)), tmp_path)
    (served,) = result.served
    assert (served.posted, served.arrived, result.faults) == (10, 10, [])
    assert served.latencies.least > size / 4, "a link takes a word a cycle"
    arrived = [event.number for event in result.events if event.what is MessageStep.ARRIVED]
    assert arrived == list(range(10))


@pytest.mark.parametrize(("transport", "operation", "size"), OPERATIONS)
def test_a_byte_changed_on_the_way_is_found(transport, operation, size, tmp_path):
    """It is the payload that is compared: neither a CRC nor the transport can have found it here."""
    scenario = star(flow(transport, operation, size, count=3))
    experiment = scenario_experiment(scenario)
    is_back = operation in ("rdma_read", "fetch_add", "cmp_swap")
    target = experiment.topology.index["H1" if is_back else "H2"]
    changed = []

    class Changing(MessageHosts):
        def delivered(self, delivery: Delivery) -> None:
            data = delivery.data
            # Answers with data are at least as long as an AtomicAck, the last of whose bytes is followed by the ICRC.
            if delivery.node == target and not changed and len(data) >= 36:
                changed.append(delivery.cycle)
                data = data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]
            super().delivered(delivery._replace(data=data))

    topology, start = experiment.topology, experiment.start
    changing = replace(experiment, messages=lambda listener: Changing(scenario, topology, start, listener))
    result = run(scenario, tmp_path, experiment=changing)
    assert len(changed) == 1
    assert len(result.faults) == 1
    assert "message 0 of H1-H2: byte" in result.faults[0]
    assert result.measurement.fault_count == 1
    assert result.served[0].arrived == 2


@pytest.mark.parametrize("wrong", ["H3", "H1"])
def test_a_packet_at_the_wrong_host_is_found(wrong, tmp_path):
    """Whether that has a transport or none."""
    scenario = star(flow("uc", count=3))
    experiment = scenario_experiment(scenario)
    topology, start = experiment.topology, experiment.start
    moved = []

    class Moving(MessageHosts):
        def delivered(self, delivery: Delivery) -> None:
            if not moved:
                moved.append(delivery)
                delivery = delivery._replace(node=topology.index[wrong])
            super().delivered(delivery)

    moving = replace(experiment, messages=lambda listener: Moving(scenario, topology, start, listener))
    result = run(scenario, tmp_path, experiment=moving)
    (fault,) = result.faults
    assert f", {wrong}: got a packet that is for LID {topology.lids['H2']}: " in fault
    assert result.served[0].arrived == 2


@pytest.mark.parametrize(
    ("transport", "operation", "size", "depth"),
    [
        ("rc", "send", 2_048, 32),
        ("rc", "rdma_write", 65_536, 4),
        ("rc", "rdma_read", 65_536, 4),
        ("uc", "send", 8_192, 8),
    ],
)
def test_one_flow_of_full_packets_has_what_the_headers_leave(transport, operation, size, depth, tmp_path):
    """Eight hosts around the switch, of which two are busy."""
    text = flow(transport, operation, size, depth=depth, rate=1.0)
    (served,) = run(star(text, hosts=8, cycles=200_000), tmp_path).served
    assert served.share >= 0.97
    assert served.bytes_per_cycle * 8 / 4 == pytest.approx(8 * 2_048 / 2_076, rel=0.03), "Gbit/s at SDR"


@pytest.mark.parametrize("operation", ["send", "rdma_write", "rdma_read"])
def test_two_senders_share_a_receiver_evenly(operation, tmp_path):
    text = 'from = "*"\nto = "H3"\n' + flow("rc", operation, 4_096, rate=1.0, depth=16, timeout=12)
    one, two = run(star(text, cycles=300_000), tmp_path).served
    assert one.payload_bytes == pytest.approx(two.payload_bytes, rel=0.02)
    if operation != "rdma_read":
        assert one.share + two.share >= 0.97


def test_each_host_may_have_many_peers(tmp_path):
    flows = [
        f'from = "H{one}"\nto = "H{other}"\n' + flow("rc", "send", 1_000, count=5)
        for one in (1, 2, 3)
        for other in (1, 2, 3)
        if one != other
    ]
    served = run(star(*flows, *flows), tmp_path).served
    assert [one.arrived for one in served] == [5] * 12


def test_a_host_may_have_packets_without_a_transport_besides(tmp_path):
    """A transport posts as its own packets are taken, and no other's; each has what the other one leaves."""
    other = 'from = "H1"\nto = "H3"\nsize = 1_024\nrate = 0.5\narrivals = "random"'
    scenario = star(flow("rc", "rdma_write", 16_384, rate=1.0, depth=4), other, cycles=200_000)
    experiment, seen = scenario_experiment(scenario), Recorder()
    check = DeliveryCheck(experiment.topology, left_out=is_of_transport)
    result = run(scenario, tmp_path, observers=[seen, check])
    assert (check.fault_count, check.lost, result.faults) == (0, 0, [])
    assert 0.35 < result.served[0].share < 0.65
    source = experiment.topology.index["H1"]
    posted = sum(packet.source == "H1" for packet in seen.packets)
    sent = sum(record.kind == Kind.SEND and record.source >> 8 == source for record in seen.records)
    assert posted - sent < 30, "no more wait than a link needs to be busy, and a burst of the others"


def test_messages_of_a_rate_come_at_that_rate(tmp_path):
    scenario = star(flow("rc", "rdma_write", 8_192, rate=0.25), cycles=200_000)
    (served,) = run(scenario, tmp_path).served
    assert served.share == pytest.approx(0.25, rel=0.01)
    assert served.latencies.most < 1.2 * served.latencies.least, "each is gone before the next one comes"


def test_a_flow_starts_when_it_should(tmp_path):
    scenario = star(flow("ud", "send", 100, count=2, start=12_345))
    experiment = scenario_experiment(scenario)
    posted = [one.cycle for one in run(scenario, tmp_path).events if one.what is MessageStep.POSTED]
    assert posted == [experiment.start + 12_345] * 2


def test_no_more_messages_are_outstanding_than_the_depth_says(tmp_path):
    result = run(star(flow("rc", "send", 5_000, count=12, depth=3)), tmp_path)
    outstanding, most = 0, 0
    for event in sorted(result.events, key=lambda one: one.cycle):
        outstanding += {MessageStep.POSTED: 1, MessageStep.ARRIVED: -1}[event.what]
        most = max(most, outstanding)
    assert most == 3


LOSS = '[[errors]]\nkind = "lost_packet"\nfrom = "{}"\nat = {}\n'


def test_a_lost_request_is_sent_again_after_a_nak(tmp_path):
    result = run(star(flow("rc", "send", 4_096), more=LOSS.format("H1", 5_000)), tmp_path)
    assert result.served[0].arrived == 10
    told = [(event.host, event.what) for event in result.events if isinstance(event.what, Incident)]
    assert told == [("H2", Incident.OUT_OF_SEQUENCE), ("H1", Incident.SEQUENCE_NAK)]
    assert result.served[0].retries == 1


@pytest.mark.parametrize(("transport", "lost"), [("uc", 1), ("ud", 1)])
def test_nobody_repeats_what_uc_and_ud_lose(transport, lost, tmp_path):
    result = run(star(flow(transport, "send", 2_000, count=20), more=LOSS.format("H1", 5_000)), tmp_path)
    (served,) = result.served
    assert (served.posted - served.arrived, result.faults) == (lost, [])
    assert not served.incidents


@pytest.mark.parametrize("transport", ["rc", "uc", "ud"])
def test_senders_that_are_told_of_congestion_slow_down_and_leave_a_victim_its_link(transport, tmp_path):
    crowd = [flow(transport, size=2_048, rate=1, receives=512, **ends("H1", "H3"))]
    crowd += [flow(transport, size=2_048, rate=1, receives=512, **ends(host, "H3")) for host in ("H2", "H5")]
    victim = flow(transport, size=2_048, rate=1, receives=512, **ends("H1", "H4"))
    shares = []
    for more in ("", "[congestion]\nccti_timer = 100\nccti_increase = 1"):
        result = run(star(victim, *crowd, hosts=5, cycles=150_000, more=more), tmp_path)
        assert result.faults == []
        shares.append(result.served[0].share)
        assert all(bool(served.incidents[Incident.BECN]) is bool(more) for served in result.served[1:])
        assert not result.served[0].incidents
    assert shares[1] > shares[0] + 0.15


def test_a_slow_receiver_is_waited_for(tmp_path):
    text = flow("rc", "send", 1_000, count=6, receives=2, receive_every=8_000)
    (served,) = run(star(text), tmp_path).served
    assert served.arrived == 6
    assert served.incidents[Incident.RNR_NAK] >= 4
    assert served.latencies.most > 3 * 8_000


def test_a_receiver_that_is_too_slow_ends_the_connection(tmp_path):
    text = flow("rc", "send", 1_000, count=6, receives=2, receive_every=50_000, rnr_retry=1)
    (served,) = run(star(text), tmp_path).served
    assert served.arrived == 2
    assert served.failed == {CompletionStatus.RNR_RETRY_EXC_ERR: 1, CompletionStatus.WR_FLUSH_ERR: 3}


def test_datagrams_without_a_receive_request_are_lost(tmp_path):
    (served,) = run(star(flow("ud", "send", 256, count=10, receives=3, receive_every=90_000)), tmp_path).served
    assert served.arrived == 3


def test_a_cut_cable_ends_the_connection_with_an_error(tmp_path):
    cut = '[[errors]]\nkind = "link_down"\nfrom = "S[2]"\nat = 8_000\n[[ports]]\nat = "*"\nlink_down_timeout = 500\n'
    text = flow("rc", "rdma_write", 4_096, count=30, depth=4, timeout=2, retry_count=2)
    result = run(star(text, more=cut), tmp_path)
    (served,) = result.served
    assert served.failed == {CompletionStatus.RETRY_EXC_ERR: 1, CompletionStatus.WR_FLUSH_ERR: 3}
    assert served.posted == served.arrived + 4, "nothing is posted after that"
    first, *later = [event.cycle for event in result.events if event.what is Incident.TIMEOUT]
    assert later == [first + 4_096, first + 2 * 4_096], "also while packets wait for room"


def test_packets_of_messages_are_offered_with_what_they_are(tmp_path):
    seen = Recorder()
    text = flow("rc", "send", 4_096, count=6)
    scenario = star(text, more=LOSS.format("H1", 5_000))
    run(scenario, tmp_path, observers=[seen])
    requests = [packet.title for packet in seen.packets if packet.source == "H1"]
    assert requests[:3] == ["PSN 0", "PSN 1", "PSN 2"]
    again = [title for title in requests if title.endswith("again")]
    assert again[0].removesuffix(" again") in requests
    answers = [packet.title for packet in seen.packets if packet.source == "H2"]
    assert answers[0] == "ACK PSN 0"
    assert any(title.startswith("NAK PSN") for title in answers)
    assert [packet.cycle for packet in seen.packets] == sorted(packet.cycle for packet in seen.packets)


def test_ack_packets_take_little_of_the_way_back(tmp_path):
    scenario = star(flow("rc", "rdma_write", 65_536, rate=1.0, depth=4), cycles=200_000)
    experiment = scenario_experiment(scenario)
    back = LinkUse(experiment.topology, [Port("H2", 1)], experiment.start, experiment.end)
    run(scenario, tmp_path, observers=[back])
    assert 0 < back.of_all < 0.005


ALL_TRANSPORTS = (
    'from = "H1"\nto = "H2"\n' + flow("rc", "send", 3_000, count=6),
    'from = "H1"\nto = "H2"\n' + flow("rc", "rdma_read", 3_000, count=4),
    'from = "H2"\nto = "H1"\n' + flow("uc", "rdma_write", 3_000, count=6),
    'from = "H2"\nto = "H1"\n' + flow("ud", "send", 1_000, count=6),
)


@pytest.mark.parametrize(
    ("engine", "rtl", "cycles"),
    [
        # Many others have this fabric built.
        pytest.param("verilator", None, 30_000, marks=pytest.mark.slow),
        pytest.param("verilator", ("SW1", "H2"), 30_000, marks=pytest.mark.deep),
        pytest.param("icarus", None, 6_200, marks=pytest.mark.deep),
    ],
)
def test_every_engine_carries_all_transports_as_the_model_does(engine, rtl, cycles, tmp_path):
    """A packet is lost, too; what hosts do is the same, since what they get is."""
    flows = "".join(f"[[flows]]\n{keys}\n" for keys in ALL_TRANSPORTS)
    text = f'cycles = {cycles}\ntopology = "star.net"\n{flows}{LOSS.format("H1", 1_000)}'
    scenario = parse_scenario(text, "star", folder=TOPOLOGIES)
    result = run(scenario, tmp_path, engine, rtl=rtl)
    assert result.comparison is not None
    assert result.comparison.difference is None
    assert result.comparison.records > 300
    assert result.events == run(scenario, tmp_path / "alone").events
    assert result.faults == []
    assert Incident.SEQUENCE_NAK in {event.what for event in result.events}
    if cycles == 30_000:
        assert [served.arrived for served in result.served] == [6, 4, 6, 6]


KINDS = ("lost_packet", "bit_flip", "ebp", "truncate")


ERROR_GAP = 20_000
"""Cycles from an error to the next: longer than a time-out, or each packet that is sent again might meet one."""


def losing(random: Random, transport: str, operation: str, count: int, least: int = 0) -> tuple[str, str]:
    """A flow and errors on its links, all drawn, so many at least."""
    size = 8 if operation in ("fetch_add", "cmp_swap") else random.randint(8, 256 if transport == "ud" else 3_000)
    keys = {"count": count, "depth": random.randint(1, 12)}
    if operation in ("send", "rdma_write_with_imm"):
        keys["receives"] = random.randint(12, 20)
    if transport != "ud":
        keys["path_mtu"] = 256
    if transport == "rc":
        keys["timeout"] = 4
    places = ("H1", "H2", "S[1]", "S[2]")
    length = count * (size // 4 + 100)
    text = ""
    for _ in range(max(least, length // ERROR_GAP)):
        kind, place, cycle = random.choice(KINDS), random.choice(places), random.randrange(length)
        text += f'[[errors]]\nkind = "{kind}"\nfrom = "{place}"\nat = {cycle}\n'
    return flow(transport, operation, size, **keys), text


@pytest.mark.parametrize("seed", range(len(OPERATIONS)))
def test_under_random_losses_nothing_arrives_that_was_not_sent(seed, tmp_path):
    transport, operation, _size = OPERATIONS[seed]
    text, errors = losing(Random(seed), transport, operation, 60, 10)
    result = run(star(text, cycles=300_000, more=errors), tmp_path)
    (served,) = result.served
    assert (result.faults, served.posted) == ([], 60)
    if transport == "rc":
        assert served.arrived == 60


@pytest.mark.deep
@pytest.mark.parametrize(("transport", "operation"), [(transport, operation) for transport, operation, _ in OPERATIONS])
def test_long_runs_under_random_losses(transport, operation, tmp_path):
    for _round in range(3):
        seed = SystemRandom().getrandbits(32)
        print(f"seed {seed}")
        text, errors = losing(Random(seed), transport, operation, 2_000)
        result = run(star(text, cycles=6_000_000, more=errors), tmp_path)
        (served,) = result.served
        assert (result.faults, served.posted) == ([], 2_000), seed
        if transport == "rc":
            assert served.arrived == 2_000, seed
