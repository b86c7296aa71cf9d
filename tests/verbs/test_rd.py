"""RD: queue pairs that send to many through end-to-end contexts, a message at a time (IBTA vol 1, 9.7.8)."""

from collections.abc import Iterator

import pytest

from tests.verbs.ends import LATENCY, MEMORY_BASE, End, Fate, Wire, bring_up_context, bring_up_datagram, make_end
from verbs.address import AddressVector
from verbs.aeth import NO_CREDIT_COUNT, AckKind, NakCode, ack_kind, ack_value
from verbs.completions import AsyncEventType, CompletionStatus
from verbs.queue_pair import PostError, QueuePair
from verbs.regions import InUseError
from verbs.states import QpState, QpType
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode, SendRequest
from wire.headers import AETH, DETH, RDETH
from wire.opcodes import Opcode
from wire.packet import parse

SUCCESS, FLUSHED = CompletionStatus.SUCCESS, CompletionStatus.WR_FLUSH_ERR
Q_KEY = 0x11
RNR_CYCLES = 2_500


class Net:
    """Adapters of one domain each, with queue pairs, and contexts between pairs of them."""

    def __init__(self, *queue_pairs: int) -> None:
        """So many queue pairs at each of the adapters, which all have a context to the first one."""
        self.ends: list[list[End]] = []
        for lid, count in enumerate(queue_pairs, 1):
            first = make_end(lid, QpType.RD)
            ends = [first, *(self.another(first) for _ in range(count - 1))]
            for end in ends:
                bring_up_datagram(end.qp, Q_KEY)
            self.ends.append(ends)
        self.contexts: dict[tuple[int, int], QueuePair] = {}
        for other in range(1, len(queue_pairs)):
            pair = [self.new_context(0), self.new_context(other)]
            bring_up_context(pair[0], AddressVector(other + 1), pair[1].number)
            bring_up_context(pair[1], AddressVector(1), pair[0].number)
            self.contexts[0, other], self.contexts[other, 0] = pair

    def new_context(self, at: int) -> QueuePair:
        end = self.ends[at][0]
        rdd = end.qp.pair.reliable_domain
        assert rdd is not None
        return end.adapter.create_eec(rdd)

    @staticmethod
    def another(end: End) -> End:
        """Another queue pair of the same domain."""
        rdd, queues = end.qp.pair.reliable_domain, (end.adapter.create_cq(64), end.adapter.create_cq(64))
        qp = end.adapter.create_qp(QpType.RD, end.pd, *queues, rdd=rdd)
        return End(end.adapter, end.pd, end.memory, end.region, *queues, qp, end.events)

    def send(
        self,
        source: tuple[int, int],
        to: tuple[int, int],
        length: int,
        opcode: SendOpcode = SendOpcode.SEND,
        **more: int,
    ) -> None:
        end, peer = self.ends[source[0]][source[1]], self.ends[to[0]][to[1]]
        where = {
            "eec": self.contexts[source[0], to[0]].number,
            "remote_qp": peer.qp.number,
            "remote_q_key": Q_KEY,
            "remote_va": MEMORY_BASE,
            "r_key": peer.region.key,
            **more,
        }
        end.qp.post_send(SendRequest(where.pop("wr_id", 0), opcode, [end.piece(0, length)], **where))

    def wire(self, one: int = 0, other: int = 1, fate: Fate | None = None) -> Wire:
        return Wire(self.ends[one][0].adapter, self.ends[other][0].adapter, *([fate] if fate else []))


def statuses(end: End) -> list[CompletionStatus]:
    return [entry.status for entry in end.sent()]


