"""A capture of a run, played into the same fabric: the same verdicts and credits; and other captures."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from capture.survey import survey
from capture.wire_packet import Direction, WirePacket
from capture.writer import capture_writer
from cosim.analysis.reception import Told
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.experiments.link_capture import link_capture
from cosim.experiments.perform import perform
from cosim.experiments.play import PlayResult, play
from cosim.experiments.play_fabric import CannotPlay, Into
from cosim.experiments.play_plan import plan_play
from cosim.scenario.scenario_file import load_scenario, parse_scenario
from cosim.stimulus.packet import Packet
from tests.capture.reading import read_with_directions
from tests.cosim.recorder import Recorder
from wire.crc import lpcrc
from wire.flow_control import FLOW_CONTROL
from wire.headers import BTH, DETH, GRH, LRH
from wire.mad import MgmtClass
from wire.trace import LINK_SOURCE, Delimiter, Kind, Record, Verdict, port_of_source
from wire.trace_layout import RxData

AT_PORTS = (Kind.RX_DATA, Kind.RX_FCP, Kind.TX_DATA, Kind.TX_FCP, Kind.STATE, Kind.SCRAP, Kind.TX_DISCARD)
LONGEST = 4 * 100
"""Cycles of a packet of the check's MTU at 1X."""


def capture_of(experiment: Experiment, path: Path, *places: str) -> list[Record]:
    """The capture of a run on the model, and its trace."""
    seen = Recorder()
    topology = experiment.topology
    with link_capture(topology.fabric, topology.widths, str(path), places) as taps:
        perform(experiment, "model", path.parent, [seen], taps=taps)
    return seen.records


def played(
    experiment: Experiment, path: Path, engine: str = "model", tell: Callable[[Told], None] = lambda one: None
) -> PlayResult:
    plan = plan_play(str(path), survey(str(path)), Into("it", experiment), {}, None, None)
    assert plan.keeps_times
    return play(plan, engine, path.parent, tell=tell)


def alone(experiment: Experiment, *names: str) -> Experiment:
    """These nodes get nothing but what is played: other hosts send nothing."""
    return replace(experiment, packets=lambda: (one for one in experiment.packets() if one.source in names))


def at(experiment: Experiment, records: list[Record], node: str, until: int) -> list[Record]:
    index = experiment.topology.index[node]
    here = (one for one in records if not one.source & LINK_SOURCE and port_of_source(one.source)[0] == index)
    return [one for one in here if one.kind in AT_PORTS and one.cycle < until]


def changed(path: Path, change: Callable[[list[WirePacket], list[str]], None]) -> None:
    """Write a capture anew with other packets."""
    packets, names = read_with_directions(path)
    change(packets, names)
    with capture_writer(str(path), [Direction(name) for name in names]) as writer:
        for packet in packets:
            writer.write(packet)


def check_of(seed: int, **options: object) -> Experiment:
    choose = random.Random(seed)
    drawn = {"ports": choose.choice((2, 3, 4)), "vls": choose.choice((1, 2, 4)), "cycles": 20_000} | options
    return check_experiment(CheckOptions(seed=seed, sim="model", queueing=choose.choice(("voq", "fifo")), **drawn))


def strangers(experiment: Experiment) -> Experiment:
    """Hosts send as they did, SMPs for their own agents too, but other bytes of data: wherever these get is seen."""

    def changed_data(packet: Packet) -> Packet:
        is_vl15 = packet.slot == experiment.topology.fabric.nodes[packet.source].vls
        return packet if is_vl15 else packet._replace(data=packet.data[:-1] + bytes([packet.data[-1] ^ 1]))

    return replace(experiment, packets=lambda: map(changed_data, experiment.packets()))


def without_pma(experiment: Experiment) -> Experiment:
    """Nobody asks for counters of a port. A capture has none of the errors in idle data that some of them count."""
    classes = [LRH.size_bytes + BTH.size_bytes + DETH.size_bytes + 1 + grh for grh in (0, GRH.size_bytes)]

    def is_for_pma(packet: Packet) -> bool:
        return any(packet.data[at : at + 1] == bytes([MgmtClass.PERF]) for at in classes)

    return replace(experiment, packets=lambda: (one for one in experiment.packets() if not is_for_pma(one)))


CUT_BEFORE_IT_ARRIVED = 3470114763
"""With this seed a link fails under a packet that cuts through, before all of it is there."""

