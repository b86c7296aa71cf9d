"""RC: what a responder makes of packets that good requesters send seldom, or never (IBTA vol 1, 9.7.4, 9.7.5.1)."""

import pytest

from tests.verbs.ends import MEMORY_BASE, MEMORY_BYTES, connected
from verbs.aeth import AckKind, NakCode, syndrome
from verbs.completions import CompletionStatus
from verbs.regions import Access
from verbs.states import QpState
from verbs.work import MAX_MESSAGE_BYTES, SendOpcode
from wire.headers import AETH, ATOMIC_ETH, RETH
from wire.opcodes import Opcode
from wire.packet import Packet, parse

MTU = 256
SEQUENCE = syndrome(AckKind.NAK, NakCode.PSN_SEQUENCE_ERROR)
INVALID = syndrome(AckKind.NAK, NakCode.INVALID_REQUEST)
ACCESS = syndrome(AckKind.NAK, NakCode.REMOTE_ACCESS_ERROR)


class Asked:
    """A responder, and packets made by hand for it."""

    def __init__(self, **changes: int) -> None:
        self.peer, self.end = connected(**changes)

    def ask(self, opcode: Opcode, psn: int, extended: bytes = b"", payload: bytes = b"") -> None:
        packet = self.peer.qp.pair.envelope.packet(opcode, psn, extended, payload, ack_req=True)
        self.end.adapter.receive(packet.data, 1)

    def reth(self, offset: int, length: int) -> bytes:
        return RETH.pack(va=MEMORY_BASE + offset, r_key=self.end.region.key, dma_len=length)

    def read(self, psn: int, length: int, offset: int = 0) -> None:
        self.ask(Opcode.RC_RDMA_READ_REQUEST, psn, self.reth(offset, length))

    def add(self, psn: int, offset: int = 0) -> None:
        eth = ATOMIC_ETH.pack(va=MEMORY_BASE + offset, r_key=self.end.region.key, swap_dt=1)
        self.ask(Opcode.RC_FETCH_ADD, psn, eth)

    def answers(self, count: int = 1000) -> list[Packet]:
        """Up to so many of the answers that are due."""
        found = []
        while len(found) < count and (outgoing := self.end.adapter.poll(1)) is not None:
            found.append(parse(outgoing.data))
        return found

    def psns(self, count: int = 1000) -> list[int]:
        return [packet.bth.psn for packet in self.answers(count)]

    def nak(self) -> int:
        """The syndrome of the last answer."""
        return self.answers()[-1].header(AETH).syndrome


def test_msn_counts_messages_and_not_packets() -> None:
    asked = Asked()
    asked.end.receive(0, 1024)
    for psn, opcode in enumerate((Opcode.RC_SEND_FIRST, Opcode.RC_SEND_MIDDLE, Opcode.RC_SEND_LAST)):
        asked.ask(opcode, psn, payload=bytes(MTU))
        assert asked.answers()[-1].header(AETH).msn == (psn == 2)
    asked.read(3, 4 * MTU)
    assert {packet.header(AETH).msn for packet in asked.answers() if packet.has(AETH)} == {2}


def test_a_read_asked_for_again_while_it_is_answered_is_answered_from_there() -> None:
    asked = Asked()
    asked.read(0, 4 * MTU)
    assert asked.psns(2) == [0, 1]
    asked.read(0, 4 * MTU)
    assert asked.psns() == [0, 1, 2, 3]


def test_a_read_asked_for_again_from_ahead_of_its_answers_goes_on_as_it_was() -> None:
    asked = Asked()
    asked.read(0, 4 * MTU)
    assert asked.psns(1) == [0]
    asked.read(3, MTU, 3 * MTU)
    assert asked.psns() == [1, 2, 3]


def test_answers_to_reads_that_are_asked_for_again_wait_in_no_greater_number_than_reads_may() -> None:
    asked = Asked(max_dest_rd_atomic=2)
    for psn in range(4):
        asked.read(psn, 1)
        assert asked.psns() == [psn]
    for psn in range(4):
        asked.read(psn, 1)
    assert asked.psns() == [0, 1]


def test_a_read_that_is_answered_again_takes_no_resource_of_a_new_one() -> None:
    asked = Asked(max_dest_rd_atomic=1)
    asked.read(0, 1)
    assert asked.psns() == [0]
    asked.read(0, 1)
    asked.read(1, 1)
    assert asked.psns() == [0, 1]
    assert asked.end.qp.state is QpState.RTS


def test_more_reads_at_once_than_agreed_upon_are_refused() -> None:
    asked = Asked(max_dest_rd_atomic=2)
    for psn in range(3):
        asked.read(psn, 1)
    assert asked.nak() == INVALID


