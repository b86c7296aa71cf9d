"""Packets that met congestion are answered by notices, if nothing else is answered (IBTA vol 1, A10.2)."""

import pytest

from tests.verbs.ends import End, connected
from verbs.address import AddressVector, GlobalRoute
from verbs.multicast import MULTICAST_QP
from verbs.states import QpType
from wire.headers import BTH, GRH, LRH
from wire.opcodes import Opcode
from wire.packet import parse

UNRELIABLE = [QpType.UC, QpType.UD]


def congested(a: End, b: End, dgid: int | None = None, dlid: int = 2, dest_qp: int | None = None) -> bytes:
    """A packet of `a`'s on which a switch has set FECN."""
    route = None if dgid is None else GlobalRoute(dgid)
    where = {"handle": a.adapter.create_ah(a.pd, AddressVector(dlid, sl=3, route=route)), "remote_q_key": 0x11}
    a.send(0, 8, **where, remote_qp=b.qp.number if dest_qp is None else dest_qp)
    outgoing = a.adapter.poll(0)
    assert outgoing is not None
    return BTH["fecn"].write(outgoing.data, 1, LRH.size_bytes + (0 if dgid is None else GRH.size_bytes))


@pytest.mark.parametrize("kind", UNRELIABLE)
def test_its_sender_gets_one_notice_with_becn(kind: QpType) -> None:
    a, b = connected(kind)
    for _ in range(2):
        b.adapter.receive(congested(a, b), 1)
    assert b.adapter.wake == 1
    notice = b.adapter.poll(1)
    assert notice is not None
    packet = parse(notice.data)
    assert (packet.bth.opcode, packet.bth.becn, packet.bth.fecn, packet.payload) == (Opcode.CNP, 1, 0, b"")
    assert (packet.bth.dest_qp, packet.lrh.dlid, packet.lrh.slid) == (a.qp.number, 1, 2)
    assert packet.icrc_good
    assert b.adapter.poll(1) is None
    a.adapter.receive(notice.data, 2)
    assert (a.adapter.congestion_notices, a.adapter.dropped) == (1, 0)


def test_a_notice_goes_the_way_back_by_gid_and_waits_for_room_on_its_sl() -> None:
    a, b = connected(QpType.UD)
    b.adapter.receive(congested(a, b, b.adapter.ports[0].gids[0]), 1)
    assert b.adapter.poll(1, blocked={3}) is None
    notice = b.adapter.poll(1)
    assert notice is not None
    grh = parse(notice.data).grh
    assert grh is not None
    assert (notice.sl, grh.dgid, grh.sgid) == (3, a.adapter.ports[0].gids[0], b.adapter.ports[0].gids[0])


def test_multicast_and_notices_themselves_are_not_answered() -> None:
    a, b = connected(QpType.UD)
    mgid = 0xFF12 << 112
    b.adapter.attach_multicast(b.qp, mgid, 0xC000)
    b.adapter.receive(congested(a, b, mgid, 0xC000, MULTICAST_QP), 1)
    b.adapter.receive(congested(a, b), 1)
    notice = b.adapter.poll(1)
    assert notice is not None
    a.adapter.receive(BTH["fecn"].write(notice.data, 1, LRH.size_bytes), 2)
    assert a.adapter.poll(2) is None
    assert b.adapter.poll(2) is None


def test_a_packet_that_is_refused_is_not_answered() -> None:
    a, b = connected(QpType.UD)
    data = congested(a, b)
    b.adapter.receive(BTH["p_key"].write(data, 0x8001, LRH.size_bytes), 1)
    assert b.adapter.poll(1) is None


def test_a_notice_comes_from_the_lid_that_the_packet_went_to() -> None:
    a, b = connected(QpType.UD)
    b.adapter.ports[0].lmc = 1
    b.adapter.receive(congested(a, b, dlid=3), 1)
    notice = b.adapter.poll(1)
    assert notice is not None
    assert parse(notice.data).lrh.slid == 3
