"""What players of wires are given: an entry for each row that is not idle and for each change, at the cycle it acts."""

from typing import NamedTuple

from cosim.engines.mixed import WirePlay
from cosim.harness.stream_files import WIRE_ENTRY
from wire.symbols import IDLE_PERIOD


class Log:
    """A log of `model.link.wire_log.WireLog`'s form."""

    def __init__(self, rows=(), paces=((0, 1),), offers=((0, 3),), life=0) -> None:
        self._life = life  # when its sender's cycle 0 was, if that was reset
        self._kept = {"rows": list(rows), "paces": list(paces), "offers": list(offers)}

    def _new(self, what: str, until: int) -> list:
        kept = self._kept[what]
        self._kept[what] = [entry for entry in kept if entry[0] >= until]
        return [entry for entry in kept if entry[0] < until]

    def place(self, cycle: int) -> int:
        return cycle - self._life if cycle >= self._life else cycle

    def rows(self, until: int) -> list:
        return self._new("rows", until)

    def paces(self, until: int) -> list:
        return self._new("paces", until)

    def offers(self, until: int) -> list:
        return self._new("offers", until)


class Entry(NamedTuple):
    cycle: int
    row: tuple[int, int] | None
    pace: int
    offers: int
    phase: int
    idle: int


def entries(play: WirePlay, until: int) -> list[Entry]:
    found = []
    for cycle, flags, k, idle, data in WIRE_ENTRY.iter_unpack(play.entries(until)):
        row = (data, k) if flags & 1 else None
        found.append(Entry(cycle, row, flags >> 1 & 3, flags >> 3 & 3, flags >> 5, idle))
    return found


def test_rows_are_played_in_their_cycles_and_idle_cycles_take_nothing() -> None:
    play = WirePlay(Log(rows=[(10, 0xFB000000, 8), (11, 7, 0), (5000, 9, 1)]))
    assert entries(play, 10_000) == [
        Entry(0, None, 1, 3, 0, 0),
        Entry(10, (0xFB000000, 8), 1, 3, 2, 10),
        Entry(11, (7, 0), 1, 3, 3, 11),
        Entry(5000, (9, 1), 1, 3, 0, 5000 % IDLE_PERIOD),
    ]


def test_rows_are_played_after_their_flight_and_widths_offered_at_once() -> None:
    play = WirePlay(Log(rows=[(10, 7, 0)], offers=[(0, 3), (12, 1)]), delay=4)
    # What it offers is always known; what is on the wires in cycle 0 is there in cycle 4.
    assert entries(play, 4) == [Entry(0, None, 0, 3, 0, IDLE_PERIOD - 4)]
    assert entries(play, 13) == [Entry(4, None, 1, 3, 0, 0), Entry(12, None, 1, 1, 0, 8)]
    assert entries(play, 20) == [Entry(14, (7, 0), 1, 1, 2, 10)]


def test_a_width_and_a_link_that_goes_down_are_paces() -> None:
    play = WirePlay(Log(paces=[(0, 1), (100, 4), (200, 0)]))
    assert [(entry.cycle, entry.pace) for entry in entries(play, 300)] == [(0, 1), (100, 2), (200, 0)]


def test_phase_and_idle_data_begin_anew_with_a_sender_that_was_reset() -> None:
    play = WirePlay(Log(rows=[(10, 7, 0), (60, 7, 0)], paces=[(0, 1), (20, 0), (51, 1)], life=51))
    assert [(entry.cycle, entry.pace, entry.phase, entry.idle) for entry in entries(play, 100)] == [
        (0, 1, 0, 0),
        (10, 1, 2, 10),
        (20, 0, 0, 20),
        (51, 1, 0, 0),
        (60, 1, 1, 9),
    ]
