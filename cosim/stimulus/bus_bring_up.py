"""Bringing a fabric up over the register bus, as a Subnet Manager would, and reading it out at the end.

What `--bring-up bus` and tests use in place of the Subnet Manager: docs/pipeline.md, sections 5, 6 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TypeAlias

from cosim.topology.topology import Port, Topology
from wire.codes import SERVICE_LEVELS, VL15, LinkWidth, PortState, mtu_code, operational_vls
from wire.forwarding_tables import MULTICAST_FORWARDING_TABLE
from wire.parameters import SwitchParameters
from wire.port_tables import P_KEY_TABLE, VL_ARBITRATION_ENTRY
from wire.registers import (
    CONGESTION_PAGE,
    LFT_PAGE,
    P_KEY_TURN,
    P_KEYS,
    PORT_RESET_VALUES,
    SL_TO_VL_PAGE,
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    Counter,
    CounterHigh,
    Detail,
    NodeRegister,
    PacketCounter,
    PartitionCheck,
    PortRegister,
    lft_address,
    mft_address,
    node_address,
    p_key_address,
    place_of_address,
    port_address,
    sl_to_vl_address,
    vl_arbitration_address,
    vl_xmit_wait_address,
)
from wire.stimulus import Control, Operation
from wire.vl_arbitration import VlArbitration

__all__ = [
    "BUS_READ_CYCLES",
    "FCP_PERIOD_AT_RESET",
    "WRITE_SHOWS",
    "BringUp",
    "Settings",
    "bus_bring_up",
    "group_writes",
    "initial_exchange",
    "multicast_entries",
    "node_writes",
    "read_counters",
    "settings_writes",
    "write",
    "write_port",
    "write_states",
]

FCP_PERIOD_AT_RESET = PORT_RESET_VALUES[PortRegister.FCP_PERIOD]
"""Cycles between two periodic flow control packets of a VL."""

BUS_READ_CYCLES = 4
"""Cycles from a read being given to its value in the trace (section 10)."""

WRITE_SHOWS = 2
"""Cycles until a register write is visible (section 10)."""

_FCP_ROWS = 2
_VL15_PACKET_ROWS = 96
_PIPELINE = 32
"""Cycles, with room to spare, from a port's new state to its flow control packet on the wire and from the
wire to the other port's registers (sections 5 to 8)."""


Settings: TypeAlias = "Mapping[Port, Mapping[int, int] | Mapping[PortRegister, int]]"
"""Values of registers by port; those of a node are its port 0's, and have addresses of the bus where they are no
`NodeRegister`."""


@dataclass(frozen=True)
class BringUp:
    """What brings a fabric up.

    Attributes:
        controls: one operation a cycle, ascending.
        start: the cycle from which every linked port is Active and traffic may start.
    """

    controls: tuple[Control, ...]
    start: int


def write(cycle: int, node: int, address: int, value: int) -> Control:
    """A bus write given in `cycle`."""
    return Control(cycle, Operation.BUS_WRITE, node, (address, value, 0, 0))


def write_port(
    topology: Topology,
    cycle: int,
    port: Port,
    register: PortRegister | Counter | Detail | PacketCounter | CounterHigh,
    value: int,
) -> Control:
    """A bus write of a port's register, given in `cycle`."""
    return write(cycle, topology.index[port.node], port_address(port.number, register), value)


def initial_exchange(topology: Topology, port: Port) -> int:
    """Cycles in which both ends of a link surely have each other's flow control packets of all VLs.

    Counted from a change of state of both ends that makes every VL due: the flight, a VL15 packet that was
    first, and one flow control packet a VL, at the link's width.
    """
    rows = _VL15_PACKET_ROWS + _FCP_ROWS * (topology.vls(port) + 1)
    return topology.flight(port) + _PIPELINE + topology.pace(port) * rows


def write_states(topology: Topology, cycle: int, state: PortState) -> list[Control]:
    """Writes of Armed or Active to both ends of every link, two neighbouring cycles a link.

    The neighbouring cycles matter: the Op 0 packets that an armed port sends at once reach an end that is
    still in Initialize otherwise, and do not set its ActiveEnable.
    """
    return [
        write_port(topology, now, port, PortRegister.STATE, state)
        for now, port in enumerate(topology.linked_ports(), cycle)
    ]


