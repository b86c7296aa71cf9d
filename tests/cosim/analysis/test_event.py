"""Which events of a story are reported."""

from dataclasses import replace

from cosim.analysis.event import Event, EventFilter
from cosim.scenario.tables import Recording
from cosim.topology.topology import Port

A, B = Port("A", 1), Port("B", 1)


def reported(story: list[Event], **recording) -> list[str]:
    lines: list[str] = []
    events = EventFilter(
        Recording(**recording), lambda event: lines.append(event.text), lambda n: lines.append(f"({n})")
    )
    for event in story:
        events.add(event)
    events.finish()
    return lines


def numbered(count: int) -> list[Event]:
    return [Event(number, A, "send", str(number)) for number in range(count)]


def test_a_long_story_is_reported_by_its_first_and_last_events():
    assert reported(numbered(10), first=3, last=2) == ["0", "1", "2", "(5)", "8", "9"]
    assert reported(numbered(5), first=3, last=2) == ["0", "1", "2", "3", "4"]
    assert reported(numbered(5), first=2, last=0) == ["0", "1", "(3)"]


def test_only_what_is_to_be_recorded_is_reported():
    events = [replace(event, name=name) for event, name in zip(numbered(3), ("send", "credit", "send"), strict=True)]
    events[2] = replace(events[2], place=B)
    assert reported(events, events=("credit",)) == ["1"]
    assert reported(events, nodes=("B",)) == ["2"]
