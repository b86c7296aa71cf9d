"""Performance management through a whole fabric: hosts read, clear and set the counters of every port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

import pytest

from cosim.engines.simulation import run
from cosim.stimulus.bus_bring_up import bus_bring_up
from cosim.stimulus.run_spec import RunSpec
from cosim.topology.topology import Topology
from cosim.trace.compare import Names, compare
from tests.regression.fabrics import STAR
from wire.codes import LinkWidth
from wire.layout import Record
from wire.mad import CLASS_PORT_INFO, MadMethod, MadStatus, mad_data
from wire.mad_packet import gmp_of, gmp_packet
from wire.packet import WORD_BYTES, build_ud_send, parse
from wire.pma import PERF_MAD, PORT_COUNTERS, PORT_COUNTERS_EXTENDED, PORT_SAMPLES_CONTROL, PmaAttribute, perf_request
from wire.registers import PORT_RESET_VALUES, PortRegister
from wire.stimulus import Delivery, Post

ENGINES = ["model", pytest.param("verilator", marks=pytest.mark.slow)]

NODES = list(STAR.nodes)
HOSTS = [name for name in NODES if name != "sw0"]
LIDS = {"h0": 1, "h1": 2, "h2": 3, "sw0": 4}
TOPOLOGY = Topology(
    STAR, LIDS, {"sw0": {1: 1, 2: 2, 3: 3, 4: 0}}, (LinkWidth.X4,) * 3, tuple(sl % 2 for sl in range(16))
)
"""Host i is at port i + 1 of the switch, and SL s goes by VL s mod 2."""
PORTS = [*((host, 1) for host in HOSTS), *(("sw0", port) for port in (1, 2, 3))]

EVERY = 1_200
"""Cycles between two requests: more than one takes to the farthest node and back."""
MAD_WORDS = 72
EXTENDED = ("port_xmit_data", "port_rcv_data", "port_xmit_pkts", "port_rcv_pkts")


class Traffic:
    """What ports count of packets from node to node, by direction: `xmit` or `rcv`, and `data` or `pkts`.

    A host's requests to itself cross no port.
    """

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int, str]] = Counter()

    def goes(self, source: str, target: str, words: int) -> None:
        if source == target:
            return
        if source != "sw0":
            self._crosses(source, 1, "xmit", words)
            self._crosses("sw0", LIDS[source], "rcv", words)
        if target != "sw0":
            self._crosses("sw0", LIDS[target], "xmit", words)
            self._crosses(target, 1, "rcv", words)

    def _crosses(self, node: str, port: int, direction: str, words: int) -> None:
        self.counts[node, port, f"port_{direction}_data"] += words
        self.counts[node, port, f"port_{direction}_pkts"] += 1

    def at(self, node: str, port: int) -> dict[str, int]:
        return {name: self.counts[node, port, name] for name in EXTENDED}


class Exchange:
    """Packets of the hosts, one after the other, and what the hosts are given."""

    def __init__(self) -> None:
        up = bus_bring_up(TOPOLOGY)
        self._controls = up.controls
        self._cycle = up.start
        self._posts: list[Post] = []
        self._asked: list[tuple[str, str]] = []
        self.traffic = Traffic()
        self.given: list[tuple[str, bytes]] = []

    def sends(self, host: str, packet: bytes, vl: int = 0) -> None:
        self._posts.append(Post(self._cycle, NODES.index(host), vl, packet))
        self._cycle += EVERY

    def sends_data(self, source: str, target: str, payload: bytes = b"", vl: int = 0) -> None:
        packet = build_ud_send(
            slid=LIDS[source], dlid=LIDS[target], dest_qp=5, src_qp=6, q_key=1, payload=payload, vl=vl, sl=vl
        )
        self.sends(source, packet.data, vl)
        self.traffic.goes(source, target, len(packet.data) // WORD_BYTES)

    def asks(
        self, host: str, target: str, method: MadMethod, attribute: int, data: bytes = b"", *, vl: int = 0
    ) -> dict[str, dict[str, int]]:
        """The request comes before its answer: what each of the target's ports has counted between the two."""
        number = len(self._asked)
        mad = perf_request(method, attribute, data, transaction_id=number)
        self._asked.append((host, target))
        self.sends(host, gmp_packet(mad, LIDS[host], LIDS[target], vl=vl, sl=vl).data, vl)
        self.traffic.goes(host, target, MAD_WORDS)
        counted = {str(port): self.traffic.at(node, port) for node, port in PORTS if node == target}
        self.traffic.goes(target, host, MAD_WORDS)
        return counted

    def gets(self, host: str, target: str, port: int, attribute: int = PmaAttribute.PORT_COUNTERS) -> dict[str, int]:
        """What the port has counted then."""
        return self.asks(host, target, MadMethod.GET, attribute, bytes([0, port]))[str(port)]

    def sets(self, host: str, target: str, port: int, select: int, **values: int) -> None:
        """Counters of PortCounters; those that are kept of them are counted from there on."""
        selects = {"counter_select": select & 0xFFFF, "counter_select2": select >> 16}
        data = PORT_COUNTERS.pack(port_select=port, **selects, **values)
        self.asks(host, target, MadMethod.SET, PmaAttribute.PORT_COUNTERS, data)

    def runs(self, engine: str, directory: Path) -> list[Record]:
        """The answers in the order of the requests, if each has one; what else hosts are given is in `given`."""
        spec = RunSpec(STAR, self._controls, self._posts, self._cycle)
        answers: dict[int, tuple[str, Record]] = {}
        given = _run(engine, spec, directory)
        for delivery in given:
            host = NODES[delivery.node]
            packet = delivery.data
            parsed = parse(packet)
            if len(packet) == MAD_WORDS * WORD_BYTES and parsed.bth.dest_qp == 1:
                mad = PERF_MAD.unpack(gmp_of(parsed))
                if mad.method == MadMethod.GET_RESP and mad.transaction_id < len(self._asked):
                    assert mad.transaction_id not in answers
                    assert parsed.lrh.slid == LIDS[self._asked[mad.transaction_id][1]]
                    answers[mad.transaction_id] = host, mad
                    continue
            self.given.append((host, packet))
        assert {number: host for number, (host, _) in answers.items()} == {
            number: host for number, (host, _) in enumerate(self._asked)
        }
        return [answers[number][1] for number in range(len(self._asked))]