def bus_bring_up(
    topology: Topology,
    settings: Settings | None = None,
) -> BringUp:
    """Configure every node from reset and take every link to Active.

    LIDs, widths, VLs, MTUs, forwarding and SL-to-VL tables are written first, while the ports are in
    Initialize; then both ends of each link are armed, and activated once Op 0 flow control packets have
    crossed. `settings` (timers and thresholds) are written last, so that no short period puts an Op 1 packet
    on a cable whose far end is already armed, which would take that end down (RemoteInit).
    """
    ports = topology.linked_ports()
    # The first flow control packets cross at 4X: a width that changes under them would cut them short.
    first = max((topology.flight(port) + _PIPELINE + _FCP_ROWS * topology.vls(port) for port in ports), default=0)
    writes = (*_nodes(topology), *_ports(topology))
    controls = _one_a_cycle(writes, first)
    exchange = max((initial_exchange(topology, port) for port in ports), default=0)
    start = max(controls[-1].cycle + 1 if controls else first, exchange) + WRITE_SHOWS
    # Sections 5 and 6.2: in Initialize a port sends Op 1 packets on entering and each period after that. None may
    # be in flight when an end is armed.
    window = 2 * exchange + len(ports)
    phase = start % FCP_PERIOD_AT_RESET
    if phase < exchange or phase + window > FCP_PERIOD_AT_RESET:
        start += -start % FCP_PERIOD_AT_RESET + exchange
    controls += write_states(topology, start, PortState.ARMED)
    start += len(ports) + exchange
    controls += write_states(topology, start, PortState.ACTIVE)
    start += len(ports)
    last = settings_writes(topology, settings or {}, start)
    return BringUp((*controls, *last), start + len(last) + WRITE_SHOWS + 1)


def node_writes(topology: Topology, node: str, cycle: int) -> list[Control]:
    """What `bus_bring_up` writes to one node, which has been reset, from `cycle` on.

    Widths first: at 1X they have to be right before a packet comes. Forwarding tables last: nothing goes astray.
    """
    index = topology.index[node]
    writes = [one for one in (*_ports(topology), *_nodes(topology)) if one[0] == index]
    writes.sort(key=lambda one: LFT_PAGE <= place_of_address(one[1])[0] < SL_TO_VL_PAGE)
    return _one_a_cycle(writes, cycle)


def _one_a_cycle(writes: Iterable[tuple[int, int, int]], cycle: int) -> list[Control]:
    """Writes of (node, address, value), one a cycle from `cycle` on; a P_Key when its turn would be at once."""
    controls: list[Control] = []
    turns: dict[int, int] = {}
    for node, address, value in writes:
        page, offset = place_of_address(address)
        if page < CONGESTION_PAGE and P_KEYS <= offset < P_KEYS + P_KEY_TABLE.count:
            cycle = max(cycle, turns.get(node, cycle))
            turns[node] = cycle + P_KEY_TURN
        controls.append(write(cycle, node, address, value))
        cycle += 1
    return controls


def settings_writes(topology: Topology, settings: Settings, cycle: int) -> list[Control]:
    """Writes of registers, one a cycle from `cycle` on."""
    writes = ((port, *setting) for port, registers in settings.items() for setting in registers.items())
    return [
        write(now, topology.index[port.node], _address(port, register), value)
        for now, (port, register, value) in enumerate(writes, cycle)
    ]


def _address(port: Port, register: int) -> int:
    if isinstance(register, PortRegister):
        return port_address(port.number, register)
    return node_address(register) if isinstance(register, NodeRegister) else register


def group_writes(topology: Topology, cycle: int) -> list[Control]:
    """Writes of the MFT entries of all groups, one a cycle from `cycle` on."""
    entries = (entry for switch in topology.multicast_tables for entry in multicast_entries(topology, switch))
    return [write(now, *entry) for now, entry in enumerate(entries, cycle)]


def read_counters(topology: Topology, cycle: int, *, details: bool = False) -> list[Control]:
    """Reads of every counter of every linked port, from `cycle` on, and of those that split others up.

    One a cycle, of the ports in turn: a port's are read in every other cycle at most, for those read more often may
    lose what is counted (docs/pipeline.md, section 10). The last one's cycle says how long it takes.
    """
    ports = topology.linked_ports()
    of_ports = [
        [(port, address) for address in _counters(port.number, topology.fabric.nodes[port.node].vls, details=details)]
        for port in ports
    ]
    reads, soonest = [], dict.fromkeys(ports, cycle)
    for port, address in filter(None, chain.from_iterable(zip_longest(*of_ports))):
        now = max(soonest[port], cycle)
        reads.append(Control(now, Operation.BUS_READ, topology.index[port.node], (address, 0, 0, 0)))
        soonest[port], cycle = now + 2, now + 1
    return reads


