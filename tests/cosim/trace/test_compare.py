"""The comparison: it sees every difference, says where and what, and holds neither trace in memory."""

import random

import pytest

from cosim.trace.compare import Names, compare, describe, fields
from wire.codes import PortState
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.trace import Kind, LinkResult, Record, Verdict, link_source, port_source

PARAMETERS = FabricParameters(
    {"h0": AdapterParameters(), "sw0": SwitchParameters(ports=4), "h1": AdapterParameters()},
    (LinkParameters("h0", 1, "sw0", 3), LinkParameters("sw0", 1, "h1", 1)),
)
NAMES = Names(PARAMETERS)
REPLAY = "ironband check --seed 7"


def trace(count: int = 200, seed: int = 1) -> list[Record]:
    choose = random.Random(seed)
    places = {
        (choose.randrange(1000), choose.choice([port_source(1, port) for port in (1, 2, 3)]), choose.choice(list(Kind)))
        for _record in range(count)
    }
    return [Record(*place, *(choose.getrandbits(32) for _word in range(5))) for place in sorted(places)]


def test_equal_traces_are_equal() -> None:
    records = trace()
    comparison = compare(records, iter(records))
    assert (comparison.records, comparison.cycle, comparison.difference) == (len(records), records[-1].cycle, None)


def test_empty_traces_are_equal_and_say_that_nothing_was_compared() -> None:
    assert compare([], []).records == 0


@pytest.mark.parametrize("word", "abcde")
@pytest.mark.parametrize("place", [0, 17, -1])
def test_one_changed_word_is_a_difference(place: int, word: str) -> None:
    records = trace()
    changed = records.copy()
    changed[place] = records[place]._replace(**{word: getattr(records[place], word) ^ 1 << 31})
    difference = compare(records, changed).difference
    assert difference is not None
    assert (difference.expected, difference.seen) == (records[place], changed[place])
    assert (difference.cycle, difference.source, difference.kind) == records[place][:3]


@pytest.mark.parametrize("place", [0, 17, -1])
def test_lost_event_is_a_difference_at_its_place(place: int) -> None:
    records = trace()
    lost = records.copy()
    gone = lost.pop(place)
    difference = compare(records, lost).difference
    assert difference is not None
    assert (difference.expected, difference.seen) == (gone, None)
    difference = compare(lost, records).difference
    assert difference is not None
    assert (difference.expected, difference.seen) == (None, gone)


def test_late_event_is_reported_at_its_expected_cycle() -> None:
    records = trace()
    late = [*records[:50], records[50]._replace(cycle=records[50].cycle + 1), *records[51:]]
    difference = compare(records, late).difference
    assert difference is not None
    assert (difference.cycle, difference.expected, difference.seen) == (records[50].cycle, records[50], None)


def test_history_is_of_the_place_and_of_all() -> None:
    records = trace()
    at = 150
    difference = compare(records, records[:at], history=4).difference
    assert difference is not None
    assert difference.before == tuple(records[at - 4 : at])
    same_place = [record for record in records[:at] if record.source == records[at].source]
    assert difference.here == tuple(same_place[-4:])


def test_comparison_stops_at_the_first_difference() -> None:
    drawn = []

    def endless(kind: Kind):
        for cycle in range(10**9):
            drawn.append(cycle)
            yield Record(cycle, 256, kind if cycle == 1000 else Kind.SEND)

    assert compare(endless(Kind.SEND), endless(Kind.STATE)).cycle == 999
    assert max(drawn) == 1000


