"""Connections are made, refused and ended as the standard's state machines say, also when messages are lost."""

from itertools import pairwise

import pytest

from tests.verbs.cm_wire import SERVICE, CmWire, End, accepted, asked_for
from verbs.address import AddressVector, GlobalRoute
from verbs.cm_connection import CmError, CmEventType, Connection, ConnectionState
from verbs.cm_lookup import LookupResult, ServiceRequest
from verbs.cm_parameters import CmRoute, ConnectionPath, ConnectionReply
from verbs.regions import Access
from verbs.states import QpState, QpType
from wire.cm import CmMessage, cm_mad, cm_message
from wire.cm_codes import MraMessage, RejectReason, RejMessage, SidrStatus
from wire.layout import Record

SECOND = 250_000_000
REPLY, ESTABLISHED, REJECTED = CmEventType.REPLY, CmEventType.ESTABLISHED, CmEventType.REJECTED
UNREACHABLE, DISCONNECTED, EXIT = CmEventType.UNREACHABLE, CmEventType.DISCONNECTED, CmEventType.TIME_WAIT_EXIT


@pytest.fixture
def ends() -> tuple[End, End]:
    return End(0), End(1)


def established(wire: CmWire, active: End, passive: End) -> tuple[Connection, Connection]:
    passive.listen(accepted)
    one = active.connect()
    wire.run(lambda: active.kinds == [REPLY])
    one.confirm(b"ready")
    wire.run(lambda: passive.kinds == [ESTABLISHED])
    (other,) = passive.requests
    assert (one.state, other.state) == (ConnectionState.ESTABLISHED, ConnectionState.ESTABLISHED)
    return one, other


def test_three_messages_make_a_connection(ends):
    wire = CmWire(*ends)
    established(wire, *ends)
    wire.run()
    assert wire.sent() == [CmMessage.REQ, CmMessage.REP, CmMessage.RTU]
    assert ends[0].heard[0].private_data.rstrip(b"\0") == b"welcome"
    assert ends[1].heard[0].private_data.rstrip(b"\0") == b"ready"


def test_both_ends_set_their_queue_pairs_for_each_other(ends):
    active, passive = ends
    passive.listen(lambda asked: asked.accept(ConnectionReply(0x20, responder_resources=3, initiator_depth=2)))
    one = active.connect(responder_resources=5, initiator_depth=4, retry_count=6, rnr_retry_count=1)
    wire = CmWire(*ends)
    wire.run(lambda: active.kinds == [REPLY])
    (other,) = passive.requests
    near, far = one.negotiated.changes(QpState.RTR), other.negotiated.changes(QpState.RTR)
    assert (near["dest_qp"], far["dest_qp"]) == (0x20, 0x10)
    assert (near["path"].dlid, far["path"].dlid) == (2, 1)
    assert near["path_mtu"] == far["path_mtu"] == 2048
    assert near["rq_psn"] == other.negotiated.changes(QpState.RTS)["sq_psn"] != far["rq_psn"]
    assert far["rq_psn"] == one.negotiated.changes(QpState.RTS)["sq_psn"]
    # The passive end has 2 outstanding, of which the active one takes 2, and the other way round.
    assert (near["max_dest_rd_atomic"], far["max_dest_rd_atomic"]) == (2, 3)
    assert one.negotiated.changes(QpState.RTS)["max_rd_atomic"] == 3
    assert other.negotiated.changes(QpState.RTS)["max_rd_atomic"] == 2
    assert other.negotiated.changes(QpState.RTS)["retry_cnt"] == 6
    assert (one.negotiated.rnr_retry_count, other.negotiated.rnr_retry_count) == (7, 1)
    everything = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC
    assert one.negotiated.changes(QpState.INIT) == {"p_key_index": 0, "port": 1, "access": everything}
    with pytest.raises(ValueError, match="SQD is not set by a connection"):
        one.negotiated.changes(QpState.SQD)


def test_a_uc_connection_sets_nothing_that_only_rc_has(ends):
    active, passive = ends
    passive.listen(accepted)
    one = active.connect(kind=QpType.UC)
    CmWire(*ends).run(lambda: active.kinds == [REPLY])
    assert set(one.negotiated.changes(QpState.RTR)) == {"path", "path_mtu", "dest_qp", "rq_psn"}
    assert set(one.negotiated.changes(QpState.RTS)) == {"sq_psn"}
    assert passive.requests[0].negotiated.kind is QpType.UC


