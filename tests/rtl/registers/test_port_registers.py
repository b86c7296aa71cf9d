"""A port's registers on the bus."""

from collections.abc import Collection
from functools import cache
from operator import attrgetter
from typing import Any, Literal

import pytest

from rtl.registers.port_access import PortDecoder
from rtl.registers.port_registers import PortRegisters
from tests.rtl.registers.decoded import behind_decoder, give
from tests.rtl.simulation import Simulation
from wire.codes import LinkWidth, PortPhysicalState, PortState, max_pkt_len
from wire.registers import PortRegister

AT_RESET = {
    PortRegister.WIDTH: 2,
    PortRegister.NEIGHBOR_MTU: 4,
    PortRegister.OPERATIONAL_VLS: 3,
    PortRegister.FCP_THRESHOLD: 32,
    PortRegister.FCP_PERIOD: 48_488,
    PortRegister.FC_WATCHDOG: 400_000,
    PortRegister.LINK_DOWN_TIMEOUT: 2_500_000,
    PortRegister.TICK: 31,
    PortRegister.LOCAL_PHY_ERRORS: 15,
    PortRegister.OVERRUN_ERRORS: 15,
    PortRegister.PHYSICAL_STATE: PortPhysicalState.POLLING,
    PortRegister.VL_HIGH_LIMIT: 0,
    PortRegister.HOQ_LIFE: 31,
    PortRegister.VL_STALL_COUNT: 0,
    PortRegister.PARTITION: 0,
    PortRegister.LINK_WIDTH_ENABLED: 3,
    PortRegister.LINK_DOWN_DEFAULT: PortPhysicalState.POLLING,
}

ALLOWED = {
    PortRegister.WIDTH: [1, 2],
    PortRegister.NEIGHBOR_MTU: [1, 2, 3, 4],
    PortRegister.OPERATIONAL_VLS: [1, 2, 3],
    PortRegister.FCP_THRESHOLD: [0, 1, 0xFFF],
    PortRegister.FCP_PERIOD: [1, 0xFFFFFF],
    PortRegister.FC_WATCHDOG: [1, 0xFFFFFF],
    PortRegister.LINK_DOWN_TIMEOUT: [1, 0xFFFFFF],
    PortRegister.TICK: [0, 255],
    PortRegister.LOCAL_PHY_ERRORS: [0, 15],
    PortRegister.OVERRUN_ERRORS: [0, 15],
    PortRegister.PHYSICAL_STATE: [PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED],
    PortRegister.VL_HIGH_LIMIT: [0, 255],
    PortRegister.HOQ_LIFE: [0, 19, 20, 31],
    PortRegister.VL_STALL_COUNT: [0, 7],
    PortRegister.PARTITION: [0, 15],
    PortRegister.LINK_WIDTH_ENABLED: [1, 2, 3],
    PortRegister.LINK_DOWN_DEFAULT: [PortPhysicalState.SLEEP, PortPhysicalState.POLLING],
}

IGNORED = {
    PortRegister.WIDTH: [0, 3, 4, 0x80000002],
    PortRegister.NEIGHBOR_MTU: [0, 5, 6, 0x101],
    PortRegister.OPERATIONAL_VLS: [0, 4, 5, 0x101],
    PortRegister.FCP_THRESHOLD: [0x1000, 1 << 31],
    PortRegister.FCP_PERIOD: [0, 1 << 24],
    PortRegister.FC_WATCHDOG: [0, 1 << 24],
    PortRegister.LINK_DOWN_TIMEOUT: [0, 1 << 24],
    PortRegister.TICK: [256],
    PortRegister.LOCAL_PHY_ERRORS: [16],
    PortRegister.OVERRUN_ERRORS: [16],
    PortRegister.PHYSICAL_STATE: [0, 4, 5, 6, 7, 0x101],
    PortRegister.VL_HIGH_LIMIT: [256],
    PortRegister.HOQ_LIFE: [32, 1 << 31],
    PortRegister.VL_STALL_COUNT: [8],
    PortRegister.PARTITION: [16, 1 << 31],
    PortRegister.LINK_WIDTH_ENABLED: [0, 4, 7, 0x80, 254, 256, 0x1FF, 1 << 31],
    PortRegister.LINK_DOWN_DEFAULT: [0, 3, 4, 15, 0x101],
}

Access = dict[str, int] | None


@cache
def simulated(kind: Literal["switch", "adapter"], vls: int) -> tuple[PortRegisters, PortDecoder, Simulation]:
    dut = PortRegisters(kind, vls=vls, mtu=2048)
    design, decoder = behind_decoder(dut, vls, mtu=2048)
    return dut, decoder, Simulation(design)


