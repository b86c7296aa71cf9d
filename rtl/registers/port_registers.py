"""A port's registers (`wire.registers.PortRegister`; docs/pipeline.md, section 10)."""

from itertools import pairwise
from typing import Any, Final, Literal

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.registers.bus import PortAccess
from rtl.registers.marking import Element, MarkingSettings, PortMarking
from rtl.rotation import select
from rtl.widths import CREDIT_BITS, LENGTH_BITS, LIFE_BITS, STALL_COUNT_BITS, VL_BITS, VL_LIMIT_BITS, VL_WEIGHT_BITS
from wire.codes import LinkWidth, PortPhysicalState, PortState, data_vls, max_pkt_len, mtu_code, operational_vls
from wire.packet import BLOCK_BYTES
from wire.parameters import vl_arbitration_entries
from wire.registers import (
    DATA_BITS,
    PORT_RESET_VALUES,
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    VL_ARBITRATION_SPAN,
    PartitionCheck,
    PortRegister,
)
from wire.time_limits import NO_LIMIT

__all__ = [
    "DurationSignature",
    "ListEntry",
    "PartitionChecks",
    "PortRegisters",
    "TimeLimitsSignature",
    "port_following_layout",
]

_BITS: Final = {
    PortRegister.FCP_PERIOD: 24,
    PortRegister.FC_WATCHDOG: 24,
    PortRegister.LINK_DOWN_TIMEOUT: 24,
    PortRegister.TICK: 8,
}
"""Of the registers that hold a duration."""

_CODE_BITS: Final = 4
"""Codes are below 16."""

_WRITTEN_BITS: Final = (24, CREDIT_BITS, VL_LIMIT_BITS, _CODE_BITS)
"""The widths of registers, the largest first, but of those that must be known soon."""

_ENTRY_BITS: Final = (VL_ARBITRATION_SPAN - 1).bit_length()