def _run(engine: str, spec: RunSpec, directory: Path) -> list[Delivery]:
    """What hosts are given; another engine than the model is compared with it."""
    given: list[Delivery] = []
    with run(engine, spec, directory / engine, on_delivery=given.append) as records:
        if engine == "model":
            for _record in records:
                pass
            return given
        with run("model", spec, directory / "model") as expected:
            difference = compare(expected, records).difference
    assert difference is None, difference.report(Names(STAR), "pytest")
    return given


def counters(answer: Record) -> Record:
    assert answer.status == MadStatus.OK
    layout = PORT_COUNTERS if answer.attribute_id == PmaAttribute.PORT_COUNTERS else PORT_COUNTERS_EXTENDED
    return layout.unpack(mad_data(answer))


def kept(answer: Record) -> dict[str, int]:
    """Of data and packets."""
    return {name: counters(answer)[name] for name in EXTENDED}


def some_data(exchange: Exchange, seed: int, count: int) -> None:
    choose = Random(seed)
    for _ in range(count):
        source, target = choose.sample(HOSTS, 2)
        exchange.sends_data(source, target, choose.randbytes(choose.choice((0, 4, 60, 256))), vl=choose.randrange(2))


def ask_all(exchange: Exchange, askers: Sequence[str], attributes: Iterable[int]) -> list[dict[str, int]]:
    return [exchange.gets(host, *port, attribute) for host in askers for port in PORTS for attribute in attributes]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_host_reads_what_every_port_has_sent_and_received(engine: str, tmp_path: Path) -> None:
    """Packets and words, those of the requests before and of their answers among them."""
    exchange = Exchange()
    some_data(exchange, 1, 30)
    expected = ask_all(exchange, HOSTS, (PmaAttribute.PORT_COUNTERS, PmaAttribute.PORT_COUNTERS_EXTENDED))
    answers = exchange.runs(engine, tmp_path)
    assert [kept(answer) for answer in answers] == expected
    assert sum(one["port_xmit_pkts"] for one in expected) > 500
    assert len(exchange.given) == 30


@pytest.mark.parametrize("engine", ENGINES)
def test_counters_that_are_cleared_read_zero_and_count_on(engine: str, tmp_path: Path) -> None:
    """Host h0 clears all; a port that nobody uses after that reads 0 from end to end."""
    exchange = Exchange()
    some_data(exchange, 2, 10)
    exchange.sends("h0", build_ud_send(slid=1, dlid=1, dest_qp=5, src_qp=6, q_key=1, payload=b"back").data)
    ask_all(exchange, ["h0"], [PmaAttribute.PORT_COUNTERS])
    for node, port in PORTS:
        exchange.sets("h0", node, port, 0x1FFFF)
    cleared = len(PORTS)
    exchange.gets("h0", "sw0", 3)
    exchange.gets("h0", "sw0", 3, PmaAttribute.PORT_COUNTERS_EXTENDED)
    exchange.sends_data("h1", "h2", bytes(256))
    exchange.gets("h0", "sw0", 3)
    answers = exchange.runs(engine, tmp_path)
    before = [kept(answer) for answer in answers[:cleared]]
    assert all(any(values.values()) for values in before)
    assert counters(answers[3]).port_rcv_switch_relay_errors == 1, "what was sent back to where it came from"
    for answer in answers[cleared : 2 * cleared]:
        found = counters(answer)
        assert {field.name: found[field.name] for field in PORT_COUNTERS.fields} == {
            **{field.name: 0 for field in PORT_COUNTERS.fields},
            "port_select": found.port_select,
            "counter_select": 0xFFFF,
            "counter_select2": 1,
        }
    # Port 3 was cleared as the last one: nothing had crossed it since.
    assert kept(answers[-3]) == kept(answers[-2]) == dict.fromkeys(EXTENDED, 0)
    assert kept(answers[-1]) == {**dict.fromkeys(EXTENDED, 0), "port_xmit_data": MAD_WORDS, "port_xmit_pkts": 1}