def run(
    accesses: list[Access],
    outputs: tuple[str, ...] = (),
    up: Collection[int] = (),
    state: PortState = PortState.ARMED,
    vls: int = 4,
    kind: Literal["switch", "adapter"] = "switch",
    narrow: Collection[int] = (),
    lost: Collection[int] = (),
) -> tuple[list[int], list[tuple[int, ...]]]:
    """`reg_rdata` and the outputs named, in each cycle; the accesses are at the node's stage.

    The link is up, narrow and lost in the cycles of these.
    """
    dut, decoder, simulation = simulated(kind, vls)
    answers: list[int] = []
    seen: list[tuple[int, ...]] = []

    async def drive(ctx: Any) -> None:
        ctx.set(dut.state, state)
        give(ctx, decoder, accesses[0])
        await ctx.tick()
        for cycle, following in enumerate([*accesses[1:], None]):
            for wire, cycles in ((dut.up, up), (dut.narrow, narrow), (dut.lost, lost)):
                ctx.set(wire, cycle in cycles)
            give(ctx, decoder, following)
            answers.append(ctx.get(dut.reg_rdata))
            seen.append(tuple(int(ctx.get(attrgetter(name)(dut))) for name in outputs))
            await ctx.tick()

    simulation.run(drive)
    return answers, seen


def read(offset: int) -> Access:
    return {"read": 1, "offset": offset}


def write(offset: int, value: int) -> Access:
    return {"write": 1, "offset": offset, "wdata": value}


def test_values_at_reset() -> None:
    answers, _ = run([*(read(register) for register in AT_RESET), None, None])
    assert answers[2:] == list(AT_RESET.values())
    assert answers[:2] == [0, 0]


def test_the_state_can_be_read() -> None:
    answers, _ = run([read(PortRegister.STATE), None, None])
    assert answers == [0, 0, PortState.ARMED]


def test_other_offsets_read_0() -> None:
    offsets = (0x11, 0x1F, 0x31, 0x3B, 0x40, 0x4F, 0x5A, 0x7F, 0xFF)
    answers, _ = run([*(read(offset) for offset in offsets), None, None])
    assert not any(answers)


def test_another_ports_access_is_none_of_ours() -> None:
    answers, _ = run(
        [
            {"page": 2, "write": 1, "offset": PortRegister.TICK, "wdata": 5},
            {"page": 2, "read": 1, "offset": PortRegister.TICK},
            read(PortRegister.TICK),
            None,
            None,
        ]
    )
    assert answers == [0, 0, 0, 0, AT_RESET[PortRegister.TICK]]


SOON = (PortRegister.WIDTH, PortRegister.HOQ_LIFE, PortRegister.VL_STALL_COUNT)
"""What is written of these is compared in the cycle before."""


@pytest.mark.parametrize("register", SOON)
def test_what_is_written_to_another_port_changes_nothing_though_its_value_is_compared_before(
    register: PortRegister,
) -> None:
    value = next(value for value in ALLOWED[register] if value != AT_RESET[register])
    others: list[Access] = [{"page": 2, **access} for access in (write(register, value), read(register)) if access]
    answers, seen = run([*others, read(register), None, None], ("wide", "wide_follows", "time_limits.changed"))
    assert answers == [0, 0, 0, 0, AT_RESET[register]]
    assert {*seen} == {(1, 1, 0)}


