"""Events in pipes: given, kept while there is no room, taken back."""

import os

import pytest

from doors.uverbs.event_channel import EventChannel
from doors.uverbs.layouts import ASYNC_EVENT_DESC, COMP_EVENT_DESC


@pytest.fixture
def channel():
    made = EventChannel(COMP_EVENT_DESC)
    yield made
    made.close()


@pytest.fixture
def end(channel):
    taken = channel.take_end()
    os.set_blocking(taken, False)
    yield taken
    os.close(taken)


def events(end: int) -> list[int]:
    try:
        data = os.read(end, 1 << 20)
    except BlockingIOError:
        return []
    return [COMP_EVENT_DESC.unpack(data, at).cq_handle for at in range(0, len(data), 8)]


def test_events_come_in_order(channel, end):
    for number in range(5):
        channel.send(cq_handle=number)
    assert events(end) == [0, 1, 2, 3, 4]


def test_events_without_room_are_kept_until_there_is(channel, end):
    for number in range(20_000):
        channel.send(cq_handle=number)
    found = []
    while more := events(end):
        found += more
        channel.push()
    assert found == list(range(20_000))


def test_events_that_were_not_read_are_taken_back_and_others_stay(channel, end):
    for number in range(20_000):
        channel.send(cq_handle=number % 3)
    assert channel.withdraw(1) == 6667
    assert channel.withdraw(1) == 0
    found = []
    while more := events(end):
        found += more
        channel.push()
    assert found == [number % 3 for number in range(20_000) if number % 3 != 1]


def test_a_program_that_has_closed_its_end_is_noticed_and_does_no_harm(channel):
    assert not channel.is_left
    end = channel.take_end()
    assert not channel.is_left
    os.close(end)
    assert channel.is_left
    channel.send(cq_handle=1)
    assert channel.withdraw(1) == 0


def test_an_asynchronous_event_says_of_what_it_is():
    channel = EventChannel(ASYNC_EVENT_DESC)
    end = channel.take_end()
    channel.send(element=0x1234, event_type=3)
    event = ASYNC_EVENT_DESC.unpack(os.read(end, 100))
    assert (event.element, event.event_type) == (0x1234, 3)
    channel.close()
    assert os.read(end, 100) == b"", "the end"
    os.close(end)
