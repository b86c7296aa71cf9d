"""RC: messages sent to receive requests."""

from tests.verbs.ends import connected, wire_between
from verbs.completions import CompletionStatus


def test_a_message_is_in_the_memory_of_the_receive_request_and_both_sides_are_told() -> None:
    a, b = connected()
    a.put(0, b"Hello, fabric")
    b.receive(100, 64, wr_id=7)
    a.send(0, 13, wr_id=3)
    wire = wire_between(a, b)
    wire.run()
    assert b.get(100, 13) == b"Hello, fabric"
    [sent], [received] = a.sent(), b.received()
    assert (sent.wr_id, sent.status) == (3, CompletionStatus.SUCCESS)
    assert (received.wr_id, received.status, received.byte_len) == (7, CompletionStatus.SUCCESS, 13)
    assert len(wire.log) == 2