def test_report_says_cycle_place_fields_history_and_replay() -> None:
    state = Record(90, port_source(1, 3), Kind.STATE, PortState.ACTIVE)
    good = Record(100, port_source(1, 3), Kind.RX_DATA, Verdict.GOOD | 1 << 16, 20 | 20 << 16, 2 << 16 | 5, 2)
    comparison = compare([state, good], [state, good._replace(a=Verdict.OVERRUN | 1 << 16, d=0)])
    assert comparison.difference is not None
    text = comparison.difference.report(NAMES, REPLAY)
    assert text.splitlines() == [
        "first difference: cycle 100, sw0[3]",
        "  model  cycle 100  sw0[3]  RX_DATA  verdict GOOD, vl 0, delimiter EGP, PktLen 20, end row 20, "
        "DLID 0x0002, SL 5, blocks 2",
        "  rtl    cycle 100  sw0[3]  RX_DATA  verdict OVERRUN, vl 0, delimiter EGP, PktLen 20, end row 20, "
        "DLID 0x0002, SL 5, blocks 0",
        "  differs in verdict GOOD / OVERRUN, blocks 2 / 0",
        "last events at sw0[3]:",
        "  cycle 90  sw0[3]  STATE  state ACTIVE",
        "last events anywhere:",
        "  cycle 90  sw0[3]  STATE  state ACTIVE",
        "replay: ironband check --seed 7",
    ]


def test_report_of_a_lost_event_says_so() -> None:
    comparison = compare([Record(5, port_source(0, 1), Kind.SEND, 0, 20)], [])
    assert comparison.difference is not None
    text = comparison.difference.report(NAMES, REPLAY, expected_by="icarus", seen_by="verilator")
    assert "icarus     cycle 5  h0[1]  SEND  slot 0, PktLen 20" in text
    assert "verilator  no such event" in text
    assert "none" in text


def test_places_have_the_names_of_the_fabric() -> None:
    assert NAMES.place(port_source(1, 3)) == "sw0[3]"
    assert NAMES.place(port_source(1, 0)) == "sw0"
    assert NAMES.place(link_source(0, 0)) == "h0[1] -> sw0[3]"
    assert NAMES.place(link_source(0, 1)) == "sw0[3] -> h0[1]"
    assert NAMES.place(port_source(9, 1)) == "node 9[1]"
    assert NAMES.place(link_source(5, 1)) == "link 5, direction 1"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (Record(0, 0, Kind.RX_FCP, LinkResult.LPCRC | 1 << 8 | 2 << 16, 3 << 16 | 4), "result LPCRC, op 1, vl 2"),
        (Record(0, 0, Kind.TX_FCP, 1 | 2 << 8, 3 << 16 | 4), "op 1, vl 2, FCTBS 3, FCCL 4"),
        (Record(0, 0, Kind.SCRAP, 1 | 2 << 16, 30), "slot 1, input 2, PktLen 30"),
        (
            Record(0, 0, Kind.TX_DATA, 1 | 1 << 8 | 2 << 16, 30 | 31 << 16, 9, 0xABCD, 0x10),
            "slot 1, marked bad 1, input 2, PktLen 30, end row 31, first cycle 9, "
            "fingerprint 0x0000abcd, LRH 0x00000010",
        ),
        (Record(0, 0, Kind.TX_DISCARD, 1 | 2 << 16, 30 | 31 << 16), "slot 1, input 2, PktLen 30, end row 31"),
        (Record(0, 0, Kind.DELIVER, 1, 30, 9, 0xABCD), "slot 1, PktLen 30, first cycle 9, fingerprint 0x0000abcd"),
        (Record(0, 0, Kind.INJECT, 2 | 5 << 8), "trigger IDLE, row 5"),
        (Record(0, 0, Kind.BUS_READ, 0x10020, 7), "address 0x010020, value 0x00000007"),
        (
            Record(0, 0, Kind.ROW, 0xFB001234, 0x38, 0x070707FD, 0x11),
            "row SDP 0_00 0_12 0_34, of the model 0_07 0_07 0_07 EGP, not polling",
        ),
        (Record(0, 0, Kind.ROW, 1, 0x30, 2, 0x20), "row 0_00 0_00 0_00 0_01, of the model none"),
        (Record(0, 0, Kind.RX_DATA, 200 | 9 << 16), "verdict 200, vl 0, delimiter 9"),
        (Record(0, 0, 99, 1), "a 0x00000001"),
    ],
)
def test_fields_are_spelt_out(record: Record, expected: str) -> None:
    assert expected in describe(record, NAMES)


def test_every_kind_has_field_names() -> None:
    for kind in Kind:
        assert not set(fields(Record(0, 0, kind))) & set("abcde"), kind
