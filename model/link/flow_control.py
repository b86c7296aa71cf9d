"""Flow control: credit registers, announcements and the watchdog (docs/pipeline.md, section 6)."""

from typing import Final

from wire.codes import PortState
from wire.crc import LPCRC_BYTES, lpcrc_good
from wire.flow_control import CREDIT_MODULUS, CREDIT_WINDOW, FLOW_CONTROL, FlowControlOp
from wire.registers import PORT_RESET_VALUES, Counter, Detail, PortRegister
from wire.trace import Kind, LinkResult

from ..crossing.buffer import Buffer
from ..crossing.matcher import Matcher
from ..crossing.output import FlowFlags
from ..kernel import DECIDE, NEVER, RECEIVE, STATE
from ..packet import LinkTransmission, Packet
from .eligibility import Eligibility
from .port_state import PortStateMachine
from .port_status import PortStatus

__all__ = ["FlowControl"]

# In the compiled model, what is said to be final takes less time than what is imported.
_MODULUS: Final[int] = CREDIT_MODULUS
_WINDOW: Final[int] = CREDIT_WINDOW
_SILENT_STATES: Final = frozenset({PortState.DOWN, PortState.ACTIVE_DEFER})
_CHECKED_STATES: Final = frozenset({PortState.ARMED, PortState.ACTIVE})
_INITIALIZE: Final = PortState.INITIALIZE
_NORMAL: Final = FlowControlOp.NORMAL
_INIT: Final = FlowControlOp.INIT
_OPS: Final = frozenset({_NORMAL, _INIT})
_RX_FCP: Final = Kind.RX_FCP
_GOOD: Final = LinkResult.GOOD
_PHYSICAL_RESULTS: Final = frozenset({LinkResult.MALFORMED, LinkResult.LPCRC})


