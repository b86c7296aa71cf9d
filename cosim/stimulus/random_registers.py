"""Bus accesses at random: settings of ports, values that nothing may take, addresses that are not there."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from math import inf
from random import Random
from typing import Final

from cosim.stimulus.bus_bring_up import FCP_PERIOD_AT_RESET, write, write_port
from cosim.stimulus.random_settings import due, random_gap, random_times
from cosim.topology.topology import Port, Topology
from wire import registers
from wire.codes import (
    LID_MULTICAST_MIN,
    LINK_WIDTHS,
    SERVICE_LEVELS,
    VL15,
    LinkWidth,
    PortPhysicalState,
    PortState,
    mtu_code,
    operational_vls,
)
from wire.forwarding_tables import LINEAR_FORWARDING_TABLE, MULTICAST_FORWARDING_TABLE
from wire.parameters import SwitchParameters, vl_arbitration_entries
from wire.port_info import LINK_WIDTH_ALL
from wire.port_tables import P_KEY_TABLE, SL_TO_VL_MAPPING_TABLE, VL_ARBITRATION_ENTRY
from wire.registers import (
    COUNTER_WIDTHS,
    DATA_BITS,
    DETAIL_BITS,
    PORT_REGISTER_WIDTHS,
    Detail,
    NodeRegister,
    PacketCounter,
    PortRegister,
)
from wire.stimulus import Control, Operation

__all__ = ["random_brief_settings", "random_register_accesses", "random_unplugged_settings"]

_GAP: Final = (50, 1_500)
_SETTING_SHARE: Final = 0.4
_END_SHARE: Final = 0.15
"""Of the settings of timers, those that have the least or the largest value before, for a while."""

_END_CYCLES: Final = (20, 500)
_KNOWN_SHARE: Final = 0.1
"""Of the accesses, reads of what a port is, and writes of what a register holds; likewise of the largest LIDs."""

_OF_NODE_SHARE: Final = 0.5
_LARGEST_SHARE: Final = 0.03
_NOWHERE_SHARE: Final = 0.2
_NOWHERE_READ_SHARE: Final = 0.5
_MAX: Final = (1 << DATA_BITS) - 1
_VALUE_BITS: Final = (4, 8, 12, DATA_BITS)
_TIMER_ENDS: Final = (1, (1 << 24) - 1)

_NOT_ZERO: Final = (PortRegister.FCP_PERIOD, PortRegister.FC_WATCHDOG, PortRegister.LINK_DOWN_TIMEOUT)
"""Of those that hold a number."""

_CODES: Final = {
    PortRegister.STATE: (PortState.DOWN, PortState.ARMED, PortState.ACTIVE),
    PortRegister.WIDTH: (LinkWidth.X1, LinkWidth.X4),
    PortRegister.PHYSICAL_STATE: (
        PortPhysicalState.SLEEP,
        PortPhysicalState.POLLING,
        PortPhysicalState.DISABLED,
    ),
    PortRegister.LINK_WIDTH_ENABLED: (LinkWidth.X1, LinkWidth.X4, LINK_WIDTHS),
    PortRegister.LINK_DOWN_DEFAULT: (PortPhysicalState.SLEEP, PortPhysicalState.POLLING),
}
"""What others take."""

_CODE_BITS: Final = 5
"""Of the values tried besides."""

_NODE_WIDTHS: Final = {
    NodeRegister.LINEAR_FDB_TOP: 16,
    NodeRegister.LID: 16,
    NodeRegister.LMC: 3,
    NodeRegister.LIFE_TIME: 5,
    NodeRegister.MULTICAST_FDB_TOP: 16,
    NodeRegister.DEFAULT_MULTICAST_PRIMARY: 8,
    NodeRegister.DEFAULT_MULTICAST_NOT_PRIMARY: 8,
}
_ARBITRATION_BITS: Final = sum(VL_ARBITRATION_ENTRY[name].width for name in ("vl", "weight"))

_BRIEF_GAP: Final = (1_000, 8_000)
_BRIEF_CYCLES: Final = (200, 3_000)
_SILENT_SHARE: Final = 0.5
_NEAR_PERIOD_SHARE: Final = 0.5
_MOST_BEHIND_PERIOD: Final = 60
_LEAST_WATCHDOG: Final = 5_000
_MOST_TIMEOUT: Final = 3_000
_LEAST_PERIOD: Final = 200

_UNPLUGGED_GAP: Final = (200, 4_000)
_MOST_PORTS: Final = 64
"""That addresses have room for."""

_MFT_PORTS: Final = MULTICAST_FORWARDING_TABLE.entry.width
_MOST_MFT_PART: Final = _MOST_PORTS // _MFT_PORTS

_STATES: Final = (PortRegister.STATE, PortRegister.PHYSICAL_STATE)
_LID_MAX: Final = 0xFFFF
_NO_PAGES: Final = (
    range(_MOST_PORTS + 1, registers.CONGESTION_PAGE),
    range(registers.CONGESTION_PAGE + 1, registers.LFT_PAGE),
    range(registers.LFT_PAGE + 1, registers.MFT_PAGE),
    range(registers.MFT_PAGE + _MOST_MFT_PART + 1, registers.SL_TO_VL_PAGE),
)
"""Pages in which nobody has anything."""

_OF_PORTS: Final = (*PortRegister, *registers.Counter, *PacketCounter, *registers.CounterHigh, *Detail)
_LISTS: Final = range(registers.VL_ARBITRATION_LOW, registers.VL_ARBITRATION_HIGH + registers.VL_ARBITRATION_SPAN)
_P_KEYS: Final = range(registers.P_KEYS, registers.P_KEYS + P_KEY_TABLE.count)
_LOW_OFFSETS: Final = 1 << 8
_HIGH_BITS: Final = range(8, 16)
"""Of offsets in a port's page: all that it has is below."""


