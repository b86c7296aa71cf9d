"""Connections over a wire that loses, repeats, delays and reorders: both ends agree in the end, or both are told."""

from random import Random

import pytest

from tests.verbs.cm_wire import CmWire, End, accepted
from verbs.cm_connection import CmEvent, CmEventType, Connection, ConnectionState
from wire.cm_codes import RejectReason

TOLD = {CmEventType.REJECTED, CmEventType.UNREACHABLE, CmEventType.DISCONNECTED}

SHORT = 12
"""Code of 17 ms: messages are sent again while earlier ones, which may take 67 ms, are still under way."""


def consumer(random: Random, end: End, connection: Connection) -> None:
    """Confirms, or refuses, what was accepted."""

    def heard(event: CmEvent) -> None:
        end.heard.append(event)
        if event.kind is CmEventType.REPLY:
            if random.random() < 0.9:
                connection.confirm()
            else:
                connection.reject()

    end.connection = connection
    connection.on_event = heard


@pytest.mark.parametrize("loss", [0.0, 0.2, 0.4])
def test_both_ends_are_connected_or_both_are_told(loss):
    outcomes = set()
    for seed in range(150):
        print(f"seed {seed}, loss {loss}")
        random = Random(f"{seed} {loss}")
        active, passive = End(0, seed=seed, response_timeout=SHORT), End(1, seed=seed, response_timeout=SHORT)
        refuses = random.random() < 0.2
        passive.listen(Connection.reject if refuses else accepted)
        wire = CmWire.careless(random, loss, active, passive)
        consumer(random, active, active.connect())
        wire.run()
        assert len(passive.requests) <= 1
        one = active.connection
        other = passive.requests[0] if passive.requests else None
        is_up = one is not None and one.state is ConnectionState.ESTABLISHED
        if is_up:
            assert other is not None
            assert other.state is ConnectionState.ESTABLISHED
            assert passive.kinds == [CmEventType.ESTABLISHED]
            assert one.negotiated.remote_qpn == other.negotiated.qpn
            assert one.negotiated.psn == other.negotiated.remote_psn
        else:
            assert TOLD & set(active.kinds) or CmEventType.REPLY in active.kinds
            assert other is None or refuses or len(TOLD & set(passive.kinds)) == 1
        outcomes.add(is_up)
        if is_up:
            random.choice((active, passive)).connection.disconnect()
            wire.run()
            assert active.kinds[-2:] == passive.kinds[-2:] == [CmEventType.DISCONNECTED, CmEventType.TIME_WAIT_EXIT]
        assert (active.cm.open, passive.cm.open) == (0, 0)
    assert outcomes == {True, False}


def test_many_connections_at_once_do_not_mix():
    random = Random(5)
    active, passive = End(0, response_timeout=SHORT), End(1, response_timeout=SHORT)
    passive.listen(accepted)
    wire = CmWire.careless(random, 0.2, active, passive)
    asked = [active.connect(qpn=0x100 + number) for number in range(40)]
    for connection in asked:
        connection.on_event = lambda event, one=connection: (
            one.confirm() if event.kind is CmEventType.REPLY else active.heard.append(event)
        )
    wire.run()
    assert {one.state for one in asked} == {ConnectionState.ESTABLISHED}
    assert sorted(other.negotiated.remote_qpn for other in passive.requests) == [0x100 + number for number in range(40)]
    assert RejectReason.STALE_CONNECTION not in {event.reason for event in active.heard}