ENDS = (1 << 32) - 1


@pytest.mark.parametrize("engine", ENGINES)
def test_a_counter_stops_at_its_end_and_the_extended_one_goes_on(engine: str, tmp_path: Path) -> None:
    """Host h2 watches port 2 of the switch while h0 sends five packets to h1; and the end of 64 bits."""
    exchange = Exchange()
    select = 1 << 12 | 1 << 14
    exchange.sets("h2", "sw0", 2, select, port_xmit_data=ENDS - 100, port_xmit_pkts=ENDS - 2)
    for size in (1, 2, 3, 4, 5):
        exchange.sends_data("h0", "h1", bytes(4 * size))
        exchange.gets("h2", "sw0", 2)
    exchange.gets("h2", "sw0", 2, PmaAttribute.PORT_COUNTERS_EXTENDED)
    far = (1 << 64) - 2
    data = PORT_COUNTERS_EXTENDED.pack(port_select=2, counter_select=0b0100, port_xmit_pkts=far)
    exchange.asks("h2", "sw0", MadMethod.SET, PmaAttribute.PORT_COUNTERS_EXTENDED, data)
    for _ in range(3):
        exchange.sends_data("h0", "h1")
    exchange.gets("h2", "sw0", 2, PmaAttribute.PORT_COUNTERS_EXTENDED)
    exchange.gets("h2", "sw0", 2)

    _, *narrow, wide, moved, ended, last = exchange.runs(engine, tmp_path)
    words = [9, 10, 11, 12, 13]
    assert [counters(answer).port_xmit_pkts for answer in narrow] == [ENDS - 1, ENDS, ENDS, ENDS, ENDS]
    sent = [ENDS - 100 + sum(words[: i + 1]) for i in range(len(words))]
    assert [counters(answer).port_xmit_data for answer in narrow] == sent
    assert kept(wide)["port_xmit_pkts"] == ENDS + 3
    assert kept(wide)["port_xmit_data"] == sent[-1]
    assert kept(moved) == {**kept(wide), "port_xmit_pkts": far}
    assert kept(ended)["port_xmit_pkts"] == (1 << 64) - 1
    assert kept(last)["port_xmit_pkts"] == ENDS


@pytest.mark.parametrize("engine", ENGINES)
def test_requests_and_other_packets_for_qp_1(engine: str, tmp_path: Path) -> None:
    """Agents answer requests alone, on the VL of the SL; other classes and answers are the hosts'."""
    exchange = Exchange()
    for target in LIDS:
        exchange.asks("h0", target, MadMethod.GET, PmaAttribute.CLASS_PORT_INFO, vl=1)
    exchange.asks("h1", "sw0", MadMethod.GET, PmaAttribute.PORT_COUNTERS, bytes([0, 4]))
    exchange.asks("h1", "h2", MadMethod.SET, PmaAttribute.CLASS_PORT_INFO)
    tick = PORT_SAMPLES_CONTROL.pack(port_select=1, tick=9)
    exchange.asks("h2", "h2", MadMethod.SET, PmaAttribute.PORT_SAMPLES_CONTROL, tick)
    exchange.asks("h1", "h2", MadMethod.GET, PmaAttribute.PORT_SAMPLES_CONTROL, bytes([0, 1]))
    exchange.asks("h1", "h0", MadMethod.GET, PmaAttribute.PORT_SAMPLES_CONTROL, bytes([0, 1]))
    strange = [
        perf_request(MadMethod.GET_RESP, PmaAttribute.PORT_COUNTERS, transaction_id=1 << 32),
        perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, transaction_id=1 << 32).replace(mgmt_class=3),
    ]
    packets = {target: [gmp_packet(mad, 1, LIDS[target]).data for mad in strange] for target in ("h1", "sw0")}
    for sent in packets.values():
        for packet in sent:
            exchange.sends("h0", packet)

    answers = exchange.runs(engine, tmp_path)
    infos = [CLASS_PORT_INFO.unpack(mad_data(answer)) for answer in answers[:4]]
    assert {(info.base_version, info.class_version, info.capability_mask) for info in infos} == {(1, 1, 0x1300)}
    assert [answer.status for answer in answers[4:6]] == [
        MadStatus.INVALID_ATTRIBUTE_VALUE,
        MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED,
    ]
    ticks = [PORT_SAMPLES_CONTROL.unpack(mad_data(answer)).tick for answer in answers[6:]]
    assert ticks == [9, 9, PORT_RESET_VALUES[PortRegister.TICK]]
    assert exchange.given == [("h1", packet) for packet in packets["h1"]]
