"""States of queue pairs: which follow each other, and what a change of state requires (IBTA vol 1, 10.3.1)."""

import re

import pytest

from tests.verbs.ends import ALL_ACCESS, bring_up, connected, make_end, wire_between
from verbs.address import AddressVector
from verbs.completions import AsyncEventType, CompletionStatus
from verbs.queue_pair import PostError
from verbs.regions import Access
from verbs.states import QpChanges, QpState, QpType, TransitionError, check_transition
from verbs.work import ReceiveRequest, ScatterGather, SendOpcode, SendRequest

RESET, INIT, RTR, RTS, SQD, SQE, ERR = QpState
FLUSHED = CompletionStatus.WR_FLUSH_ERR

THERE_ARE = {
    (RESET, INIT),
    (INIT, INIT),
    (INIT, RTR),
    (RTR, RTS),
    (RTS, RTS),
    (RTS, SQD),
    (SQD, SQD),
    (SQD, RTS),
    (SQE, RTS),
}

PATH = "path path_mtu dest_qp rq_psn"
RETRIES = "sq_psn timeout retry_cnt rnr_retry max_rd_atomic"

REQUIRED = {
    (RESET, INIT): {
        QpType.RC: "p_key_index port access",
        QpType.UC: "p_key_index port access",
        QpType.UD: "p_key_index port q_key",
        QpType.XRC_SEND: "p_key_index port access",
        QpType.XRC_RECV: "p_key_index port access",
        QpType.RD: "access q_key",
        QpType.EEC: "p_key_index port",
    },
    (INIT, RTR): {
        QpType.RC: f"{PATH} max_dest_rd_atomic min_rnr_timer",
        QpType.UC: PATH,
        QpType.UD: "",
        QpType.XRC_SEND: PATH,
        QpType.XRC_RECV: f"{PATH} max_dest_rd_atomic min_rnr_timer",
        QpType.RD: "min_rnr_timer",
        QpType.EEC: f"{PATH} max_dest_rd_atomic",
    },
    (RTR, RTS): {
        QpType.RC: RETRIES,
        QpType.UC: "sq_psn",
        QpType.UD: "sq_psn",
        QpType.XRC_SEND: RETRIES,
        QpType.XRC_RECV: "sq_psn timeout",
        QpType.RD: "",
        QpType.EEC: RETRIES,
    },
}


def required_of(kind: QpType, before: QpState, after: QpState) -> list[str]:
    return REQUIRED.get((before, after), {}).get(kind, "").split()


@pytest.mark.parametrize("kind", QpType)
@pytest.mark.parametrize("before", QpState)
@pytest.mark.parametrize("after", QpState)
def test_there_are_these_transitions_and_no_others(kind: QpType, before: QpState, after: QpState) -> None:
    required = required_of(kind, before, after)
    has_sqe = kind in (QpType.UC, QpType.UD, QpType.RD)
    if after in (RESET, ERR) or ((before, after) in THERE_ARE and (has_sqe or before is not SQE)):
        check_transition(kind, before, after, required)
    else:
        with pytest.raises(TransitionError, match=f"{before.name} to {after.name}: there is no such transition"):
            check_transition(kind, before, after, required)


@pytest.mark.parametrize("kind", QpType)
@pytest.mark.parametrize("step", REQUIRED)
def test_each_required_attribute_is_asked_for_by_name(kind: QpType, step: tuple[QpState, QpState]) -> None:
    required = required_of(kind, *step)
    for left_out in required:
        with pytest.raises(TransitionError, match=f"requires {left_out}"):
            check_transition(kind, *step, [name for name in required if name != left_out])


def test_attributes_of_other_transitions_are_refused_and_those_allowed_named() -> None:
    with pytest.raises(TransitionError, match=re.escape("dest_qp given, allowed access, min_rnr_timer")):
        check_transition(QpType.RC, RTS, RTS, ["dest_qp"])
    with pytest.raises(TransitionError, match="access given, allowed q_key"):
        check_transition(QpType.UD, RTS, RTS, ["access"])
    with pytest.raises(TransitionError, match="sq_psn given, allowed nothing"):
        check_transition(QpType.UD, RTS, ERR, ["sq_psn"])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"port": 2}, "port 2: allowed 1..1"),
        ({"p_key_index": 1}, "p_key_index 1: allowed 0..0"),
        ({"path_mtu": 4096}, "path_mtu 4096: allowed 256, 512, 1024, 2048, 4096, up to the port's 2048"),
        ({"path_mtu": 300}, "path_mtu 300"),
        ({"rq_psn": 1 << 24}, "rq_psn 16777216: allowed 0..16777215"),
        ({"min_rnr_timer": 32}, "min_rnr_timer 32: allowed 0..31"),
    ],
)
def test_values_out_of_range_are_refused(changes: QpChanges, text: str) -> None:
    end = make_end(1)
    given: QpChanges = {"p_key_index": 0, "port": 1, "access": ALL_ACCESS}
    if "port" in changes or "p_key_index" in changes:
        with pytest.raises(ValueError, match=re.escape(text)):
            end.qp.modify(INIT, **{**given, **changes})
        return
    end.qp.modify(INIT, **given)
    ready: QpChanges = {
        "path": AddressVector(2),
        "path_mtu": 256,
        "dest_qp": 3,
        "rq_psn": 0,
        "max_dest_rd_atomic": 1,
        "min_rnr_timer": 1,
    }
    with pytest.raises(ValueError, match=re.escape(text)):
        end.qp.modify(RTR, **{**ready, **changes})
    assert end.qp.state is INIT


