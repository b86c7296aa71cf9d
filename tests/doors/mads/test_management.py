"""Requests of class 0x21 are answered by a port's adapter, as a driver does it, and programs do not see them."""

from collections.abc import Callable

import pytest

from doors.mads.host_port import HostPort
from doors.mads.mad_layer import MadLayer, Moment
from doors.mads.management import Management
from doors.mads.user_mad import Address, Registration
from wire.codes import QP_GSI, PortState
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

    def __init__(self, answer: Callable[[HostPort, bytes], bytes | None]) -> None:
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


def respond(port: HostPort, mad: bytes) -> bytes:
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
    host = Host(lambda port, mad: None)
    host.management.delivered(Delivery(50, 0, 0, gmp_packet(request_mad, OTHER, LID).data), NOW)
    host.work()
    assert host.posted == []


def test_answers_go_to_who_has_asked(request_mad: bytes) -> None:
    host = Host(respond)
    host.port.mads.send(host.agent(), Address(OTHER, QP_GSI), request_mad, 1000, 0, NOW)
    host.work()
    [asked] = host.posted
    answer = gmp_packet(respond(host.port, gmp_of(parse(asked))), OTHER, LID)
    host.management.delivered(Delivery(90, 0, 0, answer.data), NOW)
    assert [lid for lid, _mad in host.program.heard] == [OTHER]