ITS_OWN_AGENT_TAKES_A_LINK_DOWN = 3823515490
"""With this seed a host takes its link down, by an SMP that never was on it."""

WIDTH_CHANGES_WITHIN_A_PACKET = 3780726212
"""With this seed the rows of two flow control packets make one with a wrong LPCRC: a port becomes 1X in their midst."""

WIDTH_CHANGES_JUST_BEFORE_A_PACKET = 1195311055
"""With this seed a port becomes 1X three cycles before its packet begins, of which every fourth row is sent."""

NOTHING_TELLS_IDLE_ERRORS = (0, 1, 3)
"""With these seeds no answer of a PMA differs by errors that were in idle data."""


@pytest.mark.parametrize(
    "seed",
    [
        CUT_BEFORE_IT_ARRIVED,
        ITS_OWN_AGENT_TAKES_A_LINK_DOWN,
        WIDTH_CHANGES_WITHIN_A_PACKET,
        WIDTH_CHANGES_JUST_BEFORE_A_PACKET,
        *NOTHING_TELLS_IDLE_ERRORS,
        *[None] * 8,
    ],
)
def test_random_traffic_with_errors_played_back_has_the_same_verdicts_and_credits(tmp_path, seed, monkeypatch):
    seed = random.randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}")
    experiment = check_of(seed) if seed in NOTHING_TELLS_IDLE_ERRORS else without_pma(check_of(seed))
    path = tmp_path / "run.pcapng"
    records = capture_of(experiment, path)
    observed = Recorder()
    monkeypatch.setattr("cosim.experiments.play.Audience", with_observer(observed))
    result = played(strangers(experiment), path)
    assert result.differences == {}
    # Of a packet that had not ended when the run did, the capture has nothing.
    until = experiment.cycles - LONGEST
    there = at(experiment, records, "S", until)
    assert at(experiment, observed.records, "S", until) == there
    assert len(there) > 100
    assert sum(result.same.values()) > 20
    counted = sum(count for (_port, kind, _verdict), count in result.verdicts.items() if kind == "data")
    assert counted >= sum(one.kind == Kind.RX_DATA for one in there)


def with_observer(observed: Recorder) -> Callable[..., object]:
    from cosim.analysis.observer import Audience

    return lambda observers, packets: Audience([*observers, observed], packets)


@pytest.mark.parametrize(
    ("name", "suffix", "verdicts"),
    [
        ("error-burst", "pcapng", {"GOOD", "PHYSICAL", "REMOTE"}),
        ("slow-host", "pcapng", {"GOOD"}),
        ("blocked-vl", "pcapng", {"GOOD"}),
        ("error-burst", "erf", {"GOOD", "PHYSICAL", "REMOTE"}),
    ],
)
def test_errors_on_links_small_buffers_and_hosts_that_stop_are_played_back(tmp_path, name, suffix, verdicts):
    experiment = scenario_experiment(load_scenario(name))
    path = tmp_path / f"run.{suffix}"
    records = capture_of(experiment, path, "A")
    surveyed = survey(str(path))
    # ERF has no names; what A sends is the first direction of the link.
    ways = {surveyed.directions[0].name: "S[1]"} if suffix == "erf" else {}
    plan = plan_play(str(path), surveyed, Into(name, alone(experiment, "B")), ways, None, None)
    result = play(plan, "model", tmp_path)
    assert {verdict for _port, _kind, verdict in result.verdicts} == verdicts
    sent = sum(one.kind == Kind.RX_DATA and one.source == 1 for one in records)
    assert sum(count for (_port, kind, _verdict), count in result.verdicts.items() if kind == "data") == sent
    if suffix == "pcapng":
        assert result.differences == {}
        assert result.same[1] > 5


def test_each_packet_is_told_with_what_became_of_it(tmp_path):
    experiment = scenario_experiment(load_scenario("error-burst"))
    path = tmp_path / "run.pcapng"
    records = capture_of(experiment, path, "A:out")
    told: list[Told] = []
    played(experiment, path, tell=told.append)
    there = [one for one in told if one.direction == "A[1] -> S[1]"]
    verdicts = [Verdict(RxData.verdict.read(one)).name for one in records if one[1:3] == (1, Kind.RX_DATA)]
    bad = "sent on by S[2], marked bad"
    texts = {
        "GOOD": "accepted; sent on by S[2]",
        "PHYSICAL": f"refused, PHYSICAL; {bad}",
        "REMOTE": f"refused, REMOTE; {bad}",
    }
    assert [one.text for one in there if not one.packet.is_link] == [texts[name] for name in verdicts]
    assert {one.text for one in there if one.packet.is_link} == {"taken"}
    assert {one.text for one in told if one.direction == "S[1] -> A[1]"} == {"sent"}


