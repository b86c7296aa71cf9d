"""Who has not an adapter's CC_Key is told of by trap 0, until that is repressed (IBTA vol 1, 13.4.9 and A10.4)."""

import pytest

from tests.verbs.ends import End, make_end
from wire.congestion_control import (
    CC_CLASS_PORT_INFO,
    CC_DATA_BYTES,
    CC_MAD,
    CC_NOTICE,
    CONGESTION_KEY_INFO,
    CcAttribute,
    cc_request,
)
from wire.headers import DETH
from wire.layout import Record
from wire.mad import MadMethod, MgmtClass, mad_data
from wire.mad_packet import gmp_of, gmp_packet
from wire.notice import NoticeType, ProducerType, details_of
from wire.packet import Packet, parse

GET, SET, REPRESS = MadMethod.GET, MadMethod.SET, MadMethod.TRAP_REPRESS
KEY, WRONG = 0x1234, 0x1235
OWN, MANAGER, GUILTY = 2, 7, 9
WHERE_TO = {"trap_sl": 3, "trap_lid": MANAGER, "trap_p_key": 0x8001, "trap_qp": 0x11, "trap_q_key": 0x80010000}
TIMEOUT = 2
PERIOD = 1024 << TIMEOUT
"""Cycles of 4 ns: 4.096 us x 2 to SubnetTimeOut."""


class Port:
    """An adapter's port with a CC_Key, and who asks it by packets."""

    def __init__(self, **where_to: int) -> None:
        self.end: End = make_end(OWN)
        self.end.adapter.ports[0].subnet_timeout = TIMEOUT
        self.now = 0
        key = CONGESTION_KEY_INFO.pack(cc_key=KEY, protect_bit=1)
        assert len(self.ask(SET, CcAttribute.CONGESTION_KEY_INFO, key, cc_key=0)) == 1
        self.send_to(**where_to)

    def send_to(self, **where_to: int) -> None:
        data = CC_CLASS_PORT_INFO.pack(where_to)
        answer, *traps = self.ask(SET, CcAttribute.CLASS_PORT_INFO, data)
        assert CC_MAD.unpack(gmp_of(answer)).method == MadMethod.GET_RESP
        assert traps == []

    def ask(
        self,
        method: int,
        attribute: int,
        data: bytes = b"",
        *,
        cc_key: int = KEY,
        transaction_id: int = 1,
        modifier: int = 0,
        grh: dict[str, int] | None = None,
    ) -> list[Packet]:
        """What leaves because of a request."""
        mad = cc_request(method, attribute, data, transaction_id=transaction_id, cc_key=cc_key, modifier=modifier)
        self.end.adapter.receive(gmp_packet(mad, GUILTY, OWN, grh=grh).data, self.now)
        return self.sent()

    def sent(self) -> list[Packet]:
        """What leaves in this cycle."""
        found = []
        while (outgoing := self.end.adapter.poll(self.now)) is not None:
            packet = parse(outgoing.data)
            assert (outgoing.sl, outgoing.dlid) == (packet.lrh.sl, packet.lrh.dlid)
            found.append(packet)
        return found

    def violated(self, **more: int) -> list[Packet]:
        return self.ask(SET, CcAttribute.CONGESTION_CONTROL_TABLE, cc_key=WRONG, **more)

    def repress(self, transaction_id: int, cc_key: int = KEY) -> list[Packet]:
        return self.ask(REPRESS, CcAttribute.NOTICE, cc_key=cc_key, transaction_id=transaction_id)

    def after(self, cycles: int) -> list[Packet]:
        self.now += cycles
        return self.sent()


def trap_in(packets: list[Packet]) -> Record:
    """The only packet, which is a trap."""
    (packet,) = packets
    mad = CC_MAD.unpack(packet.payload)
    assert (mad.mgmt_class, mad.class_version) == (MgmtClass.CONGESTION_CONTROL, 2)
    assert (mad.method, mad.attribute_id, mad.attribute_modifier) == (MadMethod.TRAP, CcAttribute.NOTICE, 0)
    assert (mad.status, mad.cc_key) == (0, 0)
    return mad


@pytest.fixture
def port() -> Port:
    return Port(**WHERE_TO)


def test_it_goes_at_once_to_where_class_port_info_says(port: Port) -> None:
    (packet,) = port.violated(modifier=1)
    deth = packet.header(DETH)
    assert (packet.lrh.slid, packet.lrh.dlid, packet.lrh.sl, packet.grh) == (OWN, MANAGER, 3, None)
    assert (packet.bth.p_key, packet.bth.dest_qp, deth.q_key, deth.src_qp) == (0x8001, 0x11, 0x80010000, 1)
    assert packet.icrc_good


