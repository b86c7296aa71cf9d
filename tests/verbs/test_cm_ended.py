"""Connections are ended, by one end or both, and are no more while packets may be under way."""

import pytest

from tests.verbs.cm_wire import (
    DISCONNECTED,
    ESTABLISHED,
    EXIT,
    REJECTED,
    REPLY,
    CmWire,
    End,
    accepted,
    established,
    given,
    ids,
)
from verbs.cm_connection import Connection, ConnectionState
from wire.cm import CmMessage
from wire.cm_codes import RejectReason


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


def test_a_message_of_another_connection_of_the_peers_does_not_end_this_one(ends):
    wire = CmWire(*ends)
    one, other = established(wire, *ends)
    wrong = {**ids(one, other), "local_comm_id": other.local_comm_id + 1}
    ((kind, _drep),) = given(ends[0], CmMessage.DREQ, wire.now, **wrong)
    assert kind is CmMessage.DREP
    assert one.state is ConnectionState.ESTABLISHED
