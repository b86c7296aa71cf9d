"""The port state machine (docs/pipeline.md, section 5)."""

from collections.abc import Callable
from typing import Final

from wire.codes import PortState
from wire.flow_control import FlowControlOp
from wire.registers import PORT_RESET_VALUES, Counter, PortRegister
from wire.trace import Kind

from ..kernel import STATE
from .port_status import PortStatus

__all__ = ["PortStateMachine"]

_INIT: Final = FlowControlOp.INIT


class PortStateMachine:
    """Looks at what is visible in a cycle, and shows it in the next.

    Attributes:
        timeout: LINK_DOWN_TIMEOUT in cycles.
    """

    def __init__(
        self, status: PortStatus, changed: Callable[[PortState, bool], None], link_lost: Callable[[], None]
    ) -> None:
        """`changed` is called when a new state is visible, with the old one and whether a write made it.

        `link_lost` is called before, when it is Down because the link is.
        """
        self.timeout = PORT_RESET_VALUES[PortRegister.LINK_DOWN_TIMEOUT]
        self._status = status
        self._kernel = status.kernel
        self._changed = changed
        self._link_lost = link_lost
        self._enabled_from: int | None = None  # ActiveEnable: visible from this cycle on
        self._deferred_from = 0
        self._entered_at = -1  # the cycle since which the state is visible
        self._down_by_write = False
        self._active_kept = False  # Active was written in Armed, before ActiveEnable
        # What happened in the cycle being looked at.
        self._written: int | None = None
        self._remote_init = False
        self._trigger = False

    # Events. Each asks for an evaluation in the STATE phase in which it shows.

    def write(self, state: int) -> None:
        """A register write that shows in the current cycle."""
        self._written = state
        self._kernel.at(self._kernel.now, STATE, self.evaluate)

    def link_packet(self, op: int) -> bool:
        """A good link packet, received in Armed or Active, shows in the current cycle; True if it enables Active."""
        if op == _INIT:
            self._remote_init = True
            self._kernel.at(self._kernel.now, STATE, self.evaluate)
        elif self._enabled_from is None:
            self._enabled_from = self._kernel.now
            self._kernel.at(self._kernel.now + 1, STATE, self.evaluate)
            return True
        return False

    def good_packet(self) -> None:
        """A GOOD data packet, not on VL15, received in Armed, is in the trace in the current cycle."""
        if self._enabled_at(self._kernel.now):
            self._trigger = True
            self._kernel.at(self._kernel.now + 1, STATE, self.evaluate)

    def set_timeout(self, cycles: int) -> None:
        """LINK_DOWN_TIMEOUT was written, visible in the current cycle."""
        self.timeout = cycles
        if self._status.state == PortState.ACTIVE_DEFER:
            self._start_timeout()

    def _start_timeout(self) -> None:
        self._deferred_from = self._kernel.now
        self._kernel.at(self._deferred_from + self.timeout, STATE, self.evaluate)

    def _enabled_at(self, cycle: int) -> bool:
        return self._enabled_from is not None and self._enabled_from <= cycle

    def evaluate(self, _: None) -> None:
        """The state visible in the current cycle, from what was visible in the one before."""
        if self._entered_at == self._kernel.now:
            return  # there were several reasons to look
        self._down_by_write = False
        new = self._next()
        self._written = None
        self._remote_init = self._trigger = False
        if new != self._status.state:
            self._enter(new)

    def _next(self) -> PortState:
        """Also counts: link counters are visible with the new state."""
        state, up, counters = self._status.state, self._status.link_up, self._status.counters
        enabled = self._enabled_at(self._kernel.now - 1)
        if state == PortState.DOWN:
            return PortState.INITIALIZE if up else state
        if state == PortState.ACTIVE_DEFER:
            if up:
                counters.add(Counter.LINK_ERROR_RECOVERY)
                return PortState.ACTIVE
            if self._kernel.now == self._deferred_from + self.timeout:
                return self._lose_link()
        elif not up:
            if state == PortState.ACTIVE:
                return PortState.ACTIVE_DEFER
            return self._lose_link()
        if self._written == PortState.DOWN:
            self._down_by_write = True
            return PortState.DOWN
        if self._remote_init and (state == PortState.ACTIVE or enabled):
            return PortState.DOWN
        if state == PortState.INITIALIZE and self._written == PortState.ARMED:
            return PortState.ARMED
        if state == PortState.ARMED:
            self._active_kept |= self._written == PortState.ACTIVE
            if enabled and (self._active_kept or self._trigger):
                return PortState.ACTIVE
        return state

    def _lose_link(self) -> PortState:
        self._status.counters.add(Counter.LINK_DOWNED)
        self._link_lost()
        return PortState.DOWN

    def _enter(self, new: PortState) -> None:
        status, kernel = self._status, self._kernel
        old = status.state
        self._active_kept = False
        if new == PortState.INITIALIZE:
            self._enabled_from = None
        if new == PortState.DOWN:
            kernel.at(kernel.now + 1, STATE, self.evaluate)
        if new == PortState.ACTIVE_DEFER:
            self._start_timeout()
        status.state = new
        self._entered_at = kernel.now
        kernel.record((kernel.now, status.source, Kind.STATE, new, 0, 0, 0, 0))
        self._changed(old, self._down_by_write)