def test_queue_pairs_of_datagrams_are_not_connected(ends):
    with pytest.raises(ValueError, match="connection of UD queue pairs: allowed RC, UC"):
        ends[0].connect(kind=QpType.UD)
    assert ends[0].cm.open == 0


@pytest.mark.parametrize("message", [CmMessage.REQ, CmMessage.REP, CmMessage.RTU, CmMessage.DREQ, CmMessage.DREP])
@pytest.mark.parametrize("times", [1, 15])
def test_a_message_lost_so_often_is_made_up_for(ends, message, times):
    wire = CmWire(*ends)
    left = [times]

    def lose(_sender: int, sent: CmMessage) -> bool:
        left[0] -= sent is message
        return sent is message and left[0] >= 0

    wire.lose = lose
    one, _other = established(wire, *ends)
    one.disconnect()
    wire.run()
    assert ends[0].kinds == [REPLY, DISCONNECTED, EXIT]
    assert ends[1].kinds == [ESTABLISHED, DISCONNECTED, EXIT]
    assert not ends[0].cm.open
    assert not ends[1].cm.open


def test_a_peer_that_never_answers_is_unreachable_after_16_tries(ends):
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: True
    ends[0].connect()
    wire.run()
    assert ends[0].kinds == [UNREACHABLE]
    assert wire.sent() == [CmMessage.REQ] * 16 + [CmMessage.REJ]
    times = [now for now, *_ in wire.log]
    # Code 20 is 4.29 s, and a packet's way there and back is 0.13 s.
    assert {later - earlier for earlier, later in pairwise(times)} == {(4_294_967_296 + 134_217_728) // 4}
    assert not ends[0].cm.open


def test_an_acceptance_that_is_never_confirmed_is_given_up_and_the_peer_hears_of_it(ends):
    active, passive = ends
    passive.listen(accepted)
    one = active.connect()
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: message in (CmMessage.RTU, CmMessage.REP) and wire.now > 0 and sender == 0
    wire.run(lambda: active.kinds == [REPLY])
    one.confirm()
    wire.run()
    assert passive.kinds == [UNREACHABLE]
    assert active.kinds == [REPLY, REJECTED, EXIT]
    assert active.heard[1].reason == RejectReason.TIMEOUT


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


def test_a_consumer_that_thinks_for_a_minute_is_waited_for(ends):
    wire = CmWire(*ends)
    ends[1].listen()
    one = ends[0].connect()
    wire.run(limit=60 * SECOND)
    wire.now = 60 * SECOND
    assert CmMessage.MRA in wire.sent()
    accepted(ends[1].requests[0])
    wire.run(lambda: ends[0].kinds == [REPLY])
    one.confirm()
    wire.run()
    assert ends[1].kinds == [ESTABLISHED]
    assert len(ends[1].requests) == 1


def test_an_end_that_is_slow_to_confirm_is_waited_for(ends):
    wire = CmWire(*ends)
    ends[1].listen(accepted)
    one = ends[0].connect()
    wire.run(limit=100 * SECOND)
    wire.now = 100 * SECOND
    assert wire.sent().count(CmMessage.MRA) >= 1
    one.confirm()
    wire.run()
    assert ends[1].kinds == [ESTABLISHED]


def test_a_message_on_the_queue_pair_says_that_the_peer_is_ready(ends):
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: message is CmMessage.RTU
    ends[1].listen(accepted)
    one = ends[0].connect()
    wire.run(lambda: ends[0].kinds == [REPLY])
    one.confirm()
    ends[1].requests[0].establish()
    wire.run()
    assert ends[1].kinds == [ESTABLISHED]
    assert wire.sent() == [CmMessage.REQ, CmMessage.REP, CmMessage.RTU]


def test_both_may_end_a_connection_at_once(ends):
    wire = CmWire(*ends)
    one, other = established(wire, *ends)
    one.disconnect()
    other.disconnect()
    wire.run()
    assert ends[0].kinds[1:] == ends[1].kinds[1:] == [DISCONNECTED, EXIT]


def test_an_end_whose_peer_is_gone_disconnects_alone(ends):
    wire = CmWire(*ends)
    one, _other = established(wire, *ends)
    wire.lose = lambda sender, message: True
    one.disconnect()
    wire.run()
    assert ends[0].kinds == [REPLY, DISCONNECTED, EXIT]
    assert wire.sent().count(CmMessage.DREQ) == 16


def test_time_wait_lasts_as_long_as_packets_may_be_under_way(ends):
    wire = CmWire(*ends)
    one, _other = established(wire, *ends)
    one.disconnect()
    wire.run(lambda: DISCONNECTED in ends[0].kinds)
    since = wire.now
    wire.run(lambda: EXIT in ends[0].kinds)
    assert wire.now - since == 134_217_728 // 4
    one.disconnect()


def test_a_queue_pair_that_asks_again_has_forgotten_its_connection(ends):
    """As of a host that was reset: the old connection ends, and the next request is taken."""
    wire = CmWire(*ends)
    established(wire, *ends)
    again = End(0, seed=1)
    wire.ends = (again, ends[1])
    again.connect()
    wire.run(lambda: bool(again.heard))
    assert again.heard[0].reason == RejectReason.STALE_CONNECTION
    wire.run()
    assert ends[1].kinds == [ESTABLISHED, DISCONNECTED, EXIT]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (ConnectionState.REQ_SENT, CmMessage.REJ),
        (ConnectionState.REP_RECEIVED, CmMessage.REJ),
        (ConnectionState.ESTABLISHED, CmMessage.DREQ),
    ],
)
def test_an_end_that_goes_tells_its_peer(ends, state, message):
    active, passive = ends
    wire = CmWire(*ends)
    passive.listen(None if state is ConnectionState.REQ_SENT else accepted)
    one = active.connect()
    if state is ConnectionState.REQ_SENT:
        wire.run(lambda: bool(passive.requests))
    else:
        wire.run(lambda: active.kinds == [REPLY])
    if state is ConnectionState.ESTABLISHED:
        one.confirm()
        wire.run(lambda: passive.kinds == [ESTABLISHED])
    assert one.state is state
    before = len(active.heard)
    one.close()
    wire.run()
    assert message in wire.sent()
    assert len(active.heard) == before
    assert (DISCONNECTED if message is CmMessage.DREQ else REJECTED) in passive.kinds