class FlowControl(FlowFlags):
    """One port's flow control, in both directions.

    Attributes:
        tbs: blocks sent, FCTBS, by VL.
        credit_limit: last FCCL received, CL.
        abr: blocks received, ABR.
        period: FCP_PERIOD.
        threshold: FCP_THRESHOLD.
        watchdog: FC_WATCHDOG.
        overrun_errors: OVERRUN_ERRORS.
    """

    def __init__(
        self,
        status: PortStatus,
        matcher: Matcher,
        buffer: Buffer,
        eligibility: Eligibility,
        state_machine: PortStateMachine,
        threshold: int,
    ) -> None:
        """`buffer` is that of the port's input."""
        super().__init__()
        vls = status.vls
        self.tbs = [0] * vls
        self.credit_limit = [0] * vls
        self.abr = [0] * vls
        self.period = PORT_RESET_VALUES[PortRegister.FCP_PERIOD]
        self.threshold = threshold
        self.watchdog = PORT_RESET_VALUES[PortRegister.FC_WATCHDOG]
        self.overrun_errors = PORT_RESET_VALUES[PortRegister.OVERRUN_ERRORS]
        self._status = status
        self._kernel = status.kernel
        self._counters = status.counters
        self._matcher = matcher
        self._bit = 1 << status.index
        self._buffer = buffer
        self._eligibility = eligibility
        self._state_machine = state_machine
        self._announced = 0  # VLs whose credits are announced, as the flags know it
        self._last = [0] * vls  # FCCL most recently sent
        self._due = 0
        self._ptr = 0
        self._period_from = NEVER  # the timer's last start or expiry; NEVER while it stands still
        self._watched_from = [NEVER] * vls  # start of each VL's count; NEVER while it does not count
        self._watch_at = -1
        self._overrun = False
        self._overrun_periods = 0

    # Receiving (section 6.1).

    def receive_bytes(self, six: bytes) -> None:
        """A link packet's six bytes; the outcome is visible in the current cycle."""
        fields = FLOW_CONTROL.unpack(six[:-LPCRC_BYTES])
        if lpcrc_good(six):
            self.receive(fields.op, fields.vl, fields.fctbs, fields.fccl)
        else:
            self._received(LinkResult.LPCRC, fields.op, fields.vl, fields.fctbs, fields.fccl)

    def receive_malformed(self, _: None) -> None:
        """A malformed link packet."""
        self._received(LinkResult.MALFORMED, 0, 0, 0, 0)

    def receive(self, op: int, vl: int, fctbs: int, fccl: int) -> None:
        """A link packet with a good LPCRC; the outcome is visible in the current cycle."""
        status = self._status
        if op not in _OPS:
            self._received(LinkResult.OP, op, vl, fctbs, fccl)
            return
        if vl >= status.operational:
            result = LinkResult.VL if status.state in _CHECKED_STATES else LinkResult.IGNORED
            self._received(result, op, vl, fctbs, fccl)
            return
        now = self._kernel.now
        if self.credit_limit[vl] != fccl:
            self._eligibility.credit_limit_grows(vl, fccl - self.credit_limit[vl])
            self.credit_limit[vl] = fccl
        if self.abr[vl] != fctbs:
            self.announcement_changes()
            self.abr[vl] = fctbs
        if self._watched_from[vl] != NEVER:
            self._watched_from[vl] = now
        if status.state in _CHECKED_STATES and self._state_machine.link_packet(op):
            self.all_due()
        self._kernel.record((now, status.source, _RX_FCP, op << 8 | vl << 16 | _GOOD, fctbs << 16 | fccl, 0, 0, 0))

    def _received(self, result: LinkResult, op: int, vl: int, fctbs: int, fccl: int) -> None:
        """A link packet that was not taken."""
        kernel, counters = self._kernel, self._counters
        kernel.record(
            (kernel.now, self._status.source, _RX_FCP, result | op << 8 | vl << 16, fctbs << 16 | fccl, 0, 0, 0)
        )
        if result is not LinkResult.IGNORED:
            physical = result in _PHYSICAL_RESULTS
            detail = Detail.LOCAL_PHYSICAL_ERRORS if physical else Detail.MALFORMED_PACKET_ERRORS
            counters.add_after(1, Counter.RCV_ERRORS, detail)
            if physical:
                counters.physical_error()

    def accept(self, vl: int, need: int) -> None:
        """A packet is about to take blocks of the receive buffer, visible in the current cycle (section 3.3)."""
        if self._buffer.free[vl] > _WINDOW:  # else ABR + free stays as it was
            self.announcement_changes()
        self.abr[vl] = (self.abr[vl] + need) % _MODULUS

    def spend(self, packet: Packet) -> None:
        """A packet that takes no blocks had credits, visible in the current cycle (section 3.3)."""
        self.announcement_changes()
        self.abr[packet.vl] = (self.abr[packet.vl] + packet.need) % _MODULUS

    # Sending (section 6.2).

    def announcement_changes(self) -> None:
        """What the flags are computed from is about to change, visible in the current cycle."""
        now = self._kernel.now
        if self.stale_from < now:
            self.compute()
        self.announcement_changes_at(now)

    def announcement_changes_at(self, cycle: int) -> None:
        """What the flags are computed from changes in a cycle, the current one or one ahead.

        An output that is busy computes them when it is available again.
        """
        if cycle < self.stale_from:
            self.stale_from = cycle
        if self._matcher.available & self._bit:
            self._matcher.wake_at(cycle + 1, self._bit)

    def compute(self) -> None:
        """From what was visible in the cycle before."""
        buffer = self._buffer
        now = self._kernel.now
        if buffer.next_return < now:
            buffer.settle(now - 1)
        abr, free, last = self.abr, buffer.free, self._last
        urgent = self._due & (1 << self._announced) - 1
        changed = 0
        for vl in range(self._announced):
            room = free[vl]
            announced = abr[vl] + (room if room < _WINDOW else _WINDOW)
            ahead = (announced - last[vl]) % _MODULUS
            if ahead:
                changed |= 1 << vl
                if ahead > self.threshold:
                    urgent |= 1 << vl
        self.urgent = urgent
        self.changed = changed
        self.stale_from = buffer.next_return

    def send(self, pitch: int) -> LinkTransmission:
        """The flow control packet granted in the current cycle."""
        status, buffer = self._status, self._buffer
        now = self._kernel.now
        flags = self.urgent or self.changed
        later = flags >> self._ptr << self._ptr or flags
        vl = (later & -later).bit_length() - 1
        self._ptr = (vl + 1) % status.vls
        if buffer.next_return == now:
            buffer.settle(now)
        # As `credit_limit` of `wire` has it, written out: a call out of the compiled model takes longer.
        fccl = (self.abr[vl] + min(buffer.free[vl], _WINDOW)) % _MODULUS
        # Visible from the next cycle on; the output is busy then.
        self._last[vl] = fccl
        self._due &= ~(1 << vl)
        self.stale_from = now + 1
        op = _INIT if status.state == _INITIALIZE else _NORMAL
        return LinkTransmission(status.index, now, pitch, op, vl, self.tbs[vl], fccl)

    def all_due(self) -> None:
        """Every operational VL is due in the current cycle."""
        self.announcement_changes()
        self._due |= (1 << self._status.operational) - 1

    def start_period(self) -> None:
        """The period timer starts in the current cycle."""
        self._overrun = False
        self._period_from = self._kernel.now
        self._kernel.at(self._period_from + self.period, RECEIVE, self._period_over)

    def _period_over(self, _: None) -> None:
        now = self._kernel.now
        if now != self._period_from + self.period:
            return
        self.all_due()
        if self._overrun:
            self._overrun_periods += 1
            # By OVERRUN_ERRORS as visible in this cycle.
            self._kernel.at(now, DECIDE, self._judge_overruns)
        else:
            self._overrun_periods = 0
        self.start_period()

    def _judge_overruns(self, _: None) -> None:
        if self.overrun_errors and self._overrun_periods >= self.overrun_errors:
            self._overrun_periods = 0
            self._counters.add_after(1, Counter.EXCESSIVE_BUFFER_OVERRUN_ERRORS)

    def overrun(self) -> None:
        """An OVERRUN verdict is in the trace in the current cycle."""
        self._overrun = True

    # The watchdog (section 6.1).

    def start_watchdog(self) -> None:
        """The operational VLs' counts start in the current cycle; the others stand at 0."""
        now = self._kernel.now
        operational = self._status.operational
        self._watched_from = [now if vl < operational else NEVER for vl in range(self._status.vls)]
        self._watch()

    def _stop_watchdog(self) -> None:
        self._expire()
        self._watched_from = [NEVER] * self._status.vls

    def _watch(self) -> None:
        """Wake up when the first count would be full."""
        starts = [start for start in self._watched_from if start != NEVER]
        if starts:
            self._watch_at = min(starts) + self.watchdog
            # Before a write of this cycle, after its link packets.
            self._kernel.at(self._watch_at, STATE, self._watch_over)

    def _watch_over(self, _: None) -> None:
        if self._watch_at == self._kernel.now:
            self._expire()
            self._watch()

    def _expire(self) -> None:
        now = self._kernel.now
        for vl, start in enumerate(self._watched_from):
            if now == start + self.watchdog:
                self._watched_from[vl] = now
                self._counters.watchdog_expired(vl)

    # What the port state and registers change.

    def state_changed(self, old: PortState) -> None:
        """A new port state is visible in the current cycle."""
        state = self._status.state
        self._announce()
        if state == PortState.DOWN:
            self._period_from = NEVER
        if state == PortState.INITIALIZE:
            vls = self._status.vls
            self.tbs = [0] * vls
            self.credit_limit = [0] * vls
            self.abr = [0] * vls
            self._last = [0] * vls
            self._overrun_periods = 0
            self.all_due()
            self.start_period()
        if state == PortState.ARMED:
            self.all_due()
        if old in _CHECKED_STATES and state not in _CHECKED_STATES:
            self._stop_watchdog()
        if state in _CHECKED_STATES and old not in _CHECKED_STATES:
            self.start_watchdog()

    def operational_changed(self) -> None:
        """The operational VLs changed, visible in the current cycle."""
        self._announce()
        if self._status.state in _CHECKED_STATES:
            now = self._kernel.now
            for vl, start in enumerate(self._watched_from):
                if vl >= self._status.operational:
                    self._watched_from[vl] = NEVER
                elif start == NEVER:
                    self._watched_from[vl] = now
            self._watch()

    def _announce(self) -> None:
        """State or operational VLs changed, visible in the current cycle."""
        self.announcement_changes()
        self._announced = 0 if self._status.state in _SILENT_STATES else self._status.operational

    def set_threshold(self, blocks: int) -> None:
        """FCP_THRESHOLD was written, visible in the current cycle."""
        self.announcement_changes()
        self.threshold = blocks

    def set_period(self, cycles: int) -> None:
        """FCP_PERIOD was written, visible in the current cycle."""
        self.period = cycles
        if self._period_from != NEVER:
            self.start_period()

    def set_watchdog(self, cycles: int) -> None:
        """FC_WATCHDOG was written, visible in the current cycle."""
        self.watchdog = cycles
        if self._status.state in _CHECKED_STATES:
            self.start_watchdog()
