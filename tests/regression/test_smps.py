"""Subnet management packets through a whole fabric: every node answers, and what is set is so (docs/management.md)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cosim.engines.simulation import run
from cosim.stimulus.run_spec import RunSpec
from tests.regression.fabrics import PAIR
from wire.codes import MTU, VL15, PortState
from wire.forwarding_tables import LFT_NO_ROUTE, LINEAR_FORWARDING_TABLE
from wire.layout import Record
from wire.mad import MadMethod, MadStatus, mad_data
from wire.mad_packet import smp_of, smp_packet
from wire.node_info import NODE_DESCRIPTION, NODE_INFO, NodeType, node_description_text
from wire.packet import build_ud_send, parse
from wire.port_info import PORT_INFO, PORT_INFO_MODIFIER, CapabilityMask
from wire.sma import SmaAttribute
from wire.smp import smp_request, unpack_smp
from wire.stimulus import Control, Delivery, Operation, Post

pytestmark = pytest.mark.slow

H0, H1 = 1, 2
LIDS = {"h0": 1, "h1": 2, "sw0": 3}
SLOT_VL15 = PAIR.nodes["h0"].vls
EVERY = 1_500
"""Cycles between two SMPs: more than one takes to the farthest node and back."""

PATHS: dict[str, list[int]] = {"h0": [], "sw0": [1], "h1": [1, 2]}
"""To each node from host h0."""


class Host:
    """Host h0, which sends one SMP after the other and looks at the answers."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.requests: list[Record] = []
        self.next_cycle = 100

    def sends(self, slot: int, packet: bytes) -> None:
        self.posts.append(Post(self.next_cycle, H0, slot, packet))
        self.next_cycle += EVERY

    def asks(
        self,
        method: MadMethod,
        attribute: SmaAttribute,
        modifier: int = 0,
        data: bytes = b"",
        *,
        path: Sequence[int] | None = None,
        lid: int = 0xFFFF,
    ) -> None:
        number = len(self.requests) + 1
        self.requests.append(smp_request(method, attribute, modifier, data, transaction_id=number, path=path))
        slid = 0xFFFF if path is not None else LIDS["h0"]
        self.sends(SLOT_VL15, smp_packet(self.requests[-1], slid, lid).data)

    def runs(self, engine: str, directory: Path, controls: Sequence[Control] = ()) -> list[tuple[int, bytes]]:
        """What the hosts are given until all is over: node and packet."""
        given: list[Delivery] = []
        spec = RunSpec(PAIR, controls, self.posts, self.next_cycle)
        with run(engine, spec, directory, on_delivery=given.append) as records:
            for _record in records:
                pass
        return [(one.node, one.data) for one in given]

    def answers(self, engine: str, directory: Path, controls: Sequence[Control] = ()) -> list[Record]:
        """The answers to its SMPs, if each has one and nothing else comes."""
        given = self.runs(engine, directory, controls)
        assert {node for node, _ in given} == {H0}
        found = [unpack_smp(smp_of(parse(packet))) for _, packet in given]
        assert [(smp.transaction_id, smp.method) for smp in found] == [
            (request.transaction_id, MadMethod.GET_RESP) for request in self.requests
        ]
        return found


@pytest.mark.parametrize(
    "engine", ["verilator", *(pytest.param(engine, marks=pytest.mark.deep) for engine in ("icarus", "amaranth"))]
)
def test_every_node_on_a_directed_route_says_what_it_is(engine: str, tmp_path: Path) -> None:
    host = Host()
    # The others are slow: they are asked for the farthest node only.
    names = list(PATHS) if engine == "verilator" else ["h1"]
    for name in names:
        host.asks(MadMethod.GET, SmaAttribute.NODE_INFO, path=PATHS[name])
    for name, answer in zip(names, host.answers(engine, tmp_path), strict=True):
        info = NODE_INFO.unpack(mad_data(answer))
        identity = PAIR.identity(name)
        is_switch = name == "sw0"
        assert info.node_type == (NodeType.SWITCH if is_switch else NodeType.CA)
        assert info.num_ports == (3 if is_switch else identity.ports)
        assert info.local_port_num == (1 if is_switch else identity.port)
        assert (info.node_guid, info.port_guid) == (identity.node_guid, identity.port_guid)


