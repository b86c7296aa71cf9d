"""Connections are made as the standard's state machines say, also when messages are lost."""

from itertools import pairwise

import pytest

from tests.verbs.cm_wire import (
    DISCONNECTED,
    ESTABLISHED,
    EXIT,
    REJECTED,
    REPLY,
    SECOND,
    UNREACHABLE,
    CmWire,
    accepted,
    asked_for,
    established,
    given,
)
from verbs.address import AddressVector, GlobalRoute
from verbs.cm_parameters import CmRoute, ConnectionPath, ConnectionReply
from verbs.regions import Access
from verbs.states import QpState, QpType
from wire.cm import CmMessage
from wire.cm_codes import RejectReason


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
