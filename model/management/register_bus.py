"""A node's register bus (docs/pipeline.md, section 10; docs/management.md, section 6; wire/registers.py)."""

from collections.abc import Callable
from typing import Final

from wire.codes import LINK_WIDTHS, VL15, LinkWidth, PortPhysicalState, PortState, data_vls, operational_vls
from wire.port_info import LINK_WIDTH_ALL
from wire.port_tables import P_KEY_TABLE
from wire.registers import (
    DATA_BITS,
    HIGH_OF_COUNTER,
    P_KEYS,
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    VL_XMIT_WAIT,
    Counter,
    Detail,
    NodeRegister,
    PacketCounter,
    PartitionCheck,
    PortRegister,
)

from ..crossing.vl_arbitration import VlArbitration
from ..kernel import CONTROL, DECIDE, RECEIVE, UPDATE, Kernel
from ..link.counters import Counted, Counters
from ..link.port import LinkPort
from .node import Node

__all__ = ["Bus"]

_WRITE_LATENCY = 2
_READ_LATENCY = 2
_PAGE_BITS = 16
_OFFSET_MASK = (1 << _PAGE_BITS) - 1
_TIMER_MAX = (1 << 24) - 1
_ENTRY_BITS = 12
_WEIGHT_BITS = 8
_P_KEY_BITS = 16
_CHECKS: Final = sum(PartitionCheck)
_COUNTERS: Final[dict[int, Counted]] = {
    **{counter.value: counter for counter in Counter},
    **{detail.value: detail for detail in Detail},
    **{counter.value: counter for counter in PacketCounter},
}
_VL_XMIT_WAITS: Final = range(VL_XMIT_WAIT, VL_XMIT_WAIT + VL15 + 1)
_COUNTER_OF_HIGH: Final[dict[int, Counted]] = {high: counter for counter, high in HIGH_OF_COUNTER.items()}
_WORD_MASK = (1 << DATA_BITS) - 1
_NUM_PORTS: Final = (0, NodeRegister.NUM_PORTS)
_LEASE_SECOND: Final = (0, NodeRegister.LEASE_SECOND)
_PHYSICAL_STATES = frozenset({PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED})
_LINK_DOWN_DEFAULTS = frozenset({PortPhysicalState.SLEEP, PortPhysicalState.POLLING})


class Bus:
    """A node's bus. Operations are given in the current cycle."""

    def __init__(self, kernel: Kernel, node: Node) -> None:
        self._kernel = kernel
        self._node = node
        self._ports = node.ports

    def write(self, address: int, value: int) -> None:
        """A bus write."""
        page, offset = address >> _PAGE_BITS, address & _OFFSET_MASK
        phase = UPDATE
        visible = self._kernel.now + _WRITE_LATENCY
        if 1 <= page <= len(self._ports):
            if offset == PortRegister.STATE:
                phase = RECEIVE  # the state machine looks at it one cycle before it shows
            elif offset == PortRegister.LOCAL_PHY_ERRORS:
                phase = CONTROL  # an error of that cycle is judged by it
            elif offset in _COUNTERS or offset in _VL_XMIT_WAITS:
                phase = DECIDE  # an increment of that cycle is lost
            elif offset == PortRegister.EXTENDED_LOW:
                phase = DECIDE  # what a read keeps in that cycle is lost
            elif offset == PortRegister.CONGESTION:
                self._ports[page - 1].congestion_given(value)
            elif offset in _COUNTER_OF_HIGH:
                high = page, _COUNTER_OF_HIGH[offset], value
                self._kernel.at(visible - 1, DECIDE, self._join_halves, high)
                return
            elif offset == PortRegister.FLOW_CTL_UPDATE_ERRORS:
                self._kernel.at(visible - 1, DECIDE, self._choose_vls, (page, value))
                return
        else:
            self._node.write_given(page, offset, value, visible)
        self._kernel.at(visible, phase, self._write, (page, offset, value))

    def _write(self, operation: tuple[int, int, int]) -> None:
        page, offset, value = operation
        if 1 <= page <= len(self._ports):
            _write_port(self._ports[page - 1], offset, value)
        elif (page, offset) != _LEASE_SECOND:
            self._node.write_register(page, offset, value)
        elif value:
            self._node.agent.lease_second = value

    def _join_halves(self, operation: tuple[int, Counted, int]) -> None:
        """A cycle before a counter's upper half is written: its lower half is what EXTENDED_LOW shows now."""
        page, counter, high = operation
        low = self._ports[page - 1].status.counters.extended_low
        self._kernel.at(self._kernel.now + 1, DECIDE, self._write_whole, (page, counter, high << DATA_BITS | low))

    def _write_whole(self, operation: tuple[int, Counted, int]) -> None:
        page, counter, value = operation
        self._ports[page - 1].status.counters.write_atomically(self._kernel.now, counter, value)

    def _choose_vls(self, operation: tuple[int, int]) -> None:
        """A cycle before FLOW_CTL_UPDATE_ERRORS is written: EXTENDED_LOW says now for which VLs."""
        page, value = operation
        chosen = self._ports[page - 1].status.counters.extended_low
        self._kernel.at(self._kernel.now + 1, DECIDE, self._write_update_errors, (page, value, chosen))

    def _write_update_errors(self, operation: tuple[int, int, int]) -> None:
        page, value, chosen = operation
        self._ports[page - 1].status.counters.write_flow_ctl_update_errors(value, chosen)

    def read(self, address: int, take: Callable[[int], None]) -> None:
        """A bus read: `take` gets what is visible in the cycle in which it is called, two cycles later."""
        self._kernel.at(self._kernel.now + _READ_LATENCY, DECIDE, self._read, (address, take))

    def _read(self, operation: tuple[int, Callable[[int], None]]) -> None:
        address, take = operation
        page, offset = address >> _PAGE_BITS, address & _OFFSET_MASK
        if 1 <= page <= len(self._ports):
            port = self._ports[page - 1]
            high = offset in _COUNTER_OF_HIGH
            take(self._read_high(port.status.counters, _COUNTER_OF_HIGH[offset]) if high else _read_port(port, offset))
        elif (page, offset) == _NUM_PORTS:
            take(len(self._ports))
        elif (page, offset) == _LEASE_SECOND:
            take(self._node.agent.lease_second)
        else:
            take(self._node.read_register(page, offset))

    def _read_high(self, counters: Counters, counter: Counted) -> int:
        """The upper half of a counter. The lower one is in EXTENDED_LOW from the next cycle on."""
        value = counters.read_whole(self._kernel.now, counter)
        self._kernel.at(self._kernel.now + 1, UPDATE, _keep_low, (counters, value & _WORD_MASK))
        return value >> DATA_BITS


