"""Those who look on at a fabric that is served: what they get, and what the server keeps for them."""

from doors.watch import AT_ONCE, Watch
from wire.trace import RECORD, Record
from wire.trace_layout import State, TxFcp


def records(packed):
    return [Record(*words) for words in RECORD.iter_unpack(packed)]


def test_who_comes_gets_the_states_of_all_ports_and_then_what_happens():
    watch = Watch()
    states = [State.record(cycle, source, state=cycle // 10) for cycle, source in ((10, 1), (20, 2), (30, 1))]
    for record in (*states, TxFcp.record(31, 1, fccl=5)):
        watch.observe(record)
    assert records(watch.take("page")) == states[1:]
    assert watch.take("page") == b""
    news = TxFcp.record(40, 2, fccl=7)
    watch.observe(news)
    assert records(watch.take("page")) == [news]


def test_an_answer_has_room_in_a_message():
    watch = Watch()
    watch.take("page")
    sent = [TxFcp.record(cycle, 1) for cycle in range(AT_ONCE + 1)]
    for record in sent:
        watch.observe(record)
    assert records(watch.take("page")) == sent[:AT_ONCE]
    assert records(watch.take("page")) == sent[AT_ONCE:]
    assert AT_ONCE * RECORD.size < 1 << 17


def test_nothing_is_kept_for_who_is_away():
    watch = Watch()
    watch.take("page")
    for cycle in range(200_002):
        watch.observe(TxFcp.record(0, 1) if cycle == 0 else Record(cycle, 1, TxFcp.kind))
    assert watch.take("page") == b"", "it begins anew"
