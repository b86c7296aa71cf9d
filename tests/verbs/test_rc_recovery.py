"""RC: packets that are lost, repeated or late, receivers that are not ready, peers that do not answer."""

from collections.abc import Iterator

import pytest

from tests.verbs.ends import LATENCY, End, Wire, connected, wire_between
from verbs.aeth import AckKind, NakCode, ack_kind, ack_timeout_cycles, ack_value, rnr_timer_cycles
from verbs.completions import CompletionStatus
from verbs.incidents import Incident
from verbs.states import QpState
from verbs.work import SendOpcode
from wire.headers import AETH, RETH
from wire.opcodes import Opcode
from wire.packet import parse

SUCCESS = CompletionStatus.SUCCESS
READ, ADD = SendOpcode.RDMA_READ, SendOpcode.ATOMIC_FETCH_AND_ADD
TIMEOUT = 8
TIMEOUT_CYCLES = (4096 << TIMEOUT) // 4


def losing(a: End, b: End, *lost: tuple[int, int]) -> Wire:
    """A wire that loses these packets: side, and which of that side's."""
    seen = [0, 0]

    def fate(number: int, side: int, data: bytes) -> Iterator[int]:
        seen[side] += 1
        if (side, seen[side]) not in lost:
            yield LATENCY

    return wire_between(a, b, fate)


def naks(wire: Wire) -> list[tuple[AckKind | None, int, int]]:
    """Kind, value and PSN of what says other than that all is well."""
    found = [
        (ack_kind(packet.header(AETH).syndrome), ack_value(packet.header(AETH).syndrome), packet.bth.psn)
        for packet in wire.packets()
        if packet.has(AETH)
    ]
    return [entry for entry in found if entry[0] is not AckKind.ACK]


def messages(a: End, b: End, count: int) -> None:
    for number in range(count):
        a.put(64 * number, bytes([number]) * 64)
        b.receive(64 * number, 64, wr_id=number)
        a.send(64 * number, 64, wr_id=number)


def test_a_lost_request_is_told_by_one_nak_and_sent_again_with_what_followed() -> None:
    a, b = connected(shared=True)
    messages(a, b, 6)
    wire = losing(a, b, (0, 2))
    wire.run()
    assert [entry.wr_id for entry in b.received()] == list(range(6))
    assert b.get(0, 384) == a.get(0, 384)
    assert [entry.status for entry in a.sent()] == [SUCCESS] * 6
    assert naks(wire) == [(AckKind.NAK, NakCode.PSN_SEQUENCE_ERROR, 1)]
    assert wire.now < TIMEOUT_CYCLES
    assert [packet.bth.psn for packet in wire.packets(0)] == [0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5]


def test_each_gap_is_told() -> None:
    a, b = connected(shared=True)
    wire = losing(a, b, (0, 2), (0, 7))
    for _ in range(2):
        messages(a, b, 3)
        wire.run()
    assert [psn for _kind, _code, psn in naks(wire)] == [1, 4]
    assert wire.now < TIMEOUT_CYCLES


def test_the_last_request_lost_is_sent_again_after_the_local_ack_timeout() -> None:
    a, b = connected(timeout=TIMEOUT)
    messages(a, b, 1)
    wire = losing(a, b, (0, 1))
    wire.run(TIMEOUT_CYCLES - 1)
    assert len(wire.log) == 1
    wire.run()
    assert [packet.bth.psn for packet in wire.packets(0)] == [0, 0]
    assert [entry.status for entry in a.sent()] == [SUCCESS]


def test_a_lost_ack_makes_a_duplicate_which_is_acknowledged_and_not_carried_out() -> None:
    a, b = connected()
    b.receive(0, 64)
    b.receive(64, 64)
    a.send(0, 8)
    wire = losing(a, b, (1, 1))
    wire.run()
    assert len(wire.packets(0)) == 2
    assert len(b.received()) == 1
    assert len(a.sent()) == 1


