"""The story of a run: credits run out, a link stalls, and credits that come home release it."""

import pytest

from cosim.analysis.event import Event
from cosim.analysis.story import Story
from cosim.topology.topology import Port
from tests.cosim.analysis.jam_trace import HOST_A, SWITCH, Jam, changed, jam
from wire.codes import PortState
from wire.stimulus import Trigger
from wire.trace import Kind, Verdict, link_source, port_source
from wire.trace_layout import Inject, RxFcp, State

A, S1, S2, B = Port("A", 1), Port("S", 1), Port("S", 2), Port("B", 1)


def story_of(run: Jam, records=None, before=lambda _event: None) -> tuple[list[Event], Story]:
    events: list[Event] = []
    story = Story(run.topology, run.start, events.append, ["burst"], before)
    for packet in run.packets:
        story.offer(packet)
    for record in run.records if records is None else records:
        story.observe(record)
    story.finish()
    return events, story


@pytest.fixture(scope="module")
def jam_events() -> list[Event]:
    return story_of(jam())[0]


def test_credits_go_two_one_zero(jam_events):
    sends = [event for event in jam_events if event.name == "send" and event.place == A]
    assert [event.credit_packets for event in sends] == [2, 1, 0, 0, 0]
    assert [event.credit_blocks for event in sends] == [10, 5, 0, 0, 0]


def test_the_credits_before_the_start_are_not_told_but_given_apart(jam_events):
    before: list[Event] = []
    run = jam()
    assert story_of(run, before=before.append)[0] == jam_events
    assert [(event.cycle, event.credit_blocks) for event in before if event.place == A] == [(60, 15)]
    assert all(event.cycle < run.start for event in before)


def test_the_sender_stalls_with_the_last_two_packets_queued(jam_events):
    stalls = [event for event in jam_events if event.name == "stall"]
    assert [(event.place, event.credit_packets) for event in stalls] == [(A, 0), (A, 0)]
    assert "packets 3 and 4 waiting" in stalls[0].text
    assert "packet 4 waiting" in stalls[1].text


def test_each_credit_that_comes_home_releases_one_packet(jam_events):
    at_sender = [(event.name, event.packet) for event in jam_events if event.place == A]
    stalled = at_sender.index(("stall", "0/3"))
    assert at_sender[stalled + 1 : stalled + 6] == [
        ("credit", None),
        ("send", "0/3"),
        ("stall", "0/4"),
        ("credit", None),
        ("send", "0/4"),
    ]


def test_a_wait_is_told_with_its_length(jam_events):
    first = next(event for event in jam_events if event.name == "stall")
    send = next(event for event in jam_events if event.packet == "0/3" and event.name == "send")
    assert send.text.endswith(f"after waiting {send.cycle - first.cycle} cycles")


def test_a_packet_that_comes_when_there_is_no_credit_stalls_at_once():
    run = jam()
    # The last packet comes when the buffer is full and the link idle.
    late = run.start + 700
    packets = [*run.packets[:3], run.packets[3]._replace(cycle=late)]
    events: list[Event] = []
    story = Story(run.topology, run.start, events.append, ["burst"])
    for packet in packets:
        story.offer(packet)
    for record in run.records:
        if record.cycle < late or record.kind == Kind.RX_FCP:
            story.observe(changed(record, fccl=15) if record.kind == Kind.RX_FCP and record.cycle < late else record)
    story.finish()
    (stall,) = [event for event in events if event.name == "stall"]
    assert (stall.cycle, stall.place, stall.packet) == (late, A, "0/3")


def test_the_buffer_never_holds_more_than_it_has(jam_events):
    fills = [event.buffer_blocks for event in jam_events if event.place == S1 and event.buffer_blocks is not None]
    assert max(fills) == 15
    assert fills[-1] == 0
    assert [
        event.buffer_vl_blocks for event in jam_events if event.buffer_blocks is not None and event.place == S1
    ] == fills


