"""Flows without a transport where there is congestion control: notices of congestion, and sources that slow down."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from cosim.analysis.measurement import Measurement
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.experiments import sweep
from cosim.experiments.captured_run import captured_run
from cosim.experiments.experiment import scenario_experiment
from cosim.experiments.perform import perform
from cosim.hosts.packet_sources import PacketSources
from cosim.scenario.find_scenario import packaged_scenarios
from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import parse_scenario
from cosim.stimulus.flows import scenario_streams
from cosim.stimulus.message_events import MessageEvent
from cosim.stimulus.packet import Packet, is_unfollowed
from cosim.trace.compare import Comparison
from tests.cosim.hosts.message_runs import run, star
from tests.cosim.recorder import Recorder
from verbs.hosts import REACTION_CYCLES
from verbs.incidents import Incident
from wire.headers import BTH, DETH, LRH
from wire.opcodes import Opcode
from wire.packet import build, parse
from wire.stimulus import Delivery
from wire.trace import Kind, port_source

CONTROL = "[congestion]\nccti_timer = 100\nccti_increase = 1\n"
ROWS = {"send": 521, "rdma_write": 519}
"""Of a packet with 2 KiB of payload: with a DETH, and in the middle of an RDMA WRITE."""


def flow(source: str, destination: str, operation: str = "send", count: int = 1_000, more: str = "") -> str:
    keys = f'from = "{source}"\nto = "{destination}"\noperation = "{operation}"\nsize = 2_048\ncount = {count}\n'
    return f"{keys}{'' if 'rate' in more else 'rate = 1'}\n{more}"


def crowd(operation: str = "send", more: str = "", others: int = 1_000) -> tuple[str, ...]:
    """H1 to H4, a victim of those that H1, H2 and H5 send to H3."""
    senders = (("H1", "H4", 1_000), ("H1", "H3", 1_000), ("H2", "H3", others), ("H5", "H3", others))
    return tuple(flow(source, to, operation, count, more) for source, to, count in senders)


class Told(Recorder):
    """All that comes of a run, events of streams too."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[MessageEvent] = []

    def follow_message(self, event: MessageEvent) -> None:
        self.told.append(event)


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        shares: of a link, by stream.
        seen: the whole of it.
        start: the cycle in which traffic may start.
    """

    shares: list[float]
    seen: Told
    start: int
    comparison: Comparison | None

    def sent(self, source: str, destination: str) -> list[Packet]:
        """Packets from a host to another, without notices."""
        return [one for one in self.seen.packets if (one.source, one.destination) == (source, destination)]

    @property
    def notices(self) -> list[Packet]:
        return [packet for packet in self.seen.packets if BTH["opcode"].read(packet.data, LRH.size_bytes) == Opcode.CNP]


def outcome(scenario: Scenario, work_dir: Path, engine: str = "model") -> Outcome:
    """Every packet arrives as it was sent, in order and once."""
    experiment, seen = scenario_experiment(scenario), Told()
    streams = len(scenario_streams(scenario))
    measurement = Measurement(experiment.topology, streams, experiment.start, experiment.end)
    check = DeliveryCheck(experiment.topology, [measurement], left_out=is_unfollowed)
    comparison = perform(experiment, engine, work_dir, [seen, check, measurement])
    assert (check.faults, check.lost) == ([], 0)
    assert [packet.cycle for packet in seen.packets] == sorted(packet.cycle for packet in seen.packets)
    shares = [served.rows / scenario.cycles for served in measurement.served]
    return Outcome(shares, seen, experiment.start, comparison)


@pytest.mark.parametrize("operation", ["send", "rdma_write"])
def test_sources_that_are_told_of_congestion_slow_down_and_leave_a_victim_its_link(operation, tmp_path):
    """It is the answer to marks that does it: not that streams take turns at their host."""
    found = {
        said: outcome(star(*crowd(operation), hosts=5, cycles=150_000, more=more), tmp_path)
        for said, more in (("none", ""), ("unmarked", f"{CONTROL}threshold = 0"), ("marked", CONTROL))
    }
    for said in ("none", "unmarked"):
        assert not found[said].notices
        assert found[said].shares == pytest.approx([0.33] * 4, abs=0.06), "a third of H3's link for each"
    victim, hot, *_others = found["marked"].shares
    assert victim > 0.7
    assert hot < 0.25
    assert sum(found["marked"].shares[1:]) > 0.7, "nor does H3's link stand still"
    assert {packet.source for packet in found["marked"].notices} == {"H3"}
    told = [(event.stream, event.host) for event in found["marked"].seen.told if event.what is Incident.BECN]
    assert set(told) == {(1, "H1"), (2, "H2"), (3, "H5")}


def test_the_answer_to_a_mark_is_a_notice_to_the_queue_pair_that_sent_on_its_sl(tmp_path):
    partition = '[partitions.P]\nkey = 5\nfull = ["H3", "H4"]\nlimited = ["H1", "H2", "H5"]'
    flows = crowd(more='sl = 3\npartition = "P"')
    found = outcome(star(*flows, hosts=5, cycles=60_000, more=f"{CONTROL}{partition}"), tmp_path)
    marked = {}
    for delivery in found.seen.deliveries:
        packet = parse(delivery.data)
        if packet.bth.fecn:
            sender = (packet.lrh.slid, packet.header(DETH).src_qp)
            marked.setdefault(sender, []).append(delivery.cycle + REACTION_CYCLES)
    assert len(marked) == 3
    assert found.notices
    for notice in found.notices:
        made = parse(notice.data)
        assert (made.bth.becn, made.bth.fecn, made.payload, len(made.data)) == (1, 0, b"", 24)
        assert (made.lrh.sl, made.bth.p_key) == (3, 0x8005)
        assert notice.cycle in marked[made.lrh.dlid, made.bth.dest_qp]
    assert len(found.notices) == sum(map(len, marked.values())), "none waits for another one here"


@pytest.mark.parametrize("operation", ["send", "rdma_write"])
def test_a_source_waits_behind_each_packet_as_the_table_says(operation, tmp_path):
    control = "[congestion]\nccti_timer = 0\nccti_increase = 1\ntable = [0, 4]\n"
    found = outcome(star(*crowd(operation)[1:], hosts=5, cycles=100_000, more=control), tmp_path)
    first = min(event.cycle for event in found.seen.told if event.host == "H1")
    posted = [packet.cycle for packet in found.sent("H1", "H3") if packet.cycle > first + REACTION_CYCLES]
    assert len(posted) > 20
    assert {later - earlier for earlier, later in pairwise(posted)} == {5 * ROWS[operation]}


def test_a_source_is_as_fast_as_before_when_the_timer_has_ended_often_enough(tmp_path):
    """In the last quarter H2 and H5 have long been done."""
    control = "[congestion]\nccti_timer = 10\nccti_increase = 1\n"
    found = outcome(star(*crowd(others=60), hosts=5, cycles=300_000, more=control), tmp_path)
    late = found.start + 225_000
    victim, hot = (sum(packet.cycle > late for packet in found.sent("H1", far)) for far in ("H4", "H3"))
    assert found.notices
    assert hot == pytest.approx(victim, abs=1)
    assert (hot + victim) * ROWS["send"] == pytest.approx(75_000, rel=0.03)


def test_with_sls_that_slow_down_a_victim_of_the_same_sl_does_too(tmp_path):
    found = outcome(star(*crowd(), hosts=5, cycles=100_000, more=f'{CONTROL}flows = "sls"'), tmp_path)
    assert found.notices
    assert found.shares[0] < 0.3
    same, others = crowd()[0], crowd()[1:]
    found = outcome(star(f"{same}\nsl = 1", *others, hosts=5, cycles=100_000, more=f'{CONTROL}flows = "sls"'), tmp_path)
    assert found.shares[0] > 0.6


def test_no_more_packets_wait_at_an_adapter_than_its_link_needs_to_be_busy(tmp_path):
    found = outcome(star(*crowd(), hosts=5, cycles=60_000, more=CONTROL), tmp_path)
    scenario = star(*crowd(), hosts=5)
    source = port_source(scenario.topology.index["H1"], 1)
    sent = [record.cycle for record in found.seen.records if (record.kind, record.source) == (Kind.SEND, source)]
    posted = [packet.cycle for packet in found.seen.packets if packet.source == "H1"]
    assert len(posted) - len(sent) <= 2
    assert all(post > taken for post, taken in zip(posted[2:], sent, strict=False)), "one is sent, and one waits"


def test_several_marks_while_a_notice_waits_are_answered_by_one(tmp_path):
    """And none of a multicast packet, one of nobody's stream, or one without a mark."""
    scenario = star(*crowd(), hosts=5, more=CONTROL)
    topology = scenario.topology
    assert scenario.congestion is not None
    sources = PacketSources(scenario, scenario.congestion, topology, 0, lambda event: None)
    lid, far = topology.lids["H2"], topology.lids["H3"]

    def arrives(cycle: int, fecn: int = 1, dlid: int = far, slid: int = lid, src_qp: int = 0x102) -> None:
        lrh, deth = {"slid": slid, "dlid": dlid}, {"q_key": 1, "src_qp": src_qp}
        made = build(lrh=lrh, bth={"opcode": Opcode.UD_SEND_ONLY, "fecn": fecn, "dest_qp": 16}, deth=deth)
        sources.delivered(Delivery(cycle, topology.index["H3"], 0, made.data))

    def notices(finished: int) -> list[int]:
        reach = sources.until(finished)
        posts = sources.posts_until(reach)
        return [post.cycle for post in posts if post.node == topology.index["H3"]]

    assert notices(0) == []
    for cycle in (10, 20, 30):
        arrives(cycle)
    assert notices(249) == [10 + REACTION_CYCLES]
    arrives(250, fecn=0)
    arrives(251, dlid=0xC000)
    arrives(252, src_qp=0x104)
    arrives(253, slid=topology.lids["H1"])
    assert notices(498) == []
    arrives(500)
    assert notices(747) == [500 + REACTION_CYCLES]


