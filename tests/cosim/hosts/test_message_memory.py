"""The data of messages: other for each, and compared wherever it is written."""

import pytest

from cosim.hosts.message_memory import ArrivingMessages, AtomicResults, MessageContent, SentMessages
from verbs.memory import MemoryFaultError

SIZE = 1_200_000


def test_a_part_of_a_message_is_that_of_the_whole():
    content = MessageContent(3)
    whole = content.part(7, 0, SIZE)
    assert len(whole) == SIZE
    for offset, length in ((0, 8), (0, 5), (3, 20), (65_520, 3), (131_000, 66_000), (1_048_572, 2)):
        assert content.part(7, offset, length) == whole[offset : offset + length]


def test_messages_and_packets_of_one_differ_from_all_others():
    pieces = {
        MessageContent(flow).part(number, offset, 2_048)
        for flow in range(4)
        for number in range(50)
        for offset in range(0, 200_000, 2_048)
    }
    assert len(pieces) == 4 * 50 * len(range(0, 200_000, 2_048))


def test_a_message_says_its_number_and_another_flow_is_not_taken_for_this():
    data = MessageContent(3).part(70_000, 0, 64)
    assert MessageContent(3).number_in(data) == 70_000
    assert MessageContent(4).number_in(data) is None


def arriving(flow: int = 3, size: int = 5_000, head: int = 0) -> ArrivingMessages:
    return ArrivingMessages(MessageContent(flow), size, head=head)


def test_what_is_written_as_it_is_sent_is_right():
    sent, arrived = SentMessages(MessageContent(3), 5_000), arriving()
    for at in range(0, 5_000, 2_000):
        arrived.write(2 * 5_000 + at, sent.read(2 * 5_000 + at, min(2_000, 5_000 - at)))
    assert arrived.take(2) == (2, "")


def test_a_place_may_get_any_message_that_says_its_number():
    """As receive requests do; what the first one began, another one begins anew."""
    content, arrived = MessageContent(3), arriving(size=4_000)
    arrived.write(0, content.part(8, 0, 2_000))
    arrived.write(0, content.part(9, 0, 2_000))
    arrived.write(2_000, content.part(9, 2_000, 2_000))
    assert arrived.take(0) == (9, "")


def test_room_before_a_datagram_is_not_looked_at():
    arrived = arriving(size=100, head=40)
    arrived.write(140, bytes(40))
    arrived.write(180, MessageContent(3).part(5, 0, 100))
    assert arrived.take(1) == (5, "")


@pytest.mark.parametrize(
    ("writes", "wrong"),
    [
        ([(0, b"", 5_000)], ""),
        ([(0, b"", 4_000)], "4000 bytes are there, expected 5000"),
        ([], "0 bytes are there, expected 5000"),
        ([(0, b"", 2_000), (3_000, b"", 2_000)], "byte 2000 is missing"),
        ([(0, b"", 2_000), (2_000, b"\xff", 3_000)], "byte 2010 is "),
        ([(0, bytes(8), 5_000)], "of another flow"),
    ],
)
def test_what_is_wrong_is_said(writes, wrong):
    content, arrived = MessageContent(3), arriving()
    for offset, change, length in writes:
        data = bytearray(content.part(0, offset, length))
        if len(change) == 1:
            data[10] ^= 0xFF
        elif change:
            data[: len(change)] = change
        arrived.write(offset, bytes(data))
    number, text = arrived.take(0)
    assert number == 0
    assert text.startswith(wrong)
    assert bool(text) == bool(wrong)


def test_whoever_wants_it_is_told_of_a_whole_message():
    arrived, told = arriving(size=16), []
    arrived.on_whole = told.append
    data = MessageContent(3).part(1, 0, 16)
    arrived.write(16, data[:8])
    assert told == []
    arrived.write(24, data[8:])
    assert told == [1]


def test_an_atomic_finds_what_the_one_before_has_left():
    arrived = ArrivingMessages(AtomicResults(), 8)
    arrived.write(0, (0).to_bytes(8, "little"))
    arrived.write(8, (0).to_bytes(8, "little"))
    assert arrived.take(0) == (0, "")
    assert arrived.take(1) == (1, "byte 0 is 0x00, sent was 0x01")


def test_memory_has_one_direction():
    with pytest.raises(MemoryFaultError, match="only read"):
        SentMessages(MessageContent(0), 8).write(0, bytes(8))
    with pytest.raises(MemoryFaultError, match="only written"):
        arriving().read(0, 8)