def test_work_is_posted_to_send_from_rts_on_and_to_receive_from_init_on() -> None:
    end = make_end(1)
    piece = ScatterGather(0, 0, 0)
    with pytest.raises(PostError, match="it is in RESET"):
        end.qp.post_receive(ReceiveRequest(0, [piece]))
    end.qp.modify(INIT, p_key_index=0, port=1, access=Access.NONE)
    end.qp.post_receive(ReceiveRequest(0, [piece]))
    with pytest.raises(PostError, match="it is in INIT, allowed RTS, SQD, SQE, ERR"):
        end.qp.post_send(SendRequest(0, SendOpcode.SEND))


def test_in_rtr_a_queue_pair_receives_and_tells_that_it_has_heard_of_its_peer() -> None:
    a, b = connected()
    b.qp.modify(RESET)
    b.qp.modify(INIT, p_key_index=0, port=1, access=Access.NONE)
    ready: QpChanges = {"path": AddressVector(1), "path_mtu": 256, "dest_qp": a.qp.number, "rq_psn": 0}
    b.qp.modify(RTR, **ready, max_dest_rd_atomic=1, min_rnr_timer=1)
    for _ in range(2):
        b.receive(0, 64)
        a.send(0, 8)
    wire_between(a, b).run()
    assert len(b.received()) == 2
    assert [event.type for event in b.events] == [AsyncEventType.COMM_EST]


def test_in_init_what_comes_is_dropped_in_silence() -> None:
    a, b = connected(retry_cnt=0)
    b.qp.modify(RESET)
    b.qp.modify(INIT, p_key_index=0, port=1, access=Access.NONE)
    b.qp.post_receive(ReceiveRequest(0, [b.piece(0, 64)]))
    a.send(0, 8)
    wire = wire_between(a, b)
    wire.run()
    assert not wire.packets(1)
    assert [entry.status for entry in a.sent()] == [CompletionStatus.RETRY_EXC_ERR]


@pytest.mark.parametrize("kind", [QpType.RC, QpType.UC])
def test_a_send_queue_that_is_drained_ends_what_it_has_begun_and_begins_nothing(kind: QpType) -> None:
    a, b = connected(kind)
    for number in range(2):
        b.receive(0, 1024)
        a.send(0, 700, wr_id=number)
    outgoing = a.adapter.poll(0)
    a.qp.modify(SQD, sqd_notify=True)
    b.adapter.receive(outgoing.data, 1)
    wire = wire_between(a, b)
    wire.run()
    assert [entry.wr_id for entry in a.sent()] == [0]
    assert [event.type for event in a.events] == [AsyncEventType.SQ_DRAINED]
    a.qp.modify(RTS)
    wire.run()
    assert [entry.wr_id for entry in a.sent()] == [1]


@pytest.mark.parametrize("kind", [QpType.UC, QpType.UD])
def test_after_an_error_of_its_send_queue_a_queue_pair_still_receives_and_can_come_back(kind: QpType) -> None:
    a, _b = connected(kind)
    handle = a.adapter.create_ah(a.pd, AddressVector(2))
    for number, key in enumerate((a.region.key, 0xBAD, a.region.key)):
        piece = ScatterGather(a.memory.base, 8, key)
        a.qp.post_send(SendRequest(number, SendOpcode.SEND, [piece], handle=handle))
    while a.adapter.poll(0):
        pass
    assert [entry.status for entry in a.sent()] == [
        CompletionStatus.SUCCESS,
        CompletionStatus.LOC_PROT_ERR,
        FLUSHED,
    ]
    assert a.qp.state is SQE
    a.qp.post_send(SendRequest(3, SendOpcode.SEND, [a.piece(0, 8)], handle=handle))
    assert [entry.status for entry in a.sent()] == [FLUSHED]
    a.qp.modify(RTS)
    a.qp.post_send(SendRequest(4, SendOpcode.SEND, [a.piece(0, 8)], handle=handle))
    assert a.adapter.poll(0) is not None


def test_each_time_that_a_send_queue_is_drained_is_told() -> None:
    a, _b = connected()
    for times in (1, 2):
        a.qp.modify(SQD, sqd_notify=True)
        a.adapter.poll(0)
        a.qp.modify(SQD, timeout=5)
        a.adapter.poll(0)
        assert [event.type for event in a.events] == [AsyncEventType.SQ_DRAINED] * times
        a.qp.modify(RTS)


def test_reset_forgets_what_was_posted() -> None:
    a, b = connected()
    b.receive(0, 64, wr_id=1)
    b.send(0, 64, wr_id=2)
    b.qp.modify(RESET)
    assert b.qp.query().dest_qp == 0
    bring_up(b, AddressVector(1), a.qp.number)
    b.receive(0, 64, wr_id=3)
    a.send(0, 8)
    wire_between(a, b).run()
    assert [entry.wr_id for entry in b.received()] == [3]
    assert not b.sent()
