"""Messages in segments: taken apart, acknowledged window by window, put together."""

from random import Random

import pytest

from sm.rmpp import WINDOW, RmppReceiver, RmppSender
from wire.mad import MAD_BYTES, MgmtClass
from wire.rmpp import RMPP_HEADER, SEGMENT_BYTES, RmppFlags, RmppStatus, RmppType, data_offset

SA_OFFSET = 56
ROOM = MAD_BYTES - SA_OFFSET


def message(size: int, seed: int = 1) -> bytes:
    """An answer of the SA with so many bytes of data."""
    head = bytes([1, MgmtClass.SUBN_ADM, 2, 0x92, 0, 0, 0, 0]) + bytes(range(8)) + bytes(SA_OFFSET - 16)
    return head + Random(seed).randbytes(size)


def carried(sender: RmppSender, lose: set[int] = frozenset()) -> tuple[bytes, int]:
    """What arrives, and how many segments it took; of those lost by their place, the sender sends more."""
    receiver = RmppReceiver(0)
    queue, count = sender.due(), 0
    while receiver.message is None or not sender.finished:
        if not queue:
            queue = sender.again()
        segment = queue.pop(0)
        count += 1
        acknowledgement = None if count in lose else receiver.receive(segment)
        if acknowledgement is not None:
            header = RMPP_HEADER.unpack(acknowledgement)
            assert header.rmpp_type == RmppType.ACK
            assert sender.acknowledge(header.segment_number, header.payload_length) is RmppStatus.NORMAL
            queue += sender.due()
    return receiver.message, count


@pytest.mark.parametrize("size", [0, 1, 199, 200, 201, 400, 20_000, 1_000_003])
def test_a_message_of_any_length_arrives_as_it_was(size):
    sent = message(size)
    arrived, count = carried(RmppSender(sent))
    assert arrived[SA_OFFSET:] == sent[SA_OFFSET:]
    assert count == max(1, -(-size // ROOM))


def test_the_first_segment_says_how_long_all_is_and_the_last_how_long_itself_is():
    segments = [RMPP_HEADER.unpack(segment) for segment in _all_segments(RmppSender(message(450)))]
    assert [segment.payload_length for segment in segments] == [3 * SEGMENT_BYTES - 150, 0, SEGMENT_BYTES - 150]
    assert [segment.rmpp_flags for segment in segments] == [
        RmppFlags.ACTIVE | RmppFlags.FIRST,
        RmppFlags.ACTIVE,
        RmppFlags.ACTIVE | RmppFlags.LAST,
    ]
    assert [segment.segment_number for segment in segments] == [1, 2, 3]


def _all_segments(sender: RmppSender) -> list[bytes]:
    found = []
    while segments := sender.due():
        found += segments
        assert sender.acknowledge(len(found), len(found) + WINDOW) is RmppStatus.NORMAL
    return found


def test_one_segment_is_sent_until_the_receiver_has_opened_its_window():
    sender = RmppSender(message(100 * ROOM))
    assert len(sender.due()) == 1
    assert sender.due() == []
    assert sender.acknowledge(1, 1 + WINDOW) is RmppStatus.NORMAL
    assert len(sender.due()) == WINDOW


@pytest.mark.parametrize("seed", range(5))
def test_lost_segments_are_sent_again(seed):
    print(f"seed {seed}")
    lose = set(Random(seed).sample(range(1, 300), 40))
    sent = message(50_000, seed)
    assert carried(RmppSender(sent), lose)[0][SA_OFFSET:] == sent[SA_OFFSET:]


def test_a_late_segment_of_a_complete_message_is_acknowledged_once_more():
    sender, receiver = RmppSender(message(100)), RmppReceiver(0)
    (segment,) = sender.due()
    assert receiver.receive(segment) == receiver.receive(segment)
    assert receiver.message == segment[: SA_OFFSET + 100]


@pytest.mark.parametrize(
    ("segment", "window", "status"),
    [(2, 70, RmppStatus.SEGMENT_TOO_BIG), (1, 0, RmppStatus.NEW_WINDOW_TOO_SMALL)],
)
def test_an_acknowledgement_that_cannot_be_is_refused(segment, window, status):
    sender = RmppSender(message(1_000))
    sender.due()
    assert sender.acknowledge(segment, window) is status


def test_an_acknowledgement_of_an_answer_is_a_request_by_its_method():
    (segment,) = RmppSender(message(10)).due()
    acknowledgement = RmppReceiver(0).receive(segment)
    assert acknowledgement is not None
    assert (segment[3], acknowledgement[3]) == (0x92, 0x12)
    assert acknowledgement[8:16] == segment[8:16]


@pytest.mark.parametrize(("mgmt_class", "offset"), [(0x03, 56), (0x06, 64), (0x32, 40)])
def test_data_begin_where_the_class_says(mgmt_class, offset):
    assert data_offset(mgmt_class) == offset
