"""The port state machine (IBTA vol 1, 7.2; docs/pipeline.md, section 5)."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.timer import Timer
from rtl.registers.port_registers import DurationSignature
from wire.codes import PortState
from wire.registers import PortRegister

__all__ = ["PortStateMachine"]


class PortStateMachine(wiring.Component):
    """The state of a port. Inputs act in the cycle in which they are given; the state shows in the next.

    Members:
        up: the physical link is up.
        write: PortState of a register write in this cycle, else NO_CHANGE.
        good_init, good_normal: a good link packet with Op 1, with Op 0.
        good_data: a data packet, not on VL15, got the verdict GOOD (ActiveTrigger).
        timeout: LINK_DOWN_TIMEOUT.
        state: the state. `follows`: that of the next cycle, but where a time-out makes it Down, which is known late,
            after ActiveDefer.
        changed: `state` differs from that of the cycle before.
        reported: so it does, and SwitchInfo.PortStateChange says so: from Down to Initialize, or to Down other than by
            a register write (docs/management.md, section 5).
        initializing, arming: the state of the next cycle is entered: Initialize, Armed.
        enabling: ActiveEnable is set in the next cycle, and was not.
        link_downed, link_recovered: the link failed; it came back in time. The counters move in the
            next cycle.
    """

    up: In(1)
    write: In(PortState)
    good_init: In(1)
    good_normal: In(1)
    good_data: In(1)
    timeout: In(DurationSignature(PortRegister.LINK_DOWN_TIMEOUT))
    state: Out(PortState, init=PortState.DOWN)
    follows: Out(PortState)
    changed: Out(1)
    reported: Out(1)
    initializing: Out(1)
    arming: Out(1)
    enabling: Out(1)
    link_downed: Out(1)
    link_recovered: Out(1)

    def elaborate(self, platform: object) -> Module:
        """Build the state machine."""
        m = Module()
        state = self.state
        following = self.follows
        timed_out = Signal()
        m.d.comb += following.eq(state)
        remote_init = Signal()  # the other end takes the port down
        m.d.sync += [
            state.eq(Mux(timed_out, PortState.DOWN, following)),
            self.changed.eq(timed_out | (following != state)),
            self.reported.eq(self.initializing | self.link_downed | remote_init),
        ]

        m.submodules.timer = timer = Timer(len(self.timeout.length))
        m.d.comb += [
            timer.length.eq(self.timeout.length),
            timer.run.eq(state == PortState.ACTIVE_DEFER),
            timer.restart.eq(~timer.run | self.timeout.written),
        ]

        # ActiveEnable: the other end is no longer in Initialize.
        active_enable = Signal()
        hears = (state == PortState.ARMED) | (state == PortState.ACTIVE)
        m.d.comb += self.enabling.eq(hears & self.good_normal & ~active_enable)
        with m.If(self.enabling):
            m.d.sync += active_enable.eq(1)
        with m.If(self.initializing):
            m.d.sync += active_enable.eq(0)

        # A write Active that came before it.
        kept_active = Signal()
        asks_active = Signal()
        m.d.comb += asks_active.eq((self.write == PortState.ACTIVE) | kept_active)
        m.d.sync += kept_active.eq(asks_active & (state == PortState.ARMED) & (following == PortState.ARMED))

        write_down = self.write == PortState.DOWN
        with m.Switch(state):
            # The link is not up, or has to start again; once it is up we leave.
            with m.Case(PortState.DOWN), m.If(self.up):
                m.d.comb += [following.eq(PortState.INITIALIZE), self.initializing.eq(1)]

            # SMPs and flow control pass, no data; the Subnet Manager arms the port.
            with m.Case(PortState.INITIALIZE):
                with m.If(~self.up):
                    m.d.comb += [following.eq(PortState.DOWN), self.link_downed.eq(1)]
                with m.Elif(write_down):
                    m.d.comb += following.eq(PortState.DOWN)
                with m.Elif(self.write == PortState.ARMED):
                    m.d.comb += [following.eq(PortState.ARMED), self.arming.eq(1)]

            # Data is received and not yet sent; the Subnet Manager or a first good packet activates.
            with m.Case(PortState.ARMED):
                with m.If(~self.up):
                    m.d.comb += [following.eq(PortState.DOWN), self.link_downed.eq(1)]
                with m.Elif(write_down | (self.good_init & active_enable)):
                    m.d.comb += [following.eq(PortState.DOWN), remote_init.eq(~write_down)]
                with m.Elif(active_enable & (asks_active | self.good_data)):
                    m.d.comb += following.eq(PortState.ACTIVE)

            # Everything passes, until the link fails or somebody takes the port down.
            with m.Case(PortState.ACTIVE):
                with m.If(~self.up):
                    m.d.comb += following.eq(PortState.ACTIVE_DEFER)
                with m.Elif(write_down | self.good_init):
                    m.d.comb += [following.eq(PortState.DOWN), remote_init.eq(~write_down)]

            # The link failed a moment ago; it comes back, or the time is up.
            with m.Case(PortState.ACTIVE_DEFER):
                with m.If(self.up):
                    m.d.comb += [following.eq(PortState.ACTIVE), self.link_recovered.eq(1)]
                with m.Elif(timer.last):
                    m.d.comb += [timed_out.eq(1), self.link_downed.eq(1)]
                with m.Elif(write_down):
                    m.d.comb += following.eq(PortState.DOWN)
        return m
