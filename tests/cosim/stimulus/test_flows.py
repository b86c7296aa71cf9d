"""The packets of a scenario's flows: arrivals, destinations, SLs, and what the packets hold."""

from collections import Counter
from itertools import islice, pairwise
from random import Random

import pytest

from cosim.scenario.tables import Flow, Partition
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.flows import scenario_packets, scenario_streams
from cosim.stimulus.packet import RdmaWritePackets, UdPackets
from wire.headers import BTH, DETH, LRH, RETH
from wire.opcodes import Opcode
from wire.packet import build_ud_send, parse


def packets_of(scenario, count: int | None = None) -> list:
    return list(islice(scenario_packets(scenario, scenario.topology, 1_000, scenario.seed), count))


def test_uniform_load_is_from_each_host_to_all_others_alike():
    packets = packets_of(uniform_load(4, cycles=400_000, size=64))
    pairs = Counter((packet.source, packet.destination) for packet in packets)
    assert len(pairs) == 4 * 3
    mean = len(packets) / len(pairs)
    assert all(abs(count - mean) < 0.1 * mean for count in pairs.values())


def test_at_full_rate_a_host_has_its_next_packet_when_its_link_is_done_with_the_last():
    for source in ("H1", "H2"):
        packets = [p for p in packets_of(uniform_load(2, cycles=20_000)) if p.source == source]
        assert packets[0].cycle == 1_000
        for packet, following in pairwise(packets):
            assert following.cycle == packet.cycle + packet.rows


@pytest.mark.parametrize("rate", [0.2, 0.8])
def test_below_full_rate_the_gaps_are_random_and_keep_the_rate_on_the_mean(rate):
    scenario = uniform_load(2, cycles=1_000_000, size=256, rate=rate, seed=3)
    packets = [packet for packet in packets_of(scenario) if packet.source == "H1"]
    rows = packets[0].rows
    assert len(packets) * rows / scenario.cycles == pytest.approx(rate, rel=0.03)
    gaps = [following.cycle - packet.cycle - rows for packet, following in pairwise(packets)]
    assert min(gaps) >= 0
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(rows / rate - rows, rel=0.05)
    # Of a geometric distribution of that mean, the standard deviation is nearly the mean.
    assert (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5 == pytest.approx(mean, rel=0.1)


def test_every_vl_gets_its_share_of_the_packets():
    packets = packets_of(uniform_load(3, cycles=100_000, vls=4, size=64))
    slots = Counter(packet.slot for packet in packets)
    assert set(slots) == set(range(4))
    assert min(slots.values()) > 0.8 * len(packets) / 4
    assert all(packet.slot == packet.final_vl == parse(packet.data).lrh.sl for packet in packets)


def test_a_stream_is_a_host_and_an_sl_and_counts_its_packets():
    scenario = uniform_load(3, cycles=20_000, vls=2, size=64)
    streams = scenario_streams(scenario)
    assert [stream.name for stream in streams] == [f"H{host}-* SL{sl}" for host in (1, 2, 3) for sl in (0, 1)]
    counted: Counter[int] = Counter()
    for packet in packets_of(scenario):
        assert (streams[packet.flow].source, streams[packet.flow].sl) == (packet.source, packet.slot)
        assert packet.sequence == counted[packet.flow]
        counted[packet.flow] += 1


def test_a_flow_from_all_hosts_to_one_has_all_the_others_for_sources():
    incast = Flow.model_validate({"name": "in", "from": "*", "to": "H2", "count": 1})
    scenario = uniform_load(3, cycles=1_000).model_copy(update={"flows": (incast,)})
    assert [(packet.source, packet.destination) for packet in packets_of(scenario)] == [("H1", "H2"), ("H3", "H2")]
    assert [stream.name for stream in scenario_streams(scenario)] == ["in H1", "in H3"]


def test_packets_are_drawn_as_they_are_asked_for():
    endless = uniform_load(4, cycles=1 << 39)
    assert len(packets_of(endless, count=100)) == 100


def test_the_same_seed_gives_the_same_packets_and_another_one_others():
    one, other = (uniform_load(3, cycles=20_000, rate=0.5, seed=seed) for seed in (1, 2))
    assert packets_of(one) == packets_of(one)
    assert packets_of(one) != packets_of(other)


@pytest.mark.parametrize("size", [*range(14), 255, 256, 2047, 2048, 4096])
def test_a_packet_is_what_building_it_header_by_header_gives(size):
    make = UdPackets(Random(size))
    data = make.data(slid=3, dlid=5, sl=6, vl=2, flow=77, sequence=0x12345678, size=size)
    made = parse(data)
    built = build_ud_send(
        slid=3,
        dlid=5,
        vl=2,
        sl=6,
        dest_qp=0x10,
        src_qp=0x100 + 77,
        q_key=0x1234_5678,
        psn=0x345678,
        payload=made.payload,
    )
    assert made.data == built.data
    assert made.icrc_good
    assert len(made.payload) == size
    assert (made.header(DETH).src_qp, made.header(BTH).psn) == (0x100 + 77, 0x345678)
    assert made.payload.startswith((bytes.fromhex("0000004d") + bytes.fromhex("12345678"))[:size])
    assert made.lrh.pkt_len * 4 == len(made.data) > LRH.size_bytes


@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_rdma_write_is_one_message_of_whole_mtus(count):
    make = RdmaWritePackets(Random(count), count)
    made = [parse(make.data(slid=3, dlid=5, sl=6, vl=2, flow=7, sequence=number, size=2048)) for number in range(count)]
    names = [Opcode(packet.header(BTH).opcode).name.removeprefix("UC_RDMA_WRITE_") for packet in made]
    assert names == (["ONLY"] if count == 1 else ["FIRST", *["MIDDLE"] * (count - 2), "LAST"])
    assert made[0].header(RETH).dma_len == count * 2048
    assert not any(packet.has(RETH) for packet in made[1:])
    assert [packet.header(BTH).psn for packet in made] == list(range(count))
    assert {packet.header(BTH).dest_qp for packet in made} == {0x107}
    assert all(packet.icrc_good and len(packet.payload) == 2048 for packet in made)
    assert len({packet.data for packet in made}) == count


@pytest.mark.parametrize("count", [None, 1, 3])
def test_the_p_key_is_that_of_all_full_members_unless_another_one_is_asked_for(count):
    make = UdPackets(Random(1)) if count is None else RdmaWritePackets(Random(1), count)

    def made(**p_key):
        return parse(make.data(slid=3, dlid=5, sl=6, vl=2, flow=7, sequence=0, size=256, **p_key))

    for packet, p_key in ((made(), 0xFFFF), (made(p_key=0x0001), 0x0001), (made(p_key=0x8001), 0x8001)):
        assert packet.icrc_good
        assert packet.header(BTH).p_key == p_key


def test_packets_of_a_flow_have_the_p_key_of_its_partition():
    scenario = uniform_load(3, cycles=20_000).model_copy(
        update={"partitions": {"alpha": Partition(key=9, full=("H1",), limited=("H2",))}}
    )
    (flow,) = scenario.flows
    scenario = scenario.model_copy(update={"flows": (flow.model_copy(update={"partition": "alpha"}),)})
    p_keys = {(packet.source, packet.p_key) for packet in packets_of(scenario)}
    assert p_keys == {("H1", 0x8009), ("H2", 0x0009), ("H3", 0x8009)}


def test_no_two_packets_of_a_stream_are_alike():
    packets = packets_of(uniform_load(2, cycles=300_000, size=0))
    assert len({packet.data for packet in packets}) == len(packets) > 5_000
