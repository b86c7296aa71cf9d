"""CongestionLog: packets that a switch marked last (docs/pipeline.md, section 7.3; docs/management.md, section 7)."""

from typing import Final

from wire.congestion_control import CONGESTION_LOG, CONGESTION_LOG_EVENT, CONGESTION_LOG_EVENTS
from wire.registers import DATA_BITS

from ..kernel import STATE, UPDATE, Kernel
from ..packet import Packet
from .congestion_words import word_of_data

__all__ = ["CongestionLog"]

_SHOWN_AFTER: Final = 2
"""Cycles from the marked row on the wire until its event is visible."""
_STAMP_CYCLES: Final = 256
_STAMPS: Final = 1 << 32
_COUNTER_WORD: Final = 0
_PORTS: Final = CONGESTION_LOG["port_map"]
_FIRST_PORTS: Final = _PORTS.offset_bits // DATA_BITS
_LAST_PORTS: Final = _PORTS.end_bits // DATA_BITS - 1
_PORTS_MASK: Final = (1 << DATA_BITS) - 1


class CongestionLog:
    """A switch's."""

    def __init__(self, kernel: Kernel, epoch: int) -> None:
        """`epoch` is the switch's cycle 0."""
        self._kernel = kernel
        self._epoch = epoch
        self._counter = 0
        self._port_map = 0
        self._events: list[int] = []  # the latest first
        # Of the last cycle in which there were some: the packets whose marked rows were on the wires, by their ports.
        self._marked: dict[int, Packet] = {}
        self._marked_in = -1

    def time_stamp(self) -> int:
        """That of the current cycle."""
        return (self._kernel.now - self._epoch) // _STAMP_CYCLES % _STAMPS

    def mark(self, port: int, packet: Packet) -> None:
        """The row with FECN of a marked packet is on a port's wires in the current cycle, before phase `MATCH`."""
        now = self._kernel.now
        if self._marked_in != now:
            self._marked, self._marked_in = {}, now
            self._kernel.at(now + _SHOWN_AFTER, UPDATE, self._show, (self._marked, self.time_stamp()))
        self._marked[port] = packet

    def _show(self, of: tuple[dict[int, Packet], int]) -> None:
        marked, stamp = of
        packet = marked[min(marked)]
        fields = {"slid": packet.slid, "dlid": packet.dlid, "sl": packet.sl, "time_stamp": stamp}
        self._events = [CONGESTION_LOG_EVENT.to_int(fields), *self._events[: CONGESTION_LOG_EVENTS - 1]]
        self._counter = min(self._counter + 1, CONGESTION_LOG["log_events_counter"].max)
        for port in marked:
            self._port_map |= 1 << port

    def read(self, word: int) -> int:
        """A word, as visible in the current cycle, and the next one shows it cleared."""
        if word == _COUNTER_WORD or _FIRST_PORTS <= word <= _LAST_PORTS:
            self._kernel.at(self._kernel.now + 1, STATE, self._clear, word)  # before an event that shows then
        fields = {"log_events_counter": self._counter, "current_time_stamp": self.time_stamp()}
        fields["port_map"] = self._port_map
        fields |= {f"event{index}": event for index, event in enumerate(self._events)}
        return word_of_data(CONGESTION_LOG.pack(fields), word)

    def _clear(self, word: int) -> None:
        if word == _COUNTER_WORD:
            self._counter = 0
        else:
            self._port_map &= ~(_PORTS_MASK << DATA_BITS * (_LAST_PORTS - word))