def test_a_lost_ack_does_no_harm_if_a_later_one_comes() -> None:
    a, b = connected(shared=True)
    wire = losing(a, b, (1, 2))
    messages(a, b, 1)
    wire.run()
    messages(a, b, 2)
    wire.run()
    assert [entry.wr_id for entry in a.sent()] == [0, 0, 1]
    assert wire.now < TIMEOUT_CYCLES


def test_a_read_that_lacks_a_response_goes_on_from_there() -> None:
    a, b = connected()
    b.put(0, bytes(range(256)) * 8)
    a.send(4096, 2000, READ, to=(b, 0))
    wire = losing(a, b, (1, 3))
    wire.run()
    assert a.get(4096, 2000) == b.get(0, 2000)
    first, again = wire.packets(0)
    assert (first.bth.psn, first.header(RETH).dma_len) == (0, 2000)
    assert (again.bth.psn, again.header(RETH).dma_len) == (2, 2000 - 512)
    assert again.header(RETH).va == first.header(RETH).va + 512
    assert wire.now < TIMEOUT_CYCLES


def test_an_atomic_whose_answer_is_lost_is_answered_again_and_not_carried_out_again() -> None:
    a, b = connected()
    for number in range(3):
        a.send(8 * number, 8, ADD, to=(b, 0), compare_add=5)
    wire = losing(a, b, (1, 1), (1, 3))
    wire.run()
    assert int.from_bytes(b.get(0, 8), "little") == 15
    assert [int.from_bytes(a.get(8 * number, 8), "little") for number in range(3)] == [0, 5, 10]


def test_a_send_after_a_read_whose_responses_are_lost_does_not_end_before_it() -> None:
    a, b = connected(shared=True)
    b.put(512, b"r" * 16)
    b.receive(0, 64)
    a.send(100, 16, READ, wr_id=1, to=(b, 512))
    a.send(0, 8, wr_id=2)
    wire = losing(a, b, (1, 1))
    wire.run()
    assert [(entry.wr_id, entry.status) for entry in a.sent()] == [(1, SUCCESS), (2, SUCCESS)]
    assert a.get(100, 16) == b"r" * 16
    assert len(b.received()) == 1


@pytest.mark.parametrize("retry_cnt", [0, 1, 3])
def test_a_peer_that_never_answers_is_asked_as_often_as_the_retry_count_says(retry_cnt: int) -> None:
    a, b = connected(timeout=TIMEOUT, retry_cnt=retry_cnt)
    a.send(0, 8, wr_id=1)
    a.send(0, 8, wr_id=2)
    wire = wire_between(a, b, lambda number, side, data: [])
    wire.run()
    assert [(entry.wr_id, entry.status) for entry in a.sent()] == [
        (1, CompletionStatus.RETRY_EXC_ERR),
        (2, CompletionStatus.WR_FLUSH_ERR),
    ]
    assert [packet.bth.psn for packet in wire.packets(0)] == [0] * (1 + retry_cnt)
    assert (1 + retry_cnt) * TIMEOUT_CYCLES <= wire.now < (1 + retry_cnt) * TIMEOUT_CYCLES + 100
    assert a.qp.state is QpState.ERR


def test_progress_renews_the_retry_count() -> None:
    a, b = connected(timeout=TIMEOUT, retry_cnt=1)
    wire = losing(a, b, *[(0, number) for number in range(1, 40, 2)])
    for _ in range(10):
        b.receive(0, 64)
        a.send(0, 8)
        wire.run()
    assert [entry.status for entry in a.sent()] == [SUCCESS] * 10
    assert len(wire.packets(0)) == 20


def test_a_timeout_of_0_waits_for_ever() -> None:
    a, b = connected(timeout=0)
    a.send(0, 8)
    wire = losing(a, b, (0, 1))
    wire.run()
    assert a.adapter.wake is None
    assert not a.sent()


