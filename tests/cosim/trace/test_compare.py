"""The comparison: it sees every difference, says where and what, and holds neither trace in memory."""

import random
from pathlib import Path

import pytest

from cosim.trace import compare as compare_module
from cosim.trace.compare import Names, compare, describe, fields
from cosim.trace.decided_by import DECIDED_BY
from wire.codes import PortState
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.stimulus import Trigger
from wire.trace import Delimiter, Kind, LinkResult, Record, Verdict, link_source, port_source
from wire.trace_layout import (
    BusRead,
    Deliver,
    Inject,
    RowPair,
    Rows,
    RxData,
    RxFcp,
    Scrap,
    State,
    TxData,
    TxDiscard,
    TxFcp,
)

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
    difference = compare(records, records[:at]).difference
    assert difference is not None
    assert difference.before == tuple(records[at - 8 : at])
    same_place = [record for record in records[:at] if record.source == records[at].source]
    assert difference.here == tuple(same_place[-8:])


def test_comparison_stops_at_the_first_difference() -> None:
    drawn = []

    def endless(kind: Kind):
        for cycle in range(10**9):
            drawn.append(cycle)
            yield Record(cycle, 256, kind if cycle == 1000 else Kind.SEND)

    assert compare(endless(Kind.SEND), endless(Kind.STATE)).cycle == 999
    assert max(drawn) == 1000


def test_report_says_cycle_place_fields_history_and_replay() -> None:
    state = State.record(90, port_source(1, 3), state=PortState.ACTIVE)
    told = TxFcp.record(95, port_source(1, 3), vl=1, fctbs=7, fccl=40)
    heard = RxFcp.record(97, port_source(0, 1), vl=1, fctbs=7, fccl=40)
    damaged = RxFcp.record(98, port_source(0, 1), vl=1, fctbs=7, fccl=41, result=LinkResult.LPCRC)
    later = State.record(120, port_source(1, 1), state=PortState.DOWN)
    values = {"delimiter": Delimiter.EGP, "pkt_len": 20, "end_row": 20, "dlid": 2, "sl": 5}
    good = RxData.record(100, port_source(1, 3), **values, blocks=2)
    bad = RxData.record(100, port_source(1, 3), **values, verdict=Verdict.OVERRUN)
    comparison = compare([state, told, heard, damaged, good], [state, told, heard, damaged, bad, later, later], after=1)
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
        "  cycle 95  sw0[3]  TX_FCP  op 0, vl 1, FCTBS 7, FCCL 40",
        "last events anywhere:",
        "  cycle 90  sw0[3]  STATE  state ACTIVE",
        "  cycle 95  sw0[3]  TX_FCP  op 0, vl 1, FCTBS 7, FCCL 40",
        "  cycle 97  h0[1]  RX_FCP  result GOOD, op 0, vl 1, FCTBS 7, FCCL 40",
        "  cycle 98  h0[1]  RX_FCP  result LPCRC, op 0, vl 1, FCTBS 7, FCCL 41",
        "next events of model:",
        "  none",
        "next events of rtl:",
        "  cycle 120  sw0[1]  STATE  state DOWN",
        "credits at sw0[3], VL 1: sent FCTBS 7, FCCL 40 in cycle 95",
        "credits at h0[1], VL 1: received FCTBS 7, FCCL 40 in cycle 97",
        "decided by: rtl/link/receive.py, rtl/link/packet_check.py, rtl/switch/route.py, model/link/receive.py, "
        "model/link/packet_check.py, model/link/acceptance.py, model/switch.py",
        "replay: ironband check --seed 7",
    ]
    shown = comparison.difference.report(NAMES, REPLAY, " --waves a.fst").splitlines()
    assert shown == [*text.splitlines(), "waves: ironband check --seed 7 --waves a.fst"]


