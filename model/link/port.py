"""A port: the link side of one input and one output (docs/pipeline.md, sections 3 to 6, 8 and 10)."""

from typing import Final

from wire.codes import LinkWidth, PortPhysicalState, PortState, max_pkt_len
from wire.packet import BLOCK_BYTES

from ..crossing.matcher import Matcher
from ..crossing.queues import Input
from ..kernel import CONTROL, STATE, UPDATE
from .acceptance import Acceptance, PortOwner
from .congestion import Congestion
from .eligibility import Eligibility
from .flow_control import FlowControl
from .life_time import LifeTime
from .link import Direction
from .port_state import PortStateMachine
from .port_status import PortStatus
from .receive import Receiver
from .time_limits import TimeLimits
from .transmit import LinkOutput

__all__ = ["LinkPort"]

_POLLING: Final = PortPhysicalState.POLLING
_WIDE: Final = 1
_NARROW: Final = 4
"""Cycles from row to row at 4X and at 1X."""

_TOLD_CYCLES: Final = 2
"""For as long a write of Polling keeps a port from its default state."""


class LinkPort:
    """One port: its parts, and which of them learns of what.

    Attributes:
        status: what it is at the moment.
        state_machine, flow, output, receiver: its parts.
        limits: of the time in which heads may wait for it; None at an adapter.
        congestion: which packets are marked; None at an adapter.
        had_four_lanes: in the cycle before its cable was 4X, as had been written to WIDTH.
    """

    def __init__(
        self,
        owner: PortOwner,
        matcher: Matcher,
        queues: Input,
        source: int,
        vls: int,
        mtu: int,
        life: LifeTime | None = None,
        congestion: Congestion | None = None,
    ) -> None:
        """`queues` are those of its input, `source` is that of its records, `life` and `congestion` are a switch's."""
        self.status = status = PortStatus(matcher.kernel, source, queues.index, vls, mtu, matcher.epoch)
        self.state_machine = PortStateMachine(status, self._state_changed, self._link_lost)
        self.limits = None if life is None else TimeLimits(matcher, status.index, vls, life)
        self.congestion = congestion
        eligibility = Eligibility(status, matcher, self.limits)
        self.flow = FlowControl(status, matcher, queues.buffer, eligibility, self.state_machine, mtu // BLOCK_BYTES)
        queues.buffer.watch(self.flow.announcement_changes_at)
        self.output = LinkOutput(status, matcher, eligibility, self.flow, self.limits, congestion)
        acceptance = Acceptance(status, owner, matcher, queues.buffer, self.flow, self.state_machine, life)
        self.receiver = Receiver(status, self.flow, acceptance)
        self._owner = owner
        self._in_reset = matcher.epoch != 0
        self._told_to_poll = -_TOLD_CYCLES - 1  # cycle in which a write of Polling showed
        self._restarts = False  # by one in this cycle its link starts anew
        self._stopped_polling = -1  # cycle in which it did as its link was lost
        self._offered = self.offers()
        self._has_four_lanes = True  # its cable
        self.had_four_lanes = True
        self._is_narrow = False  # its link was, in the cycle before
        matcher.add(queues, self.output)

    # The cable.

    def connect(self, out: Direction, into: Direction, narrow: bool) -> None:
        """Plug in a cable. At power-up it is up, and the port may leave Down in cycle 1."""
        self.output.wire = out
        self._is_narrow = narrow
        self.receiver.connect(into)
        self.status.link_up = out.up and not self._in_reset
        self.status.kernel.at(self.status.kernel.now + 1, STATE, self.state_machine.evaluate)

    def offers(self) -> int:
        """Mask of the widths that it offers; none while it is asleep or disabled or being reset."""
        status = self.status
        if status.physical_state != _POLLING or self._in_reset or self._restarts:
            return 0
        return status.link_width_enabled

    def _offer(self, _: None = None) -> None:
        """What it offers may have changed, visible in the current cycle."""
        offered = self.offers()
        if offered != self._offered:
            self._offered = offered
            if self.output.wire:
                self.output.wire.offers_changed(offered)

    def begin_reset(self) -> None:
        """Its node is being reset, visible from the current cycle on."""
        self._in_reset = True
        if self.output.wire:
            self.output.wire.fall_silent()
        self._offer()

    def begin_life(self) -> None:
        """The current cycle is its node's cycle 0 after a reset, in which it is 4X, whatever the link is."""
        self._in_reset = False
        if self.output.wire:
            self.output.wire.begin_anew()
        self._offer()
        self.status.kernel.at(self.status.kernel.now + 1, UPDATE, self._show_width)

    def link_changed(self, up: bool) -> None:
        """The link is up, or is down, from the current cycle on; the state machine looks at it one cycle later."""
        self.status.link_up = up
        self.receiver.check_enabled()
        self.status.kernel.at(self.status.kernel.now + 1, STATE, self.state_machine.evaluate)

    def narrowness_changed(self, narrow: bool) -> None:
        """The link is narrow, or is not, from the current cycle on; its width shows that one cycle later."""
        kernel = self.status.kernel
        kernel.at(kernel.now + 1, CONTROL, self._set_narrow, narrow)
        kernel.at(kernel.now + 1, UPDATE, self._show_width)

    def _set_narrow(self, narrow: bool) -> None:
        self._is_narrow = narrow

    def _show_width(self, _: None = None) -> None:
        self.output.set_pitch(_WIDE if self._has_four_lanes and not self._is_narrow else _NARROW)

    def _link_lost(self) -> None:
        """Before a write to PHYSICAL_STATE that shows in the current cycle, which wins."""
        told = self.status.kernel.now - self._told_to_poll <= _TOLD_CYCLES
        if self.status.physical_state == _POLLING and not told:
            self._stopped_polling = self.status.kernel.now
            self.status.physical_state = self.status.link_down_default
            self.status.kernel.at(self.status.kernel.now, UPDATE, self._offer)

    # Changes that show in the current cycle.

    def _state_changed(self, old: PortState, by_write: bool) -> None:
        self.flow.state_changed(old)
        self.output.state_changed()
        self.receiver.check_enabled()
        self._owner.port_state_changed(old, self.status.state, by_write)

    def congestion_given(self, value: int) -> None:
        """A write of CONGESTION is given: a packet granted now may find it."""
        if self.congestion is not None:
            self.congestion.given(value)

    def set_neighbor_mtu(self, code: int) -> None:
        """NEIGHBOR_MTU was written."""
        self.status.neighbor_mtu = code
        self.status.largest_out = max_pkt_len(code)
        self._owner.largest_out_changed()

    def set_operational(self, vls: int) -> None:
        """OPERATIONAL_VLS was written."""
        self.status.operational = vls
        self.flow.operational_changed()
        self.output.operational_changed()

    def set_physical_state(self, state: PortPhysicalState) -> None:
        """PHYSICAL_STATE was written: Sleep, Polling or Disabled."""
        kernel = self.status.kernel
        if state == _POLLING:
            self._told_to_poll = kernel.now
            # As it was before, though its link is lost in this very cycle.
            if self.status.physical_state == _POLLING or self._stopped_polling == kernel.now:
                self._restarts = True
                kernel.at(kernel.now + 1, UPDATE, self._end_restart)
        self.status.physical_state = state
        self._offer()

    def _end_restart(self, _: None) -> None:
        if self._told_to_poll < self.status.kernel.now:
            self._restarts = False
            self._offer()

    def set_link_width_enabled(self, widths: int) -> None:
        """LINK_WIDTH_ENABLED was written: a mask of 1X and 4X, not 0."""
        self.status.link_width_enabled = widths
        self._offer()

    def set_width(self, width: int) -> None:
        """WIDTH was written: 1X or 4X, the lanes of the cable."""
        self._has_four_lanes = width == LinkWidth.X4
        self.status.kernel.at(self.status.kernel.now + 1, CONTROL, self._had, self._has_four_lanes)
        self._show_width()

    def _had(self, four_lanes: bool) -> None:
        self.had_four_lanes = four_lanes