def test_all_packets_arrive_in_order(jam_events):
    assert [event.packet for event in jam_events if event.name == "deliver"] == [f"0/{number}" for number in range(5)]
    assert all(event.place == B for event in jam_events if event.name == "deliver")


def test_events_are_in_the_order_of_cycles_and_after_the_start(jam_events):
    cycles = [event.cycle for event in jam_events]
    assert cycles == sorted(cycles)
    assert cycles[0] == jam().start


def test_the_totals_are_those_of_the_trace():
    _, story = story_of(jam())
    assert (story.totals.sent, story.totals.delivered, story.totals.dropped) == (5, 5, 0)


def test_a_packet_found_bad_is_dropped_at_the_host_and_counted():
    run = jam()
    bad = [
        changed(record, verdict=Verdict.PHYSICAL)
        if record.kind == Kind.RX_DATA and record.source == port_source(2, 1)
        else record
        for record in run.records
        if record.kind != Kind.DELIVER
    ]
    events, story = story_of(run, bad)
    drops = [event for event in events if event.name == "drop"]
    assert [event.packet for event in drops] == [f"0/{number}" for number in range(5)]
    assert drops[0].text == "finds packet 0 bad: PHYSICAL"
    assert (story.totals.delivered, story.totals.dropped) == (0, 5)


@pytest.mark.parametrize(
    ("verdict", "table"), [(Verdict.RCV_CONSTRAINT, "the port's table"), (Verdict.XMIT_CONSTRAINT, "the table of S[2]")]
)
def test_a_packet_that_a_switch_refuses_for_its_partition_is_told_with_its_p_key_and_whose_table_it_is(verdict, table):
    run = jam()
    # The one packet comes into the switch, and goes no further.
    records = [
        changed(record, verdict=verdict) if record.kind == Kind.RX_DATA else record
        for record in run.records
        if record.source in (port_source(HOST_A, 1), port_source(SWITCH, 1))
    ]
    events, story = story_of(run, records)
    drops = [event for event in events if event.name == "drop"]
    assert [(event.place, event.packet) for event in drops] == [(S1, f"0/{number}") for number in range(5)]
    assert drops[0].text == f"refuses packet 0, {verdict.name}: its P_Key 0xffff matches none in {table}"
    assert not [event for event in events if event.name in ("receive", "release") and event.place == S1]
    assert (story.totals.sent, story.totals.delivered, story.totals.dropped) == (5, 0, 5)


def test_entering_initialize_takes_the_credits_away():
    run = jam()
    end = run.records[-1].cycle
    down = State.record(end + 1, port_source(HOST_A, 1), state=PortState.INITIALIZE)
    credit = RxFcp.record(end + 9, port_source(HOST_A, 1), op=1, fccl=7)
    events, _ = story_of(run, [*run.records, down, credit])
    assert events[-2].text == "becomes Initialize"
    assert events[-1].credit_blocks == 7


def test_an_injected_error_is_told_at_the_port_before_it():
    run = jam()
    inject = Inject.record(run.start + 9, link_source(1, 0), trigger=Trigger.DATA, row=3)
    events, story = story_of(run, sorted([*run.records, inject]))
    error = next(event for event in events if event.name == "error")
    assert (error.place, error.text) == (S2, "an injected error changes row 3 on the way to B[1]")
    assert story.totals.injected == 1


def test_a_queued_packet_that_is_dropped_gives_its_blocks_back():
    run = jam()
    end = run.records[-1].cycle
    discarded = [
        record._replace(kind=Kind.TX_DISCARD, c=0)
        if record.kind == Kind.TX_DATA and record.source == port_source(SWITCH, 2) and record.cycle > end - 700
        else record
        for record in run.records
    ]
    events, story = story_of(run, sorted(discarded))
    assert story.totals.dropped == 2
    assert [event.buffer_blocks for event in events if event.place == S1][-1] == 0