def test_packets_name_contexts_and_queue_pairs_and_answers_contexts_alone() -> None:
    net = Net(1, 1)
    net.ends[1][0].receive(0, 1024, 5)
    net.send((0, 0), (1, 0), 600)
    wire = net.wire()
    wire.run()
    requests, answers = wire.packets(0), wire.packets(1)
    assert [packet.bth.opcode for packet in requests] == [
        *(Opcode.RD_SEND_FIRST, Opcode.RD_SEND_MIDDLE),
        Opcode.RD_SEND_LAST,
    ]
    for packet in requests:
        assert packet.header(RDETH).eec == net.contexts[1, 0].number
        assert packet.bth.dest_qp == net.ends[1][0].qp.number
        assert (packet.header(DETH).q_key, packet.header(DETH).src_qp) == (Q_KEY, net.ends[0][0].qp.number)
    assert {packet.bth.opcode for packet in answers} == {Opcode.RD_ACKNOWLEDGE}
    assert {packet.header(RDETH).eec for packet in answers} == {net.contexts[0, 1].number}
    assert {packet.bth.dest_qp for packet in answers} == {net.ends[0][0].qp.number}
    [received] = net.ends[1][0].received()
    assert (received.wr_id, received.src_qp, received.byte_len) == (5, net.ends[0][0].qp.number, 600)
    assert statuses(net.ends[0][0]) == [SUCCESS]


def test_one_queue_pair_sends_to_many_and_its_messages_end_in_order() -> None:
    net = Net(1, 2, 1)
    wire = Wire(Hub(net), Nobody())
    targets = [(1, 0), (2, 0), (1, 1), (2, 0)]
    for number, to in enumerate(targets):
        net.ends[to[0]][to[1]].receive(1024, 1024, number)
        net.send((0, 0), to, 600, wr_id=number)
    wire.run()
    assert [(entry.wr_id, entry.status) for entry in net.ends[0][0].sent()] == [
        (number, SUCCESS) for number in range(4)
    ]
    assert [entry.wr_id for entry in net.ends[2][0].received()] == [1, 3]


class Nobody:
    """Sends nothing."""

    wake = None

    def receive(self, data: bytes, now: int) -> None: ...
    def poll(self, now: int) -> None: ...


class Hub:
    """All adapters of a net as one transport: what one sends comes to the one that it is for, a cycle later."""

    def __init__(self, net: Net) -> None:
        self.adapters = {end[0].adapter.ports[0].lid: end[0].adapter for end in net.ends}

    def receive(self, data: bytes, now: int) -> None: ...

    def poll(self, now: int) -> None:
        for adapter in self.adapters.values():
            outgoing = adapter.poll(now)
            if outgoing is not None:
                self.adapters[outgoing.dlid].receive(outgoing.data, now)

    @property
    def wake(self) -> int | None:
        return min((wake for adapter in self.adapters.values() if (wake := adapter.wake) is not None), default=None)


