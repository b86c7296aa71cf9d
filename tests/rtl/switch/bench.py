"""A small fabric in Amaranth's simulator: a switch with an adapter at each of its first ports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Module, Signal

from rtl.adapter.adapter import Adapter
from rtl.management import agent_port
from rtl.switch.switch import Switch
from tests.rtl.simulation import Simulation
from wire.codes import PortState
from wire.parameters import AdapterParameters, SwitchParameters
from wire.registers import NodeRegister, PortRegister, lft_address, node_address, port_address
from wire.trace import Kind

SWITCH = -1
FLIGHT = 1

TO_WIRES = 3
"""Cycles from a row's read, x_r, to the wires, w_r; or to the host's."""

CREDITS_TRAVEL = 40
"""Cycles from Armed to the last flow control packet that this brings about, on a 1X link too."""

SETTLED = 16
"""Cycles from the last Active to data, in which a test may write what else it needs."""


class Event(NamedTuple):
    """A record of the trace, its node an adapter's number or SWITCH."""

    cycle: int
    node: int
    port: int
    kind: Kind
    words: tuple[int, ...]


@dataclass
class _Stream:
    packets: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    at: int = 0
    shown: tuple[int, int] | None = None

    def offer(self, ctx: Any, wires: Any, cycle: int) -> None:
        """Show length and word of the packet that is due, if one is. Every change costs time, so only those are set."""
        offered = None
        if self.packets and self.packets[0][0] <= cycle:
            packet = self.packets[0][1]
            offered = len(packet), packet[self.at]
        if offered == self.shown:
            return
        if offered is not None:
            ctx.set(wires.length, offered[0])
            ctx.set(wires.data, offered[1])
        ctx.set(wires.valid, offered is not None)
        self.shown = offered


class _Design:
    """The hardware of a fabric."""

    def __init__(self, switch: SwitchParameters, adapter: AdapterParameters, adapters: int) -> None:
        self.switch = Switch(switch)
        self.adapters = [Adapter(adapter) for _ in range(adapters)]
        self.nodes: dict[int, Any] = dict(enumerate(self.adapters)) | {SWITCH: self.switch}
        self.streams = {
            (node, slot): one.send[slot] for node, one in enumerate(self.adapters) for slot in range(adapter.vls + 1)
        }
        self.flips = {(node, 1): Signal(32, name=f"flip_{node}") for node in range(adapters)}
        self.flips |= {(SWITCH, port): Signal(32, name=f"flip_switch_{port}") for port in range(1, adapters + 1)}
        self.notable = Signal()
        self.simulation = Simulation(self._connected())

    def _connected(self) -> Module:
        m = Module()
        m.submodules.switch = self.switch
        for number, adapter in enumerate(self.adapters):
            m.submodules[f"adapter_{number}"] = adapter
            for tx, rx, end in (
                (adapter.tx, self.switch.rx[number], (SWITCH, number + 1)),
                (self.switch.tx[number], adapter.rx, (number, 1)),
            ):
                on_link = Signal(32, name=f"link_{number}_{end[0] == SWITCH:d}")
                m.d.sync += [on_link.eq(tx.data), rx.k.eq(tx.k), rx.valid.eq(tx.valid)]
                m.d.comb += rx.data.eq(on_link ^ self.flips[end])
            m.d.comb += adapter.up.eq(1)
        m.d.comb += self.switch.up.eq((1 << len(self.adapters)) - 1)
        m.d.comb += self.notable.eq(
            Cat(
                *(node.trace.valid for node in self.nodes.values()),
                *(node.bus.rvalid for node in self.nodes.values()),
                *(adapter.recv.valid for adapter in self.adapters),
                *(stream.valid for stream in self.streams.values()),
            ).any()
        )
        return m


@lru_cache(maxsize=8)
def _design(switch: SwitchParameters, adapter: AdapterParameters, adapters: int, _agent: type) -> _Design:
    """The design of these parameters, with agents or with what stands in for them."""
    return _Design(switch, adapter, adapters)


