"""Messages of connections out of turn: late, twice, or of none."""

import pytest

from tests.verbs.cm_wire import (
    DISCONNECTED,
    EXIT,
    REJECTED,
    REPLY,
    SECOND,
    SERVICE,
    UNREACHABLE,
    CmWire,
    accepted,
    established,
    given,
    ids,
)
from verbs.address import AddressVector
from verbs.cm_parameters import CmRoute
from wire.cm import CmMessage, cm_mad, cm_message
from wire.cm_codes import MraMessage, RejectReason


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (CmMessage.DREQ, CmMessage.DREP),
        (CmMessage.REP, CmMessage.REJ),
        (CmMessage.RTU, CmMessage.REJ),
        (CmMessage.LAP, CmMessage.APR),
        (CmMessage.DREP, None),
        (CmMessage.REJ, None),
        (CmMessage.MRA, None),
        (CmMessage.APR, None),
        (CmMessage.SIDR_REP, None),
    ],
)
def test_a_message_of_no_connection_is_answered_where_its_sender_has_to_know(ends, message, answer):
    ends[1].cm.received(cm_mad(message, 1), CmRoute(AddressVector(1)), 0)
    sent = [cm_message(mad) for mad, _route in ends[1].cm.poll(0)]
    assert [found and found[0] for found in sent] == ([] if answer is None else [answer])


def test_what_is_no_message_is_ignored(ends):
    ends[0].cm.received(bytes(256), CmRoute(AddressVector(1)), 0)
    assert ends[0].cm.poll(0) == []
    assert ends[0].cm.wake is None


def test_a_second_request_gets_the_same_reply_at_once(ends):
    wire = CmWire(*ends)
    wire.copies = lambda: 2 if wire.now == 0 else 1
    ends[1].listen(accepted)
    ends[0].connect()
    wire.run(lambda: ends[0].kinds == [REPLY])
    assert wire.sent() == [CmMessage.REQ, CmMessage.REQ, CmMessage.REP, CmMessage.REP]


def test_a_reply_that_comes_too_late_is_rejected(ends):
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: message is CmMessage.REJ and wire.now <= SECOND
    ends[1].listen()
    one = ends[0].connect()
    wire.run(lambda: bool(ends[1].requests))
    one.close()
    wire.run(limit=SECOND)
    wire.now = 2 * SECOND
    accepted(ends[1].requests[0])
    wire.run()
    assert ends[1].kinds == [REJECTED]
    assert ends[1].heard[0].reason == RejectReason.TIMEOUT


def test_a_confirmation_that_comes_too_late_is_rejected(ends):
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: message is CmMessage.REJ or (message is CmMessage.REP and wire.now > 200)
    ends[1].listen(accepted)
    one = ends[0].connect()
    wire.run(limit=72 * SECOND)
    assert ends[1].kinds == [UNREACHABLE]
    wire.lose = lambda sender, message: False
    one.confirm()
    wire.run()
    assert ends[0].kinds == [REPLY, REJECTED, EXIT]


def test_a_plea_for_time_is_for_the_message_that_it_names(ends):
    one = ends[0].connect()
    before = ends[0].cm.wake
    given(ends[0], CmMessage.MRA, remote_comm_id=one.local_comm_id, message_mraed=MraMessage.REP, service_timeout=25)
    ends[0].cm.poll(0)
    assert before == 0
    first = ends[0].cm.wake
    given(ends[0], CmMessage.MRA, remote_comm_id=one.local_comm_id, message_mraed=MraMessage.REQ, service_timeout=25)
    assert first is not None
    assert ends[0].cm.wake == first - (4096 << 20) // 4 + (4096 << 25) // 4


def test_a_reject_ends_what_is_ended_already(ends):
    wire = CmWire(*ends)
    one, other = established(wire, *ends)
    one.disconnect()
    given(ends[0], CmMessage.REJ, wire.now, **ids(one, other), reason=RejectReason.TIMEOUT)
    assert ends[0].kinds == [REPLY, DISCONNECTED]


def test_a_request_is_a_new_one_once_the_connection_is_forgotten(ends):
    wire = CmWire(*ends)
    first: list[bytes] = []
    wire.lose = lambda sender, message: False
    ends[1].listen(accepted)
    one = ends[0].connect()
    ((req, route),) = ends[0].cm.poll(0)
    first.append(req)
    ends[1].cm.received(req, route._replace(path=AddressVector(1)), 0)
    (other,) = ends[1].requests
    other.close()
    given(ends[1], CmMessage.DREP, 0, **ids(other, one))
    wire.ends = (ends[1],)
    while (due := ends[1].cm.wake) is not None:
        ends[1].cm.poll(due)
        wire.now = due
    ends[1].cm.received(req, route._replace(path=AddressVector(1)), wire.now)
    assert len(ends[1].requests) == 2


def test_what_is_no_message_or_for_nobody_hurries_nobody(ends):
    one = ends[0].connect()
    ends[0].cm.poll(0)
    ends[0].cm.look_up(SERVICE, CmRoute(AddressVector(2)), 0xFFFF, b"", lambda result: None)
    ((question, _route),) = ends[0].cm.poll(0)
    before = ends[0].cm.wake
    for mad in (bytes(256), cm_mad(CmMessage.REQ, 1), cm_mad(CmMessage.SIDR_REQ, 1)):
        ends[0].cm.hurry(mad, is_sender=True)
    ends[0].cm.hurry(question, is_sender=False)
    req = cm_mad(CmMessage.REQ, 1, local_comm_id=one.local_comm_id)
    ends[0].cm.hurry(req, is_sender=False)
    assert (ends[0].cm.wake, ends[0].cm.poll(0)) == (before, [])
    ends[0].cm.hurry(req, is_sender=True)
    assert len(ends[0].cm.poll(0)) == 1