def test_a_context_carries_the_messages_of_many_queue_pairs_one_after_the_other() -> None:
    net = Net(3, 2)
    for number in range(6):
        net.ends[1][number % 2].receive(0, 1024, number)
        net.send((0, number % 3), (1, number % 2), 600, wr_id=number)
    wire = net.wire()
    wire.run()
    sources = [packet.header(DETH).src_qp for packet in wire.packets(0)]
    numbers = [end.qp.number for end in net.ends[0]]
    assert sources == [numbers[index // 3 % 3] for index in range(18)]
    assert [[entry.wr_id for entry in end.sent()] for end in net.ends[0]] == [[0, 3], [1, 4], [2, 5]]
    for packet_of_message in range(0, 18, 3):
        assert wire.packets(0)[packet_of_message].bth.opcode == Opcode.RD_SEND_FIRST


@pytest.mark.parametrize("lost", range(8))
def test_whatever_packet_is_lost_all_messages_arrive_once(lost: int) -> None:
    net = Net(2, 1)

    def fate(number: int, side: int, data: bytes) -> Iterator[int]:
        if number != lost:
            yield LATENCY

    for number in range(4):
        net.ends[1][0].receive(0, 1024, number)
        net.send((0, number % 2), (1, 0), 400)
    net.wire(fate=fate).run()
    assert [entry.wr_id for entry in net.ends[1][0].received()] == [0, 1, 2, 3]
    assert [statuses(end) for end in net.ends[0]] == [[SUCCESS] * 2] * 2


BAD = {
    "key": ({"opcode": SendOpcode.RDMA_WRITE, "r_key": 0xBAD}, CompletionStatus.REM_ACCESS_ERR),
    "Q_Key": ({"remote_q_key": 0x12}, CompletionStatus.REM_INV_RD_REQ_ERR),
    "queue pair": ({"remote_qp": 0x999}, CompletionStatus.REM_INV_RD_REQ_ERR),
    "length": ({}, CompletionStatus.REM_INV_REQ_ERR),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_message_that_is_refused_ends_its_send_queue_and_no_other(bad: str) -> None:
    net = Net(2, 1)
    target = net.ends[1][0]
    changes, status = BAD[bad]
    target.receive(0, 10, 1)
    net.send((0, 0), (1, 0), 600, **changes)
    net.send((0, 0), (1, 0), 8)
    net.send((0, 1), (1, 0), 8)
    target.receive(0, 64, 2)
    wire = net.wire()
    wire.run()
    assert statuses(net.ends[0][0]) == [status, FLUSHED]
    assert (net.ends[0][0].qp.state, net.ends[0][1].qp.state) == (QpState.SQE, QpState.RTS)
    assert statuses(net.ends[0][1]) == [SUCCESS]
    assert (target.qp.state, net.contexts[0, 1].state, net.contexts[1, 0].state) == (QpState.RTS,) * 3
    assert [packet.bth.opcode for packet in wire.packets(0)].count(Opcode.RD_RESYNC) == 1
    assert target.adapter.ports[0].q_key_violations == (bad == "Q_Key")
    told = [(wrong.key, wrong.source_qp) for wrong in target.adapter.ports[0].untold]
    assert told == ([(0x12, net.ends[0][0].qp.number)] if bad == "Q_Key" else [])
    net.ends[0][0].qp.modify(QpState.RTS)
    target.receive(0, 64, 3)
    net.send((0, 0), (1, 0), 8)
    wire.run()
    assert statuses(net.ends[0][0]) == [SUCCESS]


def test_resync_is_sent_again_until_it_is_acknowledged() -> None:
    net = Net(1, 1)
    lost = [2]

    def fate(number: int, side: int, data: bytes) -> Iterator[int]:
        if parse(data).bth.opcode == Opcode.RD_RESYNC and lost[0]:
            lost[0] -= 1
        else:
            yield LATENCY

    net.send((0, 0), (1, 0), 8, SendOpcode.RDMA_WRITE, r_key=0xBAD)
    wire = net.wire(fate=fate)
    wire.run()
    net.ends[0][0].qp.modify(QpState.RTS)
    net.send((0, 0), (1, 0), 8, SendOpcode.RDMA_WRITE)
    wire.run()
    assert statuses(net.ends[0][0]) == [CompletionStatus.REM_ACCESS_ERR, SUCCESS]
    resyncs = [packet.bth.psn for packet in wire.packets(0) if packet.bth.opcode == Opcode.RD_RESYNC]
    assert resyncs == [1, 1, 1]


def test_a_message_that_stops_in_the_middle_is_aborted_at_its_receiver() -> None:
    net = Net(1, 1)
    net.ends[1][0].receive(0, 1024, 7)
    net.send((0, 0), (1, 0), 1000)
    outgoing = net.ends[0][0].adapter.poll(0)
    net.ends[1][0].adapter.receive(outgoing.data, 1)
    net.ends[0][0].qp.modify(QpState.ERR)
    wire = net.wire()
    wire.run()
    assert statuses(net.ends[0][0]) == [FLUSHED]
    assert [(entry.wr_id, entry.status) for entry in net.ends[1][0].received()] == [(7, CompletionStatus.REM_ABORT_ERR)]
    assert wire.packets(0)[-1].bth.opcode == Opcode.RD_RESYNC


def test_a_queue_pair_that_ends_takes_its_message_with_it_and_the_context_goes_on() -> None:
    net = Net(3, 1)
    for number in range(3):
        net.ends[1][0].receive(0, 1024, number)
        net.send((0, number), (1, 0), 1000)
    adapter = net.ends[0][0].adapter
    adapter.poll(0)
    adapter.destroy_qp(net.ends[0][0].qp)
    adapter.destroy_qp(net.ends[0][1].qp)
    net.wire().run()
    assert [statuses(end) for end in net.ends[0]] == [[], [], [SUCCESS]]
    assert [entry.byte_len for entry in net.ends[1][0].received()] == [1000]


def test_a_peer_that_never_answers_ends_the_context_and_what_waits_for_it() -> None:
    net = Net(2, 1)
    for number in range(2):
        net.send((0, number), (1, 0), 8)
    net.wire(fate=lambda number, side, data: []).run()
    assert statuses(net.ends[0][0]) == [CompletionStatus.RETRY_EXC_ERR]
    assert statuses(net.ends[0][1]) == [CompletionStatus.INV_EEC_STATE_ERR]
    assert net.contexts[0, 1].state is QpState.ERR
    assert [end.qp.state for end in net.ends[0]] == [QpState.SQE] * 2


def test_a_context_taken_to_err_ends_the_message_under_way() -> None:
    net = Net(1, 1)
    net.send((0, 0), (1, 0), 8)
    net.ends[0][0].adapter.poll(0)
    net.ends[0][0].adapter.poll(0)
    net.contexts[0, 1].modify(QpState.ERR)
    assert statuses(net.ends[0][0]) == [CompletionStatus.LOC_EEC_OP_ERR]


def test_a_receiver_that_is_not_ready_is_waited_for() -> None:
    net = Net(1, 1)
    net.send((0, 0), (1, 0), 8)
    wire = net.wire()
    wire.run(2 * LATENCY + 20)
    [nak] = [packet.header(AETH).syndrome for packet in wire.packets(1)]
    assert (ack_kind(nak), ack_value(nak)) == (AckKind.RNR_NAK, 1)
    net.ends[1][0].receive(0, 64)
    wire.run()
    assert statuses(net.ends[0][0]) == [SUCCESS]
    assert wire.now >= RNR_CYCLES


def test_contexts_that_there_are_not_or_of_another_domain_or_not_ready_are_local_errors() -> None:
    net = Net(1, 1)
    end = net.ends[0][0]
    raw, stranger = net.new_context(0), end.adapter.create_eec(end.adapter.allocate_rdd())
    for number, status in (
        (0x777, CompletionStatus.INV_EECN_ERR),
        (end.qp.number, CompletionStatus.INV_EECN_ERR),
        (stranger.number, CompletionStatus.LOC_RDD_VIOL_ERR),
        (raw.number, CompletionStatus.INV_EEC_STATE_ERR),
    ):
        net.send((0, 0), (1, 0), 8, eec=number)
        assert end.adapter.poll(0) is None
        assert statuses(end) == [status]
        end.qp.modify(QpState.RTS)


def test_a_queue_pair_of_another_domain_is_an_invalid_request() -> None:
    net = Net(1, 1)
    peer = net.ends[1][0]
    other = peer.adapter.allocate_rdd()
    stranger = peer.adapter.create_qp(QpType.RD, peer.pd, peer.send_cq, peer.recv_cq, rdd=other)
    bring_up_datagram(stranger, Q_KEY)
    stranger.post_receive(ReceiveRequest(1, [peer.piece(0, 64)]))
    net.send((0, 0), (1, 0), 8, remote_qp=stranger.number)
    wire = net.wire()
    wire.run()
    naks = [packet.header(AETH).syndrome for packet in wire.packets(1)]
    assert ack_value(naks[0]) == NakCode.INVALID_RD_REQUEST
    assert statuses(net.ends[0][0]) == [CompletionStatus.REM_INV_RD_REQ_ERR]
    with pytest.raises(InUseError, match=f"is used by queue pair {stranger.number:#x}"):
        peer.adapter.deallocate_rdd(other)


def test_a_read_whose_memory_is_gone_ends_with_an_error_and_the_context_goes_on() -> None:
    net = Net(1, 1)
    peer = net.ends[1][0]
    net.send((0, 0), (1, 0), 1000, SendOpcode.RDMA_READ)
    outgoing = net.ends[0][0].adapter.poll(0)
    peer.adapter.receive(outgoing.data, 1)
    peer.adapter.keys.deregister(peer.region)
    wire = net.wire()
    wire.run()
    assert statuses(net.ends[0][0]) == [CompletionStatus.REM_OP_ERR]
    assert [event.type for event in peer.events if event.source == peer.qp.number] == [AsyncEventType.QP_FATAL]
    assert (net.contexts[0, 1].state, net.contexts[1, 0].state) == (QpState.RTS,) * 2


def test_contexts_are_not_posted_to() -> None:
    net = Net(1, 1)
    context = net.contexts[0, 1]
    with pytest.raises(PostError, match="allowed nothing"):
        context.post_send(SendRequest(0, SendOpcode.SEND))
    with pytest.raises(PostError, match=f"end-to-end context {context.number:#x}: it has no receive queue"):
        context.post_receive(ReceiveRequest(0))
    with pytest.raises(PostError, match="SEND_WITH_INV on RD queue pair"):
        net.send((0, 0), (1, 0), 8, SendOpcode.SEND_WITH_INV)


def test_a_context_in_sqd_ends_the_message_under_way_and_begins_none() -> None:
    net = Net(2, 1)
    for number in range(2):
        net.ends[1][0].receive(0, 1024, number)
        net.send((0, number), (1, 0), 600)
    context = net.contexts[0, 1]
    outgoing = net.ends[0][0].adapter.poll(0)
    context.modify(QpState.SQD, sqd_notify=True)
    net.ends[1][0].adapter.receive(outgoing.data, 1)
    wire = net.wire()
    wire.run()
    assert [statuses(end) for end in net.ends[0]] == [[SUCCESS], []]
    assert [event.type for event in net.ends[0][0].events] == [AsyncEventType.SQ_DRAINED]
    context.modify(QpState.RTS)
    wire.run()
    assert statuses(net.ends[0][1]) == [SUCCESS]


def test_a_queue_pair_in_sqd_ends_the_message_under_way_and_begins_none() -> None:
    net = Net(1, 1)
    end = net.ends[0][0]
    for number in range(2):
        net.ends[1][0].receive(0, 1024, number)
        net.send((0, 0), (1, 0), 600, wr_id=number)
    first = end.adapter.poll(0)
    end.qp.modify(QpState.SQD, sqd_notify=True)
    net.ends[1][0].adapter.receive(first.data, 1)
    wire = net.wire()
    wire.run()
    assert [entry.wr_id for entry in end.sent()] == [0]
    assert [event.type for event in end.events] == [AsyncEventType.SQ_DRAINED]
    end.qp.modify(QpState.RTS)
    wire.run()
    assert [entry.wr_id for entry in end.sent()] == [1]


def test_a_q_key_with_its_upper_bit_stands_for_the_own_one() -> None:
    net = Net(1, 1)
    net.ends[1][0].receive(0, 64)
    net.send((0, 0), (1, 0), 8, remote_q_key=1 << 31)
    wire = net.wire()
    wire.run()
    assert wire.packets(0)[0].header(DETH).q_key == Q_KEY
    assert statuses(net.ends[0][0]) == [SUCCESS]


def test_of_a_message_that_was_not_begun_the_peer_need_not_be_told() -> None:
    net = Net(2, 1)
    end = net.ends[0][0]
    bad = ScatterGather(MEMORY_BASE, 8, 0xBAD)
    to = {"eec": net.contexts[0, 1].number, "remote_qp": net.ends[1][0].qp.number, "remote_q_key": Q_KEY}
    end.qp.post_send(SendRequest(0, SendOpcode.SEND, [bad], **to))
    net.ends[1][0].receive(0, 64)
    net.send((0, 1), (1, 0), 8)
    wire = net.wire()
    wire.run()
    assert [statuses(one) for one in net.ends[0]] == [[CompletionStatus.LOC_PROT_ERR], [SUCCESS]]
    assert [(packet.bth.opcode, packet.bth.psn) for packet in wire.packets(0)] == [(Opcode.RD_SEND_ONLY, 0)]


def test_resync_takes_the_psn_after_the_last_one_sent_and_the_next_message_the_one_after_that() -> None:
    net = Net(2, 1)
    for number in range(2):
        net.ends[1][0].receive(0, 1024, number)
        net.send((0, number), (1, 0), 1000)
    net.ends[1][0].adapter.receive(net.ends[0][0].adapter.poll(0).data, 1)
    net.ends[0][0].qp.modify(QpState.RESET)
    wire = net.wire()
    wire.run()
    sent = [(packet.bth.opcode, packet.bth.psn) for packet in wire.packets(0)]
    assert sent[:2] == [(Opcode.RD_RESYNC, 1), (Opcode.RD_SEND_FIRST, 2)]
    assert statuses(net.ends[0][1]) == [SUCCESS]


def test_resync_does_not_wait_for_a_receiver() -> None:
    net = Net(1, 1)
    net.send((0, 0), (1, 0), 8)
    wire = net.wire()
    wire.run(2 * LATENCY + 20)
    net.ends[0][0].qp.modify(QpState.ERR)
    wire.run(4 * LATENCY + 60)
    assert [packet.bth.opcode for packet in wire.packets(0)] == [Opcode.RD_SEND_ONLY, Opcode.RD_RESYNC]
    assert wire.packets(1)[-1].header(AETH).syndrome >> 5 == AckKind.ACK


def test_a_resync_that_comes_late_once_more_changes_nothing() -> None:
    net = Net(1, 1)
    end, peer = net.ends[0][0], net.ends[1][0]
    net.send((0, 0), (1, 0), 8, SendOpcode.RDMA_WRITE, r_key=0xBAD)
    wire = net.wire()
    wire.run()
    [resync] = [data for side, data in wire.log if side == 0 and parse(data).bth.opcode == Opcode.RD_RESYNC]
    end.qp.modify(QpState.RTS)
    for times in (1, 2):
        net.send((0, 0), (1, 0), 8, SendOpcode.ATOMIC_FETCH_AND_ADD, compare_add=1)
        wire.run()
        peer.adapter.receive(resync, wire.now)
        wire.run()
        assert peer.get(0, 8) == times.to_bytes(8, "little")
    assert statuses(end) == [CompletionStatus.REM_ACCESS_ERR, SUCCESS, SUCCESS]


def test_a_read_that_resync_ends_is_not_answered_any_more() -> None:
    net = Net(1, 1)
    end, peer = net.ends[0][0], net.ends[1][0]
    net.send((0, 0), (1, 0), 1000, SendOpcode.RDMA_READ)
    peer.adapter.receive(end.adapter.poll(0).data, 1)
    assert parse(peer.adapter.poll(1).data).bth.opcode == Opcode.RD_RDMA_READ_RESPONSE_FIRST
    end.qp.modify(QpState.ERR)
    wire = net.wire()
    peer.adapter.receive(end.adapter.poll(2).data, 3)
    wire.run()
    assert [packet.bth.opcode for packet in wire.packets(1)] == [Opcode.RD_ACKNOWLEDGE]


def test_a_gap_right_after_resync_is_told() -> None:
    net = Net(1, 1)
    net.send((0, 0), (1, 0), 8, SendOpcode.RDMA_WRITE, r_key=0xBAD)
    net.wire().run()
    net.ends[0][0].qp.modify(QpState.RTS)
    net.send((0, 0), (1, 0), 600, SendOpcode.RDMA_WRITE)
    wire = net.wire(fate=lambda number, side, data: [] if number == 0 else [LATENCY])
    wire.run()
    naks = [packet.header(AETH).syndrome for packet in wire.packets(1)]
    assert (ack_kind(naks[0]), ack_value(naks[0])) == (AckKind.NAK, NakCode.PSN_SEQUENCE_ERROR)
    assert statuses(net.ends[0][0])[-1:] == [SUCCESS]


@pytest.mark.parametrize("state", [QpState.RESET, QpState.ERR])
def test_a_queue_pair_that_takes_nothing_is_an_invalid_request(state: QpState) -> None:
    net = Net(1, 1)
    net.ends[1][0].qp.modify(state)
    net.send((0, 0), (1, 0), 8)
    net.wire().run()
    assert statuses(net.ends[0][0]) == [CompletionStatus.REM_INV_RD_REQ_ERR]


def test_a_message_for_a_queue_pair_that_has_ended_is_completed_nowhere() -> None:
    net = Net(1, 1)
    peer = net.ends[1][0]
    peer.receive(0, 1024)
    net.send((0, 0), (1, 0), 1000)
    peer.adapter.receive(net.ends[0][0].adapter.poll(0).data, 1)
    peer.adapter.destroy_qp(peer.qp)
    net.wire().run()
    assert statuses(net.ends[0][0]) == [CompletionStatus.REM_INV_RD_REQ_ERR]
    assert not peer.received()


def test_a_request_that_is_refused_when_it_is_found_ends_in_its_turn() -> None:
    net = Net(1, 1)
    net.ends[1][0].receive(0, 64)
    net.send((0, 0), (1, 0), 8)
    net.ends[0][0].qp.refuse(SendRequest(1, SendOpcode.SEND), CompletionStatus.LOC_QP_OP_ERR)
    net.wire().run()
    assert statuses(net.ends[0][0]) == [SUCCESS, CompletionStatus.LOC_QP_OP_ERR]


def test_credits_are_not_told() -> None:
    net = Net(1, 1)
    net.ends[1][0].receive(0, 64)
    net.send((0, 0), (1, 0), 8)
    wire = net.wire()
    wire.run()
    assert [packet.header(AETH).syndrome for packet in wire.packets(1)] == [NO_CREDIT_COUNT]


def test_a_queue_pair_of_rd_has_a_domain_of_rd_and_no_other_has() -> None:
    end = make_end(1)
    for kind, rdd in ((QpType.RD, None), (QpType.RC, end.adapter.allocate_rdd()), (QpType.EEC, None)):
        with pytest.raises(ValueError, match=f"{kind.name} queue pair, domain of RD"):
            end.adapter.create_qp(kind, end.pd, end.send_cq, end.recv_cq, rdd=rdd)


@pytest.mark.parametrize(("state", "ends_with"), [(QpState.ERR, [FLUSHED, FLUSHED]), (QpState.RESET, [])])
def test_receive_requests_of_messages_under_way_end_with_their_queue_pair(
    state: QpState, ends_with: list[CompletionStatus]
) -> None:
    net = Net(1, 1)
    peer = net.ends[1][0]
    for _ in range(2):
        peer.receive(0, 1024)
    net.send((0, 0), (1, 0), 1000)
    peer.adapter.receive(net.ends[0][0].adapter.poll(0).data, 1)
    peer.qp.modify(state)
    net.wire().run()
    assert [entry.status for entry in peer.received()] == ends_with
    assert statuses(net.ends[0][0]) == [CompletionStatus.REM_INV_RD_REQ_ERR]
