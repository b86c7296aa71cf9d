"""An agent that passes packets on as they came, with which the node around an agent is tested."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from rtl.crossing.words import HostStreamSignature, HostWordSignature
from rtl.management.identity import IdentitySignature, NodeStateSignature
from rtl.management.mad_packet import MAD_WORDS
from rtl.management.work import Taking
from rtl.registers.bus import BusSignature, PageAccess
from rtl.widths import PORT_BITS, SLOT_BITS
from wire.parameters import SwitchParameters

__all__ = ["StandIn"]


class StandIn(wiring.Component):
    """Has the members of `rtl.management.agent.Agent`.

    From the cycle after `ended` on it offers a good packet of a MAD's length on the slot that it came on: a switch's
    back to the port that it came by, an adapter's to the other side. It is free again in the cycle after the last
    word, or after one that it drops.
    """

    def __init__(self, parameters: Any) -> None:
        self._is_switch = isinstance(parameters, SwitchParameters)
        outputs = parameters.ports if self._is_switch else 2
        super().__init__(
            {
                "words": In(HostWordSignature),
                "taking": Out(Taking),
                "arrival": In(PORT_BITS),
                "stream": In(HostStreamSignature),
                "slot": Out(SLOT_BITS),
                "accepted": In(1),
                "to_output": Out(outputs),
                "icrc_errors": Out(parameters.ports if self._is_switch else 1),
                "bus": Out(BusSignature),
                "hold": In(1),
                "identity": In(IdentitySignature(is_switch=self._is_switch)),
                "lease_second": In(32),
                "node_state": In(NodeStateSignature(parameters)),
                **({"congestion": In(PageAccess), "congestion_rdata": Out(32)} if self._is_switch else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.packet = packet = Memory(shape=32, depth=MAD_WORDS, init=[])
        write, read = packet.write_port(), packet.read_port(domain="comb")
        came = Signal(range(MAD_WORDS + 1))
        went = Signal(range(MAD_WORDS))
        arrival = Signal.like(self.arrival)
        last = went == MAD_WORDS - 1
        m.d.comb += [
            write.addr.eq(Mux(self.words.first, 0, came)),
            write.data.eq(self.words.data),
            write.en.eq(self.words.valid),
            read.addr.eq(went),
            self.stream.data.eq(read.data),
            self.stream.length.eq(MAD_WORDS),
            self.to_output.eq((1 << arrival) >> 1 if self._is_switch else Mux(arrival == 1, 0b10, 0b01)),
        ]
        with m.If(self.words.valid):
            m.d.sync += [came.eq(write.addr + 1), arrival.eq(self.arrival), self.slot.eq(self.words.slot)]
        free = Signal(init=1)
        m.d.comb += self.taking.available.eq(free & ~self.taking.taken)
        with m.If(self.taking.taken):
            m.d.sync += free.eq(0)
        with m.If(self.taking.ended):
            is_mad = self.taking.good & (write.addr + 1 == MAD_WORDS)
            m.d.sync += [free.eq(~is_mad), self.stream.valid.eq(is_mad)]
        with m.If(self.stream.ready):
            m.d.sync += went.eq(Mux(last, 0, went + 1))
            with m.If(last):
                m.d.sync += [free.eq(1), self.stream.valid.eq(0)]
        return m