def test_the_side_that_lacks_an_event_is_ahead_of_the_other() -> None:
    early, late = (State.record(cycle, port_source(1, 3), state=PortState.ACTIVE) for cycle in (5, 9))
    difference = compare([early, late], [late], after=2).difference
    assert difference is not None
    assert (difference.expected, difference.seen) == (early, None)
    assert difference.after == ((late,), (late,))


def test_what_decides_a_record_is_in_the_house() -> None:
    root = Path(compare_module.__file__).parents[2]
    assert {file for files in DECIDED_BY.values() for file in files if not (root / file).exists()} == set()
    assert set(DECIDED_BY) == set(Kind) - {Kind.ROW}


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
        (RxFcp.record(0, 0, result=LinkResult.LPCRC, op=1, vl=2, fctbs=3, fccl=4), "result LPCRC, op 1, vl 2"),
        (TxFcp.record(0, 0, op=1, vl=2, fctbs=3, fccl=4), "op 1, vl 2, FCTBS 3, FCCL 4"),
        (Scrap.record(0, 0, slot=1, input=2, pkt_len=30), "slot 1, input 2, PktLen 30"),
        (
            TxData.record(
                0,
                0,
                slot=1,
                marked_bad=1,
                input=2,
                pkt_len=30,
                end_row=31,
                first_cycle=9,
                fingerprint=0xABCD,
                lrh=0x10,
            ),
            "slot 1, marked bad 1, FECN 0, input 2, PktLen 30, end row 31, first cycle 9, "
            "fingerprint 0x0000abcd, LRH 0x00000010",
        ),
        (
            TxDiscard.record(0, 0, slot=1, input=2, pkt_len=30, end_row=31),
            "slot 1, input 2, PktLen 30, end row 31",
        ),
        (
            Deliver.record(0, 0, slot=1, pkt_len=30, first_cycle=9, fingerprint=0xABCD),
            "slot 1, PktLen 30, first cycle 9, fingerprint 0x0000abcd",
        ),
        (Inject.record(0, 0, trigger=Trigger.IDLE, row=5), "trigger IDLE, row 5"),
        (BusRead.record(0, 0, address=0x10020, value=7), "address 0x010020, value 0x00000007"),
        (
            RowPair.record(
                0, 0, data=0xFB001234, k=8, valid=1, offers=3, model_data=0x070707FD, model_k=1, model_valid=1
            ),
            "row SDP 0_00 0_12 0_34, of the model 0_07 0_07 0_07 EGP, offers no width",
        ),
        (
            RowPair.record(0, 0, data=1, valid=1, offers=3, model_data=2, model_offers=1),
            "row 0_00 0_00 0_00 0_01, of the model none, offers X1",
        ),
        (
            Rows.record(0, 0, crc=0xABCD, data=0x070707FD, k=1, valid=1),
            "CRC 0x0000abcd, last row 0_07 0_07 0_07 EGP",
        ),
        (Rows.record(0, 0, crc=0xABCD), "CRC 0x0000abcd, last row none"),
        (RxData.record(0, 0, verdict=200, delimiter=9), "verdict 200, vl 0, delimiter 9"),
        (RxData.record(0, 0), "verdict GOOD, vl 0, delimiter cut"),
        (Record(0, 0, 99, 1), "a 0x00000001"),
    ],
)
def test_fields_are_spelt_out(record: Record, expected: str) -> None:
    assert expected in describe(record, NAMES)


def test_every_kind_has_field_names() -> None:
    for kind in Kind:
        assert not set(fields(Record(0, 0, kind))) & set("abcde"), kind


def test_ports_of_an_adapter_are_called_by_their_numbers() -> None:
    nodes = {"S": SwitchParameters(ports=2), "H.1": AdapterParameters(), "H.2": AdapterParameters()}
    names = Names(FabricParameters(nodes, (LinkParameters("H.2", 1, "S", 2),)))
    places = [port_source(2, 1), port_source(2, 0), link_source(0, 1), port_source(0, 2)]
    assert [names.place(source) for source in places] == ["H[2]", "node H[2]", "S[2] -> H[2]", "S[2]"]
