"""Random SMPs, right and wrong ones: no agent hangs, none writes what a wrong M_Key should have stopped."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cosim.engines.simulation import build, run
from cosim.stimulus.bus_bring_up import write
from cosim.stimulus.run_spec import RunSpec
from cosim.trace.compare import Names, compare
from tests.regression.naive_agent import NaiveAgent
from tests.regression.smp_follower import SmpFollower
from tests.regression.smp_traffic import SmpTraffic, random_smps
from wire.codes import LINK_WIDTHS, PortPhysicalState
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE, MFT_MODIFIER
from wire.layout import Record as SmpRecord
from wire.mad import MadMethod, MadStatus, mad_data
from wire.mad_packet import smp_of, smp_packet
from wire.node_info import NodeType
from wire.packet import parse
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, NodeIdentity, SwitchParameters
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
from wire.stimulus import Control, Delivery, Operation, Post, Taking
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
    {
        "B": NodeIdentity(0xB00, 0xB03, "B", ports=3, port=3),
        "C": NodeIdentity(0xC00, 0xC02, "C", ports=2, port=2, type=NodeType.ROUTER),
    },
)
SOME = ("S", "B")
"""A node of each kind, and not the simplest: among models they are built in half the time of the whole fabric."""

NODES = list(FABRIC.nodes)
ASKED_BY: dict[str, tuple[str, list[int]]] = {
    "S": ("A", [1]),
    "T": ("C", [2]),
    "A": ("A", []),
    "B": ("B", []),
    "C": ("C", []),
}
"""The host that reads a node in the end, and the path to it."""

START = 300
LEASE_SECOND = 5_000
LINK_DOWN_TIMEOUT = 2_000
LONGEST = 400
"""Cycles: an agent takes no SMP longer."""

SETTLED = 20_000
"""Cycles from the last SMP taken from a host to the end of all that it brings about."""

READ_BACK = 1 << 48
"""In the TransactionIDs of these Gets, and of no others."""

TRIES = 2
"""Gets of everything, of which the last one counts."""

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
        yield (index, port_address(port, PortRegister.LINK_DOWN_DEFAULT)), settings["link_down_default_state"]
    if not isinstance(agent.node, SwitchParameters):
        yield (index, node_address(NodeRegister.LID)), own["lid"]
        yield (index, node_address(NodeRegister.LMC)), own["lmc"]
        return
    yield (index, node_address(NodeRegister.LINEAR_FDB_TOP)), agent.switch_info["linear_fdb_top"]
    for register, name in (
        (NodeRegister.MULTICAST_FDB_TOP, "multicast_fdb_top"),
        (NodeRegister.DEFAULT_MULTICAST_PRIMARY, "default_multicast_primary_port"),
        (NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY, "default_multicast_not_primary_port"),
    ):
        yield (index, node_address(register)), agent.switch_info[name]
    for lid in range(agent.node.lft_size):
        block, entry = divmod(lid, LINEAR_FORWARDING_TABLE.count)
        yield (index, lft_address(lid)), agent.table(SmaAttribute.LINEAR_FORWARDING_TABLE, block)[entry]
    for input_port in range(1, agent.ports + 1):
        for out in range(1, agent.ports + 1):
            modifier = SL_TO_VL_MODIFIER.to_int(input_port=input_port, output_port=out)
            table = SL_TO_VL_MAPPING_TABLE.unpack(agent.table(SmaAttribute.SL_TO_VL_MAPPING_TABLE, modifier))
            for sl, vl in enumerate(table):
                yield (index, sl_to_vl_address(input_port, out, sl)), vl


def widths(index: int, agent: NaiveAgent) -> Iterator[tuple[tuple[int, int], int]]:
    """Likewise of LINK_WIDTH_ENABLED."""
    for port in range(1, agent.ports + 1):
        settings = agent.settings[port if agent.is_switch else 0]
        yield (index, port_address(port, PortRegister.LINK_WIDTH_ENABLED)), settings["link_width_enabled"]


def all_taken(smps: list[Post]) -> int:
    """A cycle by which hosts have got rid of all."""
    free: dict[int, int] = {}
    for smp in smps:
        free[smp.node] = max(free.get(smp.node, 0), smp.cycle) + LONGEST
    return max(free.values())


class Attack:
    """Random SMPs; then every link is taken down, which ends what is in flight, and up, and every node is read.

    What the agents took is followed while the model runs, and so, as an actor, it knows the M_Keys with which to ask.

    Attributes:
        spec: for the model.
        follower: followed what the agents took.
        gets: the Gets that read every node.
        given: what hosts were given.
    """

    def __init__(self, smps: list[Post]) -> None:
        agents = [NaiveAgent(node, FABRIC.identity(name), LEASE_SECOND) for name, node in FABRIC.nodes.items()]
        controls = [write(cycle, *setting) for cycle, setting in enumerate(short_times())]
        self._taken = all_taken(smps)
        cycle = self._taken + SETTLED
        # Links come up whatever widths have been enabled, which are read before.
        for index, agent in enumerate(agents):
            for (node, address), _value in widths(index, agent):
                controls.append(Control(cycle, Operation.BUS_READ, node, (address, 0, 0, 0)))
                controls.append(write(cycle + 1, node, address, LINK_WIDTHS))
                cycle += 2
        for state in (PortPhysicalState.DISABLED, PortPhysicalState.POLLING):
            for index, agent in enumerate(agents):
                for port in range(1, agent.ports + 1):
                    controls.append(write(cycle, index, port_address(port, PortRegister.PHYSICAL_STATE), state))
                    cycle += 1
            cycle += SETTLED
        self._reads = cycle
        cycle += EVERY * (1 + TRIES * sum(1 for agent in agents for _get in gets(agent)))
        for index, agent in enumerate(agents):
            for (node, address), _value in registers(index, agent):
                controls.append(Control(cycle, Operation.BUS_READ, node, (address, 0, 0, 0)))
                cycle += 1

        self._smps = smps
        self.spec = RunSpec(FABRIC, controls, smps, cycle + EVERY, actor=self)
        accesses = {(one.target, one.cycle) for one in controls}
        self.follower = SmpFollower(FABRIC, smps, LEASE_SECOND, accesses)
        self.gets: list[Post] = []
        self.given: list[Delivery] = []
        self._asked: dict[int, tuple[NaiveAgent, int, int]] = {}
        self._read: dict[tuple[int, int], int] = {}

    def until(self, finished: int) -> int:
        return self._reads if finished < self._reads else self.spec.cycles

    def posts_until(self, cycle: int) -> list[Post]:
        """The Gets, all at once, when what came before is over."""
        if cycle <= self._reads or self.gets:
            return []
        assert self.follower.sent == len(self._smps)
        assert self.follower.last_send < self._taken
        for index, agent in enumerate(self.follower.agents):
            for attribute, modifier in gets(agent):
                self._asks(index, agent, attribute, modifier)
        self.follower.expects(self.gets)
        return self.gets

    def _asks(self, index: int, agent: NaiveAgent, attribute: int, modifier: int) -> None:
        host, path = ASKED_BY[NODES[index]]
        key = agent.settings[0]["m_key"]
        # Traps are in flight too, and may take the room of the first.
        for _try in range(TRIES):
            number = READ_BACK | len(self._asked)
            smp = smp_request(MadMethod.GET, attribute, modifier, transaction_id=number, m_key=key, path=path)
            data = smp_packet(smp, psn=len(self.gets)).data
            at = self._reads + EVERY * (1 + len(self.gets))
            self.gets.append(Post(at, NODES.index(host), FABRIC.nodes[host].vls, data))
        self._asked[number] = agent, attribute, modifier

    def delivered(self, delivery: Delivery) -> None:
        self.given.append(delivery)

    def taken(self, taking: Taking) -> None:
        """It posts when it likes."""

    def sees(self, record: Record) -> None:
        self.follower.sees(record)
        if record.kind == Kind.BUS_READ:
            self._read[port_of_source(record.source)[0], record.a] = record.b

    def check(self) -> None:
        """Every answer was due, and every node stores what naive agents do."""
        for delivery in self.given:
            self.follower.hears(delivery.data)
        late = (answer_in(delivery.data) for delivery in self.given if delivery.cycle > self._reads)
        answers = {smp.transaction_id: smp for smp in late}
        for number, (agent, attribute, modifier) in self._asked.items():
            assert number in answers, f"{agent.identity.description} does not answer"
            assert answers[number].status == MadStatus.OK
            check_answer(agent, attribute, modifier, mad_data(answers[number]))
        for index, agent in enumerate(self.follower.agents):
            stored = dict([*registers(index, agent), *widths(index, agent)])
            assert {place: self._read[place] for place in stored} == stored


def attack(engine: str, directory: Path, traffic: SmpTraffic, rtl: Sequence[str] | None = None) -> SmpFollower:
    """An attack on the model, and then, if it is not the model, the same on another engine, which must do the same.

    With RTL, only these nodes are the engine's.
    """
    print(f"replay: {traffic}")
    attacked = Attack(list(random_smps(FABRIC, traffic)))
    trace = []
    with run("model", attacked.spec, directory / "model") as records:
        for record in records:
            attacked.sees(record)
            trace.append(record)
    attacked.check()
    if engine != "model":
        spec = replace(attacked.spec, posts=[*attacked.spec.posts, *attacked.gets], actor=None)
        given: list[Delivery] = []
        with run(engine, spec, directory / engine, rtl=rtl, on_delivery=given.append) as records:
            comparison = compare(trace, records)
        assert comparison.difference is None, comparison.difference.report(Names(FABRIC), "as above")
        assert given == attacked.given
    return attacked.follower


def test_no_agent_hangs_or_takes_a_wrong_key(tmp_path: Path) -> None:
    follower = attack("model", tmp_path, SmpTraffic(1, START, 300, 600))
    assert follower.taken > 300


@pytest.fixture(scope="module")
def compiled_model() -> None:
    build("model", FABRIC)


@pytest.mark.usefixtures("compiled_model")
@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.deep if part else pytest.mark.slow) for part in range(250)]
)
def test_a_million_random_smps(part: int, tmp_path: Path) -> None:
    """From reset every thousand: some lock a node with a key that nobody has."""
    for seed in range(4 * part, 4 * part + 4):
        attack("model", tmp_path, SmpTraffic(seed, START, 1_000, (100, 300, 600, 1_200)[seed % 4]))


@pytest.mark.deep
@pytest.mark.usefixtures("compiled_model")
def test_other_random_smps(tmp_path: Path) -> None:
    first = random.randrange(1 << 32)
    for seed in range(first, first + 100):
        attack("model", tmp_path, SmpTraffic(seed, START, 1_000, (100, 300, 600, 1_200)[seed % 4]))


@pytest.mark.deep
@pytest.mark.parametrize("seed", [3, 4])
def test_rtl_takes_twenty_thousand_random_smps_as_the_model_does(seed: int, tmp_path: Path) -> None:
    attack("verilator", tmp_path, SmpTraffic(seed, START, 10_000, 400))


@pytest.mark.deep
def test_rtl_takes_other_random_smps_as_the_model_does(tmp_path: Path) -> None:
    attack("verilator", tmp_path, SmpTraffic(random.randrange(1 << 32), START, 10_000, 400))


@pytest.mark.slow
@pytest.mark.usefixtures("compiled_model")
def test_rtl_takes_a_thousand_random_smps_as_the_model_does(tmp_path: Path) -> None:
    attack("verilator", tmp_path, SmpTraffic(2, START, 1_000, 400), SOME)
