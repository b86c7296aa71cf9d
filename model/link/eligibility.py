"""What decides whether a head is eligible: the output's port, as it was visible two cycles before (section 7)."""

from typing import Final

from wire.codes import PortState
from wire.flow_control import CREDIT_MODULUS
from wire.trace import Discard

from ..crossing.matcher import Matcher
from ..crossing.output import SWALLOWED, Gate
from ..kernel import UPDATE
from .port_status import PortStatus
from .time_limits import NOT_DISCARDED, TimeLimits

__all__ = ["MANAGEMENT_STATES", "Eligibility"]

MANAGEMENT_STATES: Final = frozenset({PortState.INITIALIZE, PortState.ARMED, PortState.ACTIVE})
"""In which VL15 and flow control packets are sent."""

# In the compiled model, what is said to be final takes less time than what is imported.
_MODULUS: Final[int] = CREDIT_MODULUS
_LATENCY: Final = 2
_ACTIVE: Final = PortState.ACTIVE
_ACTIVE_DEFER: Final = PortState.ACTIVE_DEFER
_INITIALIZE: Final = PortState.INITIALIZE
_INACTIVE: Final[int] = Discard.INACTIVE


class Eligibility(Gate):
    """What the matching knows of one output's port. What it learns wakes the output."""

    def __init__(self, status: PortStatus, matcher: Matcher, limits: TimeLimits | None) -> None:
        """`limits` are those of a switch's port."""
        super().__init__(status.vls)
        self._status = status
        self._matcher = matcher
        self._limits = limits
        self._kernel = status.kernel
        self._state: int = status.state
        self._operational = status.operational
        self._room = [0] * status.vls  # (CL - TBS) mod 4096

    def room(self, slot: int) -> int | None:
        """Data needs credits in Active, on operational VLs; what the port may not send is swallowed."""
        if slot == self._status.vls:
            return None if self._state in MANAGEMENT_STATES else SWALLOWED
        if self._state != _ACTIVE or slot >= self._operational:
            return SWALLOWED
        limits = self._limits
        if limits is not None and limits.discarding >> slot & 1:
            return SWALLOWED
        return self._room[slot]

    def discard(self, slot: int) -> int:
        """Why a head of a slot, granted in the current cycle, is swallowed, whatever its length; else NOT_DISCARDED."""
        if slot == self._status.vls:
            return NOT_DISCARDED if self._state in MANAGEMENT_STATES else _INACTIVE
        if self._state != _ACTIVE or slot >= self._operational:
            return _INACTIVE
        limits = self._limits
        if limits is not None and limits.discarding >> slot & 1:
            return limits.discard(slot)
        return NOT_DISCARDED

    def charge(self, slot: int, blocks: int) -> None:
        """TBS grows by the blocks of a packet, from its row 0 on the wire on; negative takes that back.

        Charged early: before it counts, its output is not available.
        """
        self._room[slot] = (self._room[slot] - blocks) % _MODULUS

    # What is visible from the current cycle on, and counts two cycles later.

    def credit_limit_grows(self, vl: int, blocks: int) -> None:
        """CL changes by so many blocks."""
        self._kernel.at(self._kernel.now + _LATENCY, UPDATE, self._see_credits, (vl, blocks))

    def _see_credits(self, credits: tuple[int, int]) -> None:
        vl, blocks = credits
        self._room[vl] = (self._room[vl] + blocks) % _MODULUS
        self._matcher.wake(1 << self._status.index)

    def state_changed(self) -> None:
        """The port's state changed; in Initialize, CL and TBS are 0."""
        self._kernel.at(self._kernel.now + _LATENCY, UPDATE, self._see_state, self._status.state)

    def _see_state(self, state: int) -> None:
        self._state = state
        vl15 = 1 << self._status.vls
        self.open_slots = vl15 if state == _ACTIVE_DEFER else 2 * vl15 - 1
        if state == _INITIALIZE:
            self._room = [0] * self._status.vls
        self._wake()

    def operational_changed(self) -> None:
        """The operational VLs changed."""
        self._kernel.at(self._kernel.now + _LATENCY, UPDATE, self._see_operational, self._status.operational)

    def _see_operational(self, vls: int) -> None:
        self._operational = vls
        self._wake()

    def _wake(self) -> None:
        self._matcher.wake_for_swallowing(1 << self._status.index)
