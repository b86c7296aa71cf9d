"""SMPs in the fabric: no more at once than find room, and what waits is not late."""

from doors.mads.host_port import HostPort
from doors.mads.mad_layer import MadLayer, Moment, transaction_id
from doors.mads.smp_window import SmpWindow
from doors.mads.user_mad import Address, Registration
from tests.doors.mads.test_mad_layer import MS, PATIENCE, START, Program, mad, reply
from wire.codes import LID_PERMISSIVE
from wire.mad import MadMethod, MgmtClass

THERE = Address(LID_PERMISSIVE, 0)


class Sending:
    """A program that has sent so many SMPs, through a window of two."""

    def __init__(self, count: int, mgmt_class: int = MgmtClass.SUBN_DIRECTED_ROUTE, timeout_ms: int = 100) -> None:
        self.layer = layer = MadLayer()
        self.port = HostPort(layer, "H1", 0, 1)
        self.program = Program()
        self.window = SmpWindow(layer, 2)
        agent = self.port.mads.register(self.program, Registration(0))
        for tid in range(count):
            self.port.mads.send(agent, THERE, mad(MadMethod.GET, tid, mgmt_class), timeout_ms, 0, START)
        outbox, self.port.mads.outbox = self.port.mads.outbox, []
        self.passed = [one.mad for one in outbox if not self.window.keeps(self.port, one)]

    def released(self, now: Moment = START) -> list[bytes]:
        return [outgoing.mad for _port, outgoing in self.window.released(now)]


def test_two_go_and_an_answer_lets_the_next_one_go():
    sending = Sending(5)
    assert sending.passed == []
    first, second = sending.released()
    assert sending.released() == []
    sending.port.mads.received(THERE, reply(second), START)
    (third,) = sending.released()
    assert len({first, second, third}) == 3


def test_what_waits_has_its_whole_time_when_it_goes():
    sending = Sending(3)
    mads = sending.port.mads
    sending.released()
    assert mads.waiting == 2
    later = Moment(50 * MS, PATIENCE)
    mads.expire(later, PATIENCE)
    assert len(sending.program.failed) == 2
    (third,) = sending.released(later)
    assert mads.deadline == 150 * MS
    mads.expire(Moment(149 * MS, 2 * PATIENCE - 1), PATIENCE)
    assert len(sending.program.failed) == 2
    assert third[3] == MadMethod.GET


def test_what_a_program_has_leaves_room():
    sending = Sending(3)
    first, *_others = sending.released()
    sending.layer.requests[transaction_id(first)].held = True
    assert len(sending.released()) == 1


def test_other_classes_and_what_wants_no_answer_do_not_wait():
    assert len(Sending(3, MgmtClass.PERF).passed) == 3
    assert len(Sending(3, timeout_ms=0).passed) == 3
