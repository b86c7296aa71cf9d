"""A port's registers (`wire.registers.PortRegister`; docs/pipeline.md, section 10)."""

from typing import Any, Final, Literal

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.registers.marking import Element, MarkingSettings, PortMarking
from rtl.registers.port_access import ListEntry, port_access_layout
from rtl.rotation import select
from rtl.widths import LENGTH_BITS, LIFE_BITS, OFFERED_BITS, STALL_COUNT_BITS, VL_LIMIT_BITS
from wire.codes import (
    LINK_WIDTHS,
    LinkWidth,
    PortPhysicalState,
    PortState,
    data_vls,
    max_pkt_len,
    mtu_code,
    operational_vls,
)
from wire.packet import BLOCK_BYTES
from wire.registers import (
    DATA_BITS,
    PORT_REGISTER_WIDTHS,
    PORT_RESET_VALUES,
    PartitionCheck,
    PortRegister,
)
from wire.time_limits import NO_LIMIT

__all__ = [
    "DurationSignature",
    "PartitionChecks",
    "PortRegisters",
    "TimeLimitsSignature",
    "port_following_layout",
]

_DURATIONS: Final = (
    PortRegister.FCP_PERIOD,
    PortRegister.FC_WATCHDOG,
    PortRegister.LINK_DOWN_TIMEOUT,
    PortRegister.TICK,
)
"""The registers that hold a duration."""

_PHYSICAL: Final = ("wanted", "default")
"""The physical state that is wanted, and the one that is where the link was lost."""

PartitionChecks = data.StructLayout({check.name.lower(): 1 for check in PartitionCheck if check.name})
"""What a switch's port checks."""


def port_following_layout(vls: int) -> data.StructLayout:
    """Of a port's registers, what they will be in the next cycle, for registers of their own where they are far."""
    return data.StructLayout({"operational": vls, "neighbor_mtu": 3, "partition": PartitionChecks})


TimeLimitsSignature = wiring.Signature(
    {"hoq_life": Out(LIFE_BITS, init=NO_LIMIT), "vl_stall_count": Out(STALL_COUNT_BITS), "changed": Out(1)}
)
"""The time limits of a switch's port, seen from their registers.

Members:
    hoq_life, vl_stall_count: their values. `changed`: one of them will be another in the next cycle.
"""


class DurationSignature(wiring.Signature):
    """A register that holds a duration in cycles, seen from it.

    Members:
        length: its value.
        written: the timer restarts with the next cycle.
    """

    def __init__(self, register: PortRegister) -> None:
        super().__init__(
            {"length": Out(PORT_REGISTER_WIDTHS[register], init=PORT_RESET_VALUES[register]), "written": Out(1)},
        )


