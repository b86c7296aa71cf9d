"""A node's register bus (docs/pipeline.md, section 10; docs/management.md, section 6; wire/registers.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from wire.codes import LinkWidth, PortPhysicalState, PortState, data_vls, operational_vls
from wire.registers import DATA_BITS, HIGH_OF_COUNTER, Counter, PortRegister

from ..kernel import DECIDE, RECEIVE, UPDATE, Kernel

if TYPE_CHECKING:
    from ..link.port import LinkPort
    from .agent import Agent

__all__ = ["Bus", "RegisterFile", "read_port", "write_port"]

_WRITE_LATENCY = 2
_READ_LATENCY = 2
_PAGE_BITS = 16
_OFFSET_MASK = (1 << _PAGE_BITS) - 1
_TIMER_MAX = (1 << 24) - 1
_COUNTERS = frozenset(Counter)
_COUNTER_OF_HIGH: Final[dict[int, Counter]] = {high: counter for counter, high in HIGH_OF_COUNTER.items()}
_WORD_MASK = (1 << DATA_BITS) - 1
_PHYSICAL_STATES = frozenset({PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED})


class RegisterFile(ABC):
    """What a node answers to its bus. An address that is not defined reads 0 and takes no write.

    Attributes:
        ports: its link ports; `ports[i]` is port i+1.
        agent: of management.
    """

    ports: list[LinkPort]
    agent: Agent

    @abstractmethod
    def read_node(self, page: int, offset: int) -> int:
        """A word outside the ports' pages."""

    @abstractmethod
    def write_node(self, page: int, offset: int, value: int) -> None:
        """Write a word outside the ports' pages; it is visible in the current cycle."""

    def write_lease_second(self, value: int) -> None:
        """LEASE_SECOND, of either kind of node."""
        if 1 <= value < 1 << DATA_BITS:
            self.agent.lease_second = value


class Bus:
    """A node's bus. Operations are given in the current cycle."""

    def __init__(self, kernel: Kernel, file: RegisterFile) -> None:
        self._kernel = kernel
        self._file = file

    def write(self, address: int, value: int) -> None:
        """A bus write."""
        page, offset = address >> _PAGE_BITS, address & _OFFSET_MASK
        phase = UPDATE
        if 1 <= page <= len(self._file.ports):
            if offset == PortRegister.STATE:
                phase = RECEIVE  # the state machine looks at it one cycle before it shows
            elif offset in _COUNTERS:
                phase = DECIDE  # an increment of that cycle is lost
            elif offset == PortRegister.EXTENDED_LOW:
                phase = DECIDE  # what a read keeps in that cycle is lost
            elif offset in _COUNTER_OF_HIGH:
                high = page, _COUNTER_OF_HIGH[offset], value
                self._kernel.at(self._kernel.now + _WRITE_LATENCY - 1, DECIDE, self._join_halves, high)
                return
        self._kernel.at(self._kernel.now + _WRITE_LATENCY, phase, self._write, (page, offset, value))

    def _write(self, operation: tuple[int, int, int]) -> None:
        page, offset, value = operation
        if 1 <= page <= len(self._file.ports):
            write_port(self._file.ports[page - 1], offset, value)
        else:
            self._file.write_node(page, offset, value)

    def _join_halves(self, operation: tuple[int, Counter, int]) -> None:
        """A cycle before a counter's upper half is written: its lower half is what EXTENDED_LOW shows now."""
        page, counter, high = operation
        low = self._file.ports[page - 1].counters.extended_low
        self._kernel.at(self._kernel.now + 1, DECIDE, self._write_whole, (page, counter, high << DATA_BITS | low))

    def _write_whole(self, operation: tuple[int, Counter, int]) -> None:
        page, counter, value = operation
        self._file.ports[page - 1].counters.write_atomically(self._kernel.now, counter, value)

    def read(self, address: int, take: Callable[[int], None]) -> None:
        """A bus read: `take` gets what is visible in the cycle in which it is called, two cycles later."""
        self._kernel.at(self._kernel.now + _READ_LATENCY, DECIDE, self._read, (address, take))

    def _read(self, operation: tuple[int, Callable[[int], None]]) -> None:
        address, take = operation
        page, offset = address >> _PAGE_BITS, address & _OFFSET_MASK
        if not 1 <= page <= len(self._file.ports):
            take(self._file.read_node(page, offset))
        elif offset in _COUNTER_OF_HIGH:
            take(self._read_high(self._file.ports[page - 1], _COUNTER_OF_HIGH[offset]))
        else:
            take(read_port(self._file.ports[page - 1], offset))

    def _read_high(self, port: LinkPort, counter: Counter) -> int:
        """The upper half of a counter. The lower one is in EXTENDED_LOW from the next cycle on."""
        value = port.counters.read_whole(self._kernel.now, counter)
        self._kernel.at(self._kernel.now + 1, UPDATE, _keep_low, (port, value & _WORD_MASK))
        return value >> DATA_BITS