def _keep_low(operation: tuple[Counters, int]) -> None:
    counters, low = operation
    counters.extended_low = low


def _read_port(port: LinkPort, offset: int) -> int:
    """A word of a port's page, as visible in the current cycle."""
    status, flow, counters, limits = port.status, port.flow, port.status.counters, port.limits
    match offset:
        case PortRegister.STATE:
            return status.state
        case PortRegister.WIDTH:
            return LinkWidth.X4 if port.output.pitch == 1 else LinkWidth.X1
        case PortRegister.NEIGHBOR_MTU:
            return status.neighbor_mtu
        case PortRegister.OPERATIONAL_VLS:
            return operational_vls(status.operational)
        case PortRegister.FCP_THRESHOLD:
            return flow.threshold
        case PortRegister.FCP_PERIOD:
            return flow.period
        case PortRegister.FC_WATCHDOG:
            return flow.watchdog
        case PortRegister.LINK_DOWN_TIMEOUT:
            return port.state_machine.timeout
        case PortRegister.TICK:
            return counters.ticks.length - 1
        case PortRegister.LOCAL_PHY_ERRORS:
            return counters.local_phy_errors
        case PortRegister.OVERRUN_ERRORS:
            return flow.overrun_errors
        case PortRegister.PHYSICAL_STATE:
            return _physical_state(port)
        case PortRegister.EXTENDED_LOW:
            return counters.extended_low
        case PortRegister.VL_HIGH_LIMIT:
            arbitration = port.output.arbitration
            return 0 if arbitration is None else arbitration.high_limit
        case PortRegister.HOQ_LIFE:
            return 0 if limits is None else limits.hoq_life
        case PortRegister.VL_STALL_COUNT:
            return 0 if limits is None else limits.stall_count
        case PortRegister.CONGESTION:
            return 0 if port.congestion is None else port.congestion.read()
        case PortRegister.PARTITION:
            return 0 if status.partition is None else status.partition.checks
        case PortRegister.FLOW_CTL_UPDATE_ERRORS:
            return counters.read_flow_ctl_update_errors()
        case PortRegister.LINK_WIDTH_ENABLED:
            return status.link_width_enabled
        case PortRegister.LINK_DOWN_DEFAULT:
            return status.link_down_default
        case _ if offset in _VL_XMIT_WAITS:
            slot = _slot_of(offset - VL_XMIT_WAIT, status.vls)
            return 0 if slot is None else port.output.read_vl_xmit_wait(slot)
    return counters.read(status.kernel.now, _COUNTERS[offset]) if offset in _COUNTERS else 0