def random_register_accesses(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Writes of settings, reads, writes that have no effect, and reads and writes where nothing is."""
    nodes = list(topology.fabric.nodes)
    ports = topology.linked_ports()
    ends: list[Control] = []
    for cycle in random_times(random, random_gap(random, _GAP), start, end):
        yield from due(ends, cycle)
        chosen = random.random()
        if chosen < _SETTING_SHARE:
            count["setting"] += 1
            port = random.choice(ports)
            register, value = _setting(random)
            if register in _NOT_ZERO and random.random() < _END_SHARE:
                later = cycle + random.randint(*_END_CYCLES)
                heapq.heappush(ends, write_port(topology, later, port, register, value))
                value = random.choice(_TIMER_ENDS)
            yield write_port(topology, cycle, port, register, value)
            continue
        if chosen < _SETTING_SHARE + _KNOWN_SHARE:
            yield _known(topology, random, cycle, random.choice(ports))
            continue
        name = random.choice(nodes)
        if chosen > 1 - _LARGEST_SHARE:
            count["setting"] += 1
            node, (lids, usual) = topology.index[name], _usual_lid(topology, random, name)
            yield write(cycle, node, registers.node_address(lids), _LID_MAX)
            later = cycle + random.randint(*_END_CYCLES)
            heapq.heappush(ends, write(later, node, registers.node_address(lids), usual))
            continue
        if chosen < _SETTING_SHARE + _KNOWN_SHARE + _NOWHERE_SHARE:
            address, value = _nowhere(topology, random, name), random.getrandbits(random.choice(_VALUE_BITS))
            if random.random() < _NOWHERE_READ_SHARE:
                yield Control(cycle, Operation.BUS_READ, topology.index[name], (address, 0, 0, 0))
                continue
        else:
            address, value = _refused(topology, random, name)
        count["refused_write"] += 1
        yield write(cycle, topology.index[name], address, value)
    yield from due(ends, inf)


def random_brief_settings(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Links that are watched, or keep silent, so that they go to recovery, for a while.

    Some are watched for about as long as their other end takes between flow control packets: of one VL they come in
    time, of another they do not.
    """
    ports, gap = topology.linked_ports(), random_gap(random, _BRIEF_GAP)
    ends: list[Control] = []
    until = dict.fromkeys(ports, start)
    for cycle in random_times(random, gap, start, end):
        yield from due(ends, cycle)
        port = random.choice(ports)
        if cycle <= until[port]:
            continue
        watch, period = 1 + random.getrandbits(random.randrange(5, 12)), FCP_PERIOD_AT_RESET
        if random.random() < _NEAR_PERIOD_SHARE:
            period = _LEAST_PERIOD + random.getrandbits(random.randrange(12))
            watch = period + random.randint(0, _MOST_BEHIND_PERIOD)
        until[port] = cycle + watch + random.randint(*_BRIEF_CYCLES)
        far = topology.far_end(port)
        count["setting"] += 1
        yield write_port(topology, cycle, port, PortRegister.FC_WATCHDOG, watch)
        if far is not None and (period < FCP_PERIOD_AT_RESET or random.random() < _SILENT_SHARE):
            yield write_port(topology, cycle, far, PortRegister.FCP_PERIOD, period)
        usual = random.getrandbits(24) | 1 << 13
        heapq.heappush(ends, write_port(topology, until[port], port, PortRegister.FC_WATCHDOG, usual))
    yield from due(ends, inf)


def random_unplugged_settings(
    topology: Topology, random: Random, start: int, end: int, count: Counter[str]
) -> Iterator[Control]:
    """Of ports without a link any register, and any value that it may have."""
    nodes = topology.fabric.nodes
    every = (Port(name, number) for name in nodes for number in range(1, topology.fabric.port_count(nodes[name]) + 1))
    ports = [port for port in every if topology.link_at(port) is None]
    for cycle in random_times(random, random_gap(random, _UNPLUGGED_GAP), start, end) if ports else ():
        port = random.choice(ports)
        node = nodes[port.node]
        values = {
            **{
                register: max(register in _NOT_ZERO, random.getrandbits(bits))
                for register, bits in PORT_REGISTER_WIDTHS.items()
            },
            **{register: random.choice(codes) for register, codes in _CODES.items()},
            PortRegister.OPERATIONAL_VLS: random.randint(1, operational_vls(node.vls)),
            PortRegister.NEIGHBOR_MTU: random.randint(1, mtu_code(node.mtu)),
        }
        count["setting"] += 1
        yield write_port(topology, cycle, port, *random.choice(list(values.items())))


def _setting(random: Random) -> tuple[PortRegister, int]:
    """A register that packets are counted, credits sent and links watched by, and a value that it may have."""
    register = random.choice(
        (
            PortRegister.FCP_THRESHOLD,
            PortRegister.FCP_PERIOD,
            PortRegister.FC_WATCHDOG,
            PortRegister.LINK_DOWN_TIMEOUT,
            PortRegister.TICK,
            PortRegister.LOCAL_PHY_ERRORS,
            PortRegister.OVERRUN_ERRORS,
            PortRegister.EXTENDED_LOW,
        )
    )
    match register:
        case PortRegister.FCP_PERIOD:
            return register, _LEAST_PERIOD + random.getrandbits(random.randrange(15))
        case PortRegister.FC_WATCHDOG:
            return register, max(_LEAST_WATCHDOG, 1 + random.getrandbits(random.randrange(13, 24)))
        case PortRegister.LINK_DOWN_TIMEOUT:
            return register, random.randint(1, _MOST_TIMEOUT)
        case PortRegister.EXTENDED_LOW:
            return register, random.getrandbits(DATA_BITS)
    return register, random.getrandbits(PORT_REGISTER_WIDTHS[register])


def _known(topology: Topology, random: Random, cycle: int, port: Port) -> Control:
    """NeighborMTU is written as it should be anyway, or it is read what a port is, or a node."""
    if random.random() < 0.5:
        return write_port(topology, cycle, port, PortRegister.NEIGHBOR_MTU, int(mtu_code(topology.mtu(port))))
    address = registers.port_address(port.number, random.choice((*_STATES, random.choice(list(PortRegister)))))
    if random.random() < _OF_NODE_SHARE:
        address = registers.node_address(random.choice(list(NodeRegister)))
    return Control(cycle, Operation.BUS_READ, topology.index[port.node], (address, 0, 0, 0))


def _usual_lid(topology: Topology, random: Random, name: str) -> tuple[NodeRegister, int]:
    """A register that holds a LID of a node, and one that it may have for long."""
    node = topology.fabric.nodes[name]
    if not isinstance(node, SwitchParameters):
        return NodeRegister.LID, topology.lids.get(name, 0)
    return random.choice(((NodeRegister.LINEAR_FDB_TOP, node.lft_size - 1), (NodeRegister.MULTICAST_FDB_TOP, 0)))


def _too_wide(random: Random, bits: int) -> int:
    """A value of more than so many bits."""
    return random.choice((1 << bits, random.getrandbits(DATA_BITS) | 1 << random.randrange(bits, DATA_BITS), _MAX))


def _refused(topology: Topology, random: Random, name: str) -> tuple[int, int]:
    """(address, value) of a write that changes nothing."""
    node = topology.fabric.nodes[name]
    ports = topology.fabric.port_count(node)
    port = random.randint(1, ports)
    wide = {registers.port_address(port, register): bits for register, bits in PORT_REGISTER_WIDTHS.items()}
    wide |= {registers.port_address(port, counter): bits for counter, bits in COUNTER_WIDTHS.items()}
    wide = {address: bits for address, bits in wide.items() if bits < DATA_BITS}
    details = {registers.port_address(port, detail): DETAIL_BITS for detail in Detail}
    kinds: list[tuple[int, int]] = [
        *((address, _too_wide(random, bits)) for address, bits in random.sample(sorted(wide.items()), 4)),
        *((address, _too_wide(random, bits)) for address, bits in random.sample(sorted(details.items()), 1)),
        *((registers.port_address(port, register), 0) for register in _NOT_ZERO),
        *((registers.port_address(port, register), _no_code(random, codes)) for register, codes in _CODES.items()),
        (
            registers.port_address(port, PortRegister.LINK_WIDTH_ENABLED),
            LINK_WIDTH_ALL ^ 1 << random.randrange(DATA_BITS),
        ),
        (registers.vl_xmit_wait_address(port, random.choice((*range(node.vls), VL15))), _too_wide(random, DETAIL_BITS)),
        (registers.port_address(port, PortRegister.NEIGHBOR_MTU), _beyond(random, int(mtu_code(node.mtu)))),
        (registers.port_address(port, PortRegister.OPERATIONAL_VLS), _beyond(random, operational_vls(node.vls))),
        (registers.node_address(NodeRegister.LEASE_SECOND), 0),
        (registers.node_address(NodeRegister.NUM_PORTS), random.getrandbits(DATA_BITS)),
    ]
    register = random.choice(list(_NODE_WIDTHS))
    kinds.append((registers.node_address(register), _too_wide(random, _NODE_WIDTHS[register])))
    if node.vls > 1:
        entry = random.randrange(vl_arbitration_entries(node.vls))
        first = random.choice((registers.VL_ARBITRATION_LOW, registers.VL_ARBITRATION_HIGH))
        address = registers.vl_arbitration_address(port, first, entry)
        kinds.append((address, _too_wide(random, _ARBITRATION_BITS)))
    if isinstance(node, SwitchParameters):
        lid, group = random.randrange(node.lft_size), random.randrange(node.mft_size)
        in_port, out_port, sl = random.randint(1, ports), random.randint(1, ports), random.randrange(SERVICE_LEVELS)
        of_tables = {
            registers.p_key_address(port, random.randrange(P_KEY_TABLE.count)): P_KEY_TABLE.entry.width,
            registers.lft_address(lid): LINEAR_FORWARDING_TABLE.entry.width,
            registers.mft_address(LID_MULTICAST_MIN + group, 0): MULTICAST_FORWARDING_TABLE.entry.width,
            registers.sl_to_vl_address(in_port, out_port, sl): SL_TO_VL_MAPPING_TABLE.entry.width,
        }
        kinds += [(address, _too_wide(random, bits)) for address, bits in of_tables.items()]
    return random.choice(kinds)


def _no_code(random: Random, codes: tuple[int, ...]) -> int:
    """A value that is none of these."""
    others = [value for value in range(1 << _CODE_BITS) if value not in codes]
    return random.choice((*others, random.choice(codes) | 1 << random.randrange(_CODE_BITS, DATA_BITS), _MAX))


def _beyond(random: Random, most: int) -> int:
    """A value outside of 1 to `most`."""
    return random.choice((0, most + 1, random.randint(1, most) | 1 << random.randrange(3, DATA_BITS), _MAX))


def _no_register(random: Random, vls: int) -> int:
    """An offset at which no port of so many VLs has anything: of what they have it is often a bit away."""
    waits = (registers.VL_XMIT_WAIT + vl for vl in (*range(vls), VL15))
    used: set[int] = {*_OF_PORTS, *waits, *_LISTS, *_P_KEYS}
    free = sorted({*range(_LOW_OFFSETS)} - used)
    return random.choice((random.choice(free), random.choice(sorted(used)) | 1 << random.choice(_HIGH_BITS)))


def _nowhere(topology: Topology, random: Random, name: str) -> int:
    """An address that the node does not have, of tables often the first behind them."""
    node = topology.fabric.nodes[name]
    ports = topology.fabric.port_count(node)
    others = range(ports + 1, _MOST_PORTS + 1)
    kinds: list[int] = [
        random.randrange(len(NodeRegister), 1 << 16),
        random.randint(1, ports) << 16 | _no_register(random, node.vls),
        random.choice(random.choice(_NO_PAGES)) << 16
        | random.choice((random.getrandbits(16), random.choice(_OF_PORTS))),
    ]
    if node.vls > 1:
        entries = vl_arbitration_entries(node.vls)
        entry = random.choice((entries, random.randrange(entries, registers.VL_ARBITRATION_SPAN)))
        first = random.choice((registers.VL_ARBITRATION_LOW, registers.VL_ARBITRATION_HIGH))
        kinds.append(registers.vl_arbitration_address(random.randint(1, ports), first, entry))
    if others:
        kinds.append(
            registers.port_address(random.choice(others), random.choice((*PortRegister, *PacketCounter, *Detail)))
        )
    if isinstance(node, SwitchParameters):
        group = LID_MULTICAST_MIN + random.choice((node.mft_size, random.randrange(node.mft_size, 0x3FFF)))
        kinds += [
            registers.lft_address(random.choice((node.lft_size, random.randrange(node.lft_size, LID_MULTICAST_MIN)))),
            registers.mft_address(group, 0),
            # Of output port 0.
            registers.sl_to_vl_address(random.randint(1, ports), 1, random.randrange(SERVICE_LEVELS)) - SERVICE_LEVELS,
        ]
        if parts := range(ports // _MFT_PORTS + 1, _MOST_MFT_PART + 1):
            part = random.choice((parts[0], *parts))
            kinds.append(registers.mft_address(LID_MULTICAST_MIN + random.randrange(node.mft_size), part))
        if others:
            in_port, out_port = random.sample((random.randint(1, ports), random.choice(others)), 2)
            kinds.append(registers.sl_to_vl_address(in_port, out_port, random.randrange(SERVICE_LEVELS)))
    else:
        kinds += [
            registers.node_address(random.choice((NodeRegister.LINEAR_FDB_TOP, NodeRegister.LIFE_TIME))),
            registers.port_address(
                1, random.choice((PortRegister.HOQ_LIFE, PortRegister.PARTITION, PortRegister.CONGESTION))
            ),
            registers.lft_address(random.randrange(0xC000)),
            registers.sl_to_vl_address(1, 1, random.randrange(SERVICE_LEVELS)),
        ]
    return random.choice(kinds)
