"""What a story tells of messages, and of what their transports live through."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cosim.analysis.event import Event
from cosim.analysis.observer import Observer
from cosim.scenario.tables import EventName
from cosim.stimulus.message_events import MessageEvent, MessageStep
from cosim.topology.topology import Port
from verbs.completions import CompletionStatus
from verbs.incidents import Incident

__all__ = ["MessageStory"]


class MessageStory(Observer):
    """Makes events of a story of what messages live through. Requests that are flushed together are one."""

    def __init__(self, flow_names: Sequence[str], report: Callable[[Event], None]) -> None:
        """Flows by number; REPORT takes each event, not quite in the order of cycles."""
        self._flow_names = flow_names
        self._report = report
        self._flushed: list[MessageEvent] = []

    def follow_message(self, event: MessageEvent) -> None:
        """Tell of one event."""
        if event.what is MessageStep.POSTED:
            return
        together = event.stream, event.cycle, event.host
        if self._flushed and (self._flushed[0].stream, self._flushed[0].cycle, self._flushed[0].host) != together:
            self._tell_flushed()
        if event.status is CompletionStatus.WR_FLUSH_ERR:
            self._flushed.append(event)
        else:
            self._tell(event, _text(event))

    def finish(self) -> None:
        """Tell what is left."""
        self._tell_flushed()

    def _tell_flushed(self) -> None:
        if self._flushed:
            first, last = self._flushed[0], self._flushed[-1]
            several = f"messages {first.number} to {last.number} end"
            self._tell(first, f"{f'message {first.number} ends' if first is last else several} flushed, WR_FLUSH_ERR")
            self._flushed.clear()

    def _tell(self, event: MessageEvent, text: str) -> None:
        whose = "" if len(self._flow_names) <= 1 else f"{self._flow_names[event.stream]}: "
        name: EventName = "message" if event.what is MessageStep.ARRIVED else "recovery"
        self._report(Event(event.cycle, Port(event.host, 1), name, whose + text))


def _text(event: MessageEvent) -> str:
    """An event for a reader."""
    number, psn = event.number, event.psn
    match event.what:
        case MessageStep.POSTED:
            return f"posts message {number}"
        case MessageStep.ARRIVED:
            return f"message {number} is there, {event.cycles:,} cycles after it was posted"
        case MessageStep.FAILED:
            return f"message {number} ends with {event.status.name}"
        case MessageStep.WRONG:
            return f"message {number} is wrong: {event.text}" if number >= 0 else event.text
        case Incident.SEQUENCE_NAK:
            return f"gets NAK PSN sequence error of PSN {psn}"
        case Incident.RNR_NAK:
            return f"gets RNR NAK of PSN {psn}: the receiver wants {event.cycles:,} cycles"
        case Incident.IMPLIED_NAK:
            return f"gets an answer from behind PSN {psn}, whose own is missing"
        case Incident.TIMEOUT:
            return f"has had no answer to PSN {psn} for {event.cycles:,} cycles, its Local ACK Timeout"
        case Incident.OUT_OF_SEQUENCE:
            return f"gets a packet from behind PSN {psn}, which is missing: answers NAK PSN sequence error"
        case Incident.NOT_READY:
            return f"has no receive request for PSN {psn}: answers RNR NAK"
        case Incident.REFUSED:
            return f"refuses PSN {psn}: answers NAK"
        case Incident.DUPLICATE:
            return f"gets a packet from before PSN {psn} once more"
        case Incident.BECN:
            return f"gets BECN with PSN {psn}: what it has sent met congestion"
