"""Multicast: every queue pair that is attached to a group gets a copy (IBTA vol 1, 10.5)."""

import pytest

from tests.verbs.ends import End, bring_up, make_end
from verbs.address import AddressVector, GlobalRoute
from verbs.completions import CompletionFlag
from verbs.limits import AdapterLimits, LimitError
from verbs.multicast import MULTICAST_QP, MulticastGroups
from verbs.regions import InUseError
from verbs.states import QpType
from wire.headers import GRH, LRH

MGID = 0xFF12 << 112 | 0xABCD
MLID = 0xC005


def more(end: End, q_key: int = 0x11) -> End:
    """Another queue pair of the same adapter, with queues of its own."""
    send_cq, recv_cq = end.adapter.create_cq(64), end.adapter.create_cq(64)
    qp = end.adapter.create_qp(QpType.UD, end.pd, send_cq, recv_cq)
    made = End(end.adapter, end.pd, end.memory, end.region, send_cq, recv_cq, qp)
    bring_up(made, AddressVector(1), 0)
    if q_key != 0x11:
        qp.modify(q_key=q_key)
    return made


def datagram_end(lid: int) -> End:
    end = make_end(lid, QpType.UD)
    bring_up(end, AddressVector(1), 0)
    return end


def send(end: End, mgid: int = MGID, mlid: int = MLID) -> bytes:
    handle = end.adapter.create_ah(end.pd, AddressVector(mlid, route=GlobalRoute(mgid)))
    end.send(0, 8, handle=handle, remote_qp=MULTICAST_QP, remote_q_key=0x11)
    outgoing = end.adapter.poll(0)
    assert outgoing is not None
    return outgoing.data


def test_each_attached_queue_pair_gets_a_copy_and_no_other() -> None:
    a, b = datagram_end(1), datagram_end(2)
    members = [b, more(b), more(b)]
    for member in members:
        member.receive(100, 64)
        member.receive(100, 64)
    for member in members[:2]:
        b.adapter.attach_multicast(member.qp, MGID, MLID)
        b.adapter.attach_multicast(member.qp, MGID, MLID)
    a.put(0, b"to all  ")
    b.adapter.receive(send(a), 1)
    found = [member.received() for member in members]
    assert [len(entries) for entries in found] == [1, 1, 0]
    assert found[0][0].flags is CompletionFlag.GRH
    assert (found[0][0].src_qp, found[0][0].dlid_path_bits) == (a.qp.number, 0)
    assert b.get(140, 8) == b"to all  "


def test_a_member_without_a_receive_request_or_with_another_q_key_loses_its_copy_alone() -> None:
    a, b = datagram_end(1), datagram_end(2)
    stranger = more(b, 0x12)
    stranger.receive(0, 64)
    good = more(b)
    good.receive(0, 64)
    for member in (b, stranger, good):
        b.adapter.attach_multicast(member.qp, MGID, MLID)
    b.adapter.receive(send(a), 1)
    assert [len(member.received()) for member in (b, stranger, good)] == [0, 0, 1]
    assert b.adapter.ports[0].q_key_violations == 1


@pytest.mark.parametrize("attached", [False, True])
def test_members_at_the_senders_port_get_copies_too_but_the_sender_itself(attached: bool) -> None:
    a = datagram_end(1)
    other = more(a)
    for member in (a, other):
        member.receive(0, 64)
    a.adapter.attach_multicast(other.qp, MGID, MLID)
    if attached:
        a.adapter.attach_multicast(a.qp, MGID, MLID)
    send(a)
    assert [len(member.received()) for member in (a, other)] == [0, 1]


def test_other_groups_and_packets_that_are_none_of_multicast_are_dropped() -> None:
    a, b = datagram_end(1), datagram_end(2)
    b.receive(0, 64)
    b.adapter.attach_multicast(b.qp, MGID, MLID)
    good = send(a)
    for data in (
        send(a, MGID + 1),
        send(a, MGID, MLID + 1),
        GRH["nxt_hdr"].write(good, 0x1C, LRH.size_bytes),
        LRH["dlid"].write(good, 2),
    ):
        b.adapter.receive(data, 1)
    assert (b.received(), b.adapter.dropped) == ([], 4)
    b.adapter.detach_multicast(b.qp, MGID, MLID)
    b.adapter.receive(good, 1)
    assert (b.received(), b.adapter.dropped) == ([], 5)


def test_who_is_detached_leaves_the_others_attached() -> None:
    a, b = datagram_end(1), datagram_end(2)
    members = [b, more(b)]
    for member in members:
        member.receive(0, 64)
        b.adapter.attach_multicast(member.qp, MGID, MLID)
    b.adapter.detach_multicast(b.qp, MGID, MLID)
    b.adapter.receive(send(a), 1)
    assert [len(member.received()) for member in members] == [0, 1]


def test_what_is_attached_does_not_go_and_is_told_its_groups() -> None:
    end = datagram_end(1)
    end.adapter.attach_multicast(end.qp, MGID, MLID)
    with pytest.raises(InUseError, match="is used by multicast group 0xff12"):
        end.adapter.destroy_qp(end.qp)
    assert end.adapter.groups.of(end.qp) == [(MGID, MLID)]
    end.adapter.detach_multicast(end.qp, MGID, MLID)
    with pytest.raises(ValueError, match="is not attached to group"):
        end.adapter.detach_multicast(end.qp, MGID, MLID)
    end.adapter.destroy_qp(end.qp)


def test_what_cannot_be_attached_is_refused() -> None:
    end = make_end(1)
    with pytest.raises(ValueError, match="is RC: allowed in multicast groups is UD"):
        end.adapter.attach_multicast(end.qp, MGID, MLID)
    end = datagram_end(1)
    with pytest.raises(ValueError, match="is no multicast GID"):
        end.adapter.attach_multicast(end.qp, 1, MLID)
    with pytest.raises(ValueError, match=r"LID 0xffff is no multicast LID: allowed 0xc000\.\.0xfffe"):
        end.adapter.attach_multicast(end.qp, MGID, 0xFFFF)
    groups = MulticastGroups(AdapterLimits(max_mcast_grp=1, max_mcast_qp_attach=1))
    groups.attach(end.qp, MGID, MLID)
    with pytest.raises(LimitError, match="max_mcast_grp 2"):
        groups.attach(end.qp, MGID + 1, MLID)
    with pytest.raises(LimitError, match="max_mcast_qp_attach 2"):
        groups.attach(more(end).qp, MGID, MLID)
