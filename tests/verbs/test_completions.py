"""Completion queues: order, room, notification (IBTA vol 1, 11.4.2)."""

from tests.verbs.ends import connected, make_end, wire_between
from verbs.completions import (
    AsyncEventType,
    CompletionOpcode,
    CompletionQueue,
    CompletionStatus,
    WorkCompletion,
)


def entry(number: int, status: CompletionStatus = CompletionStatus.SUCCESS) -> WorkCompletion:
    return WorkCompletion(number, status, CompletionOpcode.SEND, 2)


def told_of(queue: CompletionQueue) -> list[int]:
    told: list[int] = []
    queue.on_completion = lambda: told.append(len(queue))
    return told


def test_entries_are_polled_in_the_order_in_which_they_came() -> None:
    queue = CompletionQueue(8)
    for number in range(5):
        queue.add(entry(number))
    assert [one.wr_id for one in queue.poll(2)] == [0, 1]
    assert [one.wr_id for one in queue.poll(10)] == [2, 3, 4]
    assert queue.poll() == []


def test_a_notification_comes_once_for_each_request_and_only_for_what_comes_after_it() -> None:
    queue = CompletionQueue(8)
    told = told_of(queue)
    queue.add(entry(0))
    queue.request_notification()
    assert told == []
    queue.add(entry(1))
    queue.add(entry(2))
    assert told == [2]


def test_a_request_for_solicited_entries_is_answered_by_those_and_by_failures() -> None:
    queue = CompletionQueue(8)
    told = told_of(queue)
    queue.request_notification(solicited_only=True)
    queue.add(entry(0))
    queue.add(entry(1), solicited=True)
    queue.request_notification(solicited_only=True)
    queue.add(entry(2, CompletionStatus.WR_FLUSH_ERR))
    assert told == [2, 3]


def test_of_two_requests_the_wider_one_stays() -> None:
    for first, second in ((False, True), (True, False)):
        queue = CompletionQueue(8)
        told = told_of(queue)
        queue.request_notification(solicited_only=first)
        queue.request_notification(solicited_only=second)
        queue.add(entry(0))
        assert told == [1]


def test_an_entry_without_room_is_an_event_and_the_queue_takes_no_more() -> None:
    end = make_end(1)
    queue = end.adapter.create_cq(1)
    for number in range(3):
        queue.add(entry(number))
    assert [(event.type, event.source) for event in end.events] == [(AsyncEventType.CQ_ERR, queue)]
    assert [one.wr_id for one in queue.poll(5)] == [0]
    queue.add(entry(3))
    assert queue.poll(5) == []


def test_a_shared_receive_queue_below_its_limit_is_told_once() -> None:
    a, b = connected(shared=True)
    assert b.srq is not None
    for _ in range(5):
        b.receive(0, 64)
    b.srq.limit = 3
    for left in (4, 3, 2, 1):
        a.send(0, 8)
        wire_between(a, b).run()
        limits = [event for event in b.events if event.type is AsyncEventType.SRQ_LIMIT_REACHED]
        assert [event.source for event in limits] == ([b.srq] if left < 3 else [])
    assert b.srq.limit == 0