class PortRegisters(wiring.Component):
    """Registers of one port, and what its page of the bus reads.

    An access in cycle c+1 is one that was given on the bus at c: a register written is visible at
    c+2, a read answers in `reg_rdata` at c+3 with what was visible at c+2.

    Args:
        kind: what the port belongs to.
        vls: data VLs of the port.
        mtu: MTU in bytes that the port is built for.

    Members:
        reg, reg_rdata: the access and the answer, which is 0 in all other cycles.
        state, up: the port's state, and whether its link is up, to be read. `narrow`: it came up as 1X. `lost`:
            LinkDowned counts in the next cycle.
        state_write: the PortState written in this cycle, else NO_CHANGE.
        offers: widths with which the link may come up, of 1X and 4X; none if the port is asleep or disabled, or starts
            its link anew.
        wide: WIDTH is 4X. `wide_follows`: it will be in the next cycle. `cable_is_wide`: it was
            written so.
        operational: mask of operational data VLs.
        neighbor_mtu, max_words: the code, and the largest PktLen for it.
        follows: what some will be in the next cycle.
        vl_high_limit, list_entry: of VL arbitration, if there are several data VLs.
        time_limits, partition, marking: in a switch.
        fcp_threshold, fcp_period, fc_watchdog, link_down_timeout, tick, local_phy_errors,
            overrun_errors: the registers.
    """

    def __init__(self, kind: Literal["switch", "adapter"], vls: int, mtu: int) -> None:
        self._kind = kind
        self._vls = vls
        self._mtu = mtu
        super().__init__(
            {
                "reg": In(port_access_layout(vls)),
                "reg_rdata": Out(DATA_BITS),
                "state": In(PortState),
                "up": In(1),
                "lost": In(1),
                "narrow": In(1),
                "state_write": Out(PortState),
                "offers": Out(OFFERED_BITS),
                "wide": Out(1, init=1),
                "wide_follows": Out(1),
                "cable_is_wide": Out(1, init=1),
                "operational": Out(vls, init=(1 << vls) - 1),
                "neighbor_mtu": Out(3, init=mtu_code(mtu)),
                "max_words": Out(LENGTH_BITS, init=max_pkt_len(mtu_code(mtu))),
                "vl_high_limit": Out(VL_LIMIT_BITS),
                "list_entry": Out(ListEntry),
                "partition": Out(PartitionChecks),
                "follows": Out(port_following_layout(vls)),
                "fcp_threshold": Out(12, init=mtu // BLOCK_BYTES),
                **{register.name.lower(): Out(DurationSignature(register)) for register in _DURATIONS},
                "local_phy_errors": Out(4, init=PORT_RESET_VALUES[PortRegister.LOCAL_PHY_ERRORS]),
                "overrun_errors": Out(4, init=PORT_RESET_VALUES[PortRegister.OVERRUN_ERRORS]),
                **({"time_limits": Out(TimeLimitsSignature), "marking": Out(PortMarking)} if kind == "switch" else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the registers and the read path."""
        m = Module()
        reg, value = self.reg, self.reg.wdata
        operational_code = Signal(3, init=operational_vls(self._vls))

        def writes(register: PortRegister) -> Value:
            return reg.select & reg.writes[register.name]

        # Operational VLs have two registers, one inverted, so that synthesis does not make them one: what comes in is
        # far from the inputs and outputs that `follows` tells.
        follows, operational, silent = self.follows, Signal.like(self.operational), Signal(self._vls)
        m.d.comb += [
            self.operational.eq(~silent),
            follows.eq(Cat(operational, self.neighbor_mtu, self.partition)),
        ]
        m.d.sync += Cat(operational, self.neighbor_mtu, self.partition).eq(follows)
        with m.If(writes(PortRegister.STATE)):
            m.d.comb += self.state_write.eq(value)
        wanted, default = (Signal(PortPhysicalState, init=PortPhysicalState.POLLING, name=name) for name in _PHYSICAL)
        polls, enabled = Signal(), Signal(OFFERED_BITS, init=LINK_WIDTHS)
        with m.If(writes(PortRegister.LINK_DOWN_DEFAULT)):
            m.d.sync += default.eq(value)
        with m.If(writes(PortRegister.LINK_WIDTH_ENABLED)):
            m.d.sync += enabled.eq(value)
        # To be told to poll starts the link anew, and wins over its loss by that.
        told, was_told, restarts = Signal(), Signal(), Signal()
        tells = writes(PortRegister.PHYSICAL_STATE) & (value == PortPhysicalState.POLLING)
        m.d.sync += [told.eq(tells), was_told.eq(told), restarts.eq(tells & polls)]
        with m.If(writes(PortRegister.PHYSICAL_STATE)):
            m.d.sync += wanted.eq(value)
        with m.Elif(self.lost & polls & ~told & ~was_told):
            m.d.sync += wanted.eq(default)
        m.d.comb += [
            polls.eq(wanted == PortPhysicalState.POLLING),
            self.offers.eq(Mux(polls & ~restarts, enabled, 0)),
        ]
        # The cable's width, and that of the link as it came up.
        cable_follows = Signal()
        m.d.comb += [cable_follows.eq(self.cable_is_wide), self.wide_follows.eq(cable_follows & ~self.narrow)]
        with m.If(writes(PortRegister.WIDTH)):
            m.d.comb += cable_follows.eq(value & LinkWidth.X4 != 0)  # of 1X and 4X
        m.d.sync += [self.cable_is_wide.eq(cable_follows), self.wide.eq(self.wide_follows)]
        with m.If(writes(PortRegister.NEIGHBOR_MTU)):
            m.d.comb += follows.neighbor_mtu.eq(value)
            with m.Switch(value[: len(self.neighbor_mtu)]):
                for mtu in range(1, mtu_code(self._mtu) + 1):
                    with m.Case(mtu):
                        m.d.sync += self.max_words.eq(max_pkt_len(mtu))
        with m.If(writes(PortRegister.OPERATIONAL_VLS)):
            m.d.sync += operational_code.eq(value)
            with m.Switch(value[: len(operational_code)]):
                for vls in range(1, operational_vls(self._vls) + 1):
                    with m.Case(vls):
                        mask = Const((1 << data_vls(vls)) - 1, self._vls)
                        m.d.comb += follows.operational.eq(mask)
                        m.d.sync += silent.eq(~mask)
        numbers: dict[PortRegister, Any] = {
            PortRegister.FCP_THRESHOLD: self.fcp_threshold,
            PortRegister.LOCAL_PHY_ERRORS: self.local_phy_errors,
            PortRegister.OVERRUN_ERRORS: self.overrun_errors,
        }
        if self._vls > 1:
            numbers[PortRegister.VL_HIGH_LIMIT] = self.vl_high_limit
            # Entries of VL arbitration are kept at the port's output.
            m.d.comb += [
                self.list_entry.eq(reg.list_entry),
                self.list_entry.write.eq(reg.select & reg.list_entry.write),
            ]
        if self._kind == "switch":
            with m.If(writes(PortRegister.PARTITION)):
                m.d.comb += follows.partition.eq(value)
            with m.If(writes(PortRegister.CONGESTION)):
                m.d.sync += [
                    self.marking.valid.eq(Element(value).valid),
                    self.marking.settings.eq(value[: MarkingSettings.size]),
                ]
            limits: dict[PortRegister, Value] = {
                PortRegister.HOQ_LIFE: self.time_limits.hoq_life,
                PortRegister.VL_STALL_COUNT: self.time_limits.vl_stall_count,
            }
            for register, target in limits.items():
                with m.If(writes(register)):
                    m.d.comb += self.time_limits.changed.eq(value[: len(target)] != target)
            numbers |= limits
        for register, target in numbers.items():
            with m.If(writes(register)):
                m.d.sync += target.eq(value)
        durations = {register: getattr(self, register.name.lower()) for register in _DURATIONS}
        for register, duration in durations.items():
            m.d.comb += duration.written.eq(writes(register))
            with m.If(duration.written):
                m.d.sync += duration.length.eq(value)

        # Reads: what is read in the cycle after the access, the answer in the next.
        width_code = Signal(2)
        m.d.comb += width_code.eq(LinkWidth.X1)
        with m.If(self.wide):
            m.d.comb += width_code.eq(LinkWidth.X4)
        physical_state = Signal(PortPhysicalState)
        recovers = (self.state == PortState.ACTIVE) | (self.state == PortState.ACTIVE_DEFER)
        m.d.comb += physical_state.eq(wanted)
        with m.If(polls & self.up):
            m.d.comb += physical_state.eq(PortPhysicalState.LINK_UP)
        with m.Elif(polls & recovers):
            m.d.comb += physical_state.eq(PortPhysicalState.LINK_ERROR_RECOVERY)
        readable: dict[PortRegister, Value] = {
            PortRegister.STATE: self.state,
            PortRegister.PHYSICAL_STATE: physical_state,
            PortRegister.WIDTH: width_code,
            PortRegister.LINK_WIDTH_ENABLED: enabled,
            PortRegister.LINK_DOWN_DEFAULT: default,
            PortRegister.NEIGHBOR_MTU: self.neighbor_mtu,
            PortRegister.OPERATIONAL_VLS: operational_code,
            **numbers,
            **{register: duration.length for register, duration in durations.items()},
        }
        if self._kind == "switch":
            marking = self.marking
            readable[PortRegister.PARTITION] = self.partition.as_value()
            readable[PortRegister.CONGESTION] = Cat(
                marking.settings, Const(0, DATA_BITS - PortMarking.size), marking.valid
            )
        reads = Signal(len(readable))
        m.d.sync += [
            reads.eq(Mux(reg.select, Cat(reg.reads[register.name] for register in readable), 0)),
            self.reg_rdata.eq(select(reads, readable.values())),
        ]
        return m
