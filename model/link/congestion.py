"""Congestion control: which packets of a port are marked with FECN (docs/pipeline.md, section 7.3)."""

from typing import Final

from wire.codes import LNH
from wire.congestion_control import SWITCH_PORT_CONGESTION_ELEMENT
from wire.layout import Record

from ..crossing.backlog import Backlog
from ..kernel import DECIDE, END, Kernel
from ..packet import DataTransmission
from .congestion_log import CongestionLog
from .congestion_settings import CongestionSettings

__all__ = ["Congestion"]

_CROWDED_AFTER: Final = 2
"""Cycles from a grant until it is looked whether the slot is crowded."""
_MARKED_AFTER: Final = 3
"""Until it is decided whether its packet is marked, when its first row is in the transmit stage."""
_LNH_SHIFT: Final = 16
_LNH: Final = 3
_FECN_ROWS: Final[dict[int, int]] = {LNH.IBA_LOCAL.value: 3, LNH.IBA_GLOBAL.value: 13}
"""The row with the BTH's byte 4, by LNH."""
_THRESHOLD_BITS: Final = SWITCH_PORT_CONGESTION_ELEMENT.to_int(threshold=15)
_THRESHOLDS: Final = 16
_MOST: Final = 15
"""The threshold that marks soonest."""


class Congestion(Backlog):
    """That of one port's output.

    Attributes:
        settings: its switch's.
        element: register CONGESTION, as visible.
    """

    def __init__(self, kernel: Kernel, vls: int, port: int, settings: CongestionSettings, log: CongestionLog) -> None:
        """`port` is its number; `log` is its switch's."""
        super().__init__(kernel, vls)
        self.settings = settings
        self.element: Record = SWITCH_PORT_CONGESTION_ELEMENT.record()
        self._port = port
        self._log = log
        self._countdown = [0] * vls
        self._least = self._limit(_MOST)

    def _limit(self, threshold: int) -> int:
        """More blocks than that make a slot crowded."""
        return self.settings.blocks * (_THRESHOLDS - threshold) // _THRESHOLDS

    # Registers.

    def given(self, value: int) -> None:
        """A write of CONGESTION is given in the current cycle."""
        if value & _THRESHOLD_BITS:
            self.settings.is_used = True

    def write(self, value: int) -> None:
        """CONGESTION is written, visible in the current cycle. There is no credit starvation."""
        element = SWITCH_PORT_CONGESTION_ELEMENT.from_int(value)
        if not element.control_type:
            self.element = element

    def read(self) -> int:
        """CONGESTION."""
        return SWITCH_PORT_CONGESTION_ELEMENT.to_int(self.element)

    def _setting(self) -> Record:
        """Threshold, packet size and marking rate, as visible: the port's own or the switch's."""
        return self.element if self.element.valid else self.settings.record

    # Packets.

    def consider(self, sending: DataTransmission, starved: bool) -> None:
        """A packet granted in the current cycle, after `granted`, is read to be sent on a data slot."""
        packet = sending.packet
        queued = self.queued[packet.slot]
        if self.settings.is_used and queued > self._least and packet.copies is None:
            self._kernel.at(self._kernel.now + _CROWDED_AFTER, END, self._look, (sending, queued, starved))

    def _look(self, granted: tuple[DataTransmission, int, bool]) -> None:
        """Whether the slot of a granted packet is crowded."""
        sending, queued, starved = granted
        threshold = self._setting().threshold
        if threshold and queued > self._limit(threshold):
            decided = self._kernel.now + _MARKED_AFTER - _CROWDED_AFTER
            self._kernel.at(decided, END, self._decide, (sending, starved))

    def _decide(self, granted: tuple[DataTransmission, bool]) -> None:
        """Whether a packet from a crowded slot is marked; its first row is in the transmit stage."""
        sending, starved = granted
        packet, setting = sending.packet, self._setting()
        row = _FECN_ROWS.get(packet.lrh >> _LNH_SHIFT & _LNH)
        is_victim = starved and not self.settings.record.victim_mask >> self._port & 1
        if row is None or packet.need < setting.packet_size or sending.refused == 0 or is_victim:
            return
        left = self._countdown[packet.slot]
        if left:
            self._countdown[packet.slot] = left - 1
            return
        self._countdown[packet.slot] = setting.marking_rate
        sending.fecn_row = row
        self._kernel.at(sending.w0 + sending.pitch * row, DECIDE, self._row_on_wire, sending)

    def _row_on_wire(self, sending: DataTransmission) -> None:
        """The row with FECN is on the wires, unless it is refused or does not come."""
        if sending.has_fecn_set and not 0 <= sending.refused <= sending.fecn_row:
            self._log.mark(self._port, sending.packet)
