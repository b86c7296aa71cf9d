"""Observers hear of packets, records, deliveries and Subnet Managers, each when it is time."""

from collections import deque
from collections.abc import Iterator

from cosim.analysis.observer import Audience, CycleListener, Observer
from cosim.stimulus.message_events import MessageEvent, MessageStep
from cosim.stimulus.packet import Packet
from sm.events import SweepStarted
from tests.cosim.analysis.jam_trace import jam
from tests.cosim.recorder import Recorder
from wire.stimulus import Delivery
from wire.trace import Kind, Record


def packets(*cycles: int) -> list[Packet]:
    first = jam().packets[0]
    return [first._replace(cycle=cycle, sequence=number) for number, cycle in enumerate(cycles)]


def record(cycle: int) -> Record:
    return Record(cycle, 1, Kind.SEND, 0, 0, 0, 0)


def test_packets_are_offered_up_to_the_cycle_of_a_record_before_it_is_observed():
    seen = Recorder()
    audience = Audience([seen], iter(packets(3, 5, 5, 8)))
    offered = [len(seen.packets) for _ in audience.follow(map(record, (2, 3, 5, 7)))]
    assert offered == [0, 1, 3, 3]
    assert [one.cycle for one in seen.records] == [2, 3, 5, 7]


class StatesOnly(Recorder):
    """Has a use for records of one kind."""

    kinds = frozenset({Kind.STATE})


def test_an_observer_gets_records_of_its_kinds_alone():
    all_kinds, states = Recorder(), StatesOnly()
    given = [Record(cycle, 1, kind) for cycle, kind in enumerate((Kind.SEND, Kind.STATE, Kind.DELIVER))]
    assert list(Audience([states, Observer(), all_kinds], iter(())).follow(given)) == given
    assert states.records == given[1:2]
    assert all_kinds.records == given


def test_what_no_observer_has_a_use_for_is_told():
    assert Audience([Observer()], iter(())).kinds == set()
    assert Audience([Observer(), StatesOnly()], iter(())).kinds == {Kind.STATE, Kind.SEND}, "it is offered packets too"
    assert Audience([StatesOnly(), Recorder()], iter(())).kinds == set(Kind)


def test_packets_are_offered_up_to_the_cycle_of_a_delivery_before_it_is_given():
    seen = Recorder()
    audience = Audience([seen], iter(packets(3, 5)))
    delivery = Delivery(4, 2, 0, jam().packets[0].data)
    audience.on_delivery(delivery)
    assert ([packet.cycle for packet in seen.packets], seen.deliveries) == ([3], [delivery])


def test_at_the_end_the_packets_left_are_offered():
    seen = Recorder()
    audience = Audience([seen], iter(packets(3, 5)))
    assert not seen.finished
    audience.finish()
    assert ([packet.cycle for packet in seen.packets], seen.finished) == ([3, 5], True)


def test_what_hosts_offer_in_answer_comes_in_between():
    seen, known = Recorder(), deque(packets(4, 6))

    def answers(cycle: int | None) -> Iterator[Packet]:
        while known and (cycle is None or known[0].cycle <= cycle):
            yield known.popleft()

    audience = Audience([seen], iter(packets(3, 5, 8)))
    audience.follow_answers(answers)
    offered = [len(seen.packets) for _ in audience.follow(map(record, (2, 4, 5)))]
    assert offered == [0, 2, 3]
    known.extend(packets(7))
    audience.finish()
    assert [packet.cycle for packet in seen.packets] == [3, 4, 5, 6, 7, 8]


def test_observers_hear_of_messages():
    heard: list[MessageEvent] = []

    class Hearing(Observer):
        def follow_message(self, event: MessageEvent) -> None:
            heard.append(event)

    event = MessageEvent(0, 5, "A", MessageStep.POSTED, 3)
    Audience([Observer(), Hearing()], iter(())).follow_message(event)
    assert heard == [event]


def test_observers_are_told_in_their_order():
    served: list[str] = []

    class Named(Observer):
        def __init__(self, name: str) -> None:
            self.name = name

        def manage(self, host, cycle, event) -> None:
            served.append(self.name)

    Audience([Named("first"), Observer(), Named("second")], iter(())).manage("A", 1, SweepStarted(True, "start"))
    assert served == ["first", "second"]


def test_nothing_is_drawn_and_nothing_delivered_for_those_that_have_no_use_for_it():
    cycles: list[int] = []
    drawn = iter(packets(3, 5))
    audience = Audience([CycleListener(cycles.append)], drawn)
    assert audience.on_delivery is None
    assert list(audience.follow([record(4), record(9)])) == [record(4), record(9)]
    audience.finish()
    assert cycles == [4, 9]
    assert len(list(drawn)) == 2