def test_a_node_on_a_directed_route_tells_its_name(tmp_path: Path) -> None:
    host = Host()
    host.asks(MadMethod.GET, SmaAttribute.NODE_DESCRIPTION, path=PATHS["h1"])
    (description,) = host.answers("verilator", tmp_path)
    text = NODE_DESCRIPTION.unpack(mad_data(description)).pack()
    assert node_description_text(text) == PAIR.identity("h1").description


def port_info(state: PortState, lid: int = LIDS["h0"]) -> bytes:
    return PORT_INFO.pack(port_state=state, lid=lid, master_sm_lid=LIDS["h0"], neighbor_mtu=MTU.MTU_256)


def modifier(port: int) -> int:
    return PORT_INFO_MODIFIER.to_int(port=port)


def test_a_subnet_brought_up_by_smps_alone_carries_data(tmp_path: Path) -> None:
    host = Host()
    switch = PATHS["sw0"]
    host.asks(
        MadMethod.SET, SmaAttribute.PORT_INFO, modifier(0), port_info(PortState.NO_CHANGE, LIDS["sw0"]), path=switch
    )
    routes = [LFT_NO_ROUTE, 1, 2, 0, *[LFT_NO_ROUTE] * 60]
    table = LINEAR_FORWARDING_TABLE.pack(routes)
    host.asks(MadMethod.SET, SmaAttribute.LINEAR_FORWARDING_TABLE, 0, table, path=switch)
    states = (PortState.ARMED, PortState.ACTIVE)
    for state in states:
        # A port becomes Active when it has heard from the other end as that was Armed, which each announces at once.
        for name in ("h0", "h1"):
            number = modifier(PAIR.port_number(name, 1))
            host.asks(MadMethod.SET, SmaAttribute.PORT_INFO, number, port_info(state, LIDS[name]), path=PATHS[name])
        for port in (1, 2):
            host.asks(MadMethod.SET, SmaAttribute.PORT_INFO, modifier(port), port_info(state), path=switch)
    for name in ("h0", "sw0", "h1"):
        host.asks(MadMethod.GET, SmaAttribute.NODE_INFO, lid=LIDS[name])
    data = build_ud_send(slid=1, dlid=2, dest_qp=2, src_qp=2, q_key=1, payload=bytes(range(200)))
    host.sends(0, data.data)

    given = host.runs("verilator", tmp_path)
    assert [packet for node, packet in given if node == H1] == [data.data]
    answers = [parse(packet) for node, packet in given if node == H0]
    smps = [unpack_smp(smp_of(packet)) for packet in answers]
    assert [(smp.transaction_id, smp.status) for smp in smps] == [
        (request.transaction_id, MadStatus.OK) for request in host.requests
    ]
    # What a Set answers is what is so now.
    set_ports = [PORT_INFO.unpack(mad_data(smp)) for smp in smps[2 : 2 + 4 * len(states)]]
    assert [port.port_state for port in set_ports] == [state for state in states for _end in range(4)]
    # LID-routed, over VL15 and the forwarding tables.
    routed = answers[-3:]
    assert [packet.lrh.slid for packet in routed] == [LIDS[name] for name in ("h0", "sw0", "h1")]
    assert {(packet.lrh.vl, packet.lrh.dlid) for packet in routed} == {(VL15, LIDS["h0"])}
    types = [NODE_INFO.unpack(mad_data(smp)).node_type for smp in smps[-3:]]
    assert types == [NodeType.CA, NodeType.SWITCH, NodeType.CA]


def test_a_subnet_manager_at_the_host_shows_in_the_ports_capabilities(tmp_path: Path) -> None:
    host = Host()
    for _ in range(3):
        host.asks(MadMethod.GET, SmaAttribute.PORT_INFO, modifier(1), path=PATHS["h0"])
    controls = [Control(EVERY * number, Operation.HOST_SM, H0, (is_sm, 0, 0, 0)) for number, is_sm in ((1, 1), (2, 0))]
    answers = host.answers("verilator", tmp_path, controls)
    masks = [PORT_INFO.unpack(mad_data(answer)).capability_mask for answer in answers]
    assert [bool(mask & CapabilityMask.IS_SM) for mask in masks] == [False, True, False]
