"""Port 0: the node's agent as one more input and output of the crossing (docs/management.md, sections 1 and 2)."""

from typing import Any, Final

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.crossing.buffer import FillSignature
from rtl.crossing.connect import SinkSignature
from rtl.crossing.queueing import routed, routed_layout
from rtl.crossing.store import PacketStore
from rtl.crossing.words import RECEIVE_KINDS, SEND_KINDS, HostReceive, HostSend
from rtl.management.agent import Agent
from rtl.management.identity import IdentitySignature, NodeStateSignature
from rtl.management.mad_packet import GRH_WORDS, MAD_BLOCKS, MAD_WORDS
from rtl.registers.bus import BusSignature, PageAccess
from rtl.rotation import number_of
from rtl.trace import TraceSignature, gather
from wire.packet import blocks_of_words
from wire.parameters import NodeParameters, SwitchParameters
from wire.registers import DATA_BITS

__all__ = ["AGENT_KINDS", "AgentPort", "add_agent", "agent_pools"]

AGENT_KINDS: Final = (*SEND_KINDS, *RECEIVE_KINDS)
"""What slot i of the trace holds."""


_SMPS: Final = 2
"""What the agent sends waits here for an output, but it works on one at a time: there is no use in more room."""


class AgentPort(wiring.Component):
    """Makes words of the rows that the agent is sent, and rows of the words that it offers.

    Args:
        outputs: that it sends to.

    Members:
        sink: packets for the agent.
        fill: packets that it offers, to the buffer of its input (see `HostSend`).
        join, packet: it joins its queue.
        bus, hold: see `NodeBus`.
        icrc_errors: see `Agent`.
        identity, lease_second, node_state: the node's.
        congestion, congestion_rdata (switch): see `Agent`.
        trace: slots in the order of `AGENT_KINDS`.
    """

    def __init__(self, parameters: NodeParameters, outputs: int) -> None:
        self._parameters = parameters
        self._outputs = outputs
        self._is_switch = isinstance(parameters, SwitchParameters)
        ports = parameters.ports if isinstance(parameters, SwitchParameters) else 1
        super().__init__(
            {
                "sink": Out(SinkSignature),
                "fill": Out(FillSignature(parameters.vls + 1)),
                "join": Out(1),
                "packet": Out(routed_layout(outputs)),
                "bus": Out(BusSignature),
                "hold": In(1),
                "icrc_errors": Out(ports),
                "identity": In(IdentitySignature(is_switch=self._is_switch)),
                "lease_second": In(DATA_BITS),
                "trace": Out(TraceSignature(len(AGENT_KINDS))),
                "node_state": In(NodeStateSignature(parameters)),
                **({"congestion": In(PageAccess), "congestion_rdata": Out(DATA_BITS)} if self._is_switch else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """What is taken, the agent, what it offers."""
        m = Module()
        m.submodules.agent = agent = Agent(self._parameters)
        m.submodules.receive = receive = HostReceive()
        m.submodules.offer = offer = HostSend(self._parameters.vls)

        # Rows to words, a cycle later. A packet that ends early is bad, too.
        send = self.sink.send
        scrapped, bad, ends = Signal(), Signal(), Signal()
        arrival = Signal.like(agent.arrival)
        m.d.sync += [
            scrapped.eq(self.sink.scrapped.valid),
            bad.eq(send.bad),
            # A switch's input i is port i + 1's. An adapter's are the link, its port 1, and the host, which has none.
            arrival.eq(send.input + 1 if self._is_switch else send.input == 0),
        ]
        words = receive.words
        m.d.comb += [
            self.sink.available.eq(agent.taking.available),
            agent.taking.taken.eq(self.sink.taken),
            receive.row.eq(send),
            agent.arrival.eq(arrival),
            ends.eq(words.valid & words.last),
            agent.taking.ended.eq(ends | scrapped),
            agent.taking.good.eq(ends & ~bad),
        ]
        connect(m, words, agent.words)

        # The node around it.
        connect(m, agent.bus, flipped(self.bus))
        connect(m, flipped(self.identity), agent.identity)
        connect(m, flipped(self.node_state), agent.node_state)
        m.d.comb += [
            agent.hold.eq(self.hold),
            agent.lease_second.eq(self.lease_second),
            self.icrc_errors.eq(agent.icrc_errors),
        ]
        if self._is_switch:
            m.d.comb += [
                agent.congestion.eq(self.congestion),
                self.congestion_rdata.eq(agent.congestion_rdata),
            ]

        # Words to rows, as a host's: the packet is in its slot's stream. Where it goes is said while it is offered.
        output = Signal(range(self._outputs))
        with m.If(offer.taken):
            m.d.sync += output.eq(number_of(agent.to_output))
        for slot, stream in enumerate(offer.streams):
            m.d.comb += [
                stream.valid.eq(agent.stream.valid & (agent.slot == slot)),
                stream.length.eq(agent.stream.length),
                stream.data.eq(agent.stream.data),
            ]
        written = offer.fill.write
        connect(m, offer.fill, flipped(self.fill))
        m.d.comb += [
            agent.stream.ready.eq(Cat(stream.ready for stream in offer.streams).any()),
            agent.accepted.eq(offer.taken),
            self.join.eq(written.valid & written.last),
            *routed(self.packet, written, output, written.slot),
        ]
        gather(m, self.trace, ((offer.trace, 0), (receive.trace, 0)))
        return m


def agent_pools(parameters: NodeParameters) -> list[int]:
    """Blocks of each slot for what the agent of a node offers: of a data VL for one packet, with or without a GRH."""
    return [blocks_of_words(MAD_WORDS + GRH_WORDS)] * parameters.vls + [_SMPS * MAD_BLOCKS]


def add_agent(m: Module, node: Any, outputs: int, credited: int) -> tuple[AgentPort, PacketStore]:
    """The agent of a node with its identity, and the store of what it offers (see `PacketStore`). Its input and output
    are the last of the crossing, so that the others have their numbers as places (see `rtl.crossing.others`)."""
    m.submodules.agent_port = agent_port = AgentPort(node.parameters, outputs)
    parameters = node.parameters
    store = PacketStore(agent_pools(parameters), outputs, credited, parameters.mtu, one_each=True)
    m.submodules.agent_store = store
    connect(m, flipped(node.identity), agent_port.identity)
    connect(m, agent_port.fill, store.fill)
    m.d.comb += [store.join.eq(agent_port.join), store.packet.eq(agent_port.packet)]
    return agent_port, store