def test_a_receiver_that_is_not_ready_says_how_long_to_wait() -> None:
    a, b = connected(min_rnr_timer=12, timeout=0)
    a.send(0, 8)
    wire = wire_between(a, b)
    wire.run(2 * LATENCY + 10)
    b.receive(0, 64)
    wire.run()
    assert naks(wire) == [(AckKind.RNR_NAK, 12, 0)]
    assert [entry.status for entry in a.sent()] == [SUCCESS]
    waited = rnr_timer_cycles(12, 4)
    assert waited == 160_000  # 0.64 ms of 4 ns
    assert waited <= wire.now <= waited + 5 * LATENCY


@pytest.mark.parametrize("rnr_retry", [0, 2])
def test_a_receiver_that_is_never_ready_is_asked_as_often_as_the_rnr_retry_count_says(rnr_retry: int) -> None:
    a, b = connected(rnr_retry=rnr_retry)
    a.send(0, 8)
    wire = wire_between(a, b)
    wire.run()
    assert [entry.status for entry in a.sent()] == [CompletionStatus.RNR_RETRY_EXC_ERR]
    assert len(wire.packets(0)) == 1 + rnr_retry


def test_an_rnr_retry_count_of_7_asks_without_end() -> None:
    a, b = connected(rnr_retry=7, retry_cnt=0)
    a.send(0, 8)
    wire = wire_between(a, b)
    for _ in range(40):
        wire.run(wire.now + rnr_timer_cycles(1, 4) + 3 * LATENCY)
    assert len(naks(wire)) > 20
    b.receive(0, 64)
    wire.run()
    assert [entry.status for entry in a.sent()] == [SUCCESS]


def test_while_a_receiver_is_not_ready_what_follows_is_dropped_in_silence() -> None:
    a, b = connected(shared=True)
    b.receive(0, 64)
    wire = wire_between(a, b)
    a.send(0, 8)
    wire.run()
    for _ in range(4):
        a.send(0, 8)
    wire.run(wire.now + 1000)
    assert [(kind, psn) for kind, _code, psn in naks(wire)] == [(AckKind.RNR_NAK, 1)]


def test_a_write_with_immediate_without_a_receive_request_is_not_ready_at_its_last_packet() -> None:
    a, b = connected(timeout=0)
    a.put(0, b"w" * 600)
    a.send(0, 600, SendOpcode.RDMA_WRITE_WITH_IMM, to=(b, 0))
    wire = wire_between(a, b)
    wire.run(1000)
    assert naks(wire) == [] or naks(wire)[0][2] == 2
    b.receive(1000, 0)
    wire.run()
    assert b.get(0, 600) == b"w" * 600
    assert b.received()[0].byte_len == 600


def test_packets_that_overtake_each_other_cost_time_and_nothing_else() -> None:
    a, b = connected(shared=True)
    messages(a, b, 20)
    wire = wire_between(a, b, lambda number, side, data: [LATENCY + 37 * (number % 5)])
    wire.run()
    assert [entry.wr_id for entry in b.received()] == list(range(20))
    assert b.get(0, 1280) == a.get(0, 1280)


def test_everything_twice_is_carried_out_once() -> None:
    a, b = connected(shared=True)
    messages(a, b, 6)
    a.send(2000, 8, ADD, to=(b, 3000), compare_add=1)
    a.send(4096, 1000, READ, to=(b, 0))
    wire = wire_between(a, b, lambda number, side, data: [LATENCY, LATENCY + 500])
    wire.run()
    assert [entry.wr_id for entry in b.received()] == list(range(6))
    assert [entry.status for entry in a.sent()] == [SUCCESS] * 8
    assert int.from_bytes(b.get(3000, 8), "little") == 1
    assert a.get(4096, 1000) == b.get(0, 1000)


