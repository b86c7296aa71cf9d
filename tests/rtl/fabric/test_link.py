# amaranth: UnusedElaboratable=no
"""A link: flight time, up and down, and errors injected."""

from typing import Any

import pytest

from rtl.fabric.link import LinkDirection
from tests.rtl.simulation import Simulation
from wire.stimulus import Injection, Trigger
from wire.symbols import Control, Row

IDLE = Row(0x77777777, 0)
SDP = Row(Control.SDP << 24 | 0x111111, 8)
SLP = Row(Control.SLP << 24 | 0x222222, 8)
BODY = Row(0x33333333, 0)
EGP = Row(0x44444400 | Control.EGP, 1)
EBP = Row(0x55555500 | Control.EBP, 1)
DATA = [SDP, BODY, BODY, EGP]
LINK = [SLP, EGP]

FLIP = Injection(Trigger.DATA, flip=1 << 35 | 1)


def carry(
    rows: list[Row | None],
    *,
    flight: int = 1,
    down: tuple[int, ...] = (),
    injections: dict[int, Injection] | None = None,
) -> tuple[list[Row | None], list[tuple[int, int]]]:
    """What comes out in each cycle, and the records: (cycle, word a)."""
    dut = LinkDirection(flight)
    out: list[Row | None] = []
    records = []

    async def drive(ctx: Any) -> None:
        for cycle, row in enumerate(rows):
            ctx.set(dut.up, cycle not in down)
            ctx.set(dut.input.valid, row is not None)
            ctx.set(dut.input.data, row.data if row else 0)
            ctx.set(dut.input.k, row.k if row else 0)
            injection = (injections or {}).get(cycle)
            ctx.set(dut.inject_valid, injection is not None)
            words = injection.args() if injection else (0, 0, 0, 0)
            ctx.set(dut.inject_args, sum(word << 32 * place for place, word in enumerate(words)))
            valid = ctx.get(dut.output.valid)
            out.append(Row(ctx.get(dut.output.data), ctx.get(dut.output.k)) if valid else None)
            if ctx.get(dut.trace.valid):
                words = tuple(ctx.get(dut.trace.payload[0][i]) for i in range(5))
                assert words[1:] == (0, 0, 0, 0)
                records.append((cycle, words[0]))
            await ctx.tick()

    Simulation(dut).run(drive)
    return out, records


def altered(rows: list[Row], injections: dict[int, Injection]) -> tuple[list[int], list[tuple[int, int]]]:
    """The cycles of rows that the injector changed, and the records."""
    out, records = carry([*rows, IDLE], injections=injections)
    return [c for c, row in enumerate(rows) if out[c + 1] != row], records


@pytest.mark.parametrize("flight", [1, 2, 3, 4, 7, 33])
def test_a_row_takes_the_flight_time(flight: int) -> None:
    rows: list[Row | None] = [Row(c * 0x01010101 & 0xFFFFFFFF, c & 7) if c % 5 else None for c in range(100)]
    out, _ = carry(rows, flight=flight)
    assert out == [*[None] * flight, *rows[:-flight]]


@pytest.mark.parametrize("flight", [1, 3])
def test_a_row_gets_across_only_if_the_link_is_up_all_the_way(flight: int) -> None:
    rows: list[Row | None] = [Row(c, 0) for c in range(30)]
    down = (5, 10, 11, 12, 13)
    out, _ = carry(rows, flight=flight, down=down)
    for cycle in range(flight, 30):
        sent = cycle - flight
        assert out[cycle] == (None if any(sent <= c <= cycle for c in down) else rows[sent])


def test_no_flight_takes_no_time() -> None:
    with pytest.raises(ValueError, match="flight 0: expected 1 and above"):
        LinkDirection(0)


def test_a_changed_row_is_kept_and_flipped_on_all_36_bits() -> None:
    keep, flip = 0x5_0FF0_1234, 0x9_8000_0001
    injection = Injection(Trigger.DATA, first=1, last=1, keep=keep, flip=flip)
    out, _ = carry([IDLE, *DATA, IDLE], injections={0: injection})
    bits = (BODY.k << 32 | BODY.data) & keep ^ flip
    assert out[3] == Row(bits & 0xFFFFFFFF, bits >> 32)
    assert out[2] == SDP
    assert out[4:] == [BODY, EGP]


