"""Random SMPs, right and wrong ones: no agent hangs, none writes what a wrong M_Key should have stopped."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cosim.engines.simulation import build, run
from cosim.stimulus.bus_bring_up import write
from cosim.stimulus.run_spec import RunSpec
from cosim.trace.compare import Names, compare
from tests.regression.naive_agent import NaiveAgent
from tests.regression.smp_follower import SmpFollower
from tests.regression.smp_traffic import SmpTraffic, random_smps
from wire.codes import PortPhysicalState
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE, MFT_MODIFIER
from wire.layout import Record as SmpRecord
from wire.mad import MadMethod, MadStatus, mad_data
from wire.mad_packet import smp_of, smp_packet
from wire.packet import parse
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.port_info import PORT_INFO, PORT_INFO_MODIFIER
from wire.port_tables import P_KEY_TABLE_MODIFIER, SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER, VL_ARBITRATION_MODIFIER
from wire.registers import (
    NodeRegister,
    PortRegister,
    lft_address,
    node_address,
    port_address,
    sl_to_vl_address,
)
from wire.sma import PORT_MODIFIER, SmaAttribute
from wire.smp import smp_request, unpack_smp
from wire.stimulus import Control, Delivery, Operation, Post
from wire.switch_info import SWITCH_INFO
from wire.trace import Kind, Record, port_of_source

WIDE = SwitchParameters(ports=4, vls=2, mtu=256, buffer_blocks=16, lft_size=128, mft_size=64, vl15_blocks=10)
NARROW = SwitchParameters(
    ports=3, mtu=512, buffer_blocks=20, lft_size=40, mft_size=32, vl15_blocks=15, queueing="fifo", readers=1
)
HOST = AdapterParameters(mtu=256, receive_blocks=16, send_blocks=16)
FABRIC = FabricParameters(
    {
        "S": WIDE,
        "T": NARROW,
        "A": HOST,
        "B": AdapterParameters(mtu=512, vls=2, receive_blocks=20, send_blocks=20, vl15_blocks=12),
        "C": HOST,
    },
    (
        LinkParameters("A", 1, "S", 1),
        LinkParameters("S", 2, "T", 1),
        LinkParameters("T", 2, "S", 3, flight=3),
        LinkParameters("B", 1, "S", 4),
        LinkParameters("C", 1, "T", 3, flight=7),
    ),
)
NODES = list(FABRIC.nodes)
ASKED_BY: dict[str, tuple[str, list[int]]] = {
    "S": ("A", [1]),
    "T": ("C", [1]),
    "A": ("A", []),
    "B": ("B", []),
    "C": ("C", []),
}
"""The host that reads a node in the end, and the path to it."""

START = 300
LEASE_SECOND = 5_000
LINK_DOWN_TIMEOUT = 2_000
SETTLED = 20_000
"""Cycles from the last SMP taken from a host to the end of all that it brings about."""

READ_BACK = 1 << 48
"""In the TransactionIDs of these Gets, and of no others."""

EVERY = 800
"""Cycles between two Gets: more than one takes there and back."""


def gets(agent: NaiveAgent) -> Iterator[tuple[SmaAttribute, int]]:
    """Attribute and modifier of all that a node stores."""
    ports = range(agent.ports + 1) if agent.is_switch else range(1)
    outer = ports[1:] if agent.is_switch else ports
    for port in ports:
        yield SmaAttribute.PORT_INFO, PORT_INFO_MODIFIER.to_int(port=port)
        yield SmaAttribute.P_KEY_TABLE, P_KEY_TABLE_MODIFIER.to_int(port=port)
        for output in ports:
            yield SmaAttribute.SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER.to_int(input_port=port, output_port=output)
    for port in outer:
        yield SmaAttribute.LED_INFO, PORT_MODIFIER.to_int(port=port)
        for block in (1, 3):
            yield SmaAttribute.VL_ARBITRATION_TABLE, VL_ARBITRATION_MODIFIER.to_int(port=port, block=block)
    yield SmaAttribute.GUID_INFO, 0
    if isinstance(agent.node, SwitchParameters):
        yield SmaAttribute.SWITCH_INFO, 0
        for block in range(-(-agent.node.lft_size // LINEAR_FORWARDING_TABLE.count)):
            yield SmaAttribute.LINEAR_FORWARDING_TABLE, block
        for block in range(agent.node.mft_size // 32):
            yield SmaAttribute.MULTICAST_FORWARDING_TABLE, MFT_MODIFIER.to_int(block=block, position=0)


def short_times() -> Iterator[tuple[int, int, int]]:
    """(node, address, value) that make leases and the wait for a lost link short."""
    for index, node in enumerate(FABRIC.nodes.values()):
        yield index, node_address(NodeRegister.LEASE_SECOND), LEASE_SECOND
        for port in range(1, FABRIC.port_count(node) + 1):
            yield index, port_address(port, PortRegister.LINK_DOWN_TIMEOUT), LINK_DOWN_TIMEOUT


def answer_in(packet: bytes) -> SmpRecord:
    return unpack_smp(smp_of(parse(packet)))


def check_answer(agent: NaiveAgent, attribute: int, modifier: int, data: bytes) -> None:
    """What a Get reads is what the agent stores."""
    where = f"{agent.identity.description}, {SmaAttribute(attribute).name} {modifier:#x}"
    if attribute == SmaAttribute.PORT_INFO:
        stored, layout = agent.settings[modifier], PORT_INFO
    elif attribute == SmaAttribute.SWITCH_INFO:
        stored, layout = agent.switch_info, SWITCH_INFO
    else:
        table = agent.table(attribute, modifier)
        assert data[: len(table)] == table, where
        return
    assert {name: layout[name].read(data) for name in stored} == stored, where


def registers(index: int, agent: NaiveAgent) -> Iterator[tuple[tuple[int, int], int]]:
    """(node, address) of the registers that Sets write, and what they hold."""
    own = agent.settings[0]
    for port in range(1, agent.ports + 1):
        settings = agent.settings[port if agent.is_switch else 0]
        for register in ("NEIGHBOR_MTU", "OPERATIONAL_VLS", "LOCAL_PHY_ERRORS", "OVERRUN_ERRORS"):
            yield (index, port_address(port, PortRegister[register])), settings[register.lower()]
    if not isinstance(agent.node, SwitchParameters):
        yield (index, node_address(NodeRegister.LID)), own["lid"]
        yield (index, node_address(NodeRegister.LMC)), own["lmc"]
        return
    yield (index, node_address(NodeRegister.LINEAR_FDB_TOP)), agent.switch_info["linear_fdb_top"]
    for lid in range(agent.node.lft_size):
        block, entry = divmod(lid, LINEAR_FORWARDING_TABLE.count)
        yield (index, lft_address(lid)), agent.table(SmaAttribute.LINEAR_FORWARDING_TABLE, block)[entry]
    for input_port in range(1, agent.ports + 1):
        for out in range(1, agent.ports + 1):
            modifier = SL_TO_VL_MODIFIER.to_int(input_port=input_port, output_port=out)
            table = SL_TO_VL_MAPPING_TABLE.unpack(agent.table(SmaAttribute.SL_TO_VL_MAPPING_TABLE, modifier))
            for sl, vl in enumerate(table):
                yield (index, sl_to_vl_address(input_port, out, sl)), vl


class Attack:
    """Random SMPs from three hosts, and what else is posted, on one engine; if it is not the model, compared with it.

    Attributes:
        follower: followed what the agents took.
        given: packets given to hosts, and when.
        read: what BUS_READ read, by node and address.
    """

    def __init__(self, engine: str, directory: Path, posts: list[Post], controls: list[Control], cycles: int) -> None:
        accesses = {(one.target, one.cycle) for one in controls}
        self.follower = SmpFollower(FABRIC, posts, LEASE_SECOND, accesses)
        self.given: list[tuple[int, bytes]] = []
        self.read: dict[tuple[int, int], int] = {}
        spec = RunSpec(FABRIC, controls, posts, cycles)
        with run(engine, spec, directory / engine, on_delivery=self._hears) as records:
            if engine == "model":
                for record in records:
                    self._sees(record)
            else:
                with run("model", spec, directory / "model") as expected:
                    comparison = compare(expected, self._seen(records))
                assert comparison.difference is None, comparison.difference.report(Names(FABRIC), "as above")
        for _cycle, packet in self.given:
            self.follower.hears(packet)

    def _hears(self, delivery: Delivery) -> None:
        self.given.append((delivery.cycle, delivery.data))

    def _sees(self, record: Record) -> None:
        self.follower.sees(record)
        if record.kind == Kind.BUS_READ:
            self.read[port_of_source(record.source)[0], record.a] = record.b

    def _seen(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            self._sees(record)
            yield record


def attack(engine: str, directory: Path, traffic: SmpTraffic) -> SmpFollower:
    """Random SMPs; then every link is taken down, which ends what is in flight, and up, and every node is read."""
    print(f"replay: {traffic}")
    smps = list(random_smps(FABRIC, traffic))
    controls = [write(cycle, *setting) for cycle, setting in enumerate(short_times())]
    # An agent takes no SMP longer than 400 cycles: hosts get rid of all in this time.
    enough = START + traffic.count // 3 * max(traffic.spacing, 400) + 20 * traffic.spacing + SETTLED
    first = Attack("model", directory, smps, controls, enough).follower
    assert first.sent == len(smps)

    cycle = first.last_send + SETTLED
    for state in (PortPhysicalState.DISABLED, PortPhysicalState.POLLING):
        for index, agent in enumerate(first.agents):
            for port in range(1, agent.ports + 1):
                controls.append(write(cycle, index, port_address(port, PortRegister.PHYSICAL_STATE), state))
                cycle += 1
        cycle += SETTLED

    asked: dict[int, tuple[NaiveAgent, int, int]] = {}
    reads = cycle
    follows: list[Post] = []
    for index, agent in enumerate(first.agents):
        host, path = ASKED_BY[NODES[index]]
        node = NODES.index(host)
        for attribute, modifier in gets(agent):
            # Traps are in flight too, and may take the room of the first.
            for _try in range(2):
                number = READ_BACK | len(asked)
                key = agent.settings[0]["m_key"]
                smp = smp_request(MadMethod.GET, attribute, modifier, transaction_id=number, m_key=key, path=path)
                follows.append(Post(cycle, node, FABRIC.nodes[host].vls, smp_packet(smp, psn=len(follows)).data))
                cycle += EVERY
            asked[number] = agent, attribute, modifier
    for index, agent in enumerate(first.agents):
        for (node, address), _value in registers(index, agent):
            controls.append(Control(cycle, Operation.BUS_READ, node, (address, 0, 0, 0)))
            cycle += 1

    second = Attack(engine, directory, smps + follows, controls, cycle + EVERY)
    answers = {smp.transaction_id: smp for smp in map(answer_in, (packet for at, packet in second.given if at > reads))}
    for number, (agent, attribute, modifier) in asked.items():
        now = second.follower.agents[first.agents.index(agent)]
        assert number in answers, f"{agent.identity.description} does not answer"
        assert answers[number].status == MadStatus.OK
        check_answer(now, attribute, modifier, mad_data(answers[number]))
    for index, agent in enumerate(second.follower.agents):
        assert {place: second.read[place] for place, _value in registers(index, agent)} == dict(registers(index, agent))
    return second.follower


def test_no_agent_hangs_or_takes_a_wrong_key(tmp_path: Path) -> None:
    follower = attack("model", tmp_path, SmpTraffic(1, START, 300, 600))
    assert follower.taken > 300


@pytest.fixture(scope="module")
def compiled_model() -> None:
    build("model", FABRIC)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_model")
@pytest.mark.parametrize("tenth", range(10))
def test_a_hundred_thousand_random_smps(tenth: int, tmp_path: Path) -> None:
    """From reset every thousand: some lock a node with a key that nobody has."""
    for seed in range(10 * tenth, 10 * tenth + 10):
        attack("model", tmp_path, SmpTraffic(seed, START, 1_000, (100, 300, 600, 1_200)[seed % 4]))


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_model")
def test_rtl_takes_two_thousand_random_smps_as_the_model_does(tmp_path: Path) -> None:
    attack("verilator", tmp_path, SmpTraffic(2, START, 2_000, 400))
