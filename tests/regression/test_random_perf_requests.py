"""Random PMA requests, right and wrong ones, between data: every answer is what the trace says, to the cycle."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from cosim.engines.simulation import run
from cosim.stimulus.bus_bring_up import bus_bring_up, read_counters
from cosim.stimulus.run_spec import RunSpec
from cosim.topology.topology import Topology
from cosim.trace.compare import Names, compare
from tests.agent_steps import of_request
from tests.campaigns import some_of
from tests.regression.naive_perf_agent import (
    SIZES,
    WAITS,
    NaivePort,
    accesses_of,
    answer_to,
    asked,
    comparable,
    is_request,
    laps_of,
    looks_like_request,
)
from tests.regression.perf_traffic import PerfTraffic, random_perf_requests, unrest
from tests.regression.test_random_smps import FABRIC, SOME
from wire.codes import VL15, LinkWidth
from wire.crc import fingerprint, icrc_good
from wire.headers import LRH
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet, smp_packet
from wire.parameters import AdapterParameters, SwitchParameters
from wire.pma import PmaAttribute, perf_request
from wire.port_tables import SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER
from wire.registers import Counter as PortCounter
from wire.registers import CounterHigh, Detail, PacketCounter, PortRegister, place_of_address
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Control, Delivery, Operation, Post
from wire.trace import AGENT_PORT, Kind, Record, port_of_source

NODES = list(FABRIC.nodes)
LIDS = {"A": 1, "B": 2, "C": 3, "S": 4, "T": 5}
TABLES = {"S": {1: 1, 2: 4, 3: 2, 4: 0, 5: 3}, "T": {1: 1, 2: 2, 3: 3, 4: 1, 5: 0}}
VLS = tuple(sl % 2 for sl in range(16))
TOPOLOGY = Topology(FABRIC, LIDS, TABLES, (LinkWidth.X4,) * len(FABRIC.links), VLS)

Z_TO_STEP_0 = 4
PER_REQUEST = 1_000
"""Cycles that an agent needs for a request at most, with all that holds it up."""
SETTLED = 20_000
LAST = 1 << 48
"""In the TransactionIDs of the requests that find out whether anybody hangs, and of no others."""


class Agents:
    """What the agents of a fabric took and sent, from the trace, and what naive ones would have answered.

    Attributes:
        taken: requests that an agent took. `with_grh`: those of them that had one.
        lost: answers that were due, and dropped by their agent.
    """

    def __init__(self, posts: Iterable[Post], controls: Iterable[Control]) -> None:
        self.taken = self.lost = self.with_grh = 0
        self._posted = {comparable(post.data) for post in posts if len(post.data) in SIZES}
        self._known = {
            fingerprint(data): (data, post.node)
            for post in posts
            for data in (LRH["vl"].write(post.data, vl) for vl in {LRH["vl"].read(post.data), 0, 1})
        }
        self._ports = {
            (index, port): NaivePort(isinstance(node, SwitchParameters), node.vls)
            for index, node in enumerate(FABRIC.nodes.values())
            for port in range(1, FABRIC.port_count(node) + 1)
        }
        self._controls = [one for one in controls if one.operation in (Operation.BUS_READ, Operation.BUS_WRITE)]
        self._accesses = {(one.target, one.cycle) for one in self._controls}
        self._requests: list[tuple[int, int, bytes]] = []
        self._sent: set[tuple[int, int]] = set()
        self._bus_reads: dict[tuple[int, int], int] = {}
        self._vl15 = [node.vls for node in FABRIC.nodes.values()]

    def sees(self, record: Record) -> None:
        """The next record of the trace."""
        if record.kind == Kind.BUS_READ:
            self._bus_reads[port_of_source(record.source)[0], record.cycle - 4] = record.b
        elif record.kind in (Kind.RX_DATA, Kind.TX_DATA, Kind.TX_DISCARD):
            self._ports[port_of_source(record.source)].sees(record)
        elif record.kind in (Kind.SEND, Kind.DELIVER):
            node, port = port_of_source(record.source)
            if port != AGENT_PORT or record.a == self._vl15[node]:
                return
            if record.kind == Kind.SEND:
                self._sent.add((node, record.cycle))
                return
            data, sender = self._known.get(record.d, (b"", 0))
            assert data or isinstance(FABRIC.nodes[NODES[node]], SwitchParameters), "only a switch's takes anything"
            if is_request(data):
                self._requests.append((node, record.cycle + Z_TO_STEP_0, data))
            elif looks_like_request(data) and (port := arrival(NODES[sender], LRH["dlid"].read(data), NODES[node])):
                self._ports[node, port].icrc_wrong(record.cycle + Z_TO_STEP_0 + 1)

    def check(self, given: Iterable[bytes]) -> None:
        """All records seen: what the test bus read, and the answers given to hosts, are what is due."""
        due: Counter[bytes] = Counter()
        for node in range(len(NODES)):
            due.update(self._answers(node))
        for packet in given:
            is_smp = LRH["vl"].read(packet) == VL15
            if len(packet) in SIZES and not is_smp and (answer := comparable(packet)) not in self._posted:
                assert icrc_good(packet)
                due[answer] -= 1
                assert due[answer] >= 0, f"an answer that is not due: {packet.hex()}"
        assert not self._sent, "agents sent what is not due"

    def _answers(self, node: int) -> Iterator[bytes]:
        """The answers of a node that it sent; the bus is followed meanwhile, access by access."""
        ports = numbers_of(NODES[node])
        bus: list[tuple[int, int, int, int | None, dict[str, list[int]] | None, str]] = []
        answers: list[tuple[bytes, dict[str, list[int]]]] = []
        for owner, first, packet in self._requests:
            if owner != node:
                continue
            self.taken += 1
            self.with_grh += len(packet) == SIZES[1]
            steps = of_request(*asked(packet), pma=True, laps=laps_of(packet, ports))
            cycles = self._steps(node, first, len(steps))
            values: dict[str, list[int]] = {}
            for access in accesses_of(packet, ports):
                cycle = cycles[steps.index(access.step)]
                bus.append((cycle, access.port, access.register, access.value, values, access.name))
            sent = node, cycles[-1] + 2
            if sent in self._sent:
                self._sent.remove(sent)
                answers.append((packet, values))
            else:
                self.lost += 1
        for one in self._controls:
            page, offset = place_of_address(one.args[0])
            if one.target == node and 1 <= page <= len(ports) and self._is_followed(offset):
                value = one.args[1] if one.operation == Operation.BUS_WRITE else None
                bus.append((one.cycle, page, offset, value, None, ""))
        for cycle, port, register, value, values, name in sorted(bus, key=lambda access: access[0]):
            naive = self._ports[node, port]
            if value is not None:
                naive.writes(cycle, register, value)
                continue
            read = naive.reads(cycle, register)
            if values is not None:
                values.setdefault(name, []).append(read)
            elif register != PortCounter.XMIT_WAIT and register not in WAITS:
                assert self._bus_reads[node, cycle] == read, (NODES[node], port, hex(register), cycle)
        for packet, values in answers:
            yield answer_to(packet, ports, values)

    @staticmethod
    def _is_followed(register: int) -> bool:
        return register in {
            PortRegister.TICK,
            PortRegister.EXTENDED_LOW,
            PortRegister.FLOW_CTL_UPDATE_ERRORS,
            *PortCounter,
            *PacketCounter,
            *CounterHigh,
            *Detail,
        }

    def _steps(self, node: int, first: int, count: int) -> list[int]:
        """The cycle of each step: those without an access of the test bus."""
        cycles: list[int] = []
        while len(cycles) < count:
            if (node, first) not in self._accesses:
                cycles.append(first)
            first += 1
        return cycles


def numbers_of(name: str) -> Sequence[int]:
    """Of a node's ports, as its agent knows them."""
    node = FABRIC.nodes[name]
    return range(1, node.ports + 1) if isinstance(node, SwitchParameters) else [FABRIC.identity(name).port]