def test_what_is_acknowledged_while_it_is_sent_again_is_not_sent_again() -> None:
    a, b = connected(timeout=1)
    for _ in range(4):
        a.send(0, 8, SendOpcode.RDMA_WRITE, to=(b, 0))
    for _ in range(4):
        b.adapter.receive(a.adapter.poll(0).data, 1)
    assert b.adapter.poll(1) is not None  # the ACK is lost
    now = 1 + (4096 << 1) // 4
    b.adapter.receive(a.adapter.poll(now).data, now)
    a.adapter.receive(b.adapter.poll(now).data, now)
    assert [entry.status for entry in a.sent()] == [SUCCESS] * 4
    a.send(0, 8, SendOpcode.RDMA_WRITE, to=(b, 0))
    assert parse(a.adapter.poll(now).data).bth.psn == 4
    assert a.adapter.poll(now) is None


def test_an_ack_of_what_was_never_sent_is_ignored() -> None:
    a, b = connected()
    b.receive(0, 64)
    a.send(0, 8)
    wire_between(a, b).run()
    a.sent()
    a.send(0, 8)
    b.adapter.receive(a.adapter.poll(0).data, 1)
    a.send(0, 8)
    stranger = b.qp.pair.envelope.packet(Opcode.RC_ACKNOWLEDGE, 9, AETH.pack(syndrome=31, msn=9))
    a.adapter.receive(stranger.data, 2)
    assert not a.sent()


def test_timer_codes() -> None:
    assert ack_timeout_cycles(0, 4) is None
    assert ack_timeout_cycles(14, 4) == 16_777_216
    assert ack_timeout_cycles(1, 1) == 8192
    assert rnr_timer_cycles(0, 4) == 163_840_000
    assert rnr_timer_cycles(31, 4) == 122_880_000


def incidents_of(*ends: End) -> list[tuple[int, Incident, int]]:
    """Which of the ends lives through what, at which PSN, from now on."""
    found: list[tuple[int, Incident, int]] = []
    for side, end in enumerate(ends):
        end.qp.pair.on_incident = lambda incident, psn, side=side: found.append((side, incident, psn))
    return found


def test_both_sides_tell_of_a_loss_and_of_a_duplicate() -> None:
    a, b = connected(shared=True, timeout=TIMEOUT)
    found = incidents_of(a, b)
    messages(a, b, 6)
    # Its second request, the answer to what is sent again, and so a time-out.
    losing(a, b, (0, 2), (1, 3)).run()
    assert found[:2] == [(1, Incident.OUT_OF_SEQUENCE, 1), (0, Incident.SEQUENCE_NAK, 1)]
    assert {incident for _side, incident, _psn in found[2:]} <= {Incident.TIMEOUT, Incident.DUPLICATE}


def test_both_sides_tell_of_a_receiver_that_is_not_ready() -> None:
    a, b = connected(rnr_retry=0)
    found = incidents_of(a, b)
    a.send(0, 64)
    wire_between(a, b).run()
    assert found == [(1, Incident.NOT_READY, 0), (0, Incident.RNR_NAK, 0)]


def test_a_requester_tells_of_time_outs_and_of_answers_that_are_missing() -> None:
    a, b = connected(timeout=TIMEOUT)
    found = incidents_of(a, b)
    for _ in range(2):
        a.send(0, 64, READ, to=(b, 0))
    losing(a, b, (1, 1)).run()
    assert found == [(0, Incident.IMPLIED_NAK, 0), (1, Incident.DUPLICATE, 2), (1, Incident.DUPLICATE, 2)]
    found.clear()
    a.send(0, 64)
    losing(a, b, (0, 1)).run(a.adapter.now + TIMEOUT_CYCLES + 10)
    assert found[0] == (0, Incident.TIMEOUT, 2)


def test_a_responder_tells_of_a_request_that_it_refuses() -> None:
    a, b = connected()
    found = incidents_of(a, b)
    a.send(0, 64, SendOpcode.RDMA_WRITE, to=(b, 1 << 20))
    wire_between(a, b).run()
    assert found == [(1, Incident.REFUSED, 0)]
