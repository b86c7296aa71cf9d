"""What a port puts on the wires in which state (docs/pipeline.md, section 8.2)."""

from typing import Final

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.link.transmit import SendRow, Transmitter
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants
from wire.codes import PortState
from wire.symbols import LANES, Control

__all__ = ["SENDING_PROOFS"]


class SendsAsItMay(wiring.Component):
    """Data goes to the wires in Active alone, on operational VLs; VL15 and flow control packets in Initialize, Armed
    and Active. Behind a row that was refused nothing of its packet follows. Credits are spent on exactly the packets
    whose row 0 goes out.

    Either data packets or flow control packets come, in all cycles.

    Members:
        send, granted, state_follows, operational_follows: see `Transmitter`.
    """

    def __init__(self, vls: int) -> None:
        self._vls = vls
        follow = {"state_follows": In(PortState), "operational_follows": In(vls)}
        super().__init__({"send": In(SendRow), "granted": In(1), **follow})

    def elaborate(self, platform: object) -> Module:
        """The claim, of the row in the stage in the cycle before."""
        m = Module()
        transmitter = Transmitter(self._vls, marking=False)
        opened = Opened(transmitter)
        m.submodules.transmitter = opened.fragment
        send = transmitter.send
        is_data = AnyConst(1)
        m.d.comb += [
            send.eq(self.send),
            send.valid.eq(self.send.valid & is_data),
            transmitter.granted.eq(self.granted & ~is_data),
            transmitter.state_follows.eq(self.state_follows),
            transmitter.operational_follows.eq(self.operational_follows),
            transmitter.wide.eq(1),
        ]
        state, operational = Signal(PortState, init=PortState.DOWN), Signal(self._vls)
        m.d.sync += [state.eq(self.state_follows), operational.eq(self.operational_follows)]

        # Rows come packet by packet.
        inside = Signal()
        slot = Signal.like(send.slot)
        swallowed = send.first & (send.last | (send.ages & send.outlived))
        with m.If(send.valid):
            m.d.sync += [inside.eq(~send.last & ~swallowed), slot.eq(send.slot)]
        m.d.comb += [
            Assume(send.slot <= self._vls),
            Assume(~send.valid | (send.first == ~inside)),
            Assume(send.first | ~send.ages),  # as the crossbar has it
            Assume(~(send.valid & inside) | (send.slot == slot)),
        ]

        manages = Cat(state == one for one in (PortState.INITIALIZE, PortState.ARMED, PortState.ACTIVE)).any()
        on_vl15 = send.slot == self._vls
        on_operational = Cat((send.slot == vl) & operational[vl] for vl in range(self._vls)).any()
        may = Mux(on_vl15, manages, (state == PortState.ACTIVE) & on_operational)
        refused = Signal()  # a row of the packet was
        goes = send.valid & may & ~swallowed & (send.first | ~refused)
        with m.If(send.valid):
            m.d.sync += refused.eq(~may | (~send.first & refused) | swallowed)

        # On the wires. Idle data has the same byte on all lanes.
        went, began, ended, managed = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [went.eq(goes), began.eq(send.first), ended.eq(send.last), managed.eq(manages)]
        tx = transmitter.tx
        lanes = [tx.data[8 * lane :][:8] for lane in range(LANES)]
        is_idle = (tx.k == 0) & Cat(lane == lanes[0] for lane in lanes).all()
        delimits = Cat(lanes[0] == (one & 0xFF) for one in (Control.EGP, Control.EBP)).any()
        m.d.comb += [
            Assert(~is_data | went | is_idle),
            Assert(managed | is_idle),
            Assert(~(is_data & went & began) | ((tx.k[-1]) & (lanes[-1] == (Control.SDP & 0xFF)))),
            Assert(~(is_data & went & ended) | (tx.k[0] & delimits)),
            Assert(transmitter.sent.any() == (goes & send.first & ~on_vl15)),
            Assert(~transmitter.sent.any() | (transmitter.sent == (1 << send.slot)[: self._vls])),
            Cover(is_data & refused & inside & send.valid & may),
            Cover(is_data & went & ended),
            Cover(~is_data & ~is_idle),
        ]
        of_sender = (opened.inside(f"flow_control.{name}") for name in ("granted_before", "first", "last", "to_go"))
        m.d.comb += invariants(
            opened.inside("passing") == Cat(Mux(state == PortState.ACTIVE, operational, 0), manages),
            ~inside | (refused == opened.inside("refused_before")),
            ~is_data | ~Cat(of_sender).any(),
            is_data | ~inside,
        )
        return m


SENDING_PROOFS: Final = (
    Proof(
        "data goes out in Active alone, management as it may, nothing behind a refused row; credits for what goes out",
        SendsAsItMay,
        parameters={"vls": 2},
        cycles=6,
        induction=2,
        mutants=(
            Change(
                "a packet goes on behind a row that was refused",
                "link/transmit.py",
                "passes.eq(~Mux(send.first, send.last, refused_before)",
                "passes.eq(~Mux(send.first, send.last, 0)",
            ),
            Change(
                "data passes in Armed",
                "link/transmit.py",
                "sends_data = self.state_follows == PortState.ACTIVE",
                "sends_data = self.state_follows >= PortState.ARMED",
            ),
        ),
    ),
)
