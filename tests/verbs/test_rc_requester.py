"""RC: what a requester makes of answers that come late, twice or wrong, and of what is known of credits."""

import pytest

from tests.verbs.ends import End, connected, wire_between
from verbs.aeth import AckKind, NakCode, credit_code, syndrome
from verbs.completions import CompletionStatus
from verbs.end_to_end_credits import EndToEndCredits
from verbs.work import SendOpcode
from wire.headers import AETH
from wire.opcodes import Opcode
from wire.packet import parse

SUCCESS = CompletionStatus.SUCCESS


def answer(a: End, b: End, opcode: Opcode, psn: int, what: int, msn: int, payload: bytes = b"", now: int = 1) -> None:
    """Gives `a` an answer of `b`'s that is made by hand."""
    outgoing = b.qp.pair.envelope.packet(opcode, psn, AETH.pack(syndrome=what, msn=msn), payload)
    a.adapter.receive(outgoing.data, now)


def polled(a: End, now: int = 1) -> list[int]:
    found = []
    while (outgoing := a.adapter.poll(now)) is not None:
        found.append(parse(outgoing.data).bth.psn)
    return found


def test_a_nak_that_comes_while_the_receiver_is_waited_for_costs_no_retry() -> None:
    a, b = connected(retry_cnt=0)
    a.send(0, 8)
    assert polled(a) == [0]
    answer(a, b, Opcode.RC_ACKNOWLEDGE, 0, syndrome(AckKind.RNR_NAK, 1), 0)
    answer(a, b, Opcode.RC_ACKNOWLEDGE, 0, syndrome(AckKind.NAK, NakCode.PSN_SEQUENCE_ERROR), 0)
    b.receive(0, 64)
    wire_between(a, b).run()
    assert [entry.status for entry in a.sent()] == [SUCCESS]


@pytest.mark.parametrize("length", [15, 17])
def test_a_read_response_of_another_length_than_asked_for_is_a_bad_response(length: int) -> None:
    a, b = connected()
    a.send(0, 16, SendOpcode.RDMA_READ, to=(b, 0))
    assert polled(a) == [0]
    answer(a, b, Opcode.RC_RDMA_READ_RESPONSE_ONLY, 0, syndrome(AckKind.ACK, 1), 1, bytes(length))
    assert [entry.status for entry in a.sent()] == [CompletionStatus.BAD_RESP_ERR]


def test_a_request_that_is_not_signaled_asks_for_an_ack_too() -> None:
    a, b = connected(shared=True)
    for signaled in (True, False):
        b.receive(0, 64)
        a.send(0, 8, signaled=signaled)
        wire = wire_between(a, b)
        wire.run()
        assert [packet.bth.ack_req for packet in wire.packets(0)] == [1]


def test_what_takes_no_receive_request_takes_no_credit() -> None:
    a, b = connected()
    for _ in range(2):
        b.receive(0, 1024)
    a.send(0, 8)
    wire_between(a, b).run()
    a.send(0, 8, SendOpcode.RDMA_WRITE, to=(b, 0))
    a.send(0, 1024)
    assert polled(a, 5000) == [1, 2, 3, 4, 5]


def test_credits_that_were_told_are_not_taken_back_by_an_older_ack() -> None:
    credits = EndToEndCredits()
    first = credits.number(takes_a_receive=True)
    credits.take(credit_code(4), 1)
    assert credits.covers(first + 4)
    credits.take(credit_code(1), 0)
    assert credits.covers(first + 4)
    assert not credits.covers(first + 5)