def test_a_passive_end_that_goes_refuses(ends):
    wire = CmWire(*ends)
    ends[1].listen(Connection.close)
    ends[0].connect()
    wire.run()
    assert ends[0].kinds == [REJECTED]


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


def test_an_alternate_path_is_not_supported(ends):
    wire = CmWire(*ends)
    one, other = established(wire, *ends)
    lap = cm_mad(CmMessage.LAP, 1, local_comm_id=one.local_comm_id, remote_comm_id=other.local_comm_id)
    ends[1].cm.received(lap, CmRoute(AddressVector(1)), wire.now)
    ((mad, _route),) = ends[1].cm.poll(wire.now)
    found = cm_message(mad)
    assert found is not None
    assert (found[0], found[1].ap_status) == (CmMessage.APR, 2)


def test_what_is_no_message_is_ignored(ends):
    ends[0].cm.received(bytes(256), CmRoute(AddressVector(1)), 0)
    assert ends[0].cm.poll(0) == []
    assert ends[0].cm.wake is None


# Messages out of turn.


def given(end: End, message: CmMessage, now: int = 0, **fields: int) -> list[tuple[CmMessage, Record]]:
    """What an end answers to a message of its peer's."""
    end.cm.received(cm_mad(message, 1, **fields), CmRoute(AddressVector(2 - end.number)), now)
    answers = [cm_message(mad) for mad, _route in end.cm.poll(now)]
    return [answer for answer in answers if answer is not None]


def ids(connection: Connection, other: Connection) -> dict[str, int]:
    """Of a message to `connection`."""
    return {"local_comm_id": other.local_comm_id, "remote_comm_id": connection.local_comm_id}


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


def test_what_is_not_accepted_yet_cannot_be_disconnected(ends):
    wire = CmWire(*ends)
    ends[1].listen()
    one = ends[0].connect()
    wire.run(lambda: bool(ends[1].requests))
    (other,) = ends[1].requests
    assert given(ends[1], CmMessage.DREQ, wire.now, **ids(other, one)) == []
    assert (other.state, ends[1].kinds) == (ConnectionState.REQ_RECEIVED, [])


def test_a_disconnect_in_place_of_a_lost_confirmation_is_one(ends):
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: message is CmMessage.RTU
    ends[1].listen(accepted)
    one = ends[0].connect()
    wire.run(lambda: ends[0].kinds == [REPLY])
    one.confirm()
    one.disconnect()
    wire.run()
    assert ends[1].kinds == [DISCONNECTED, EXIT]


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


def test_a_message_of_another_connection_of_the_peers_does_not_end_this_one(ends):
    wire = CmWire(*ends)
    one, other = established(wire, *ends)
    wrong = {**ids(one, other), "local_comm_id": other.local_comm_id + 1}
    ((kind, _drep),) = given(ends[0], CmMessage.DREQ, wire.now, **wrong)
    assert kind is CmMessage.DREP
    assert one.state is ConnectionState.ESTABLISHED


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


