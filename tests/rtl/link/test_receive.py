"""Framing: every row of the table in docs/pipeline.md, section 3.1."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from rtl.link.receive import Receiver
from tests.rtl.simulation import Simulation
from wire.symbols import Control, Row

SDP, SLP, EGP, EBP, COM = (Control.SDP, Control.SLP, Control.EGP, Control.EBP, Control.COM)
EVENTS = (
    "first",
    "body",
    "header",
    "end",
    "marked_bad",
    "cut",
    "link_end",
    "malformed",
    "symbol_error",
    "bad_packet",
)

IDLE = Row(0x5A5A5A5A, 0)
START_DATA = Row(SDP << 24 | 0x000200, 8)
START_LINK = Row(SLP << 24 | 0x123456, 8)
END = Row(0x112233 << 8 | EGP, 1)
END_BAD = Row(0x112233 << 8 | EBP, 1)
COMMA = Row(0x00BC0000, 4)
LATE_COMMA = Row(SDP << 24 | COM, 9)
LATE_COMMA_LINK = Row(SLP << 24 | COM, 9)


def row_1(length: int) -> Row:
    """Row 1 of a packet of that PktLen: LRH bytes 3..6."""
    return Row(0x05 << 24 | length << 8, 0)


def follow(rows: Sequence[Row | None], disabled: Sequence[int] = ()) -> list[dict[str, int]]:
    """What each row was found to be (None: no row in that cycle): its events, with the index of some."""
    dut = Receiver()
    found: list[dict[str, int]] = []

    async def drive(ctx: Any) -> None:
        for cycle, row in enumerate(rows):
            ctx.set(dut.enabled, cycle not in disabled)
            ctx.set(dut.row.valid, row is not None)
            ctx.set(dut.row.data, row.data if row else 0)
            ctx.set(dut.row.k, row.k if row else 0)
            await ctx.tick()
            events = {name: 1 for name in EVENTS if ctx.get(dut.received[name])}
            if events.keys() & {"first", "body", "end", "cut"}:
                events["index"] = ctx.get(dut.received.index)
            found.append(events)

    Simulation(dut).run(drive)
    return found


NOTHING: dict[str, int] = {}
FIRST = {"first": 1, "index": 0}
HEADER = {"body": 1, "header": 1, "index": 1}


def body(index: int) -> dict[str, int]:
    return {"body": 1, "index": index}


def end(index: int, **more: int) -> dict[str, int]:
    return {"end": 1, "index": index, **more}


def cut(index: int, **more: int) -> dict[str, int]:
    return {"cut": 1, "index": index, **more}


TO_DATA = ([START_DATA, row_1(3)], [FIRST, HEADER])
TO_LINK = ([START_LINK], [NOTHING])
TO_DISCARD = ([START_DATA, COMMA], [FIRST, cut(1, symbol_error=1)])
SYMBOL_ERROR = {"symbol_error": 1}
BAD_PACKET = {"symbol_error": 1, "bad_packet": 1}
MALFORMED = {"malformed": 1}

TABLE = {
    "idle, start-data": ([], [START_DATA], [FIRST]),
    "idle, start-link": ([], [START_LINK, END], [NOTHING, {"link_end": 1}]),
    "idle, clean": ([], [IDLE, row_1(3)], [NOTHING, NOTHING]),
    "idle, end": ([], [END, END_BAD, START_DATA], [SYMBOL_ERROR, SYMBOL_ERROR, FIRST]),
    "idle, violation": ([], [COMMA, COMMA], [SYMBOL_ERROR, SYMBOL_ERROR]),
    "idle, violation that claims a data packet": ([], [LATE_COMMA, COMMA], [BAD_PACKET, NOTHING]),
    "idle, violation that claims a link packet": ([], [LATE_COMMA_LINK, COMMA], [BAD_PACKET, NOTHING]),
    "data, end": (TO_DATA, [IDLE, END, COMMA], [body(2), end(3), SYMBOL_ERROR]),
    "data, end with EBP": (TO_DATA, [END_BAD], [end(2, marked_bad=1)]),
    "data, clean at length": (TO_DATA, [IDLE, IDLE, IDLE, END], [body(2), cut(3), NOTHING, NOTHING]),
    "data, violation": (TO_DATA, [COMMA, COMMA], [cut(2, symbol_error=1), NOTHING]),
    "data, start-data": (TO_DATA, [START_DATA, START_DATA], [cut(2), FIRST]),
    "data, start-link": (TO_DATA, [START_LINK, END, COMMA], [cut(2), NOTHING, SYMBOL_ERROR]),
    "data, end at row 1": (([START_DATA], [FIRST]), [END, COMMA], [end(1), SYMBOL_ERROR]),
    "data, length 1": (([START_DATA], [FIRST]), [row_1(1), COMMA], [cut(1), NOTHING]),
    "data, length 2": (([START_DATA], [FIRST]), [row_1(2), END], [HEADER, end(2)]),
    "data, clean after length 2": (([START_DATA], [FIRST]), [row_1(2), IDLE], [HEADER, cut(2)]),
    "link, end": (TO_LINK, [END, COMMA], [{"link_end": 1}, SYMBOL_ERROR]),
    "link, end with EBP": (TO_LINK, [END_BAD, COMMA], [MALFORMED, SYMBOL_ERROR]),
    "link, clean": (TO_LINK, [IDLE, COMMA, END, COMMA], [MALFORMED, NOTHING, NOTHING, SYMBOL_ERROR]),
    "link, violation": (TO_LINK, [COMMA, COMMA], [{**MALFORMED, "symbol_error": 1}, NOTHING]),
    "link, start-data": (TO_LINK, [START_DATA, COMMA], [MALFORMED, NOTHING]),
    "link, start-link": (TO_LINK, [START_LINK, START_LINK, END], [MALFORMED, NOTHING, {"link_end": 1}]),
    "discard, start-data": (TO_DISCARD, [START_DATA, END], [FIRST, end(1)]),
    "discard, start-link": (TO_DISCARD, [START_LINK, END], [NOTHING, {"link_end": 1}]),
    "discard, end": (TO_DISCARD, [END, COMMA], [NOTHING, SYMBOL_ERROR]),
    "discard, clean and violation": (TO_DISCARD, [IDLE, LATE_COMMA, END], [NOTHING, NOTHING, NOTHING]),
}


@pytest.mark.parametrize("case", TABLE)
def test_framing_follows_the_table(case: str) -> None:
    before, rows, expected = TABLE[case]
    lead, lead_expected = before or ([], [])
    assert follow([*lead, *rows]) == [*lead_expected, *expected]


@pytest.mark.parametrize("case", TABLE)
def test_a_1x_port_frames_alike(case: str) -> None:
    before, rows, expected = TABLE[case]
    lead, lead_expected = before or ([], [])
    spread: list[Row | None] = []
    for row in [*lead, *rows]:
        spread += [row, None, None, None]
    found = follow(spread)
    assert found[::4] == [*lead_expected, *expected]
    assert not any(events for cycle, events in enumerate(found) if cycle % 4)


def test_a_packet_is_cut_when_receiving_ends_even_between_two_rows() -> None:
    rows = [START_DATA, None, None, None, row_1(9), None, None, None, IDLE]
    assert follow(rows, disabled=[6, 7]) == [
        FIRST, NOTHING, NOTHING, NOTHING, HEADER, NOTHING, cut(2), NOTHING, NOTHING,
    ]  # fmt: skip


def test_nothing_is_received_while_disabled() -> None:
    rows = [COMMA, START_DATA, row_1(3), START_LINK, END, COMMA]
    assert follow(rows, disabled=[0, 1, 2]) == [*[NOTHING] * 4, {"link_end": 1}, SYMBOL_ERROR]


def test_a_link_packet_is_gone_when_receiving_ends() -> None:
    assert follow([START_LINK, IDLE, END], disabled=[1]) == [NOTHING, NOTHING, SYMBOL_ERROR]


def test_the_longest_length_is_counted_to() -> None:
    found = follow([START_DATA, row_1(2047), *[IDLE] * 2046])
    assert found[2046] == body(2046)
    assert found[2047] == cut(2047)


class Table:
    """The table of section 3.1, read once more, row by row."""

    def __init__(self) -> None:
        self.state = "idle"
        self.index = 0
        self.length = 0

    def row(self, row: Row) -> dict[str, int]:
        lane_0, lane_3 = row.data >> 24, row.data & 0xFF
        start = row.k == 8 and lane_0 in (SDP, SLP)
        is_end = row.k == 1 and lane_3 in (EGP, EBP)
        violation = bool(row.k) and not start and not is_end
        found: dict[str, int] = {"symbol_error": 1} if violation and self.state != "discard" else {}
        if self.state in ("idle", "discard") and start:
            self.state, self.index = ("data", 1) if lane_0 == SDP else ("link", 1)
            return dict(FIRST) if lane_0 == SDP else {}
        if self.state == "idle" and (is_end or violation):
            found["symbol_error"] = 1
            if row.k & 8 and lane_0 in (SDP, SLP):
                found["bad_packet"] = 1
                self.state = "discard"
        elif self.state == "data":
            index, self.index = self.index, self.index + 1
            if index == 1:
                self.length = row.data >> 8 & 0x7FF
            found["index"] = index
            if is_end:
                found |= {"end": 1} | ({"marked_bad": 1} if lane_3 == EBP else {})
                self.state = "idle"
            elif row.k == 0 and index < self.length:
                found |= {"body": 1} | ({"header": 1} if index == 1 else {})
            else:
                found["cut"] = 1
                self.state = "discard"
        elif self.state == "link":
            good = is_end and lane_3 == EGP
            found |= {"link_end": 1} if good else {"malformed": 1}
            self.state = "idle" if is_end else "discard"
        elif self.state == "discard" and is_end:
            self.state = "idle"
        return found


@pytest.mark.parametrize("seed", range(4))
def test_random_rows_are_framed_by_the_table(seed: int) -> None:
    print(f"seed {seed}")
    source = random.Random(seed)
    kinds = [START_DATA, START_DATA, START_LINK, END, END_BAD, COMMA, LATE_COMMA, LATE_COMMA_LINK, IDLE]
    rows: list[Row] = []
    for _ in range(400):
        rows += source.choice([[row] for row in kinds] + [[row_1(source.randrange(6))]] * 4)
        if source.random() < 0.1:
            rows.append(Row(source.getrandbits(32), source.getrandbits(4)))
    table = Table()
    assert follow(rows) == [table.row(row) for row in rows]