def _keep_low(operation: tuple[LinkPort, int]) -> None:
    port, low = operation
    port.counters.extended_low = low


def read_port(port: LinkPort, offset: int) -> int:
    """A word of a port's page, as visible in the current cycle."""
    flow = port.flow
    match offset:
        case PortRegister.STATE:
            return port.state
        case PortRegister.WIDTH:
            return LinkWidth.X4 if port.output.pitch == 1 else LinkWidth.X1
        case PortRegister.NEIGHBOR_MTU:
            return port.neighbor_mtu
        case PortRegister.OPERATIONAL_VLS:
            return operational_vls(port.operational)
        case PortRegister.FCP_THRESHOLD:
            return flow.threshold
        case PortRegister.FCP_PERIOD:
            return flow.period
        case PortRegister.FC_WATCHDOG:
            return flow.watchdog
        case PortRegister.LINK_DOWN_TIMEOUT:
            return port.state_machine.timeout
        case PortRegister.TICK:
            return port.counters.xmit_wait.tick - 1
        case PortRegister.LOCAL_PHY_ERRORS:
            return port.local_phy_errors
        case PortRegister.OVERRUN_ERRORS:
            return flow.overrun_errors
        case PortRegister.PHYSICAL_STATE:
            is_up = port.cable is not None and port.cable.up
            return PortPhysicalState.LINK_UP if port.polls and is_up else port.physical_state
        case PortRegister.EXTENDED_LOW:
            return port.counters.extended_low
    if offset in _COUNTERS:
        return port.counters.read(port.kernel.now, Counter(offset))
    return 0


def write_port(port: LinkPort, offset: int, value: int) -> None:
    """Write a word of a port's page; it is visible in the current cycle (a state shows in it)."""
    flow = port.flow
    match offset:
        case PortRegister.STATE:
            if value in (PortState.DOWN, PortState.ARMED, PortState.ACTIVE):
                port.state_machine.write(value)
        case PortRegister.WIDTH:
            if value in (LinkWidth.X1, LinkWidth.X4):
                port.set_pitch(1 if value == LinkWidth.X4 else 4)
        case PortRegister.NEIGHBOR_MTU:
            if 1 <= value <= port.mtu_code:
                port.set_neighbor_mtu(value)
        case PortRegister.OPERATIONAL_VLS:
            if 1 <= value <= operational_vls(port.vls):
                port.set_operational(data_vls(value))
        case PortRegister.FCP_THRESHOLD:
            if value < 1 << 12:
                flow.announcement_changes()
                flow.threshold = value
        case PortRegister.FCP_PERIOD:
            if 1 <= value <= _TIMER_MAX:
                flow.period = value
                flow.period_written()
        case PortRegister.FC_WATCHDOG:
            if 1 <= value <= _TIMER_MAX:
                flow.watchdog = value
                flow.watchdog_written()
        case PortRegister.LINK_DOWN_TIMEOUT:
            if 1 <= value <= _TIMER_MAX:
                port.state_machine.timeout = value
                port.state_machine.timeout_written()
        case PortRegister.TICK:
            if value < 1 << 8:
                port.counters.xmit_wait.set_tick(port.kernel.now, value + 1)
        case PortRegister.LOCAL_PHY_ERRORS:
            if value < 1 << 4:
                port.local_phy_errors = value
        case PortRegister.OVERRUN_ERRORS:
            if value < 1 << 4:
                flow.overrun_errors = value
        case PortRegister.PHYSICAL_STATE:
            if value in _PHYSICAL_STATES:
                port.set_physical_state(PortPhysicalState(value))
        case PortRegister.EXTENDED_LOW:
            if value < 1 << DATA_BITS:
                port.counters.extended_low = value
        case _ if offset in _COUNTERS:
            port.counters.write(port.kernel.now, Counter(offset), value)
