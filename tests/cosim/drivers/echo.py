"""A stand-in for a fabric: two adapters whose packets go straight to each other, so the engines can be tested alone.

A packet's word is delivered in the cycle after it was taken. SEND and DELIVER carry what the real ones do, but
for CRC and first cycle; a control operation shows as a record of link 0's direction 0 in the cycle after it.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring

from rtl.fabric.ports import FabricPorts, FabricSignature
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters
from wire.stimulus import Operation
from wire.trace import Kind, link_source, port_source

PARAMETERS = FabricParameters(
    {"h0": AdapterParameters(vls=1), "h1": AdapterParameters(vls=2)}, (LinkParameters("h0", 1, "h1", 1),)
)
READ_LATENCY = 4


class Echo(wiring.Component):
    def __init__(self):
        self.parameters = PARAMETERS
        kinds = [(port_source(node, 1), kind) for node in (0, 1) for kind in (Kind.SEND, Kind.DELIVER)]
        self.ports = FabricPorts.of(PARAMETERS, (*kinds, (link_source(0, 0), Kind.INJECT)))
        super().__init__(FabricSignature(self.ports))

    def elaborate(self, platform):
        m = Module()
        valid = []
        for node, sink, records in ((0, self.recv[1], (0, 3)), (1, self.recv[0], (2, 1))):
            slots = [(slot, self.send[i]) for i, (at, slot) in enumerate(self.ports.streams) if at == node]
            busy, current, left = Signal(), Signal(4), Signal(11)
            for slot, stream in reversed(slots):
                with m.If(~busy & stream.valid):
                    m.d.sync += [busy.eq(1), current.eq(slot), left.eq(stream.length)]
            taken, length = Signal(32), Signal(11)
            starts = Signal()
            m.d.sync += starts.eq(~busy & Cat(stream.valid for _slot, stream in slots).any())
            m.d.sync += sink.valid.eq(busy)
            for slot, stream in slots:
                with m.If(busy & (current == slot)):
                    m.d.comb += [stream.ready.eq(1), taken.eq(stream.data), length.eq(stream.length)]
            with m.If(busy):
                m.d.sync += [left.eq(left - 1), busy.eq(left != 1)]
            last_length = Signal(11)
            m.d.sync += [
                sink.data.eq(taken),
                sink.first.eq(starts),
                sink.last.eq(left == 1),
                sink.slot.eq(current),
                last_length.eq(length),
            ]
            sent, delivered = records
            m.d.comb += [
                self.trace[sent].eq(Cat(current, Signal(28), length)),
                self.trace[delivered].eq(Cat(sink.slot, Signal(28), last_length)),
            ]
            valid += [(sent, starts), (delivered, sink.valid & sink.last)]
        self._control(m, valid)
        m.d.comb += self.trace_valid.eq(Cat(bit for _slot, bit in sorted(valid, key=lambda pair: pair[0])))
        return m

    def _control(self, m, valid):
        control = self.control
        shown, answers = Signal(), Signal(READ_LATENCY)
        m.d.sync += [
            shown.eq(control.valid),
            self.trace[4].eq(Cat(control.args[:64], control.target, control.operation)),
            answers.eq(Cat(control.valid & (control.operation == Operation.BUS_READ), answers)),
        ]
        register = Signal(32)
        with m.If(control.valid & (control.operation == Operation.BUS_WRITE)):
            m.d.sync += register.eq(control.args.word_select(1, 32))
        m.d.comb += [control.rvalid.eq(answers[-1]), control.rdata.eq(Mux(answers[-1], register, 0))]
        valid.append((4, shown))