def test_flows_with_and_without_a_transport_slow_down_side_by_side(tmp_path):
    """At one host, on one SL."""
    hot = 'to = "H3"\ntransport = "rc"\noperation = "rdma_write"\nmessage_bytes = 8_192\nrate = 1\ndepth = 4\n'
    flows = [flow("H1", "H4"), flow("H1", "H3"), f'{hot}from = "H1"', f'{hot}from = "H2"']
    shares = {}
    for more in (f"{CONTROL}threshold = 0", CONTROL):
        scenario = star(*flows, hosts=4, cycles=150_000, more=more)
        experiment, seen = scenario_experiment(scenario), Told()
        measurement = Measurement(experiment.topology, 2, experiment.start, experiment.end)
        check = DeliveryCheck(experiment.topology, [measurement], left_out=is_unfollowed)
        result = run(scenario, tmp_path, observers=[seen, check, measurement])
        assert (check.faults, check.lost, result.faults) == ([], 0, [])
        shares[more] = measurement.served[0].rows / scenario.cycles
        told = {event.stream for event in seen.told if event.what is Incident.BECN}
        assert told == ({1, 2, 3} if more == CONTROL else set())
        source = port_source(experiment.topology.index["H1"], 1)
        sent = sum((record.kind, record.source) == (Kind.SEND, source) for record in seen.records)
        assert sum(packet.source == "H1" for packet in seen.packets) - sent < 8, "each posts as its own are taken"
    unmarked, marked = shares.values()
    assert marked > unmarked + 0.05