class Fabric:
    """Adapter i has LID i + 1 and sits at port i + 1 of the switch.

    `rows[node, port]` collects (cycle, data, k) of every row on that port's receive wires if the port is in
    `watched`.
    """

    def __init__(
        self,
        switch: SwitchParameters,
        adapter: AdapterParameters,
        adapters: int,
        watched: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._design = _design(switch, adapter, adapters, agent_port.Agent)
        self.adapters = self._design.adapters
        self.nodes = self._design.nodes
        self.streams: dict[tuple[int, int], _Stream] = defaultdict(_Stream)
        self.actions: dict[int, list[Callable[[Any], None]]] = defaultdict(list)
        self.events: list[Event] = []
        self.delivered: dict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
        self.answers: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.rows: dict[tuple[int, int], list[tuple[int, int, int]]] = {key: [] for key in watched}

    def write(self, cycle: int, node: int, address: int, value: int) -> None:
        """Give a bus write in a cycle."""
        bus = self.nodes[node].bus

        def give(ctx: Any) -> None:
            ctx.set(bus.addr, address)
            ctx.set(bus.wdata, value)
            ctx.set(bus.write, 1)

        self.actions[cycle].append(give)
        self.actions[cycle + 1].insert(0, lambda ctx: ctx.set(bus.write, 0))

    def read(self, cycle: int, node: int, address: int) -> None:
        """Give a bus read in a cycle; `answers` has what comes."""
        bus = self.nodes[node].bus

        def give(ctx: Any) -> None:
            ctx.set(bus.addr, address)
            ctx.set(bus.read, 1)

        self.actions[cycle].append(give)
        self.actions[cycle + 1].insert(0, lambda ctx: ctx.set(bus.read, 0))

    def stall(self, cycle: int, node: int, mask: int) -> None:
        """Stall slots of a host from a cycle on."""
        self.actions[cycle].append(lambda ctx: ctx.set(self.adapters[node].recv_stall, mask))

    def flip(self, cycle: int, node: int, port: int, mask: int) -> None:
        """Flip data bits of the row that arrives at a port in a cycle."""
        self.actions[cycle].append(lambda ctx: ctx.set(self._design.flips[node, port], mask))
        self.actions[cycle + 1].insert(0, lambda ctx: ctx.set(self._design.flips[node, port], 0))

    def post(self, cycle: int, node: int, slot: int, words: tuple[int, ...]) -> None:
        """Let a host offer a packet from a cycle on."""
        self.streams[node, slot].packets.append((cycle, words))

    def changes(self, cycle: int) -> list[str]:
        """What will have the name of each register and memory that changes from a cycle on."""
        names: list[str] = []
        self.actions[cycle].append(lambda _ctx: self._design.simulation.note_changes(names))
        return names

    def bring_up(self, cycle: int, registers: dict[tuple[int, int], dict[int, int]] | None = None) -> int:
        """Give LIDs and routes, then Armed and Active to every port, from a cycle on.

        `registers` are values by offset for the ports (node, port) named. Returns the cycle from which data flows.
        """
        count = len(self.adapters)
        ends = [(node, 1) for node in range(count)] + [(SWITCH, port) for port in range(1, count + 1)]
        writes = [(node, node_address(NodeRegister.LID), node + 1) for node in range(count)]
        writes += [(SWITCH, lft_address(port), port) for port in range(1, count + 1)]
        for (node, port), values in (registers or {}).items():
            writes += [(node, port << 16 | offset, value) for offset, value in values.items()]
        writes += [(node, port_address(port, PortRegister.STATE), PortState.ARMED) for node, port in ends]
        for write in writes:
            self.write(cycle, *write)
            cycle += 1
        cycle += CREDITS_TRAVEL  # which enables Active
        for node, port in ends:
            self.write(cycle, node, port_address(port, PortRegister.STATE), PortState.ACTIVE)
            cycle += 1
        return cycle + SETTLED

    def run(self, cycles: int) -> list[Event]:
        """Simulate from cycle 0 and return the trace."""
        streams = self._design.streams

        async def bench(ctx: Any) -> None:
            words: dict[int, list[int]] = defaultdict(list)
            for cycle in range(cycles):
                for action in self.actions.get(cycle, ()):
                    action(ctx)
                for key, stream in self.streams.items():
                    stream.offer(ctx, streams[key], cycle)
                if ctx.get(self._design.notable):
                    self._look(ctx, cycle, words)
                    for key, stream in self.streams.items():
                        if ctx.get(streams[key].ready):
                            stream.at += 1
                            if stream.at == len(stream.packets[0][1]):
                                stream.packets.pop(0)
                                stream.at = 0
                for (node, port), seen in self.rows.items():
                    rx = self.nodes[node].rx
                    rx = rx[port - 1] if node == SWITCH else rx
                    if ctx.get(rx.valid):
                        seen.append((cycle, ctx.get(rx.data), ctx.get(rx.k)))
                await ctx.tick()

        self._design.simulation.run(bench)
        return self.events

    def _look(self, ctx: Any, cycle: int, words: dict[int, list[int]]) -> None:
        for number, node in self.nodes.items():
            valid = ctx.get(node.trace.valid)
            for slot, (port, kind) in enumerate(node.trace_slots):
                if valid >> slot & 1:
                    record = ctx.get(node.trace.payload[slot].as_value())
                    fields = tuple(record >> 32 * place & 0xFFFFFFFF for place in range(5))
                    self.events.append(Event(cycle, number, port, kind, fields))
            if ctx.get(node.bus.rvalid):
                self.answers[number].append((cycle, ctx.get(node.bus.rdata)))
        for number, adapter in enumerate(self.adapters):
            if ctx.get(adapter.recv.valid):
                if ctx.get(adapter.recv.first):
                    words[number] = []
                words[number].append(ctx.get(adapter.recv.data))
                if ctx.get(adapter.recv.last):
                    self.delivered[number].append((ctx.get(adapter.recv.slot), tuple(words[number])))

    def of(self, kind: Kind, node: int | None = None) -> list[Event]:
        """The records of a kind, of one node or all."""
        return [event for event in self.events if event.kind == kind and node in (None, event.node)]