def _counters(port: int, vls: int, *, details: bool) -> Iterator[int]:
    """The addresses of a port's counters."""
    yield from (port_address(port, counter) for counter in Counter)
    if details:
        yield from (port_address(port, detail) for detail in Detail)
        yield port_address(port, PortRegister.FLOW_CTL_UPDATE_ERRORS)
        yield from (vl_xmit_wait_address(port, vl) for vl in (*range(vls), VL15))


def multicast_entries(topology: Topology, switch: str) -> Iterator[tuple[int, int, int]]:
    """(node, address, value) of the MFT entries of the groups whose trees have a switch, but parts that are 0."""
    width = MULTICAST_FORWARDING_TABLE.entry.width
    for mlid, ports in topology.multicast_tables[switch].items():
        for part in sorted({port // width for port in ports}):
            mask = sum(1 << port % width for port in ports if port // width == part)
            yield topology.index[switch], mft_address(mlid, part), mask


def _nodes(topology: Topology) -> Iterator[tuple[int, int, int]]:
    """(node, address, value) of LIDs, forwarding tables and SL-to-VL tables, where not what reset leaves."""
    for index, (name, node) in enumerate(topology.fabric.nodes.items()):
        if not isinstance(node, SwitchParameters):
            if name in topology.lids:
                yield index, node_address(NodeRegister.LID), topology.lids[name]
                if name in topology.lmcs:
                    yield index, node_address(NodeRegister.LMC), topology.lmcs[name]
            continue
        table = topology.tables[name]
        yield index, node_address(NodeRegister.LINEAR_FDB_TOP), max(table, default=0)
        for lid, port in table.items():
            yield index, lft_address(lid), port
        yield from multicast_entries(topology, name)
        linked = [port for port in topology.linked_ports() if port.node == name]
        for out in linked:
            for sl in range(SERVICE_LEVELS):
                for in_port in linked:
                    vl = topology.vl(out, sl, in_port.number)
                    if vl != sl % node.vls:
                        yield index, sl_to_vl_address(in_port.number, out.number, sl), vl


def _ports(topology: Topology) -> Iterator[tuple[int, int, int]]:
    """(node, address, value) of width, VLs and MTU of each linked port, where not what reset leaves."""
    for port in topology.linked_ports():
        node = topology.fabric.nodes[port.node]
        wanted = []
        if topology.pace(port) != 1:
            wanted.append((PortRegister.WIDTH, int(LinkWidth.X1)))
        if topology.vls(port) != node.vls:
            wanted.append((PortRegister.OPERATIONAL_VLS, operational_vls(topology.vls(port))))
        if topology.mtu(port) != node.mtu:
            wanted.append((PortRegister.NEIGHBOR_MTU, int(mtu_code(topology.mtu(port)))))
        if topology.vl_arbitration is not None and node.vls > 1:
            yield from _arbitration(topology, port, topology.vl_arbitration)
        far = topology.far_end(port)
        if isinstance(node, SwitchParameters) and far is not None and far.node in topology.p_keys:
            yield from _partitions(topology, port, topology.p_keys[far.node])
        for register, value in wanted:
            yield topology.index[port.node], port_address(port.number, register), value


def _partitions(topology: Topology, port: Port, p_keys: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    """(node, address, value) of a switch port that checks what comes from its host and goes there by the P_Keys."""
    index = topology.index[port.node]
    # The first entry is not 0 at reset.
    for entry, p_key in enumerate(p_keys or (0,)):
        yield index, p_key_address(port.number, entry), p_key
    yield index, port_address(port.number, PortRegister.PARTITION), PartitionCheck.INBOUND | PartitionCheck.OUTBOUND


def _arbitration(topology: Topology, port: Port, wanted: VlArbitration) -> Iterator[tuple[int, int, int]]:
    """(node, address, value) of a port's VL arbitration; VLs are modulo those that it uses."""
    index = topology.index[port.node]
    for first, entries in ((VL_ARBITRATION_LOW, wanted.low), (VL_ARBITRATION_HIGH, wanted.high)):
        for place, entry in enumerate(entries):
            value = VL_ARBITRATION_ENTRY.to_int(vl=entry.vl % topology.vls(port), weight=entry.weight)
            yield index, vl_arbitration_address(port.number, first, place), value
    yield index, port_address(port.number, PortRegister.VL_HIGH_LIMIT), wanted.high_limit
