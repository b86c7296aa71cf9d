"""What an adapter has, how much of it, and what may go when (IBTA vol 1, 11.2)."""

import re
from collections import deque
from collections.abc import Callable

import pytest

from tests.verbs.ends import ALL_ACCESS, MEMORY_BASE, End, connected, make_end, wire_between
from verbs.adapter import Adapter
from verbs.address import AddressVector
from verbs.completions import AsyncEventType, CompletionOpcode, CompletionStatus, WorkCompletion
from verbs.limits import AdapterLimits, LimitError
from verbs.port import Port
from verbs.queue_pair import QpCapabilities
from verbs.regions import InUseError, Place
from verbs.states import QpState, QpType
from verbs.work import ReceiveRequest, SendOpcode, SendRequest

SUCCESS, FLUSHED = CompletionStatus.SUCCESS, CompletionStatus.WR_FLUSH_ERR


def entry(number: int) -> WorkCompletion:
    return WorkCompletion(number, SUCCESS, CompletionOpcode.SEND, 2)


def test_a_completion_queue_is_resized_down_to_what_it_holds() -> None:
    end = make_end(1)
    queue = end.adapter.create_cq(4)
    for number in range(3):
        queue.add(entry(number))
    end.adapter.resize_cq(queue, 3)
    with pytest.raises(ValueError, match="completion queue of 2 entries: it holds 3, allowed 3 and above"):
        end.adapter.resize_cq(queue, 2)
    end.adapter.resize_cq(queue, 5)
    for number in range(3, 5):
        queue.add(entry(number))
    assert [one.wr_id for one in queue.poll(9)] == list(range(5))
    assert not end.events


def test_queue_pairs_of_a_completion_queue_that_is_overrun_are_in_error_and_others_go_on() -> None:
    a, b = connected()
    small = b.adapter.create_cq(1)
    b.qp.pair.recv_cq = small
    spared = b.adapter.create_qp(QpType.UD, b.pd, b.send_cq, b.send_cq)
    spared.modify(QpState.INIT, p_key_index=0, port=1, q_key=1)
    in_reset = b.adapter.create_qp(QpType.UD, b.pd, small, small)
    for number in range(3):
        b.receive(0, 64, number)
    b.send(0, 8, wr_id=9)
    a.send(0, 8)
    a.send(0, 8)
    wire_between(a, b, lambda number, side, data: [100] if side == 0 or number < 5 else []).run(5_000)
    assert b.qp.state is QpState.ERR
    assert (spared.state, in_reset.state) == (QpState.INIT, QpState.RESET)
    assert [(event.type, event.source) for event in b.events] == [
        (AsyncEventType.CQ_ERR, small),
        (AsyncEventType.QP_FATAL, b.qp.number),
    ]
    assert [one.wr_id for one in small.poll(9)] == [0]


@pytest.mark.parametrize("kind", [QpType.RC, QpType.UC, QpType.UD])
def test_a_send_queue_whose_completions_find_no_room_is_in_error(kind: QpType) -> None:
    a, b = connected(kind)
    a.qp.pair.send_cq = a.adapter.create_cq(1)
    handle = a.adapter.create_ah(a.pd, AddressVector(2))
    for _ in range(3):
        b.receive(0, 64)
        a.send(0, 8, handle=handle, remote_qp=b.qp.number, remote_q_key=0x11)
    a.receive(0, 64, wr_id=7)
    wire_between(a, b).run()
    assert a.qp.state is QpState.ERR
    assert len(a.qp.pair.send_cq.poll(9)) == 1
    assert [(one.wr_id, one.status) for one in a.received()] == [(7, FLUSHED)]


def used(end: End) -> list[tuple[str, Callable[[], None], str]]:
    """What is used, how it would go, and by what it is used."""
    adapter, user = end.adapter, f"queue pair {end.qp.number:#x}"
    srq = end.srq
    assert srq is not None
    return [
        ("completion queue", lambda: adapter.destroy_cq(end.recv_cq), user),
        ("shared receive queue", lambda: adapter.destroy_srq(srq), user),
        (f"protection domain {end.pd.number}", lambda: adapter.deallocate_pd(end.pd), user),
    ]


