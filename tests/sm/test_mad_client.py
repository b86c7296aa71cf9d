"""SMPs asked and answered: window, timeouts, retries, matching of answers."""

import pytest

from sm.mad_client import MadClient, NoAnswerError, RefusedError
from sm.tasks import gather, start
from wire.codes import LID_PERMISSIVE
from wire.mad import MadMethod, MadStatus, mad_data
from wire.notice import ProducerType, TrapNumber, notice
from wire.sma import SmaAttribute
from wire.smp import initial_path, smp_request, smp_response, unpack_smp

DESCRIPTION = SmaAttribute.NODE_DESCRIPTION


def ask(mads, path=(1, 2), **more):
    """Asks a node for its description; the list has the answer or the error once there is one."""
    outcome = []

    async def question():
        try:
            outcome.append(await mads.get(path, DESCRIPTION, **more))
        except (NoAnswerError, RefusedError) as error:
            outcome.append(error)

    start(question())
    return outcome


def answer(out, data=b"", status=MadStatus.OK, **changes):
    return smp_response(unpack_smp(out.mad), data, status).replace(**changes).pack()


def test_a_directed_route_smp_goes_out_as_the_own_smi_takes_it():
    mads = MadClient()
    ask(mads, (3, 1, 4))
    (out,) = mads.poll(10)
    smp = unpack_smp(out.mad)
    assert (out.slid, out.dlid) == (LID_PERMISSIVE, LID_PERMISSIVE)
    assert (smp.method, smp.attribute_id, smp.hop_pointer, smp.hop_count) == (MadMethod.GET, DESCRIPTION, 0, 3)
    assert initial_path(smp) == (3, 1, 4)


def test_the_answer_brings_the_attribute():
    mads = MadClient()
    outcome = ask(mads)
    mads.received(answer(*mads.poll(0), b"a switch"), 20)
    assert outcome == [b"a switch".ljust(64, b"\0")]
    assert mads.wake is None


def test_no_more_smps_are_outstanding_than_the_window_holds():
    mads = MadClient(window=4)
    outcomes = [ask(mads) for _ in range(6)]
    first = mads.poll(0)
    assert len(first) == 4
    assert mads.poll(1) == []
    mads.received(answer(first[2], b"x"), 2)
    assert mads.wake == 2
    assert len(mads.poll(2)) == 1
    assert [bool(outcome) for outcome in outcomes] == [False, False, True, False, False, False]


def test_every_smp_has_a_transaction_id_of_its_own():
    mads = MadClient(window=8)
    for _ in range(8):
        ask(mads)
    assert len({unpack_smp(out.mad).transaction_id for out in mads.poll(0)}) == 8


def test_an_smp_without_an_answer_is_sent_again_and_then_given_up():
    mads = MadClient(timeout=100, retries=2)
    outcome = ask(mads)
    sent = mads.poll(5)
    for cycle in (105, 205):
        assert mads.wake == cycle
        assert mads.poll(cycle - 1) == []
        sent += mads.poll(cycle)
    assert len(sent) == 3
    assert len(set(sent)) == 1, "an SMP that is sent again is the same"
    assert outcome == []
    assert mads.wake == 305
    assert mads.poll(305) == []
    assert isinstance(outcome[0], NoAnswerError)
    assert str(outcome[0]) == "Get(NodeDescription, modifier 0x0) by way of ports 1,2: no answer"
    assert (mads.sent.total(), mads.retried, mads.wake) == (3, 2, None)


def test_an_answer_to_the_first_sending_counts_after_the_second():
    mads = MadClient(timeout=100)
    outcome = ask(mads)
    (out,) = mads.poll(0)
    mads.poll(100)
    mads.received(answer(out, b"late"), 110)
    mads.received(answer(out, b"later"), 120)
    assert outcome == [b"late".ljust(64, b"\0")]


def test_what_may_be_sent_once_is_not_sent_again():
    mads = MadClient(timeout=100, retries=3)
    outcome = ask(mads, retries=0)
    mads.poll(0)
    assert mads.poll(100) == []
    assert isinstance(outcome[0], NoAnswerError)