def test_a_width_is_that_of_the_write_before_it() -> None:
    width = PortRegister.WIDTH
    accesses = [write(width, LinkWidth.X1), write(width, LinkWidth.X4), write(width, LinkWidth.X1)]
    accesses += [write(PortRegister.TICK, LinkWidth.X4), read(width), write(width, LinkWidth.X4), None]
    _, seen = run(accesses, ("wide", "wide_follows"))
    assert seen == [(1, 0), (0, 1), (1, 0), (0, 0), (0, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize("register", ALLOWED)
def test_what_is_allowed_is_taken_and_all_else_ignored(register: PortRegister) -> None:
    for value in ALLOWED[register]:
        assert run([write(register, value), read(register), None, None])[0][-1] == value
    for value in IGNORED[register]:
        assert run([write(register, value), read(register), None, None])[0][-1] == AT_RESET[register]


def test_a_read_sees_a_write_given_in_the_cycle_before() -> None:
    tick = PortRegister.TICK
    answers, _ = run([read(tick), write(tick, 1), read(tick), write(tick, 2), read(tick), None, None])
    assert answers[2::2] == [31, 1, 2]


def test_a_write_of_a_time_limit_is_seen_if_it_changes_it() -> None:
    hoq_life, stall_count = PortRegister.HOQ_LIFE, PortRegister.VL_STALL_COUNT
    accesses = [write(hoq_life, 31), write(hoq_life, 5), write(hoq_life, 5), write(hoq_life, 32)]
    accesses += [write(stall_count, 0), write(stall_count, 3), read(hoq_life), write(PortRegister.PARTITION, 1)]
    _, seen = run(accesses, ("time_limits.changed",))
    assert [changed for (changed,) in seen] == [0, 1, 0, 0, 0, 1, 0, 0]


def test_an_adapters_port_has_no_time_limits() -> None:
    for register in (PortRegister.HOQ_LIFE, PortRegister.VL_STALL_COUNT):
        answers, _ = run([read(register), write(register, 5), read(register), None, None], kind="adapter")
        assert not any(answers)


def test_only_down_armed_and_active_can_be_written_to_the_state() -> None:
    _, seen = run([write(PortRegister.STATE, value) for value in range(10)], ("state_write",))
    assert [state for (state,) in seen] == [0, 1, 0, 3, 4, 0, 0, 0, 0, 0]


def test_the_physical_state_is_link_up_while_the_link_is() -> None:
    physical_state = PortRegister.PHYSICAL_STATE
    # A read at the node's stage in cycle c is of cycle c + 1.
    answers, _ = run([*[read(physical_state)] * 5, None, None], up=(2, 3))
    polling, link_up = PortPhysicalState.POLLING, PortPhysicalState.LINK_UP
    assert answers[2:] == [polling, link_up, link_up, polling, polling]


@pytest.mark.parametrize("state", PortState)
def test_an_active_port_whose_link_is_gone_recovers(state: PortState) -> None:
    read_twice = [*[read(PortRegister.PHYSICAL_STATE)] * 2, None, None]
    recovers = state in (PortState.ACTIVE, PortState.ACTIVE_DEFER)
    without_link = PortPhysicalState.LINK_ERROR_RECOVERY if recovers else PortPhysicalState.POLLING
    assert run(read_twice, up=(1,), state=state)[0][2:] == [PortPhysicalState.LINK_UP, without_link]


@pytest.mark.parametrize("state", [PortPhysicalState.SLEEP, PortPhysicalState.DISABLED])
def test_a_port_asleep_or_disabled_does_not_poll_whatever_its_link_does(state: PortPhysicalState) -> None:
    physical_state = PortRegister.PHYSICAL_STATE
    wake = write(physical_state, PortPhysicalState.POLLING)
    accesses = [write(physical_state, state), read(physical_state), wake, read(physical_state), None, None]
    answers, seen = run(accesses, ("offers",), up=range(len(accesses)))
    assert [offers for (offers,) in seen] == [3, 0, 0, 3, 3, 3]
    assert answers[3::2] == [state, PortPhysicalState.LINK_UP]


@pytest.mark.parametrize(("enabled", "offered"), [(1, 1), (2, 2), (3, 3), (255, 3)])
def test_a_port_offers_the_widths_that_are_enabled(enabled: int, offered: int) -> None:
    _, seen = run([write(PortRegister.LINK_WIDTH_ENABLED, enabled), None], ("offers",))
    assert seen == [(3,), (offered,)]


def test_a_narrow_link_is_1x_whatever_width_was_written() -> None:
    width = PortRegister.WIDTH
    accesses = [read(width), read(width), write(width, LinkWidth.X1), write(width, LinkWidth.X4), *[read(width)] * 3]
    answers, seen = run([*accesses, None, None], ("wide", "wide_follows"), narrow=(1, 4))
    assert seen == [(1, 1), (1, 0), (0, 0), (0, 1), (1, 0), (0, 1), (1, 1), (1, 1), (1, 1)]
    # A read is of the next cycle.
    assert answers[2:4] == [LinkWidth.X4, LinkWidth.X1]
    assert answers[6:] == [LinkWidth.X1, LinkWidth.X4, LinkWidth.X4]


@pytest.mark.parametrize("default", [PortPhysicalState.SLEEP, PortPhysicalState.POLLING])
@pytest.mark.parametrize("state", [PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED])
def test_where_a_link_is_lost_a_port_that_polled_goes_to_its_default_state(
    state: PortPhysicalState, default: PortPhysicalState
) -> None:
    physical_state = PortRegister.PHYSICAL_STATE
    accesses = [
        write(PortRegister.LINK_DOWN_DEFAULT, default),
        write(physical_state, state),
        *[None] * 2,
        read(physical_state),
    ]
    answers, _ = run([*accesses, None, None], lost=(4,))
    assert answers[-1] == (default if state == PortPhysicalState.POLLING else state)


@pytest.mark.parametrize("state", [PortPhysicalState.SLEEP, PortPhysicalState.POLLING, PortPhysicalState.DISABLED])
def test_a_write_of_the_physical_state_in_that_cycle_wins(state: PortPhysicalState) -> None:
    """And one of Polling, in the two cycles before it."""
    physical_state = PortRegister.PHYSICAL_STATE
    default = write(PortRegister.LINK_DOWN_DEFAULT, PortPhysicalState.SLEEP)
    accesses = [default, write(physical_state, state), *[None] * 2, read(physical_state), None, None]
    for lost in (1, 2, 3):
        assert run(accesses, lost=(lost,))[0][-1] == state


def test_a_port_that_polls_and_is_told_to_offers_nothing_for_a_cycle() -> None:
    physical_state = PortRegister.PHYSICAL_STATE
    states = (PortPhysicalState.POLLING, PortPhysicalState.SLEEP, PortPhysicalState.POLLING)
    accesses = [access for state in states for access in (write(physical_state, state), None)]
    _, seen = run([*accesses, None], ("offers",))
    assert [offers for (offers,) in seen] == [3, 0, 3, 0, 0, 3, 3]


def test_a_timer_starts_anew_when_its_length_is_written() -> None:
    names = ("fcp_period.written", "fc_watchdog.written", "link_down_timeout.written", "tick.written")
    registers = (
        PortRegister.FCP_PERIOD,
        PortRegister.FC_WATCHDOG,
        PortRegister.LINK_DOWN_TIMEOUT,
        PortRegister.TICK,
    )
    _, seen = run([*(write(register, 9) for register in registers), write(PortRegister.FCP_PERIOD, 0)], names)
    assert seen == [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 0, 0)]


def test_codes_become_masks_and_lengths() -> None:
    _, seen = run(
        [
            None,
            write(PortRegister.OPERATIONAL_VLS, 1),
            write(PortRegister.NEIGHBOR_MTU, 1),
            write(PortRegister.WIDTH, 1),
            None,
        ],
        ("operational", "max_words", "wide"),
    )
    assert seen[0] == (0b1111, max_pkt_len(4), 1)
    assert seen[-1] == (0b0001, max_pkt_len(1), 0)


def test_entries_of_vl_arbitration_are_told_and_read_0() -> None:
    entries = [0x80, 0x87, 0x88, 0x9F, 0xA0, 0xA7, 0xA8, 0xC0]
    names = ("high", "number", "vl", "weight")
    accesses = [None, *(write(offset, 0xABC) for offset in entries)]
    accesses += [write(0x80, 0x1ABC), read(0x80), read(0xA7), None, None]
    answers, seen = run(accesses, ("list_entry.write", *(f"list_entry.{name}" for name in names)))
    assert not any(answers)
    told = [values[1:] for values in seen if values[0]]
    assert told == [(0, 0, 10, 0xBC), (0, 7, 10, 0xBC), (1, 0, 10, 0xBC), (1, 7, 10, 0xBC)]


def test_a_port_with_one_data_vl_has_no_vl_arbitration() -> None:
    accesses = [write(PortRegister.VL_HIGH_LIMIT, 9), read(PortRegister.VL_HIGH_LIMIT), write(0x80, 0x109), None, None]
    answers, seen = run(accesses, ("list_entry.write", "vl_high_limit"), vls=1)
    assert not any(answers)
    assert set(seen) == {(0, 0)}


def test_what_a_switchs_port_checks() -> None:
    names = ("partition.inbound", "partition.outbound", "partition.raw_inbound", "partition.raw_outbound")
    accesses = [write(PortRegister.PARTITION, 1 << bit) for bit in range(4)]
    answers, seen = run([*accesses, read(PortRegister.PARTITION), None, None], names)
    assert seen[1:5] == [tuple(int(bit == one) for bit in range(4)) for one in range(4)]
    assert answers[-1] == 8
    answers, seen = run([*accesses, read(PortRegister.PARTITION), None, None], names, kind="adapter")
    assert not any(answers)
    assert set(seen) == {(0, 0, 0, 0)}


def test_a_port_may_have_15_data_vls() -> None:
    _, seen = run(
        [None, write(PortRegister.OPERATIONAL_VLS, 4), write(PortRegister.OPERATIONAL_VLS, 5), None],
        ("operational",),
        vls=15,
    )
    assert [operational for (operational,) in seen] == [0x7FFF, 0x7FFF, 0xFF, 0x7FFF]