def arrival(sender: str, dlid: int, node: str) -> int:
    """The port by which a host's packet comes to a switch on its way; 0 at the host's own adapter."""
    ends = {(link.a, link.a_port): (link.b, link.b_port) for link in FABRIC.links}
    ends |= {end: other for other, end in ends.items()}
    at, port = sender, 0
    while at != node:
        at, port = ends[at, TABLES[at][dlid] if at in TABLES else 1]
    return port


def sl_to_vl_set() -> Iterator[Post]:
    """On its links a switch answers SLs 8 to 15 on VL 1 then, or not at all."""
    host = NODES.index("A")
    mapping = SL_TO_VL_MAPPING_TABLE.pack([0, 1] * 4 + [1] * 4 + [2, 7, 9, 15])
    for number, output in enumerate((1, 2, 3, 4)):
        modifier = SL_TO_VL_MODIFIER.to_int(input_port=0, output_port=output)
        smp = smp_request(
            MadMethod.SET, SmaAttribute.SL_TO_VL_MAPPING_TABLE, modifier, mapping, transaction_id=number, path=[1]
        )
        yield Post(100 + number, host, FABRIC.nodes["A"].vls, smp_packet(smp).data)


def last_requests(cycle: int) -> Iterator[Post]:
    """Every host asks every node what it can do."""
    for host, lid in LIDS.items():
        if isinstance(FABRIC.nodes[host], AdapterParameters):
            for target in LIDS.values():
                number = LAST | lid << 8 | target
                mad = perf_request(MadMethod.GET, PmaAttribute.CLASS_PORT_INFO, transaction_id=number)
                yield Post(cycle, NODES.index(host), 0, gmp_packet(mad, lid, target).data)
                cycle += 2 * PER_REQUEST