@pytest.mark.parametrize(
    ("injection", "cycles", "record"),
    [
        (Injection(Trigger.DATA, flip=1), [3, 4, 5, 6], (3, 0)),
        (Injection(Trigger.DATA, first=1, last=2, flip=1), [4, 5], (4, 1 << 8)),
        (Injection(Trigger.DATA, first=3, flip=1), [6], (6, 3 << 8)),
        (Injection(Trigger.DATA, first=2, last=2, at_end=True, flip=1), [6], (6, 3 << 8)),
        (Injection(Trigger.LINK, flip=1), [1, 2], (1, 1)),
        (Injection(Trigger.LINK, at_end=True, flip=1), [2], (2, 1 | 1 << 8)),
        (Injection(Trigger.IDLE, flip=1), [7], (7, 2)),
        (Injection(Trigger.IDLE, at_end=True, flip=1), [7], (7, 2)),
    ],
)
def test_an_operation_acts_on_the_first_packet_of_its_kind(
    injection: Injection, cycles: list[int], record: tuple[int, int]
) -> None:
    rows = [BODY, *LINK, *DATA, EGP, *LINK, *DATA, IDLE]  # the first EGP alone is an idle row
    changed, records = altered(rows, {0: injection})
    assert changed == cycles
    assert records == [record]


def test_an_operation_whose_rows_never_come_is_over_with_its_packet() -> None:
    changed, records = altered([IDLE, *DATA, *DATA], {0: Injection(Trigger.DATA, first=9, flip=1)})
    assert (changed, records) == ([], [])


def test_an_operation_is_armed_from_the_next_cycle_on() -> None:
    assert altered([*DATA, *DATA], {0: FLIP})[0] == [4, 5, 6, 7]
    assert altered([IDLE, *DATA], {0: FLIP})[0] == [1, 2, 3, 4]


def test_an_armed_operation_is_replaced_but_one_that_has_begun_is_not() -> None:
    late = Injection(Trigger.DATA, first=2, last=2, flip=2)
    rows = [IDLE, IDLE, *DATA, IDLE, *DATA, IDLE]
    assert altered(rows, {0: FLIP, 1: late})[0] == [4]
    assert altered(rows, {1: FLIP, 2: late})[0] == [2, 3, 4, 5]
    assert altered(rows, {1: FLIP, 4: late})[0] == [2, 3, 4, 5]
    assert altered(rows, {1: FLIP, 5: late})[0] == [2, 3, 4, 5, 9]


def test_the_end_is_that_of_the_unmodified_packet() -> None:
    destroy_end = Injection(Trigger.DATA, at_end=True, keep=0)
    rows = [IDLE, *DATA, SDP, EBP, IDLE]
    assert altered(rows, {0: destroy_end, 5: FLIP}) == ([4], [(4, 3 << 8)])
    assert altered(rows, {0: destroy_end, 4: FLIP})[0] == [4, 5, 6]


def test_a_control_symbol_within_a_packet_begins_none() -> None:
    rows = [IDLE, SLP, SDP, EGP, *DATA]
    assert altered(rows, {0: FLIP})[0] == [4, 5, 6, 7]


def test_the_link_going_down_ends_a_packet_and_an_operation_that_has_begun() -> None:
    rows: list[Row | None] = [IDLE, SDP, BODY, BODY, BODY, EGP, *DATA, IDLE]
    out, records = carry(rows, down=(3,), injections={0: FLIP})
    assert [c for c in range(len(rows) - 1) if out[c + 1] not in (rows[c], None)] == [1]
    assert records == [(1, 0)]


def test_an_armed_operation_outlives_a_link_that_is_down() -> None:
    rows: list[Row | None] = [IDLE, *DATA, *DATA, IDLE]
    out, records = carry(rows, down=(1, 2, 3, 4), injections={0: FLIP})
    assert records == [(5, 0)]
    assert out[6] == Row(SDP.data ^ 1, 0)


def test_cycles_without_a_row_do_not_count() -> None:
    rows: list[Row | None] = [IDLE, SDP, None, None, BODY, None, EGP, IDLE]
    out, records = carry(rows, injections={0: Injection(Trigger.DATA, first=1, last=1, flip=1)})
    assert out[5] == Row(BODY.data ^ 1, 0)
    assert records == [(4, 1 << 8)]
