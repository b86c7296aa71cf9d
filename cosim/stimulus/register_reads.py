"""Reading all that a node's register bus shows: its registers, those of its ports, its tables."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from cosim.stimulus.agents import agent_lids
from cosim.topology.topology import Topology
from wire import registers
from wire.codes import LID_MULTICAST_MIN, SERVICE_LEVELS
from wire.congestion_control import CC_DATA_BYTES, CcAttribute
from wire.parameters import SwitchParameters
from wire.port_tables import P_KEY_TABLE
from wire.registers import CounterHigh, NodeRegister, PacketCounter, PortRegister
from wire.stimulus import Control, Operation

__all__ = ["read_registers"]

_OF_PORTS: Final = (*PortRegister, *PacketCounter, *CounterHigh)
_OFFSETS: Final = 1 << 8
"""Of a node's page and of a port's: all that is there is below."""

_CONGESTION_WORDS: Final = range(8, 40)
"""Of all attributes of congestion control but the log, that hold anything."""


def read_registers(topology: Topology, cycle: int, random: Random, most: int) -> list[Control]:
    """Reads of all registers of all nodes and ports, and of their tables, from `cycle` on, in any order, one a cycle.

    Where these are more than `most`, registers come first, then entries that bring-up writes, then others, drawn at
    random.
    """
    addresses: list[tuple[int, int]] = []
    for make in (_registers, _entries_in_use, _other_entries):
        found = list(make(topology))
        addresses += random.sample(found, min(len(found), most - len(addresses)))
    random.shuffle(addresses)
    return [
        Control(now, Operation.BUS_READ, node, (address, 0, 0, 0))
        for now, (node, address) in enumerate(addresses, cycle)
    ]


def _registers(topology: Topology) -> Iterator[tuple[int, int]]:
    """(node, address) of what is no table's."""
    for index, node in enumerate(topology.fabric.nodes.values()):
        yield from ((index, registers.node_address(register)) for register in NodeRegister)
        for port in range(1, topology.fabric.port_count(node) + 1):
            yield from ((index, registers.port_address(port, register)) for register in _OF_PORTS)


def _entries_in_use(topology: Topology) -> Iterator[tuple[int, int]]:
    """(node, address) of the entries of LIDs and between linked ports, and of congestion control."""
    for name in topology.tables:
        index = topology.index[name]
        yield from ((index, registers.lft_address(lid)) for lid in agent_lids(topology).values())
        linked = [port.number for port in topology.linked_ports() if port.node == name]
        for in_port in linked:
            for out_port in linked:
                for sl in range(SERVICE_LEVELS):
                    yield index, registers.sl_to_vl_address(in_port, out_port, sl)
        for attribute in CcAttribute:
            words = range(CC_DATA_BYTES // 4) if attribute == CcAttribute.CONGESTION_LOG else _CONGESTION_WORDS
            yield from ((index, registers.congestion_address(attribute, word)) for word in words)


def _other_entries(topology: Topology) -> Iterator[tuple[int, int]]:
    """(node, address) of all other entries, and of what reads 0, as all does that nobody has."""
    for index, node in enumerate(topology.fabric.nodes.values()):
        pages = range(1 + topology.fabric.port_count(node))
        yield from ((index, page << 16 | offset) for page in pages for offset in range(_OFFSETS))
    used = set(agent_lids(topology).values())
    for name in topology.tables:
        index, node = topology.index[name], topology.fabric.nodes[name]
        assert isinstance(node, SwitchParameters)
        yield from ((index, registers.lft_address(lid)) for lid in range(node.lft_size + 1) if lid not in used)
        linked = {port.number for port in topology.linked_ports() if port.node == name}
        ports = range(1, node.ports + 1)
        for in_port in ports:
            for out_port in ports:
                if not {in_port, out_port} <= linked:
                    for sl in range(SERVICE_LEVELS):
                        yield index, registers.sl_to_vl_address(in_port, out_port, sl)
            yield from ((index, registers.p_key_address(in_port, entry)) for entry in range(P_KEY_TABLE.count))
        yield from ((index, registers.mft_address(LID_MULTICAST_MIN + group, 0)) for group in range(node.mft_size))
