"""What decides whether a head is eligible: the output's port, as it was visible two cycles before (section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wire.codes import PortState
from wire.flow_control import CREDIT_MODULUS

from ..kernel import UPDATE

if TYPE_CHECKING:
    from ..packet import DataTransmission
    from .port import LinkPort
    from .transmit import LinkOutput

__all__ = ["Eligibility"]

_LATENCY: Final = 2
_ACTIVE: Final = PortState.ACTIVE
_ACTIVE_DEFER: Final = PortState.ACTIVE_DEFER
_INITIALIZE: Final = PortState.INITIALIZE


class Eligibility:
    """What the matching knows of one output's port. What it learns wakes the output."""

    def __init__(self, port: LinkPort, output: LinkOutput) -> None:
        self._port = port
        self._output = output
        self._kernel = port.kernel
        self._state: int = port.state
        self._operational = port.operational
        self._room = [0] * port.vls  # (CL - TBS) mod 4096

    def room(self, slot: int) -> int | None:
        """Data needs credits in Active, on operational VLs; elsewhere it will be swallowed."""
        if self._state != _ACTIVE or slot >= self._operational:
            return None
        return self._room[slot]

    def charge(self, sending: DataTransmission, blocks: int) -> None:
        """TBS grows by the blocks of a packet, from its row 0 on the wire on; or does not after all (negative).

        Charged early: before it counts, its output is not available.
        """
        slot = sending.packet.slot
        self._room[slot] = (self._room[slot] - blocks) % CREDIT_MODULUS

    # What is visible from the current cycle on, and counts two cycles later.

    def credit_limit_grows(self, vl: int, blocks: int) -> None:
        """CL has another value, by so many blocks."""
        self._kernel.at(self._kernel.now + _LATENCY, UPDATE, self._see_credits, (vl, blocks))

    def _see_credits(self, credits: tuple[int, int]) -> None:
        vl, blocks = credits
        self._room[vl] = (self._room[vl] + blocks) % CREDIT_MODULUS
        self._wake()

    def state_changes(self) -> None:
        """The port has another state; in Initialize, CL and TBS are 0."""
        self._kernel.at(self._kernel.now + _LATENCY, UPDATE, self._see_state, self._port.state)

    def _see_state(self, state: int) -> None:
        self._state = state
        output = self._output
        vl15 = 1 << output.vls
        output.open_slots = vl15 if state == _ACTIVE_DEFER else 2 * vl15 - 1
        if state == _INITIALIZE:
            self._room = [0] * output.vls
        self._wake()

    def operational_changes(self) -> None:
        """Other VLs are operational."""
        self._kernel.at(self._kernel.now + _LATENCY, UPDATE, self._see_operational, self._port.operational)

    def _see_operational(self, vls: int) -> None:
        self._operational = vls
        self._wake()

    def _wake(self) -> None:
        self._port.matcher.wake(self._output.bit)