def drop_first_data(packets: list[WirePacket], names: list[str]) -> None:
    del packets[next(place for place, one in enumerate(packets) if not one.is_link)]


def change_an_fccl(packets: list[WirePacket], names: list[str]) -> None:
    """The third flow control packet that the switch sends back."""
    back = names.index("S[1] -> A[1]")
    place = [number for number, one in enumerate(packets) if one.direction == back][2]
    said = FLOW_CONTROL.unpack(packets[place].data[:4])
    body = FLOW_CONTROL.pack(op=said.op, fctbs=said.fctbs, vl=said.vl, fccl=said.fccl + 1)
    packets[place] = packets[place]._replace(data=body + lpcrc(body))


def change_an_fctbs(packets: list[WirePacket], names: list[str]) -> None:
    there = names.index("A[1] -> S[1]")
    place = [number for number, one in enumerate(packets) if one.direction == there][1]
    said = FLOW_CONTROL.unpack(packets[place].data[:4])
    body = FLOW_CONTROL.pack(op=said.op, fctbs=said.fctbs + 1, vl=said.vl, fccl=said.fccl)
    packets[place] = packets[place]._replace(data=body + lpcrc(body))


def mark_a_packet_bad(packets: list[WirePacket], names: list[str]) -> None:
    place = next(place for place, one in enumerate(packets) if not one.is_link)
    packets[place] = packets[place]._replace(data=packets[place].data[:100], ending=Delimiter.CUT)


def delay_data(packets: list[WirePacket], names: list[str]) -> None:
    for place, packet in enumerate(packets):
        packets[place] = packet if packet.is_link else packet._replace(time_ns=packet.time_ns + 40)


def add_one_that_was_never_sent(packets: list[WirePacket], names: list[str]) -> None:
    back = names.index("S[1] -> A[1]")
    place = [number for number, one in enumerate(packets) if one.direction == back][3]
    packets.insert(place, packets[place]._replace(time_ns=packets[place].time_ns - 80))


@pytest.mark.parametrize(
    "change",
    [
        drop_first_data,
        change_an_fccl,
        change_an_fctbs,
        mark_a_packet_bad,
        delay_data,
        add_one_that_was_never_sent,
    ],
)
def test_a_capture_of_something_else_is_told_from_that_of_the_run(tmp_path, change):
    experiment = scenario_experiment(load_scenario("jam"))
    path = tmp_path / "run.pcapng"
    capture_of(experiment, path, "A")
    assert played(experiment, path).held
    changed(path, change)
    result = played(experiment, path)
    assert list(result.differences) == [1]
    assert not result.held


def test_a_capture_may_begin_in_the_middle_of_the_run(tmp_path):
    """Until it begins the hosts of the run send what they sent there."""
    experiment = scenario_experiment(load_scenario("slow-host"))
    path = tmp_path / "run.pcapng"
    capture_of(experiment, path)
    changed(path, lambda packets, names: packets.__delitem__(slice(0, 77)))
    result = played(experiment, path)
    assert result.differences == {}
    assert sum(result.same.values()) > 50


def test_of_a_packet_that_had_not_ended_when_the_capture_did_nothing_is_demanded(tmp_path):
    experiment = scenario_experiment(load_scenario("jam"))
    path = tmp_path / "run.pcapng"
    capture_of(experiment, path, "A")
    changed(path, lambda packets, names: packets.__delitem__(slice(9, None)))
    result = played(experiment, path)
    assert result.held
    assert result.same == {1: 3}


def test_switches_all_of_whose_links_were_captured_each_do_the_same_alone(tmp_path):
    from cosim.experiments.play_fabric import given_fabric

    into = given_fabric("ring_4", by_bus=True)
    experiment = replace(into.experiment, cycles=4_000)
    path = tmp_path / "run.pcapng"
    capture_of(experiment, path)
    result = played(experiment, path)
    assert result.differences == {}
    # Twelve directions lead to other nodes from switches.
    assert len(result.same) == 12
    assert all(count > 1 for count in result.same.values())