def test_it_says_who_had_which_key_where(port: Port) -> None:
    mad = trap_in(port.violated(modifier=1))
    said = CC_NOTICE.unpack(mad_data(mad))
    assert mad_data(mad)[CC_NOTICE.size_bytes :] == bytes(CC_DATA_BYTES - CC_NOTICE.size_bytes)
    assert (said.is_generic, said.notice_type, said.trap_number) == (1, NoticeType.SECURITY, 0)
    assert (said.producer_type, said.issuer_lid) == (ProducerType.CA, OWN)
    assert said.issuer_gid == port.end.adapter.ports[0].gids[0]
    details = details_of(said)
    assert dict(details) == {
        "slid": GUILTY,
        "method": SET,
        "attribute_id": CcAttribute.CONGESTION_CONTROL_TABLE,
        "attribute_modifier": 1,
        "qp": 1,
        "cc_key": WRONG,
        "source_gid": 0,
    }


def test_it_says_the_gid_of_one_that_had_a_grh(port: Port) -> None:
    mad = trap_in(port.violated(grh={"sgid": 5, "dgid": 6, "hop_lmt": 1}))
    assert details_of(CC_NOTICE.unpack(mad_data(mad))).source_gid == 5


def test_it_is_repeated_after_subnet_timeout_until_it_is_repressed(port: Port) -> None:
    first = trap_in(port.violated())
    assert first.transaction_id == 1
    for _time in range(3):
        assert port.end.adapter.wake == port.now + PERIOD
        assert port.after(PERIOD - 1) == []
        assert trap_in(port.after(1)) == first
    assert port.repress(1) == []
    assert port.end.adapter.wake is None
    assert port.after(10 * PERIOD) == []


@pytest.mark.parametrize(
    ("attribute", "transaction_id"), [(CcAttribute.NOTICE, 2), (CcAttribute.NOTICE, 0), (CcAttribute.TIME_STAMP, 1)]
)
def test_nothing_but_its_own_repress_ends_it(port: Port, attribute: int, transaction_id: int) -> None:
    first = trap_in(port.violated())
    assert port.ask(REPRESS, attribute, transaction_id=transaction_id) == []
    assert trap_in(port.after(PERIOD)) == first


def test_a_repress_with_a_wrong_key_is_the_next_violation(port: Port) -> None:
    port.violated()
    assert port.repress(1, WRONG) == []
    second = trap_in(port.after(PERIOD))
    assert second.transaction_id == 2
    assert details_of(CC_NOTICE.unpack(mad_data(second))).method == REPRESS


def test_each_violation_is_an_event_and_the_latest_is_told_no_sooner_than_subnet_timeout(port: Port) -> None:
    assert trap_in(port.violated()).transaction_id == 1
    port.now += 5
    assert port.ask(GET, CcAttribute.TIME_STAMP, cc_key=0) == []
    assert port.repress(1) == [], "that one is not pending any more"
    assert port.after(PERIOD - 6) == []
    second = trap_in(port.after(1))
    details = details_of(CC_NOTICE.unpack(mad_data(second)))
    assert (second.transaction_id, details.method, details.cc_key) == (2, GET, 0)
    port.repress(2)
    port.now += PERIOD
    assert trap_in(port.violated()).transaction_id == 3


def test_without_a_trap_lid_nobody_is_told_and_nothing_is_pending() -> None:
    port = Port()
    assert port.violated() == []
    port.send_to(**WHERE_TO)
    assert port.after(10 * PERIOD) == []
    assert trap_in(port.violated()).transaction_id == 1


def test_a_pending_trap_waits_while_there_is_no_trap_lid(port: Port) -> None:
    first = trap_in(port.violated())
    port.send_to()
    assert port.after(2 * PERIOD) == []
    trap, _answer = port.ask(SET, CcAttribute.CLASS_PORT_INFO, CC_CLASS_PORT_INFO.pack(WHERE_TO))
    assert trap_in([trap]) == first


def test_a_port_without_a_lid_sends_none(port: Port) -> None:
    port.end.adapter.ports[0].lid = 0
    assert port.violated() == []
    assert port.after(PERIOD - 1) == []
    port.end.adapter.ports[0].lid = OWN
    assert trap_in(port.after(1)).transaction_id == 1


def test_what_is_for_the_own_port_does_not_leave_by_the_link(port: Port) -> None:
    port.send_to(**{**WHERE_TO, "trap_lid": OWN})
    assert port.violated() == []


def test_who_carries_the_mads_of_the_host_gets_it(port: Port) -> None:
    got = []
    port.end.adapter.on_trap = lambda number, trap: got.append((number, trap))
    assert port.violated() == []
    ((number, trap),) = got
    assert (number, trap.dlid, CC_MAD.unpack(trap.mad).method) == (1, MANAGER, MadMethod.TRAP)
