"""The channel adapter: a port with a packet interface (docs/pipeline.md, section 9)."""

from typing import Final

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from rtl.adapter.mad_check import MadCheck, OwnLid
from rtl.crossing.connect import SinkSignature, connect_crossing
from rtl.crossing.others import others, place_of
from rtl.crossing.queueing import routed
from rtl.crossing.store import PacketStore
from rtl.crossing.words import RECEIVE_KINDS, SEND_KINDS, HostReceive, HostSend, HostStreamSignature, HostWordSignature
from rtl.link.port import PORT_KINDS, LinkPort
from rtl.link.row import RowSignature
from rtl.management.agent_port import AGENT_KINDS, add_agent
from rtl.management.identity import IdentitySignature
from rtl.management.told_events import WrongKey
from rtl.registers.bus import BUS_KINDS, BusSignature, NodeBus, of_page
from rtl.registers.node_registers import NodeRegisters
from rtl.registers.port_access import PortDecoder
from rtl.trace import TraceSignature, gather
from wire.codes import VL15, PortState
from wire.parameters import AdapterParameters
from wire.registers import NodeRegister
from wire.trace import Kind, Verdict

__all__ = ["Adapter"]

# Inputs and outputs of the crossing.
_LINK: Final = 0
_HOST: Final = 1
_AGENT: Final = 2
_CROSSED: Final = 3