def test_packets_go_where_the_request_says_not_where_its_mad_came_from(ends):
    ends[1].listen()
    fields = {**asked_for(0).fields(), "local_comm_id": 9, "primary_local_port_lid": 7, "primary_sl": 3}
    given(ends[1], CmMessage.REQ, **fields)
    (other,) = ends[1].requests
    assert other.negotiated.changes(QpState.RTR)["path"] == AddressVector(7, sl=3)


def test_a_request_says_the_path(ends):
    route = CmRoute(AddressVector(2, sl=4, route=GlobalRoute(0xFE80, hop_limit=9, traffic_class=2, flow_label=1)), 3)
    path = ConnectionPath(route, 1, 0xAA, 0xBB, 0x8001, 3, life_time=31)
    fields = path.fields()
    assert (fields["partition_key"], fields["path_packet_payload_mtu"], fields["primary_sl"]) == (0x8001, 3, 4)
    assert (fields["primary_local_port_gid"], fields["primary_remote_port_gid"]) == (0xAA, 0xBB)
    assert (fields["primary_subnet_local"], fields["primary_hop_limit"], fields["primary_local_ack_timeout"]) == (
        0,
        9,
        31,
    )
    assert asked_for(0).path.fields()["primary_subnet_local"] == 1


def test_a_queue_pair_that_takes_no_reads_lets_nobody_read(ends):
    one = ends[0].connect(responder_resources=0)
    assert one.negotiated.changes(QpState.INIT)["access"] == Access.LOCAL_WRITE | Access.REMOTE_WRITE


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


# Service ID resolution.


def found_at(end: End, **service: object) -> list[LookupResult]:
    results: list[LookupResult] = []
    end.cm.look_up(SERVICE, CmRoute(AddressVector(2)), 0xFFFF, b"who", results.append)
    return results


@pytest.mark.parametrize("lost", [None, CmMessage.SIDR_REQ, CmMessage.SIDR_REP])
def test_a_datagram_service_is_found(ends, lost):
    asked: list[ServiceRequest] = []

    def answer(request: ServiceRequest) -> None:
        asked.append(request)
        request.reply(SidrStatus.QPN_VALID, 0x33, 0x0123_4567, b"here")

    ends[1].cm.serve(SERVICE, answer)
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: message is lost and wire.now < SECOND
    results = found_at(ends[0])
    wire.run()
    (result,) = results
    assert (result.status, result.qpn, result.q_key) == (SidrStatus.QPN_VALID, 0x33, 0x0123_4567)
    assert result.private_data.rstrip(b"\0") == b"here"
    assert [request.private_data.rstrip(b"\0") for request in asked] == [b"who"]
    assert not ends[0].cm.open


def test_a_question_that_is_not_answered_yet_is_asked_once_and_an_old_one_anew(ends):
    asked: list[ServiceRequest] = []
    ends[1].cm.serve(SERVICE, asked.append)
    question = {"service_id": SERVICE, "request_id": 7}
    for _ in range(2):
        assert given(ends[1], CmMessage.SIDR_REQ, **question) == []
    assert len(asked) == 1
    asked[0].reply(SidrStatus.NO_QP)
    ((_kind, answer),) = given(ends[1], CmMessage.SIDR_REQ, **question)[-1:]
    assert answer.status == SidrStatus.NO_QP
    assert len(asked) == 1
    given(ends[1], CmMessage.SIDR_REQ, 70 * SECOND, **question)
    assert len(asked) == 2


def test_a_datagram_service_that_there_is_not_is_not_supported(ends):
    results = found_at(ends[0])
    CmWire(*ends).run()
    assert [result.status for result in results] == [SidrStatus.SERVICE_ID_NOT_SUPPORTED]


def test_a_lookup_that_is_closed_brings_nothing(ends):
    results: list[LookupResult] = []
    ends[0].cm.look_up(SERVICE, CmRoute(AddressVector(2)), 0xFFFF, b"", results.append).close()
    CmWire(*ends).run()
    assert not results


def test_a_lookup_that_nobody_answers_ends_after_16_tries(ends):
    wire = CmWire(*ends)
    wire.lose = lambda sender, message: True
    results = found_at(ends[0])
    wire.run()
    assert [result.status for result in results] == [None]
    assert wire.sent() == [CmMessage.SIDR_REQ] * 16
    assert not ends[0].cm.open
