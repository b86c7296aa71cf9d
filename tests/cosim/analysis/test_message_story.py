"""What a story tells of messages."""

import pytest

from cosim.analysis.event import Event
from cosim.analysis.message_story import MessageStory
from cosim.stimulus.message_events import MessageEvent, MessageStep
from cosim.topology.topology import Port
from verbs.completions import CompletionStatus
from verbs.incidents import Incident


def told(*events: MessageEvent, names: tuple[str, ...] = ("A-B",)) -> list[Event]:
    lines: list[Event] = []
    story = MessageStory(names, lines.append)
    for event in events:
        story.follow_message(event)
    story.finish()
    return lines


def failed(number: int, status: CompletionStatus, cycle: int = 9) -> MessageEvent:
    return MessageEvent(0, cycle, "A", MessageStep.FAILED, number, status=status)


def test_what_arrives_is_told_with_its_latency_and_what_is_posted_is_not():
    (line,) = told(
        MessageEvent(0, 5, "A", MessageStep.POSTED, 4),
        MessageEvent(0, 1_239, "B", MessageStep.ARRIVED, 4, cycles=1_234),
    )
    assert line == Event(1_239, Port("B", 1), "message", "message 4 is there, 1,234 cycles after it was posted")


def test_of_several_flows_each_line_says_which():
    (line,) = told(MessageEvent(1, 5, "A", Incident.SEQUENCE_NAK, psn=17), names=("A-B", "C-D"))
    assert (line.name, line.text) == ("recovery", "C-D: gets NAK PSN sequence error of PSN 17")


def test_requests_flushed_together_are_one_line():
    flush = CompletionStatus.WR_FLUSH_ERR
    lines = told(
        failed(7, CompletionStatus.RETRY_EXC_ERR),
        failed(8, flush),
        failed(9, flush),
        failed(10, flush),
        failed(11, flush, 12),
    )
    assert [(line.cycle, line.text) for line in lines] == [
        (9, "message 7 ends with RETRY_EXC_ERR"),
        (9, "messages 8 to 10 end flushed, WR_FLUSH_ERR"),
        (12, "message 11 ends flushed, WR_FLUSH_ERR"),
    ]


@pytest.mark.parametrize("what", Incident)
def test_each_incident_says_its_psn(what):
    (line,) = told(MessageEvent(0, 5, "A", what, psn=17, cycles=2_500))
    assert "PSN 17" in line.text
    assert ("2,500" in line.text) == (what in (Incident.TIMEOUT, Incident.RNR_NAK))


def test_what_is_wrong_with_a_message_is_told():
    (line,) = told(MessageEvent(0, 5, "B", MessageStep.WRONG, 3, text="byte 9 is 0x00, sent was 0x01"))
    assert line.text == "message 3 is wrong: byte 9 is 0x00, sent was 0x01"