@pytest.mark.parametrize(
    "wrong",
    [
        {"transaction_id": 99},
        {"attribute_id": SmaAttribute.NODE_INFO},
        {"attribute_modifier": 1},
        {"method": MadMethod.GET},
        {"status": MadStatus.BUSY},
    ],
)
def test_what_is_no_answer_is_ignored(wrong):
    mads = MadClient()
    outcome = ask(mads)
    (out,) = mads.poll(0)
    mads.received(answer(out, **wrong), 10)
    assert outcome == []
    mads.received(answer(out, b"right"), 11)
    assert outcome == [b"right".ljust(64, b"\0")]


@pytest.mark.parametrize("mad", [b"", bytes(255), bytes(256), bytes([1, 4, 1, 0x81]).ljust(256, b"\0")])
def test_datagrams_of_other_lengths_and_classes_are_ignored(mad):
    mads = MadClient()
    ask(mads)
    mads.poll(0)
    mads.received(mad, 1)


def test_a_busy_node_is_asked_again_when_the_time_is_out():
    mads = MadClient(timeout=100)
    outcome = ask(mads)
    mads.received(answer(*mads.poll(0), status=MadStatus.BUSY), 10)
    mads.received(answer(*mads.poll(100), b"now"), 110)
    assert outcome == [b"now".ljust(64, b"\0")]


def test_a_refusal_tells_the_status_and_brings_what_was_answered():
    mads = MadClient()
    outcome = ask(mads)
    mads.received(answer(*mads.poll(0), b"half", MadStatus.INVALID_ATTRIBUTE_VALUE), 10)
    (error,) = outcome
    assert str(error) == "Get(NodeDescription, modifier 0x0) by way of ports 1,2: InvalidAttributeValue"
    assert error.data[:4] == b"half"


def test_what_is_not_wanted_any_more_is_not_sent_and_leaves_its_place():
    mads = MadClient(window=2, timeout=100, retries=0)
    failed = []

    async def both():
        try:
            await gather([mads.get((1,), DESCRIPTION), mads.get((2,), DESCRIPTION), mads.get((3,), DESCRIPTION)])
        except RefusedError:
            failed.append(mads.now)

    start(both())
    first, _second = mads.poll(0)
    mads.received(answer(first, status=MadStatus.BAD_VERSION), 10)
    assert failed == [10]
    ask(mads, (4,))
    ask(mads, (5,))
    assert [initial_path(unpack_smp(out.mad)) for out in mads.poll(11)] == [(4,), (5,)]


def test_a_trap_is_handed_up_and_repressed_with_its_own_id_and_notice():
    mads = MadClient()
    traps = []
    mads.on_trap = traps.append
    data = notice(TrapNumber.LINK_STATE_CHANGE, ProducerType.SWITCH, 7, lid=7).pack()
    trap = smp_request(MadMethod.TRAP, SmaAttribute.NOTICE, data=data, transaction_id=1 << 60)
    mads.received(trap.pack(), 5)
    assert traps == [trap]
    mads.repress(trap, 3, 7)
    assert mads.wake == 5
    (out,) = mads.poll(5)
    smp = unpack_smp(out.mad)
    assert (out.slid, out.dlid) == (3, 7)
    assert (smp.method, smp.transaction_id, mad_data(smp)) == (MadMethod.TRAP_REPRESS, 1 << 60, data)
    assert mads.wake is None, "TrapRepress has no answer"


def test_timers_end_in_their_order_and_can_be_ended_before():
    mads = MadClient()
    ends = []

    async def wait(name, timer):
        ends.append((name, await timer, mads.now))

    mads.poll(100)
    early = mads.timer(1000)
    for name, timer in (("late", mads.timer(30)), ("soon", mads.timer(10)), ("early", early)):
        start(wait(name, timer))
    assert mads.wake == 110
    mads.poll(110)
    mads.poll(130)
    early.resolve(True)
    assert ends == [("soon", False, 110), ("late", False, 130), ("early", True, 130)]


@pytest.mark.parametrize("wrong", [{"window": 0}, {"timeout": 0}, {"retries": -1}])
def test_a_window_a_timeout_and_retries_have_least_values(wrong):
    with pytest.raises(ValueError, match="expected at least 1, 1 cycle and 0"):
        MadClient(**wrong)


def test_a_back_end_that_gives_an_smp_up_ends_it_at_once():
    mads = MadClient(timeout=1 << 40)
    outcome = ask(mads)
    (out,) = mads.poll(0)
    mads.unanswered(out.mad, 30)
    assert [type(one) for one in outcome] == [NoAnswerError]
    assert mads.wake is None
    mads.received(answer(out, b"late"), 40)
    assert len(outcome) == 1