def test_what_a_queue_pair_uses_does_not_go_before_it_and_the_error_names_it() -> None:
    end = make_end(1, shared=True)
    for what, destroy, user in used(end):
        with pytest.raises(InUseError, match=f"{what} is used by {user}"):
            destroy()
    end.adapter.destroy_qp(end.qp)
    end.adapter.destroy_cq(end.recv_cq)
    with pytest.raises(InUseError, match=f"is used by region {end.region.key:#x}, a shared receive queue"):
        end.adapter.deallocate_pd(end.pd)
    assert end.srq is not None
    end.adapter.destroy_srq(end.srq)
    end.adapter.keys.deregister(end.region)
    handle = end.adapter.create_ah(end.pd, AddressVector(2))
    with pytest.raises(InUseError, match="an address handle"):
        end.adapter.deallocate_pd(end.pd)
    end.adapter.destroy_ah(handle)
    end.adapter.deallocate_pd(end.pd)


def test_many_users_are_counted() -> None:
    end = make_end(1)
    for _ in range(5):
        end.adapter.create_ah(end.pd, AddressVector(2))
    with pytest.raises(InUseError, match="and 4 more"):
        end.adapter.deallocate_pd(end.pd)


def test_a_queue_pair_that_ends_lets_go_of_the_windows_that_are_bound_at_it() -> None:
    end = make_end(1)
    keys = end.adapter.keys
    window = keys.allocate_window(end.pd, 2)
    keys.bind(
        *(window, end.region.key, MEMORY_BASE, 64, ALL_ACCESS),
        pd=end.pd,
        qp_number=end.qp.number,
        new_key=window.key,
    )
    with pytest.raises(InUseError, match=f"region {end.region.key:#x} is used by window {window.key:#x}"):
        keys.reregister(end.region, access=ALL_ACCESS)
    end.adapter.destroy_qp(end.qp)
    keys.deregister(end.region)


def test_a_window_of_type_1_outlives_the_queue_pair_that_bound_it() -> None:
    end = make_end(1)
    keys = end.adapter.keys
    window = keys.allocate_window(end.pd, 1)
    where = {"pd": end.pd, "qp_number": end.qp.number, "new_key": window.key}
    keys.bind(window, end.region.key, MEMORY_BASE, 64, ALL_ACCESS, **where)
    end.adapter.destroy_qp(end.qp)
    assert window.region is end.region


def test_a_region_that_is_registered_again_keeps_its_key() -> None:
    a, b = connected()
    key, other = b.region.key, b.adapter.allocate_pd()

    def write(va: int) -> CompletionStatus:
        a.qp.post_send(SendRequest(0, SendOpcode.RDMA_WRITE, [a.piece(0, 16)], remote_va=va, r_key=key))
        wire_between(a, b).run()
        return a.sent()[-1].status

    a.put(0, b"w" * 16)
    b.adapter.keys.reregister(b.region, place=(Place(b.memory, MEMORY_BASE + 512), 64, 0x1000))
    assert write(0x1008) is SUCCESS
    assert b.get(520, 16) == b"w" * 16
    b.adapter.keys.reregister(b.region, pd=other)
    assert write(0x1008) is CompletionStatus.REM_ACCESS_ERR
    with pytest.raises(ValueError, match="need LOCAL_WRITE"):
        b.adapter.keys.reregister(b.region, access=ALL_ACCESS & ~ALL_ACCESS.LOCAL_WRITE)


