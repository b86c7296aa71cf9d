"""Connections are refused with a reason, and calls that a state does not allow."""

import pytest

from tests.verbs.cm_wire import REJECTED, REPLY, SECOND, SERVICE, CmWire, End, accepted, asked_for, established
from verbs.address import AddressVector
from verbs.cm_connection import CmError, Connection
from verbs.cm_parameters import CmRoute, ConnectionReply
from wire.cm import CmMessage, cm_mad, cm_message
from wire.cm_codes import RejectReason, RejMessage


def test_nobody_at_a_service_id_is_a_reject(ends):
    wire = CmWire(*ends)
    ends[0].connect()
    wire.run()
    assert ends[0].kinds == [REJECTED]
    assert ends[0].heard[0].reason == RejectReason.INVALID_SERVICE_ID
    assert wire.sent() == [CmMessage.REQ, CmMessage.REJ]


def test_a_consumers_reject_brings_its_private_data(ends):
    wire = CmWire(*ends)
    ends[1].listen(lambda asked: asked.reject(private_data=b"not today"))
    ends[0].connect()
    wire.run()
    (event,) = ends[0].heard
    assert (event.kind, event.reason) == (REJECTED, RejectReason.CONSUMER_REJECT)
    assert event.private_data.rstrip(b"\0") == b"not today"
    assert ends[1].kinds == []


def test_a_reject_that_is_lost_is_repeated_and_the_consumer_is_not_asked_again(ends):
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: message is CmMessage.REJ and wire.now < 3 * SECOND
    ends[1].listen(Connection.reject)
    ends[0].connect()
    wire.run()
    assert ends[0].kinds == [REJECTED]
    assert len(ends[1].requests) == 1


def test_the_end_that_was_accepted_may_still_refuse(ends):
    wire = CmWire(*ends)
    ends[1].listen(accepted)
    one = ends[0].connect()
    wire.lose = lambda sender, message: message is CmMessage.REJ and wire.now < 3 * SECOND
    wire.run(lambda: ends[0].kinds == [REPLY])
    one.reject()
    wire.run()
    assert ends[1].kinds == [REJECTED]


@pytest.mark.parametrize("call", ["accept", "confirm", "reject", "disconnect"])
def test_what_a_state_does_not_allow_is_refused_with_its_name(ends, call):
    one = ends[0].connect()
    arguments = (ConnectionReply(1),) if call == "accept" else ()
    with pytest.raises(CmError, match=r"connection 0x[0-9a-f]+ \(REQ_SENT\) cannot be"):
        getattr(one, call)(*arguments)


def test_a_service_id_has_one_listener(ends):
    ends[0].listen()
    with pytest.raises(CmError, match="service ID 0x1061d2f is taken"):
        ends[0].listen()
    ends[0].cm.stop(SERVICE)
    ends[0].listen()


def test_private_data_that_do_not_fit_leave_nothing_behind(ends):
    with pytest.raises(ValueError, match="REQ: 93 bytes of private data, allowed up to 92"):
        ends[0].connect(private_data=bytes(93))
    assert ends[0].cm.wake is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"transport_service_type": 2}, RejectReason.INVALID_TRANSPORT_SERVICE_TYPE),
        ({"path_packet_payload_mtu": 6}, RejectReason.INVALID_PATH_MTU),
        ({"service_id": 5}, RejectReason.INVALID_SERVICE_ID),
    ],
)
def test_a_request_that_asks_for_what_there_is_not_is_rejected_with_the_reason(ends, fields, reason):
    ends[1].listen()
    request = {**asked_for(0).fields(), "local_comm_id": 9, **fields}
    ends[1].cm.received(cm_mad(CmMessage.REQ, 1, **request), CmRoute(AddressVector(1)), 0)
    ((mad, route),) = ends[1].cm.poll(0)
    found = cm_message(mad)
    assert found is not None
    assert (found[0], found[1].reason, found[1].remote_comm_id) == (CmMessage.REJ, reason, 9)
    assert route.path.dlid == 1


def test_an_alternate_path_is_not_supported(ends):
    wire = CmWire(*ends)
    one, other = established(wire, *ends)
    lap = cm_mad(CmMessage.LAP, 1, local_comm_id=one.local_comm_id, remote_comm_id=other.local_comm_id)
    ends[1].cm.received(lap, CmRoute(AddressVector(1)), wire.now)
    ((mad, _route),) = ends[1].cm.poll(wire.now)
    found = cm_message(mad)
    assert found is not None
    assert (found[0], found[1].ap_status) == (CmMessage.APR, 2)


def test_messages_name_what_they_are_about(ends):
    wire = CmWire(*ends)
    ends[1].listen(accepted)
    one = ends[0].connect()
    wire.run(lambda: ends[0].kinds == [REPLY])
    one.reject()
    ((kind, rej),) = [found for mad, _ in ends[0].cm.poll(wire.now) if (found := cm_message(mad)) is not None]
    assert (kind, rej.message_rejected) == (CmMessage.REJ, RejMessage.REP)
    again = End(0, seed=2), End(1, seed=2)
    one, _other = established(CmWire(*again), *again)
    again[0].cm.poll(0)
    one.disconnect()
    ((kind, dreq),) = [found for mad, _ in again[0].cm.poll(0) if (found := cm_message(mad)) is not None]
    assert (kind, dreq.remote_qpn_eecn) == (CmMessage.DREQ, 0x20)