def test_notices_are_no_packets_of_flows_to_who_counts_these(tmp_path):
    """All of 40 packets arrive, and nothing else is told of as if it were one."""
    senders = [flow(source, "H3", count=40) for source in ("H1", "H2", "H5")]
    scenario = star(*senders, hosts=5, cycles=100_000, more=CONTROL)
    assert outcome(scenario, tmp_path).notices
    swept = sweep.outcome(scenario, "model", tmp_path)
    assert (swept.offered, swept.delivered, swept.faults) == (120, 120, 0)
    file = str(tmp_path / "links.erf")
    assert captured_run(scenario, "model", file, ["S[3]"], tmp_path, lambda cycle: None).missing == 0


def test_without_congestion_control_packets_are_posted_as_they_come() -> None:
    assert scenario_experiment(star(*crowd(), hosts=5)).sources is None
    assert scenario_experiment(star(*crowd(), hosts=5, more=CONTROL)).sources is not None


@pytest.mark.parametrize(
    ("engine", "cycles"),
    [
        # Many others have this fabric built.
        pytest.param("verilator", 30_000, marks=pytest.mark.slow),
        pytest.param("icarus", 8_000, marks=pytest.mark.deep),
    ],
)
def test_rtl_gets_the_same_packets_and_marks_them_as_the_model_does(engine, cycles, tmp_path):
    """The fabric of the jam: B's link is a quarter as wide as A's."""
    jam = packaged_scenarios()["jam"].read_text().replace("cycles = 2500", f"cycles = {cycles}")
    flows = [flow("A", "B", operation, 100, "rate = 0.5").replace("2_048", "256") for operation in ROWS]
    text = "[[flows]]\n".join([jam.split("[[flows]]")[0], *(f"{one}\n" for one in flows)])
    scenario = parse_scenario(f"{text}{CONTROL}threshold = 15", "jam")
    found = outcome(scenario, tmp_path, engine)
    assert found.comparison is not None
    assert found.comparison.difference is None
    assert len(found.notices) > 3
    alone = outcome(scenario, tmp_path / "alone")
    assert (found.seen.packets, found.seen.records) == (alone.seen.packets, alone.seen.records)
    assert found.seen.told == alone.seen.told