class Adapter(wiring.Component):
    """An adapter: what the host offers goes to the link, what the link brings to the host, management to the agent.

    Members:
        rx, tx: rows from and to the wires; `up` says that the link is up, `narrow` that it came up as 1X, `offers_1x`
            and `offers_4x` with which widths it may.
        bus: the register bus.
        identity: what management calls it.
        send: the host's streams, of each slot.
        recv: words to the host; `recv_stall` is the mask of slots from which it takes none.
        host_sm: the host has a Subnet Manager.
        key_violation: the host has found a packet with keys wrong, in this cycle.
        trace: records, slots as in `trace_slots`.

    Attributes:
        trace_slots: (port, kind) of each slot of the trace.
    """

    def __init__(self, parameters: AdapterParameters) -> None:
        self.parameters = parameters
        slots = parameters.vls + 1
        self.trace_slots: list[tuple[int, Kind]] = [(0, kind) for kind in (*AGENT_KINDS, *BUS_KINDS)]
        self.trace_slots += [(1, kind) for kind in (*PORT_KINDS, *SEND_KINDS, *RECEIVE_KINDS)]
        super().__init__(
            {
                "rx": In(RowSignature),
                "tx": Out(RowSignature),
                "up": In(1),
                "narrow": In(1),
                "offers_1x": Out(1),
                "offers_4x": Out(1),
                "bus": In(BusSignature),
                "identity": In(IdentitySignature()),
                "send": Out(HostStreamSignature).array(slots),
                "recv": Out(HostWordSignature),
                "recv_stall": In(slots),
                "host_sm": In(1),
                "key_violation": In(WrongKey),
                "trace": Out(TraceSignature(len(self.trace_slots))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """From the link and from the host, the agent, what crosses between them; registers, trace."""
        m = Module()
        parameters = self.parameters
        vls = parameters.vls
        m.submodules.port = port = LinkPort("adapter", vls, parameters.mtu, parameters.receive_blocks)
        m.submodules.received = received = self._store(_LINK, parameters.receive_blocks, any_length=False)
        m.submodules.host_send = host_send = HostSend(vls)
        m.submodules.own_lid = own_lid = OwnLid()
        m.submodules.posted = posted = self._store(_HOST, parameters.send_blocks, any_length=True)
        m.submodules.host_receive = host_receive = HostReceive()
        connect(m, flipped(self.rx), port.rx)
        self._receive(m, port, received)
        for stream, outside in zip(host_send.streams, self.send, strict=True):
            connect(m, stream, flipped(outside))
        self._post(m, host_send, own_lid, port.max_words, posted)
        agent_port, agent_store = add_agent(m, self, _CROSSED - 1, 1)
        m.d.comb += [
            port.up.eq(self.up),
            port.narrow.eq(self.narrow),
            Cat(self.offers_1x, self.offers_4x).eq(port.offers),
            agent_port.node_state.active.eq(port.sending.state == PortState.ACTIVE),
            agent_port.node_state.host_sm.eq(self.host_sm),
            agent_port.node_state.key_violation.eq(self.key_violation),
        ]

        # To link, host and agent. Host and agent take packets without credits, the host not those of slots it stalls.
        host = SinkSignature.create(path=("host",))
        taking = [Cat(1, ~stalled, 1) for stalled in self.recv_stall[:vls]]
        crossing = [store.crossing for store in (received, posted, agent_store)]
        connect_crossing(m, crossing, [port], [host, agent_port.sink], [*taking, (1 << _CROSSED) - 1])
        m.d.comb += [host.available.eq(~host.taken), host_receive.row.eq(host.send)]
        connect(m, host_receive.words, flipped(self.recv))
        connect(m, port.tx, flipped(self.tx))

        # Registers.
        m.submodules.bus = bus = NodeBus()
        others = {NodeRegister.LID: (16, 0), NodeRegister.LMC: (3, 0)}
        m.submodules.registers = registers = NodeRegisters(1, others)
        m.submodules.port_decoder = decoder = PortDecoder(1, vls, parameters.mtu)
        connect(m, flipped(self.bus), bus.bus)
        connect(m, agent_port.bus, bus.agent)
        m.d.comb += [
            registers.given.eq(of_page(bus.given, 0)),
            decoder.given.eq(bus.given),
            port.reg.eq(decoder.reg[0]),
            bus.answer.eq(registers.rdata | port.reg_rdata),
            agent_port.hold.eq(bus.hold),
            agent_port.lease_second.eq(registers.lease_second),
        ]
        for part in (port, own_lid):
            m.d.comb += [part.lid.eq(registers.lid), part.lmc.eq(registers.lmc)]

        # Trace: each part's slots one after the other.
        traces = (agent_port.trace, bus.trace, port.trace, host_send.trace, host_receive.trace)
        gather(m, self.trace, ((trace, slot) for trace in traces for slot in range(len(trace.valid))))
        return m

    def _store(self, number: int, blocks: int, *, any_length: bool) -> PacketStore:
        """Of the input of this number, with so many blocks for each data VL."""
        pools = [blocks] * self.parameters.vls + [self.parameters.vl15_blocks]
        credited = len(others(number, _LINK + 1))
        return PacketStore(pools, _CROSSED - 1, credited, self.parameters.mtu, any_length=any_length)

    def _receive(self, m: Module, port: LinkPort, store: PacketStore) -> None:
        """From the link to its store. Only whole and good packets join a queue."""
        vls = self.parameters.vls
        m.submodules.received_mad = mad = MadCheck(vls)
        admission, header, row, fill = port.admission, port.admission.header, port.admission.write, store.fill
        ended = row.valid & row.last & row.accepted
        no_room = Signal()
        m.d.comb += [
            no_room.eq(Cat((header.slot == slot) & (header.need > fill.free[slot]) for slot in range(vls + 1)).any()),
            fill.write.eq(row),
            fill.accept.eq(admission.accept),
            fill.accept_slot.eq(row.slot),
            fill.accept_need.eq(row.need),
            fill.cancel.eq(ended & row.bad),
            store.join.eq(ended & ~row.bad),
        ]
        m.d.sync += [
            admission.refused.eq(no_room),
            admission.relay.eq(
                Mux(no_room, Mux(header.vl == VL15, Verdict.VL15_DROPPED, Verdict.OVERRUN), Verdict.GOOD)
            ),
        ]
        m.d.comb += [port.free[vl].eq(fill.free[vl]) for vl in range(vls)]
        output = Mux(mad.is_smp | mad.is_pma_request, place_of(_AGENT, _LINK), place_of(_HOST, _LINK))
        m.d.comb += [mad.row.eq(row), *routed(store.packet, row, output, row.slot)]

    def _post(self, m: Module, host_send: HostSend, own_lid: OwnLid, max_words: Value, store: PacketStore) -> None:
        """From the host to its store. A packet joins its queue when its last word has been taken."""
        m.submodules.posted_mad = mad = MadCheck(self.parameters.vls)
        row = host_send.fill.write
        oversize = Signal()
        with m.If(row.valid & row.first):
            m.d.sync += oversize.eq(row.n > max_words)
        connect(m, host_send.fill, store.fill)
        to_agent = mad.is_smp | (mad.is_pma_request & own_lid.own)
        m.d.comb += [
            own_lid.row.eq(row),
            mad.row.eq(row),
            store.join.eq(row.valid & row.last),
            store.packet.oversize.eq(oversize),
            *routed(store.packet, row, Mux(to_agent, place_of(_AGENT, _HOST), place_of(_LINK, _HOST)), row.slot),
        ]
