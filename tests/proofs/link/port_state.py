"""The state of a port moves only as docs/pipeline.md, section 5, says, and times out when it says."""

from typing import Final

from amaranth.hdl import Assert, Cat, Cover, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from rtl.link.port_state import PortStateMachine
from rtl.link.timer import Timer
from tests.mutations.mutant import Change
from tests.proofs.prover import Opened, Proof, invariants
from wire.codes import PortState

__all__ = ["PORT_STATE_PROOFS"]

_TIMEOUT: Final = 3
"""LINK_DOWN_TIMEOUT, cycles."""


class PortStates(wiring.Component):
    """Each change of state is one of the contract's, and each event that asks for one gets it.

    Members:
        up, write, good_init, good_normal, good_data: see `PortStateMachine`.
    """

    def __init__(self) -> None:
        self._machine = PortStateMachine()
        members = self._machine.signature.members
        names = ("up", "write", "good_init", "good_normal", "good_data")
        super().__init__({name: members[name] for name in names})

    def elaborate(self, platform: object) -> Module:
        """The table of section 5, of what was in the cycle before."""
        m = Module()
        machine = self._machine
        opened = Opened(machine)
        m.submodules.machine = opened.fragment
        m.d.comb += [
            machine.up.eq(self.up),
            machine.write.eq(self.write),
            machine.good_init.eq(self.good_init),
            machine.good_normal.eq(self.good_normal),
            machine.good_data.eq(self.good_data),
            machine.timeout.length.eq(_TIMEOUT),
        ]
        state = machine.state

        # ActiveEnable, a write Active that is kept, and how long ActiveDefer has lasted, as the contract has them.
        enabled = Signal()
        kept = Signal()
        deferred = Signal(range(_TIMEOUT + 1))

        def is_in(*states: PortState) -> Value:
            return Cat(state == one for one in states).any()

        enters_initialize = is_in(PortState.DOWN) & self.up
        hears = is_in(PortState.ARMED, PortState.ACTIVE)
        m.d.sync += enabled.eq(Mux(enters_initialize, 0, enabled | (hears & self.good_normal)))
        m.d.sync += deferred.eq(Mux(is_in(PortState.ACTIVE_DEFER), deferred + 1, 0))

        write_down = self.write == PortState.DOWN
        asks_active = (self.write == PortState.ACTIVE) | kept | self.good_data
        table: dict[PortState, list[tuple[Value, PortState]]] = {
            PortState.DOWN: [(self.up, PortState.INITIALIZE)],
            PortState.INITIALIZE: [
                (~self.up | write_down, PortState.DOWN),
                (self.write == PortState.ARMED, PortState.ARMED),
            ],
            PortState.ARMED: [
                (~self.up | write_down | (self.good_init & enabled), PortState.DOWN),
                (enabled & asks_active, PortState.ACTIVE),
            ],
            PortState.ACTIVE: [
                (~self.up, PortState.ACTIVE_DEFER),
                (write_down | self.good_init, PortState.DOWN),
            ],
            PortState.ACTIVE_DEFER: [
                (self.up, PortState.ACTIVE),
                ((deferred == _TIMEOUT - 1) | write_down, PortState.DOWN),
            ],
        }
        expected = Signal(PortState, init=PortState.DOWN)
        following: Value = Value.cast(state)
        for before, moves in table.items():
            after: Value = Value.cast(before)
            for event, to in reversed(moves):
                after = Mux(event, to, after)
            following = Mux(is_in(before), after, following)
        stays_armed = is_in(PortState.ARMED) & (following == PortState.ARMED)
        m.d.sync += [
            expected.eq(following),
            kept.eq(stays_armed & (kept | (self.write == PortState.ACTIVE))),
        ]
        m.d.comb += [
            Assert(state == expected),
            Assert(~is_in(PortState.ACTIVE, PortState.ACTIVE_DEFER) | enabled),
            Cover((deferred == _TIMEOUT - 1) & ~self.up),
            Cover(is_in(PortState.ACTIVE) & machine.changed),
            *invariants(
                enabled == opened.inside("active_enable"),
                kept == opened.inside("kept_active"),
                ~is_in(PortState.ACTIVE_DEFER) | (deferred == opened.inside("timer.place") - 1),
                ~is_in(PortState.ACTIVE_DEFER) | (deferred < _TIMEOUT),
            ),
        ]
        return m


class Rounds(wiring.Component):
    """A timer is over when as many cycles have counted since it began as its length says, and then begins anew.

    Members:
        restart, run: see `Timer`.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        super().__init__({"restart": In(1), "run": In(1)})

    def elaborate(self, platform: object) -> Module:
        """Count once more."""
        m = Module()
        timer = Timer(4)
        opened = Opened(timer)
        m.submodules.timer = opened.fragment
        counted = Signal(4)  # cycles since it began
        m.d.comb += [timer.length.eq(self._length), timer.restart.eq(self.restart), timer.run.eq(self.run)]
        m.d.sync += counted.eq(Mux(self.restart | timer.last, 0, counted + self.run))
        m.d.comb += [
            Assert(timer.last == (self.run & (counted == self._length - 1))),
            Cover(timer.last),
            *invariants(opened.inside("place") == counted + 1, counted < self._length),
        ]
        return m


PORT_STATE_PROOFS: Final = (
    Proof(
        "a port's state moves only as the table of the contract says, and does",
        PortStates,
        cycles=10,
        quick=True,
        mutants=(
            Change(
                "an Op 1 takes an Armed port down before it was enabled",
                "link/port_state.py",
                "write_down | (self.good_init & active_enable)",
                "write_down | self.good_init",
            ),
        ),
    ),
    Proof(
        "a timer is over when as many cycles have counted as its length says",
        Rounds,
        parameters={"length": 5},
        cycles=12,
        quick=True,
        mutants=(
            Change(
                "a timer that is over goes on",
                "link/timer.py",
                "with m.If(self.restart | self.last):",
                "with m.If(self.restart):",
            ),
        ),
    ),
)
