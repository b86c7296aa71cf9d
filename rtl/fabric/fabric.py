# amaranth: UnusedElaboratable=no
"""A whole fabric in hardware: switches and adapters, the links between them, and the input for control operations."""

from __future__ import annotations

from itertools import islice
from typing import Any

from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from rtl.adapter.adapter import Adapter
from rtl.fabric.link import LinkDirection
from rtl.fabric.ports import FabricPorts, FabricSignature
from rtl.management.identity import identity_values
from rtl.switch.switch import Switch
from rtl.widths import OFFERED_BITS
from wire.codes import LINK_WIDTHS
from wire.parameters import AdapterParameters, FabricParameters, NodeParameters, reset_cycles
from wire.stimulus import Operation
from wire.trace import Kind, link_source, port_source

__all__ = ["Fabric"]


class Fabric(wiring.Component):
    """A fabric, built from the same record as the golden model's.

    Every link is up at reset. A control operation acts in the cycle it is given in, as docs/pipeline.md says for
    each: bus accesses and injections are on the wires in that cycle; registers of links and hosts follow in the next.

    Open ports have their rows outside, for tests at the level of symbols and for what stands in for the rest of a
    fabric of which this one is a part. Their `up` is that of a link with an index above those of the real links, in
    their order.

    Memories are restored while a reset lasts: one behind power-up has to last for as many cycles as the deepest of them
    has words. That of one node, by a control operation, does; the node itself knows nothing of it.

    Attributes:
        ports: what is behind each numbered port of the signature.
    """

    def __init__(
        self,
        parameters: FabricParameters,
        *,
        part: bool = False,
        taps: tuple[tuple[int, int], ...] = (),
        rows: bool = False,
    ) -> None:
        """Nodes of a part of a larger fabric get their identities from outside, so that equal parts are identical.

        TAPS are the directions of links that somebody looks at, see `FabricPorts.taps`. ROWS: all rows are summed up.
        """
        self.parameters = parameters
        self._nodes = [_node(node) for node in parameters.nodes.values()]
        self._links = [tuple(LinkDirection(link.flight) for _direction in range(2)) for link in parameters.links]
        node_slots = [
            (port_source(index, port), int(kind))
            for index, node in enumerate(self._nodes)
            for port, kind in node.trace_slots
        ]
        link_slots = [
            (link_source(index, direction), int(Kind.INJECT))
            for index, link in enumerate(self._links)
            for direction in range(len(link))
        ]
        slots = tuple(node_slots + link_slots)
        if list(slots) != sorted(set(slots)):
            raise ValueError("trace slots of a node are not in ascending order")
        entered = tuple((index, direction) for index, link in enumerate(self._links) for direction in range(len(link)))
        self.ports = FabricPorts.of(
            parameters,
            slots,
            identities=len(self._nodes) if part else 0,
            taps=taps,
            entered=entered if rows else (),
        )
        super().__init__(FabricSignature(self.ports))

    def elaborate(self, platform: Any) -> Module:
        """Nodes and links, then what connects them: rows, control operations, hosts, trace.

        A platform may know the nodes, and has a method `node` then (see `verilog.nodes`).
        """
        m = Module()
        clk: Value = ClockSignal()
        if platform is None:
            # One signal is the clock of all domains: a copy would tick later in Amaranth's simulator.
            m.domains.sync = sync = ClockDomain()
            clk = sync.clk
        self._resetting = [self._lasting_reset(m, index) for index in range(len(self._nodes))]
        for index, (name, parameters) in enumerate(self.parameters.nodes.items()):
            node, reset = self._nodes[index], ResetSignal() | self._resetting[index]
            # A `.` would part the names of modules in Verilog.
            legal = name.replace(".", "$")
            instance = node if platform is None else platform.node(legal, node, parameters, reset)
            m.submodules[legal] = _with_reset(m, f"node_{index}", node, clk, reset) if instance is node else instance
        for index, link in enumerate(self._links):
            for direction, half in enumerate(link):
                m.submodules[f"link_{index}_{direction}"] = half
        self._identify_nodes(m)
        self._connect_links(m)
        self._decode_control(m)
        self._connect_hosts(m)
        self._collect_trace(m)
        for (place, direction), tap in zip(self.ports.taps, self.tap, strict=True):
            connect(m, self._links[place][direction].entered, flipped(tap))
        for (place, direction), row in zip(self.ports.entered, self.entered, strict=True):
            connect(m, self._links[place][direction].entered, flipped(row))
        return m

    def _lasting_reset(self, m: Module, index: int) -> Signal:
        """Node INDEX is being reset by a control operation: for a while, from the cycle after it on."""
        cycles = reset_cycles(self._nodes[index].parameters)
        left, resetting = Signal(range(cycles + 1), name=f"reset_{index}_left"), Signal(name=f"resetting_{index}")
        m.d.comb += resetting.eq(left != 0)
        with m.If(self._given(Operation.RESET, index)):
            m.d.sync += left.eq(cycles)
        with m.Elif(resetting):
            m.d.sync += left.eq(left - 1)
        return resetting

    def _offers(self, node: int, port: int) -> Value:
        """The widths that a port offers, none while its node is being reset."""
        of_node = self._nodes[node]
        offers = Cat(of_node.offers_1x[port - 1], of_node.offers_4x[port - 1])
        return Mux(self._resetting[node], 0, offers)

    def _identify_nodes(self, m: Module) -> None:
        """Each node's identity, on wires of the fabric: nodes of equal parameters are identical inside."""
        for index, (name, node) in enumerate(zip(self.parameters.nodes, self._nodes, strict=True)):
            values = identity_values(self.parameters.identity(name))
            for member in node.identity.signature.members:
                value = values[member] if index >= self.ports.identities else getattr(self.identity[index], member)
                m.d.comb += getattr(node.identity, member).eq(value)

    def _connect_links(self, m: Module) -> None:
        """Rows through the links, and to both ends of each that it is up, and how wide."""
        names = list(self.parameters.nodes)
        up: list[dict[int, Any]] = [{} for _node in names]
        narrow: list[dict[int, Any]] = [{} for _node in names]
        for index, (link, halves) in enumerate(zip(self.parameters.links, self._links, strict=True)):
            ends = [(names.index(link.a), link.a_port), (names.index(link.b), link.b_port)]
            link_up, link_narrow = self._train(m, index, *(self._offers(node, port) for node, port in ends))
            for half, (sender, out_port), (receiver, in_port) in zip(halves, ends, reversed(ends), strict=True):
                m.d.comb += half.up.eq(link_up)
                connect(m, self._row(sender, "tx", out_port), half.input)
                connect(m, half.output, self._row(receiver, "rx", in_port))
                up[sender][out_port], narrow[sender][out_port] = link_up, link_narrow
        for place, (node, port) in enumerate(self.ports.open):
            # What the other end says of a cycle is there in the next, as `up` is.
            offers = self._offers(node, port)
            before = Signal(OFFERED_BITS, init=LINK_WIDTHS, name=f"open_{place}_before")
            m.d.sync += before.eq(offers)
            up[node][port], narrow[node][port] = self._train(
                m, len(self._links) + place, before, self.offered[place], at_once=True
            )
            inward = self._row(node, "rx", port)
            connect(m, flipped(self.rx[place]), inward)
            outward = self._row(node, "tx", port)
            m.d.comb += [self.tx[place].data.eq(outward.data), self.tx[place].k.eq(outward.k)]
            m.d.comb += [
                inward.valid.eq(self.rx[place].valid & up[node][port]),
                self.tx[place].valid.eq(outward.valid & ~self._resetting[node]),
                self.offers[place].eq(offers),
            ]
        for node, ups, narrows in zip(self._nodes, up, narrow, strict=True):
            # A port without a link is down for good.
            for wires, of_ports in ((node.up, ups), (node.narrow, narrows)):
                m.d.comb += wires.eq(Cat(of_ports.get(port + 1, 0) for port in range(len(wires))))

    def _train(
        self, m: Module, index: int, offered: Value, offered_there: Value, *, at_once: bool = False
    ) -> tuple[Signal, Signal]:
        """Whether link INDEX is up and narrow in the cycle after that of which its ends' offers are.

        It is up if control operations say so, and they offer a width in common. AT_ONCE: the offers come in the cycle
        after theirs.
        """
        plugged = Signal(init=1, name=f"link_{index}_plugged")
        stays_plugged = Signal(name=f"link_{index}_stays_plugged")
        common = Signal(OFFERED_BITS, name=f"link_{index}_common")
        kept, found = ("_before", "") if at_once else ("", "_follows")
        up, narrow = Signal(init=1, name=f"link_{index}_up{kept}"), Signal(name=f"link_{index}_narrow{kept}")
        up_found, narrow_found = (Signal(name=f"link_{index}_{name}{found}") for name in ("up", "narrow"))
        with m.If(self._given(Operation.LINK_DOWN, index)):
            m.d.comb += stays_plugged.eq(0)
        with m.Elif(self._given(Operation.LINK_UP, index)):
            m.d.comb += stays_plugged.eq(1)
        with m.Else():
            m.d.comb += stays_plugged.eq(plugged)
        m.d.comb += [
            common.eq(offered & offered_there),
            up_found.eq((plugged if at_once else stays_plugged) & common.any()),
            narrow_found.eq(Mux(up | ~common.any(), narrow, ~common[-1])),
        ]
        m.d.sync += [plugged.eq(stays_plugged), up.eq(up_found), narrow.eq(narrow_found)]
        return (up_found, narrow_found) if at_once else (up, narrow)

    def _decode_control(self, m: Module) -> None:
        """Bus accesses and injections on the wires of their target."""
        control = self.control
        args = [control.args.word_select(word, 32) for word in range(4)]
        for index, node in enumerate(self._nodes):
            m.d.comb += [
                node.bus.addr.eq(args[0]),
                node.bus.wdata.eq(args[1]),
                node.bus.write.eq(self._given(Operation.BUS_WRITE, index)),
                node.bus.read.eq(self._given(Operation.BUS_READ, index)),
            ]
        for index, halves in enumerate(self._links):
            for direction, half in enumerate(halves):
                m.d.comb += [
                    half.inject_valid.eq(self._given(Operation.INJECT, index << 1 | direction)),
                    half.inject_args.eq(control.args),
                ]
        # One read a cycle at most, all of one latency: no two answers collide.
        answers = Cat(node.bus.rvalid for node in self._nodes)
        m.d.comb += control.rvalid.eq(answers.any())
        for node in self._nodes:
            with m.If(node.bus.rvalid):
                m.d.comb += control.rdata.eq(node.bus.rdata)

    def _connect_hosts(self, m: Module) -> None:
        """Packet streams in and out, the hosts' stalls, their Subnet Managers and the wrong keys that they find."""
        streams = iter(self.send)
        for index, sink in zip(self.ports.hosts, self.recv, strict=True):
            adapter = self._nodes[index]
            for stream, source in zip(adapter.send, islice(streams, len(adapter.send)), strict=True):
                # The rest of a packet of which a word was taken is taken in a reset, too.
                left = Signal.like(source.length, name=f"rest_{index}")
                m.d.comb += [
                    stream.valid.eq(source.valid),
                    stream.length.eq(source.length),
                    stream.data.eq(source.data),
                    source.ready.eq(stream.ready | (self._resetting[index] & (left != 0))),
                ]
                with m.If(source.ready):
                    m.d.sync += left.eq(Mux(left == 0, source.length, left) - 1)
            connect(m, adapter.recv, flipped(sink))
            stall = Signal(len(adapter.recv_stall), name=f"stall_{index}")
            with m.If(self._given(Operation.RECV_STALL, index)):
                m.d.sync += stall.eq(self.control.args)
            host_sm = Signal(name=f"host_sm_{index}")
            with m.If(self._given(Operation.HOST_SM, index)):
                m.d.sync += host_sm.eq(self.control.args)
            m.d.comb += [adapter.recv_stall.eq(stall), adapter.host_sm.eq(host_sm)]
            with m.If(self._given(Operation.KEY_VIOLATION, index)):
                m.d.comb += adapter.key_violation.eq(self.control.args)

    def _collect_trace(self, m: Module) -> None:
        parts = [*self._nodes, *(half for link in self._links for half in link)]
        records = iter(self.trace)
        for part in parts:
            for slot in range(len(part.trace.valid)):
                m.d.comb += next(records).eq(part.trace.payload[slot])
        m.d.comb += self.trace_valid.eq(Cat(part.trace.valid for part in parts))

    def _given(self, operation: Operation, target: int) -> Any:
        """Whether this operation is given to this target in this cycle."""
        control = self.control
        return control.valid & (control.operation == operation) & (control.target == target)

    def _row(self, node: int, side: str, port: int) -> Any:
        """Wires of a node's port: side `rx` or `tx`."""
        rows = getattr(self._nodes[node], side)
        return rows if isinstance(self._nodes[node], Adapter) else rows[port - 1]


def _with_reset(m: Module, name: str, node: Any, clk: Value, reset: Value) -> Any:
    """A node that is no instance, in a clock domain of its own."""
    domain = ClockDomain(name)
    m.domains += domain
    if isinstance(clk, Signal):
        domain.clk = clk
    else:
        m.d.comb += domain.clk.eq(clk)
    m.d.comb += domain.rst.eq(reset)
    return DomainRenamer(name)(node)


def _node(parameters: NodeParameters) -> Any:
    return Adapter(parameters) if isinstance(parameters, AdapterParameters) else Switch(parameters)