def _slot_of(vl: int, vls: int) -> int | None:
    """The output's slot of a VL, of a node with so many data VLs; None if there is none."""
    return vl if vl < vls else vls if vl == VL15 else None


def _physical_state(port: LinkPort) -> PortPhysicalState:
    if port.status.physical_state != PortPhysicalState.POLLING:
        return port.status.physical_state
    if port.status.link_up:
        return PortPhysicalState.LINK_UP
    recovers = port.status.state in (PortState.ACTIVE, PortState.ACTIVE_DEFER)
    return PortPhysicalState.LINK_ERROR_RECOVERY if recovers else PortPhysicalState.POLLING


def _write_port(port: LinkPort, offset: int, value: int) -> None:
    """Write a word of a port's page, visible in the current cycle (a state shows in it); no value out of range."""
    status, flow, counters = port.status, port.flow, port.status.counters
    arbitration, limits, partition = port.output.arbitration, port.limits, status.partition
    congestion = port.congestion
    match offset:
        case PortRegister.STATE if value in (PortState.DOWN, PortState.ARMED, PortState.ACTIVE):
            port.state_machine.write(value)
        case PortRegister.WIDTH if value in (LinkWidth.X1, LinkWidth.X4):
            port.set_width(value)
        case PortRegister.NEIGHBOR_MTU if 1 <= value <= status.mtu_cap:
            port.set_neighbor_mtu(value)
        case PortRegister.OPERATIONAL_VLS if 1 <= value <= operational_vls(status.vls):
            port.set_operational(data_vls(value))
        case PortRegister.FCP_THRESHOLD if value < 1 << 12:
            flow.set_threshold(value)
        case PortRegister.FCP_PERIOD if 1 <= value <= _TIMER_MAX:
            flow.set_period(value)
        case PortRegister.FC_WATCHDOG if 1 <= value <= _TIMER_MAX:
            flow.set_watchdog(value)
        case PortRegister.LINK_DOWN_TIMEOUT if 1 <= value <= _TIMER_MAX:
            port.state_machine.set_timeout(value)
        case PortRegister.TICK if value < 1 << 8:
            port.output.set_tick(value + 1)
        case PortRegister.LOCAL_PHY_ERRORS if value < 1 << 4:
            counters.local_phy_errors = value
        case PortRegister.OVERRUN_ERRORS if value < 1 << 4:
            flow.overrun_errors = value
        case PortRegister.PHYSICAL_STATE if value in _PHYSICAL_STATES:
            port.set_physical_state(PortPhysicalState(value))
        case PortRegister.LINK_WIDTH_ENABLED if 1 <= value <= LINK_WIDTHS or value == LINK_WIDTH_ALL:
            port.set_link_width_enabled(value & LINK_WIDTHS)
        case PortRegister.LINK_DOWN_DEFAULT if value in _LINK_DOWN_DEFAULTS:
            status.link_down_default = PortPhysicalState(value)
        case PortRegister.EXTENDED_LOW:
            counters.extended_low = value
        case PortRegister.VL_HIGH_LIMIT if arbitration is not None and value < 1 << 8:
            arbitration.high_limit = value
        case PortRegister.HOQ_LIFE if limits is not None and value < 1 << 5:
            limits.set_hoq_life(value)
        case PortRegister.VL_STALL_COUNT if limits is not None and value < 1 << 3:
            limits.set_stall_count(value)
        case PortRegister.PARTITION if partition is not None and value <= _CHECKS:
            partition.checks = value
        case PortRegister.CONGESTION if congestion is not None:
            congestion.write(value)
        case _ if partition is not None and 0 <= offset - P_KEYS < P_KEY_TABLE.count:
            if value < 1 << _P_KEY_BITS:
                partition.write(status.kernel.now, offset - P_KEYS, value)
        case _ if offset in _VL_XMIT_WAITS:
            slot = _slot_of(offset - VL_XMIT_WAIT, status.vls)
            if slot is not None:
                port.output.write_vl_xmit_wait(slot, value)
        case _ if offset in _COUNTERS:
            counters.write(status.kernel.now, _COUNTERS[offset], value)
        case _ if arbitration is not None and value < 1 << _ENTRY_BITS:
            _write_vl_arbitration(arbitration, offset, value)


def _write_vl_arbitration(arbitration: VlArbitration, offset: int, value: int) -> None:
    for first, of in ((VL_ARBITRATION_LOW, arbitration.low), (VL_ARBITRATION_HIGH, arbitration.high)):
        if first <= offset < first + of.size:
            arbitration.write(of, offset - first, value >> _WEIGHT_BITS, value & (1 << _WEIGHT_BITS) - 1)