ListEntry = data.StructLayout({"write": 1, "high": 1, "number": _ENTRY_BITS, "vl": VL_BITS, "weight": VL_WEIGHT_BITS})
"""A write, in this cycle, of an entry of the high or the low list of VL arbitration. The rest of it, which entry and
what, was here in the cycle before: it is for an output's arbiter, which is far, and has registers of its own."""

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
            {"length": Out(_BITS[register], init=PORT_RESET_VALUES[register]), "written": Out(1)},
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
        given: the access in the cycle before, for what must be known soon.
        reg, reg_rdata: the access and the answer, which is 0 in all other cycles.
        state, up: the port's state, and whether its link is up, to be read.
        state_write: the PortState written in this cycle, else NO_CHANGE.
        polling: the port wants its link up: it is neither asleep nor disabled.
        wide: WIDTH is 4X. `wide_follows`: it will be in the next cycle.
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
                "given": In(PortAccess),
                "reg": In(PortAccess),
                "reg_rdata": Out(DATA_BITS),
                "state": In(PortState),
                "up": In(1),
                "state_write": Out(PortState),
                "polling": Out(1),
                "wide": Out(1, init=1),
                "wide_follows": Out(1),
                "operational": Out(vls, init=(1 << vls) - 1),
                "neighbor_mtu": Out(3, init=mtu_code(mtu)),
                "max_words": Out(LENGTH_BITS, init=max_pkt_len(mtu_code(mtu))),
                "vl_high_limit": Out(VL_LIMIT_BITS),
                "list_entry": Out(ListEntry),
                "partition": Out(PartitionChecks),
                "follows": Out(port_following_layout(vls)),
                "fcp_threshold": Out(12, init=mtu // BLOCK_BYTES),
                **{register.name.lower(): Out(DurationSignature(register)) for register in _BITS},
                "local_phy_errors": Out(4, init=PORT_RESET_VALUES[PortRegister.LOCAL_PHY_ERRORS]),
                "overrun_errors": Out(4, init=PORT_RESET_VALUES[PortRegister.OVERRUN_ERRORS]),
                **({"time_limits": Out(TimeLimitsSignature), "marking": Out(PortMarking)} if kind == "switch" else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the registers and the read path."""
        m = Module()
        reg, value = self.reg, self.reg.wdata
        most_vls = operational_vls(self._vls)
        most_mtu = mtu_code(self._mtu)
        operational_code = Signal(3, init=most_vls)

        def writes(register: PortRegister, allowed: Value) -> Value:
            return reg.select & reg.write & (reg.offset == register) & allowed

        fits = self._fits(m)
        code = value[:_CODE_BITS]

        def is_one_of(*codes: int) -> Value:
            return fits[_CODE_BITS] & Cat(code == one for one in codes).any()

        # Writes; what is not allowed is ignored.
        follows = self.follows
        m.d.comb += follows.eq(Cat(self.operational, self.neighbor_mtu, self.partition))
        m.d.sync += Cat(self.operational, self.neighbor_mtu, self.partition).eq(follows)
        may_be_written = (PortState.DOWN, PortState.ARMED, PortState.ACTIVE)
        is_state = Cat(self.given.wdata == state for state in may_be_written).any()
        with m.If(self._writes_soon(m, PortRegister.STATE, is_state)):
            m.d.comb += self.state_write.eq(value)
        wanted = Signal(PortPhysicalState, init=PortPhysicalState.POLLING)
        may_be_wanted = (PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED)
        with m.If(writes(PortRegister.PHYSICAL_STATE, is_one_of(*may_be_wanted))):
            m.d.sync += wanted.eq(value)
        m.d.comb += self.polling.eq(wanted == PortPhysicalState.POLLING)
        is_x1, is_x4 = (self.given.wdata == width for width in (LinkWidth.X1, LinkWidth.X4))
        to_x4 = Signal()
        m.d.sync += to_x4.eq(self.given.wdata & LinkWidth.X4 != 0)  # of the two
        m.d.comb += self.wide_follows.eq(self.wide)
        with m.If(self._writes_soon(m, PortRegister.WIDTH, is_x1 | is_x4)):
            m.d.comb += self.wide_follows.eq(to_x4)
        m.d.sync += self.wide.eq(self.wide_follows)
        for mtu in range(1, most_mtu + 1):
            with m.If(writes(PortRegister.NEIGHBOR_MTU, is_one_of(mtu))):
                m.d.comb += follows.neighbor_mtu.eq(mtu)
                m.d.sync += self.max_words.eq(max_pkt_len(mtu))
        for vls in range(1, most_vls + 1):
            with m.If(writes(PortRegister.OPERATIONAL_VLS, is_one_of(vls))):
                m.d.comb += follows.operational.eq((1 << data_vls(vls)) - 1)
                m.d.sync += operational_code.eq(vls)
        numbers: dict[PortRegister, Any] = {
            PortRegister.FCP_THRESHOLD: self.fcp_threshold,
            PortRegister.LOCAL_PHY_ERRORS: self.local_phy_errors,
            PortRegister.OVERRUN_ERRORS: self.overrun_errors,
        }
        if self._vls > 1:
            numbers[PortRegister.VL_HIGH_LIMIT] = self.vl_high_limit
            self._write_lists(m)
        if self._kind == "switch":
            with m.If(writes(PortRegister.PARTITION, fits[PartitionChecks.size])):
                m.d.comb += follows.partition.eq(value)
            element = Element(value)
            with m.If(writes(PortRegister.CONGESTION, ~element.control_type)):
                m.d.sync += [
                    self.marking.valid.eq(element.valid),
                    self.marking.settings.eq(value[: MarkingSettings.size]),
                ]
        for register, target in numbers.items():
            with m.If(writes(register, fits[len(target)])):
                m.d.sync += target.eq(value)
        if self._kind == "switch":
            limits: dict[PortRegister, Value] = {
                PortRegister.HOQ_LIFE: self.time_limits.hoq_life,
                PortRegister.VL_STALL_COUNT: self.time_limits.vl_stall_count,
            }
            for register, target in limits.items():
                with m.If(self._writes_soon(m, register, ~self.given.wdata[len(target) :].any())):
                    m.d.sync += target.eq(value)
                    m.d.comb += self.time_limits.changed.eq(value[: len(target)] != target)
            numbers |= limits | {PortRegister.PARTITION: self.partition.as_value()}
        durations = {register: getattr(self, register.name.lower()) for register in _BITS}
        for register, duration in durations.items():
            may_be_0 = register == PortRegister.TICK  # a tick lasts a cycle more
            with m.If(writes(register, fits[_BITS[register]] & (may_be_0 | value[: _BITS[register]].any()))):
                m.d.comb += duration.written.eq(1)
                m.d.sync += duration.length.eq(value)

        # Reads: what is read in the cycle after the access, the answer in the next.
        width_code = Signal(2)
        m.d.comb += width_code.eq(LinkWidth.X1)
        with m.If(self.wide):
            m.d.comb += width_code.eq(LinkWidth.X4)
        physical_state = Signal(PortPhysicalState)
        recovers = (self.state == PortState.ACTIVE) | (self.state == PortState.ACTIVE_DEFER)
        m.d.comb += physical_state.eq(wanted)
        with m.If(self.polling & self.up):
            m.d.comb += physical_state.eq(PortPhysicalState.LINK_UP)
        with m.Elif(self.polling & recovers):
            m.d.comb += physical_state.eq(PortPhysicalState.LINK_ERROR_RECOVERY)
        readable: dict[PortRegister, Value] = {
            PortRegister.STATE: self.state,
            PortRegister.PHYSICAL_STATE: physical_state,
            PortRegister.WIDTH: width_code,
            PortRegister.NEIGHBOR_MTU: self.neighbor_mtu,
            PortRegister.OPERATIONAL_VLS: operational_code,
            **numbers,
            **{register: duration.length for register, duration in durations.items()},
        }
        if self._kind == "switch":
            marking = self.marking
            readable[PortRegister.CONGESTION] = Cat(
                marking.settings, Const(0, DATA_BITS - PortMarking.size), marking.valid
            )
        reads = Signal(len(readable))
        m.d.sync += [
            reads.eq(Cat(reg.select & reg.read & (reg.offset == offset) for offset in readable)),
            self.reg_rdata.eq(select(reads, readable.values())),
        ]
        return m

    def _writes_soon(self, m: Module, register: PortRegister, allowed: Value) -> Value:
        """A write of REGISTER, with what was ALLOWED of the value given in the cycle before, in which offset and value
        are compared, each by itself: both come late in that cycle. So does that it is for this port, which is taken of
        the access in this one."""
        name = register.name.lower()
        of_register, is_allowed = Signal(name=f"writes_{name}"), Signal(name=f"{name}_allowed")
        m.d.sync += [of_register.eq(self.given.offset == register), is_allowed.eq(allowed)]
        return of_register & is_allowed & self.reg.select & self.reg.write

    def _fits(self, m: Module) -> dict[int, Signal]:
        """Whether what is written has so many bits at most; what is above is looked at once."""
        fits = {bits: Signal(name=f"fits_{bits}") for bits in _WRITTEN_BITS}
        beyond: Value = Const(0, 1)
        for end, bits in pairwise([DATA_BITS, *_WRITTEN_BITS]):
            beyond = beyond | self.reg.wdata[bits:end].any()
            m.d.comb += fits[bits].eq(~beyond)
        return fits

    def _write_lists(self, m: Module) -> None:
        """Entries of VL arbitration are kept at the port's output."""
        given, reg, entry = self.given, self.reg, self.list_entry
        number_bits = (vl_arbitration_entries(self._vls) - 1).bit_length()
        in_low, in_high = (
            given.offset[number_bits:] == first >> number_bits for first in (VL_ARBITRATION_LOW, VL_ARBITRATION_HIGH)
        )
        of_lists = Signal()
        m.d.sync += of_lists.eq((in_low | in_high) & ~given.wdata[VL_WEIGHT_BITS + VL_BITS :].any())
        m.d.comb += [
            entry.write.eq(reg.select & reg.write & of_lists),
            entry.high.eq(in_high),
            entry.number.eq(given.offset[:number_bits]),
            Cat(entry.weight, entry.vl).eq(given.wdata),
        ]
