"""What each stream of messages got: messages and bytes, latency, and what its transport had to recover from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from cosim.analysis.latency import Latencies
from cosim.analysis.observer import Observer
from cosim.stimulus.flows import MessageStream
from cosim.stimulus.message_events import MessageEvent, MessageStep
from cosim.topology.topology import Topology
from verbs.completions import CompletionStatus
from verbs.incidents import Incident
from wire.parameters import node_text

__all__ = ["MessageMeasurement", "ServedMessages"]

_KEPT_FAULTS: Final = 20
_RETRIES: Final = (Incident.SEQUENCE_NAK, Incident.IMPLIED_NAK, Incident.TIMEOUT, Incident.RNR_NAK)


@dataclass(slots=True)
class ServedMessages:
    """What became of a stream's messages.

    Attributes:
        stream: the stream.
        link_cycles: for which a message keeps the narrowest link of its path busy, headers and all.
        posted, arrived: messages that were posted, and whose data is where it should be, by then known to the host.
        latencies: of those that arrived, from one to the other, in cycles.
        first, last: cycles in which the first and the last of them arrived.
        failed: requests that ended with an error, by status.
        incidents: what the transport lived through.
    """

    stream: MessageStream
    link_cycles: int
    posted: int = 0
    arrived: int = 0
    latencies: Latencies = field(default_factory=Latencies)
    first: int = 0
    last: int = 0
    failed: Counter[CompletionStatus] = field(default_factory=Counter)
    incidents: Counter[Incident] = field(default_factory=Counter)

    @property
    def payload_bytes(self) -> int:
        """Of what arrived."""
        return self.arrived * self.stream.flow.size

    @property
    def retries(self) -> int:
        """How often the requester went back, to send again."""
        return sum(self.incidents[incident] for incident in _RETRIES)

    @property
    def bytes_per_cycle(self) -> float:
        """Payload from the first arrival to the last; 0 if there are no two."""
        cycles = self.last - self.first
        return (self.arrived - 1) * self.stream.flow.size / cycles if cycles else 0.0

    @property
    def share(self) -> float:
        """The same as a share of what headers leave: of a link that carries nothing but such messages."""
        return self.bytes_per_cycle * self.link_cycles / self.stream.flow.size


class MessageMeasurement(Observer):
    """Follows messages. Those that are posted and arrive in a run are measured, whenever that is.

    Attributes:
        served: by number of the stream.
        fault_count: messages that are not as they were sent.
        faults: the first of them.
    """

    def __init__(self, topology: Topology, first: int, streams: Sequence[MessageStream]) -> None:
        """Streams of messages are numbered from `first` on."""
        self.served = {
            number: ServedMessages(stream, stream.link_cycles(topology)) for number, stream in enumerate(streams, first)
        }
        self.fault_count = 0
        self.faults: list[str] = []

    @property
    def missing(self) -> int:
        """Messages that were posted and did not arrive as they were sent."""
        return sum(served.posted - served.arrived for served in self.served.values())

    def follow_message(self, event: MessageEvent) -> None:
        """Count one event, unless it is of a stream of packets."""
        served = self.served.get(event.stream)
        if served is None:
            return
        match event.what:
            case MessageStep.POSTED:
                served.posted += 1
            case MessageStep.ARRIVED:
                if not served.arrived:
                    served.first = event.cycle
                served.last = event.cycle
                served.arrived += 1
                served.latencies.add(event.cycles)
            case MessageStep.FAILED:
                served.failed[event.status] += 1
            case MessageStep.WRONG:
                self.fault_count += 1
                if len(self.faults) < _KEPT_FAULTS:
                    name = f"cycle {event.cycle}, {node_text(event.host)}"
                    which = f"message {event.number} of {served.stream.name}: " if event.number >= 0 else ""
                    self.faults.append(f"{name}: {which}{event.text}")
            case incident:
                served.incidents[incident] += 1