BETWEEN_SWITCHES = """
cycles = 6_000
switches = {S = {ports = 2, mtu = 256, buffer_blocks = 15}, T = {ports = 2, mtu = 256, buffer_blocks = 15}}
hosts = {A = {mtu = 256}, B = {mtu = 256}}
links = [{ends = ["A", "S[1]"]}, {ends = ["T[1]", "S[2]"], width = "1X", flight_cycles = 40}, {ends = ["T[2]", "B"]}]
flows = [{from = "A", to = "B", size = 256, rate = 0.2, count = 12}, {from = "B", to = "A", size = 100, rate = 0.1}]
errors = [{kind = "bit_flip", from = "S[2]", at = 800, row = 20, bit = 3}, {kind = "ebp", from = "S[2]", at = 2_000}]
"""


def test_errors_between_switches_are_played_back_once(tmp_path):
    """Behind them there is no telling what the switch before has sent: that direction is not compared."""
    experiment = scenario_experiment(parse_scenario(BETWEEN_SWITCHES, "between"))
    path = tmp_path / "run.pcapng"
    records = capture_of(experiment, path)
    result = played(alone(experiment), path)
    assert result.differences == {}
    names = [one.name for one in survey(str(path)).directions]
    same = {names[number]: count for number, count in result.same.items()}
    assert same.keys() == {"S[1] -> A[1]", "S[2] -> T[1]", "T[1] -> S[2]", "T[2] -> B[1]"}
    assert [name for name, count in same.items() if count < 10] == ["S[2] -> T[1]"]
    refused = Counter({key[2]: count for key, count in result.verdicts.items() if key[2] != "GOOD"})
    assert refused == Counter({"PHYSICAL": 1, "REMOTE": 1})
    assert sum(one.kind == Kind.RX_DATA and RxData.verdict.read(one) == Verdict.PHYSICAL for one in records) == 1


@pytest.mark.slow
def test_adapters_in_rtl_make_the_same_of_a_capture_as_the_model(tmp_path):
    """Those of a small star, which are compiled for other tests too."""
    from cosim.experiments.play_fabric import given_fabric

    into = given_fabric(str(Path(__file__).parents[2] / "topology_files" / "star.net"), by_bus=False)
    experiment = replace(into.experiment, cycles=45_000)
    path = tmp_path / "run.pcapng"
    capture_of(experiment, path, "SW1[1]", "SW1[2]")
    ways = {"SW1[1] -> H1[1]": "H1", "SW1[2] -> H2[1]": "H2"}
    plan = plan_play(str(path), survey(str(path)), Into("it", experiment), ways, None, None)
    result = play(plan, "verilator", tmp_path)
    assert result.held
    assert len(result.same) == 2
    assert min(result.same.values()) > 5
    assert result.comparison is not None
    assert result.comparison.records > 300


@pytest.mark.deep
@pytest.mark.parametrize("number", range(3))
def test_a_switch_in_rtl_makes_the_same_of_a_capture_as_the_model(tmp_path, number):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    experiment = check_of(seed, ports=3, vls=2)
    path = tmp_path / "run.pcapng"
    capture_of(experiment, path)
    result = played(experiment, path, "verilator")
    assert result.held
    assert result.comparison is not None


def test_rtl_nodes_that_are_both_played_into_have_no_link(tmp_path):
    from cosim.experiments.play_fabric import given_fabric

    experiment = replace(given_fabric("ring_4", by_bus=True).experiment, cycles=1_000)
    path = tmp_path / "run.pcapng"
    capture_of(experiment, path, "R1[1]")
    with pytest.raises(CannotPlay, match=r"--sim verilator: R1\[1\] and R4\[2\], both played into, have a link"):
        played(experiment, path, "verilator")


def test_of_a_packet_to_a_group_each_copy_is_told(tmp_path):
    experiment = scenario_experiment(load_scenario("multicast"))
    path = tmp_path / "run.pcapng"
    capture_of(experiment, path, "A")
    told: list[Told] = []
    played(alone(experiment, "B"), path, tell=told.append)
    news = [one for one in told if one.packet.body[2:4] == b"\xc0\x00"]
    copies = [{way.removeprefix("sent on by ") for way in one.way.split("; ")} for one in news if one.way]
    assert copies.count({"S[2]", "S[3]", "S[4]"}) >= len(news) - 8 > 8, "but for those that wait at the end"
    assert {port for ports in copies for port in ports} == {"S[2]", "S[3]", "S[4]"}