def test_a_shared_receive_queue_is_modified_within_what_is_posted() -> None:
    _a, b = connected(shared=True)
    assert b.srq is not None
    for _ in range(3):
        b.receive(0, 64)
    b.adapter.modify_srq(b.srq, max_wr=4, limit=2)
    assert (b.srq.max_wr, b.srq.limit) == (4, 2)
    for changes, text in (
        ({"max_wr": 2}, "shared receive queue of 2: 3 are posted, allowed 3 and above"),
        ({"limit": 5}, "limit 5: allowed 0..4"),
        ({"max_wr": 1 << 20}, "max_srq_wr 1048576: allowed 0..16384"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            b.adapter.modify_srq(b.srq, **changes)
    assert (b.srq.max_wr, b.srq.limit) == (4, 2)


@pytest.mark.parametrize(
    ("limits", "make", "text"),
    [
        ({"max_pd": 1}, lambda end: end.adapter.allocate_pd(), "max_pd 2: allowed 0..1"),
        ({"max_cq": 2}, lambda end: end.adapter.create_cq(1), "max_cq 3"),
        ({}, lambda end: end.adapter.create_cq(1 << 22), "max_cqe 4194304: allowed 0..4194303"),
        ({"max_srq": 0}, lambda end: end.adapter.create_srq(end.pd, 1, 1), "max_srq 1"),
        ({}, lambda end: end.adapter.create_srq(end.pd, 1, 28), "max_srq_sge 28: allowed 0..27"),
        ({"max_ah": 0}, lambda end: end.adapter.create_ah(end.pd, AddressVector(2)), "max_ah 1"),
        ({"max_mw": 0}, lambda end: end.adapter.keys.allocate_window(end.pd, 1), "max_mw 1"),
        (
            {"max_mr": 1},
            lambda end: end.adapter.keys.register(end.pd, end.memory, MEMORY_BASE, 8, ALL_ACCESS),
            "max_mr 2",
        ),
        (
            {"max_qp": 1},
            lambda end: end.adapter.create_qp(QpType.RC, end.pd, end.send_cq, end.recv_cq),
            "max_qp 2",
        ),
        (
            {},
            lambda end: end.adapter.create_qp(
                QpType.RC, end.pd, end.send_cq, end.recv_cq, capabilities=QpCapabilities(max_recv_sge=33)
            ),
            "max_sge 33: allowed 0..32",
        ),
    ],
)
def test_more_than_an_adapter_has_is_refused(limits: dict[str, int], make: Callable[[End], object], text: str) -> None:
    end = make_end(1)
    end.adapter = Adapter([Port(1)], limits=AdapterLimits(**limits))
    end.pd = end.adapter.allocate_pd()
    end.send_cq, end.recv_cq = end.adapter.create_cq(1), end.adapter.create_cq(1)
    if limits.get("max_mr") or limits.get("max_qp"):
        end.adapter.keys.register(end.pd, end.memory, MEMORY_BASE, 8, ALL_ACCESS)
        end.adapter.create_qp(QpType.RC, end.pd, end.send_cq, end.recv_cq)
    with pytest.raises(LimitError, match=re.escape(text)):
        make(end)


def test_a_queue_pair_tells_its_attributes_with_the_psns_that_come_next() -> None:
    a, b = connected(sq_psn=5, rq_psn=5)
    b.receive(0, 600)
    a.send(0, 600)
    wire_between(a, b).run()
    assert (a.qp.query().sq_psn, a.qp.query().rq_psn) == (8, 5)
    assert (b.qp.query().sq_psn, b.qp.query().rq_psn) == (5, 8)
    assert (a.qp.query().dest_qp, a.qp.query().path) == (b.qp.number, AddressVector(2))


def test_queues_may_be_kept_elsewhere_and_every_request_that_ends_is_told() -> None:
    a, b = connected()
    posted: deque[ReceiveRequest] = deque([ReceiveRequest(number, [b.piece(0, 64)]) for number in range(2)])
    entries: deque[WorkCompletion] = deque()
    cq = b.adapter.create_cq(8, entries)
    qp = b.adapter.create_qp(QpType.UD, b.pd, cq, cq, posted=posted)
    qp.modify(QpState.INIT, p_key_index=0, port=1, q_key=0x11)
    qp.modify(QpState.RTR)
    qp.modify(QpState.RTS, sq_psn=0)
    ended: list[int] = []
    qp.pair.on_send_ended = lambda request: ended.append(request.wr_id)
    handle = b.adapter.create_ah(b.pd, AddressVector(2))
    for number in range(2):
        qp.post_send(
            SendRequest(
                *(number, SendOpcode.SEND, [b.piece(64, 4)]),
                signaled=False,
                handle=handle,
                remote_qp=qp.number,
                remote_q_key=0x11,
            )
        )
    wire_between(a, b).run()
    assert ended == [0, 1]
    assert not posted
    assert [(one.wr_id, one.byte_len) for one in entries] == [(0, 44), (1, 44)]
