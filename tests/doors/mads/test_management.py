"""Requests of class 0x21 are answered by a port's adapter, as a driver does it, and programs do not see them."""

from collections.abc import Callable

import pytest

from doors.mads.host_port import HostPort
from doors.mads.mad_layer import MadLayer, Moment
from doors.mads.management import Management
from doors.mads.user_mad import Address, Registration
from verbs.congestion_control.traps import Trap
from wire.codes import Q_KEY_GSI, QP_GSI, PortState
from wire.congestion_control import CC_CLASS_VERSION, CC_MAD, CcAttribute, cc_request
from wire.mad import MadMethod, MgmtClass
from wire.mad_packet import gmp_of, gmp_packet
from wire.packet import parse
from wire.parameters import AdapterParameters, FabricParameters
from wire.port_info import PORT_INFO
from wire.port_tables import SL_TO_VL_MAPPING_TABLE
from wire.sma import SmaAttribute
from wire.stimulus import Delivery

FABRIC = FabricParameters({"A": AdapterParameters()}, ())
LID, OTHER = 2, 9
BOUND = 1_000
NOW = Moment(0, 100)


class Program:
    """Who hears what an agent gets."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, bytes]] = []

    def arrived(self, agent: object, address: Address, mad: bytes) -> None:
        self.heard.append((address.lid, mad))

    def unanswered(self, agent: object, address: Address, mad: bytes) -> None:
        self.heard.append((0, mad))


class Host:
    """A port, whose adapter answers with what it was asked and its own status."""

    def __init__(self, answer: Callable[[HostPort, Address, bytes], bytes | None]) -> None:
        layer = MadLayer()
        self.port = HostPort(layer, "A", 0, 1)
        info = PORT_INFO.pack(lid=LID, port_state=PortState.ACTIVE, gid_prefix=0)
        self.port.learn(SmaAttribute.PORT_INFO, info)
        self.port.learn(SmaAttribute.SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MAPPING_TABLE.pack([0] * 16))
        self.posted: list[bytes] = []
        self.management = Management(
            FABRIC,
            [self.port],
            layer,
            window=1,
            post=lambda port, slot, data: self.posted.append(data),
            congestion_control=answer,
            tell=lambda line: None,
        )
        self.program = Program()

    def agent(self, methods: int = 0):
        wanted = Registration(QP_GSI, MgmtClass.CONGESTION_CONTROL, CC_CLASS_VERSION, methods)
        return self.port.mads.register(self.program, wanted)

    def work(self) -> None:
        for _round in range(3):
            self.management.work(NOW, BOUND)
            self.management.send(NOW, BOUND)


def respond(port: HostPort, source: Address, mad: bytes) -> bytes:
    return mad[:3] + bytes([MadMethod.GET_RESP]) + mad[4:]


@pytest.fixture
def request_mad() -> bytes:
    return cc_request(MadMethod.GET, CcAttribute.TIME_STAMP, transaction_id=7).pack()


def test_the_adapter_answers_what_comes_by_the_fabric(request_mad: bytes) -> None:
    host = Host(respond)
    host.agent(1 << MadMethod.GET)
    packet = gmp_packet(request_mad, OTHER, LID, sl=3)
    assert host.management.delivered(Delivery(50, 0, 0, packet.data), NOW)
    host.work()
    [posted] = map(parse, host.posted)
    assert (posted.lrh.slid, posted.lrh.dlid, posted.lrh.sl) == (LID, OTHER, 3)
    assert CC_MAD.unpack(gmp_of(posted)).method == MadMethod.GET_RESP
    assert host.program.heard == []


def test_it_answers_a_program_at_its_own_host_and_nothing_leaves(request_mad: bytes) -> None:
    host = Host(respond)
    host.port.mads.send(host.agent(), Address(LID, QP_GSI), request_mad, 1000, 0, NOW)
    host.work()
    assert host.posted == []
    [(lid, mad)] = host.program.heard
    assert (lid, mad[3]) == (LID, MadMethod.GET_RESP)


def test_what_has_no_answer_has_none(request_mad: bytes) -> None:
    host = Host(lambda port, source, mad: None)
    host.management.delivered(Delivery(50, 0, 0, gmp_packet(request_mad, OTHER, LID).data), NOW)
    host.work()
    assert host.posted == []


def test_answers_go_to_who_has_asked(request_mad: bytes) -> None:
    host = Host(respond)
    host.port.mads.send(host.agent(), Address(OTHER, QP_GSI), request_mad, 1000, 0, NOW)
    host.work()
    [asked] = host.posted
    answer = gmp_packet(respond(host.port, Address(LID, QP_GSI), gmp_of(parse(asked))), OTHER, LID)
    host.management.delivered(Delivery(90, 0, 0, answer.data), NOW)
    assert [lid for lid, _mad in host.program.heard] == [OTHER]


def trap(lid: int) -> Trap:
    mad = cc_request(MadMethod.TRAP, CcAttribute.NOTICE, transaction_id=1).pack()
    return Trap(mad, sl=3, dlid=lid, p_key=0x8001, dest_qp=QP_GSI, q_key=Q_KEY_GSI)


def test_a_trap_leaves_as_it_says_and_nothing_waits_for_it() -> None:
    host = Host(respond)
    host.management.trap(host.port, trap(OTHER))
    [posted] = map(parse, host.posted)
    assert (posted.lrh.slid, posted.lrh.dlid, posted.lrh.sl, posted.bth.p_key) == (LID, OTHER, 3, 0x8001)
    assert gmp_of(posted) == trap(OTHER).mad
    assert not host.management.is_carrying
    assert not host.management.has_work


def test_a_trap_for_the_own_port_is_its_programs_and_a_repress_the_adapters() -> None:
    asked = []
    host = Host(lambda port, source, mad: asked.append((source.lid, mad)))
    agent = host.agent(1 << MadMethod.TRAP)
    host.management.trap(host.port, trap(LID))
    host.work()
    assert host.program.heard == [(LID, trap(LID).mad)]
    repress = cc_request(MadMethod.TRAP_REPRESS, CcAttribute.NOTICE, transaction_id=1).pack()
    host.port.mads.send(agent, Address(LID, QP_GSI), repress, 0, 0, NOW)
    host.work()
    assert asked == [(LID, repress)]
    assert host.posted == []


def test_a_port_that_is_not_active_sends_no_trap() -> None:
    host = Host(respond)
    host.port.learn(SmaAttribute.PORT_INFO, PORT_INFO.pack(lid=LID, port_state=PortState.ARMED, gid_prefix=0))
    host.management.trap(host.port, trap(OTHER))
    assert host.posted == []