def attack(
    engine: str, directory: Path, count: int, seed: int, spacing: int, rtl: Sequence[str] | None = None
) -> Agents:
    """Requests in traffic, on an engine of which only the nodes RTL may be, and all of the trace looked at."""
    up = bus_bring_up(TOPOLOGY)
    traffic = PerfTraffic(seed, up.start, count, spacing)
    print(f"replay: {traffic}")
    posts = list(random_perf_requests(FABRIC, LIDS, traffic))
    quiet = max(posts[-1].cycle, up.start + count * PER_REQUEST // 3) + SETTLED
    last = list(last_requests(quiet))
    end = last[-1].cycle + SETTLED
    controls = [*up.controls, *unrest(FABRIC, traffic, posts[-1].cycle), *read_counters(TOPOLOGY, end, details=True)]
    posts = [*sl_to_vl_set(), *posts, *last]
    agents = Agents(posts, controls)
    given: list[bytes] = []

    def hears(delivery: Delivery) -> None:
        given.append(delivery.data)

    def seen(records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            agents.sees(record)
            yield record

    spec = RunSpec(FABRIC, controls, posts, end + 500)
    with run(engine, spec, directory / engine, rtl=rtl, on_delivery=hears) as records:
        if engine == "model":
            for _record in seen(records):
                pass
        else:
            with run("model", spec, directory / "model") as expected:
                comparison = compare(expected, seen(records))
            assert comparison.difference is None, comparison.difference.report(Names(FABRIC), "as above")
    agents.check(given)
    answered = {comparable(packet) for packet in given if len(packet) in SIZES}
    for post in last:
        assert answer_to(post.data, [1], {}) in answered, "an agent hangs"
    return agents


def test_every_answer_is_what_the_trace_says(tmp_path: Path) -> None:
    agents = attack("model", tmp_path, 150, 1, 400)
    assert agents.taken > 60
    assert agents.with_grh > 10


@pytest.mark.slow
@pytest.mark.parametrize("spacing", some_of([150, 300, 600], {300}))
def test_six_thousand_random_requests(spacing: int, tmp_path: Path) -> None:
    """Many answers that are due are dropped where hosts stall: their VL has no room."""
    for seed in range(2):
        agents = attack("model", tmp_path, 1_000, spacing + seed, spacing)
        assert agents.taken > 500
        assert agents.lost > 20


@pytest.mark.slow
@pytest.mark.parametrize(("requests", "rtl"), [(60, SOME), pytest.param(500, None, marks=pytest.mark.deep)])
def test_rtl_answers_as_the_model_does(tmp_path: Path, requests: int, rtl: Sequence[str] | None) -> None:
    attack("verilator", tmp_path, requests, 9, 400, rtl)
