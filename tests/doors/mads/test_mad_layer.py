"""Agents, time-outs and retries, without a fabric: MADs in, MADs out, time given."""

import errno
import tracemalloc

import pytest

from doors.mads.agents import Agent, RegistrationError
from doors.mads.mad_layer import MadLayer, MadPort, Moment, SendError, transaction_id
from doors.mads.user_mad import Address, Registration
from wire.mad import MAD_BYTES, MadMethod, MadStatus, MgmtClass

PATIENCE = 10_000
MS = 1_000_000
THERE = Address(lid=9, qpn=1)
START = Moment(0, 0)

PERF = Registration(qpn=1)
SA = Registration(1, MgmtClass.SUBN_ADM, 2, 1 << MadMethod.GET | 1 << 0x12, rmpp_version=1)
SA_CLIENT = Registration(1, MgmtClass.SUBN_ADM, 2, rmpp_version=1)


def mad(method: int, tid: int = 5, mgmt_class: int = MgmtClass.PERF, version: int = 1, rest: bytes = b"") -> bytes:
    head = bytes([1, mgmt_class, version, method, 0, 0, 0, 0]) + tid.to_bytes(8, "big")
    return (head + rest).ljust(MAD_BYTES, b"\0")


class Program:
    """Owns agents, and keeps what they get."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.failed: list[int] = []

    def arrived(self, agent: Agent, address: Address, data: bytes) -> None:
        self.got.append(data)

    def unanswered(self, agent: Agent, address: Address, data: bytes) -> None:
        self.failed.append(transaction_id(data))


def one_port(layer: MadLayer | None = None) -> tuple[MadPort, Program]:
    return MadPort(layer or MadLayer()), Program()


def sent(port: MadPort) -> list[bytes]:
    outbox, port.outbox = port.outbox, []
    return [outgoing.mad for outgoing in outbox]


def reply(request: bytes) -> bytes:
    return request[:3] + bytes([request[3] | 0x80]) + request[4:]


def test_a_request_gets_its_agents_number_into_its_transaction_id():
    port, program = one_port()
    agents = [port.register(program, PERF) for _ in range(2)]
    for agent in agents:
        port.send(agent, THERE, mad(MadMethod.GET, tid=0xFFFF_0000_0005), 100, 0, START)
    first, second = map(transaction_id, sent(port))
    assert (first & 0xFFFF_FFFF, second & 0xFFFF_FFFF) == (5, 5)
    assert [first >> 32, second >> 32] == [agent.high_tid for agent in agents]


def test_an_answer_goes_to_the_program_that_asked_and_only_once():
    port, asker = one_port()
    other = Program()
    port.register(other, PERF)
    port.send(port.register(asker, PERF), THERE, mad(MadMethod.GET), 100, 0, START)
    (request,) = sent(port)
    for _ in range(2):
        assert not port.received(THERE, reply(request), Moment(0, 500))
    assert (asker.got, other.got) == ([reply(request)], [])
    assert not port.waiting


def test_a_request_is_sent_again_as_often_as_wanted_then_given_back():
    port, program = one_port()
    port.send(port.register(program, PERF), THERE, mad(MadMethod.GET), 100, 2, START)
    (request,) = sent(port)
    for attempt in (1, 2):
        port.expire(Moment(0, attempt * PATIENCE - 1), PATIENCE)
        assert sent(port) == []
        port.expire(Moment(0, attempt * PATIENCE), PATIENCE)
        assert sent(port) == [request]
    port.expire(Moment(0, 3 * PATIENCE), PATIENCE)
    assert sent(port) == []
    assert program.failed == [transaction_id(request)]


def test_a_request_that_a_program_has_waits_for_its_whole_time():
    layer = MadLayer()
    port, program = one_port(layer)
    port.send(port.register(program, PERF), THERE, mad(MadMethod.GET), 100, 0, START)
    (request,) = sent(port)
    layer.requests[transaction_id(request)].held = True
    assert not port.waiting
    port.expire(Moment(100 * MS - 1, 10 * PATIENCE), PATIENCE)
    assert program.failed == []
    assert port.deadline == 100 * MS
    port.expire(Moment(100 * MS, 10 * PATIENCE), PATIENCE)
    assert program.failed == [transaction_id(request)]


def test_a_request_without_a_time_out_is_not_waited_for():
    port, program = one_port()
    port.send(port.register(program, PERF), THERE, mad(MadMethod.GET), 0, 3, START)
    assert not port.waiting


def test_requests_go_to_the_agent_of_their_class_version_and_method():
    port, program = one_port()
    port.register(program, SA)
    assert port.received(THERE, mad(MadMethod.GET, mgmt_class=MgmtClass.SUBN_ADM, version=2), START)
    for other in (
        mad(MadMethod.GET, mgmt_class=MgmtClass.SUBN_ADM, version=1),
        mad(MadMethod.SET, mgmt_class=MgmtClass.SUBN_ADM, version=2),
        mad(MadMethod.GET, mgmt_class=MgmtClass.COMM_MGT, version=2),
    ):
        assert not port.received(THERE, other, START)
    assert len(program.got) == 1


def test_a_vendors_request_goes_by_its_oui():
    port, ours = one_port()
    theirs = Program()
    port.register(ours, Registration(1, 0x32, 1, 1 << MadMethod.GET, oui=0x1405))
    port.register(theirs, Registration(1, 0x32, 1, 1 << MadMethod.GET, oui=0x1406))
    request = mad(MadMethod.GET, mgmt_class=0x32)
    port.received(THERE, request[:37] + b"\x00\x14\x06" + request[40:], START)
    assert (len(ours.got), len(theirs.got)) == (0, 1)


def test_a_get_that_nobody_takes_is_answered_so():
    port, _program = one_port()
    assert not port.received(THERE, mad(MadMethod.GET), START)
    (answer,) = sent(port)
    assert answer[3] == MadMethod.GET_RESP
    assert int.from_bytes(answer[4:6], "big") == MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED
    assert not port.received(THERE, mad(MadMethod.TRAP), START)
    assert sent(port) == []


@pytest.mark.parametrize(
    "wanted",
    [
        Registration(qpn=2),
        Registration(qpn=1, rmpp_version=2),
        Registration(qpn=0, mgmt_class=MgmtClass.SUBN_ADM, class_version=2),
        Registration(qpn=1, mgmt_class=MgmtClass.SUBN_DIRECTED_ROUTE, class_version=1),
        Registration(qpn=1, mgmt_class=MgmtClass.PERF, class_version=8),
        Registration(qpn=1, mgmt_class=0x32, class_version=1),
        SA,
    ],
)
def test_an_agent_that_cannot_be_is_refused(wanted):
    port, program = one_port()
    port.register(program, SA)
    with pytest.raises(RegistrationError) as error:
        port.register(program, wanted)
    assert error.value.errno == errno.EINVAL


def test_an_agent_that_goes_leaves_its_class_to_another():
    port, program = one_port()
    agent = port.register(program, SA)
    port.send(agent, THERE, mad(MadMethod.GET, mgmt_class=MgmtClass.SUBN_ADM), 100, 0, START)
    assert port.unregister(agent) == 1
    port.register(program, SA)
    port.expire(Moment(0, PATIENCE), PATIENCE)
    assert program.failed == []


@pytest.mark.parametrize("wrong", [bytes(23), bytes(300), mad(1, mgmt_class=MgmtClass.SUBN_ADM)[:40]])
def test_too_short_and_too_long_mads_are_refused(wrong):
    port, program = one_port()
    with pytest.raises(SendError) as error:
        port.send(port.register(program, PERF), THERE, wrong, 100, 0, START)
    assert error.value.errno == errno.EINVAL


def test_a_transaction_id_in_use_is_refused():
    port, program = one_port()
    agent = port.register(program, PERF)
    port.send(agent, THERE, mad(MadMethod.GET), 100, 0, START)
    with pytest.raises(SendError):
        port.send(agent, THERE, mad(MadMethod.GET), 100, 0, START)


class Pair:
    """A client and a server of the SA, and a fabric that loses some of their MADs."""

    def __init__(self, lose: set[int] = frozenset()) -> None:
        self.layer = MadLayer()
        self.client, self.server = MadPort(self.layer), MadPort(self.layer)
        self.asker, self.answerer = Program(), Program()
        self.agents = self.client.register(self.asker, SA_CLIENT), self.server.register(self.answerer, SA)
        self.lose = lose
        self.carried = 0
        self.cycle = 0

    def ask(self, tid: int, data: bytes) -> None:
        """The client asks for a table, and these bytes are the answer."""
        self.client.send(self.agents[0], THERE, mad(0x12, tid, MgmtClass.SUBN_ADM, 2), 1_000, 3, START)
        (request,) = sent(self.client)
        assert self.server.received(THERE, request, START)
        self.layer.requests[transaction_id(request)].held = True
        head = request[:3] + b"\x92" + request[4:24] + bytes([1, 1, 1, 0]) + bytes(56 - 28)
        self.server.send(self.agents[1], THERE, head + data, 0, 3, START)
        self.run()

    def run(self) -> None:
        """Carry until nothing moves any more."""
        for _round in range(100_000):
            pairs = ((self.client, self.server), (self.server, self.client))
            moved = False
            for source, destination in pairs:
                for data in sent(source):
                    moved = True
                    self.carried += 1
                    if self.carried not in self.lose:
                        destination.received(THERE, data, Moment(0, self.cycle))
            if not moved:
                if not (self.client.waiting or self.server.waiting):
                    return
                self.cycle += PATIENCE
            for port in (self.client, self.server):
                port.expire(Moment(0, self.cycle), PATIENCE)


@pytest.mark.parametrize("size", [10, 1_000, 300_000])
@pytest.mark.parametrize("lose", [set(), {2}, {3, 4}, {2, 3, 5, 9}])
def test_a_long_answer_crosses_and_is_put_together(size, lose):
    pair = Pair(lose)
    data = bytes(value % 251 for value in range(size))
    pair.ask(7, data)
    (answer,) = pair.asker.got
    assert answer[56:] == data
    assert (pair.asker.failed, pair.answerer.failed) == ([], [])


def test_an_answer_that_a_program_has_got_is_not_kept():
    pair = Pair()
    pair.ask(1, bytes(200_000))
    tracemalloc.start()
    try:
        for tid in range(2, 10):
            pair.asker.got.clear()
            pair.ask(tid, bytes(200_000))
        assert tracemalloc.get_traced_memory()[0] < 400_000
    finally:
        tracemalloc.stop()


def test_a_receiver_that_has_gone_does_not_keep_a_sender():
    pair = Pair()
    head = mad(0x92, 7, MgmtClass.SUBN_ADM, 2)[:24] + bytes([1, 1, 1, 0]) + bytes(28)
    pair.server.send(pair.agents[1], THERE, head + bytes(1_000), 0, 3, START)
    pair.run()
    assert not pair.server.waiting
    assert pair.asker.got == []


@pytest.mark.parametrize(("version", "gets"), [(0, True), (1, False)])
def test_an_acknowledgement_goes_to_an_agent_that_makes_its_segments_itself(version, gets):
    port, program = one_port()
    port.register(program, Registration(1, MgmtClass.SUBN_ADM, 2, 1 << 0x12, rmpp_version=version))
    acknowledgement = mad(0x12, mgmt_class=MgmtClass.SUBN_ADM, version=2, rest=bytes(8) + bytes([1, 2, 1, 0]))
    port.received(THERE, acknowledgement, START)
    assert (program.got == [acknowledgement]) is gets
    assert sent(port) == []