def test_a_duplicate_that_reaches_beyond_what_was_asked_is_dropped() -> None:
    asked = Asked()
    asked.read(0, 1)
    asked.answers()
    asked.read(0, 2 * MTU)
    assert not asked.answers()


def test_an_atomic_asked_for_again_before_it_is_answered_is_answered_once() -> None:
    asked = Asked()
    asked.add(0)
    asked.add(0)
    assert asked.psns() == [0]
    asked.add(0)
    assert asked.psns() == [0]
    assert int.from_bytes(asked.end.get(0, 8), "little") == 1


def test_results_of_as_many_atomics_are_kept_as_may_be_outstanding() -> None:
    asked = Asked(max_dest_rd_atomic=2)
    for psn in range(3):
        asked.add(psn)
        asked.answers()
    for psn in range(3):
        asked.add(psn)
    assert asked.psns() == [1, 2]
    assert int.from_bytes(asked.end.get(0, 8), "little") == 3


@pytest.mark.parametrize(
    ("opcode", "reth"), [(Opcode.RC_RDMA_WRITE_LAST, False), (Opcode.RC_SEND_ONLY, False), (Opcode.RC_FETCH_ADD, True)]
)
def test_in_the_middle_of_a_send_anything_else_is_refused(opcode: Opcode, reth: bool) -> None:
    asked = Asked()
    asked.end.receive(0, 1024)
    asked.ask(Opcode.RC_SEND_FIRST, 0, payload=bytes(MTU))
    if reth:
        asked.add(1)
    else:
        asked.ask(opcode, 1, payload=b"x" * 4)
    assert asked.nak() == INVALID
    assert [entry.status for entry in asked.end.received()] == [CompletionStatus.WR_FLUSH_ERR]


def test_in_the_middle_of_a_write_a_send_is_refused() -> None:
    asked = Asked()
    asked.end.receive(0, 1024)
    asked.ask(Opcode.RC_RDMA_WRITE_FIRST, 0, asked.reth(2048, 2 * MTU), bytes(MTU))
    asked.ask(Opcode.RC_SEND_LAST, 1, payload=bytes(MTU))
    assert asked.nak() == INVALID
    assert [entry.status for entry in asked.end.received()] == [CompletionStatus.WR_FLUSH_ERR]


def test_a_write_that_does_not_fit_its_region_is_refused_before_its_first_byte() -> None:
    asked = Asked()
    at = MEMORY_BYTES - MTU
    asked.ask(Opcode.RC_RDMA_WRITE_FIRST, 0, asked.reth(at, MTU + 1), b"w" * MTU)
    assert asked.nak() == ACCESS
    assert asked.end.get(at, MTU) == bytes(MTU)


def test_a_write_one_byte_beyond_a_region_is_refused() -> None:
    asked = Asked()
    asked.ask(Opcode.RC_RDMA_WRITE_ONLY, 0, asked.reth(MEMORY_BYTES - 7, 8), b"w" * 8)
    assert asked.nak() == ACCESS


def test_a_write_longer_than_messages_may_be_is_refused_as_such() -> None:
    asked = Asked()
    asked.ask(Opcode.RC_RDMA_WRITE_FIRST, 0, asked.reth(0, MAX_MESSAGE_BYTES + 1), b"w" * MTU)
    assert asked.nak() == INVALID


def test_a_write_of_no_bytes_needs_neither_key_nor_right() -> None:
    asked = Asked(access=Access.NONE)
    asked.ask(Opcode.RC_RDMA_WRITE_ONLY, 0, RETH.pack(va=5, r_key=0xBAD))
    assert asked.answers()[-1].header(AETH).msn == 1


def test_answers_and_requests_of_a_queue_pair_take_turns() -> None:
    asked = Asked()
    asked.read(0, 3 * MTU)
    asked.end.send(0, 3 * MTU, SendOpcode.RDMA_WRITE, to=(asked.peer, 0))
    answers = [packet.bth.opcode >= Opcode.RC_RDMA_READ_RESPONSE_FIRST for packet in asked.answers()]
    assert answers in ([True, False] * 3, [False, True] * 3)


def test_answers_that_are_due_are_not_sent_once_the_consumer_takes_its_queue_pair_to_err() -> None:
    asked = Asked()
    asked.read(0, 4 * MTU)
    asked.end.qp.modify(QpState.ERR)
    assert not asked.answers()


def test_a_gap_is_told_with_the_psn_that_is_missing() -> None:
    asked = Asked()
    asked.read(3, 1)
    [nak] = asked.answers()
    assert (nak.bth.psn, nak.header(AETH).syndrome) == (0, SEQUENCE)
