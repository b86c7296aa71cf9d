"""An observer that keeps all that it gets."""

from cosim.analysis.observer import Observer
from cosim.stimulus.packet import Packet
from sm.events import Event
from wire.stimulus import Delivery
from wire.trace import Record


class Recorder(Observer):
    """What came of a run."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.records: list[Record] = []
        self.deliveries: list[Delivery] = []
        self.events: list[tuple[str, int, Event]] = []
        self.finished = False

    def offer(self, packet: Packet) -> None:
        self.packets.append(packet)

    def observe(self, record: Record) -> None:
        self.records.append(record)

    def deliver(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)

    def manage(self, host: str, cycle: int, event: Event) -> None:
        self.events.append((host, cycle, event))

    def finish(self) -> None:
        self.finished = True
