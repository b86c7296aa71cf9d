"""PMA requests in the crossings of switch and adapter (docs/management.md, sections 1, 2 and 6)."""

import pytest

from tests.agent_steps import cycles_to, steps_of_request
from wire.codes import Q_KEY_GSI
from wire.mad import MadMethod, mad_data
from wire.mad_packet import gmp_packet, smp_packet
from wire.packet import build_ud_send
from wire.pma import (
    PERF_MAD,
    PORT_COUNTERS,
    PORT_COUNTERS_EXTENDED,
    PmaAttribute,
    perf_request,
)
from wire.registers import Counter, CounterHigh, NodeRegister, PortRegister, lft_address, node_address
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Post
from wire.trace import Kind

N = 72
"""Words of a MAD's packet."""
GRANT_TO_WORD = 5
Z_TO_STEP_0 = 4
ANSWERED = steps_of_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, pma=True)
SWITCH_LID = 9
MAD = slice(28, -4)
SOURCE_QP = 0x4321
"""Of requests: nothing in the fabric looks at it."""


def get(attribute=PmaAttribute.PORT_COUNTERS, port=1, transaction_id=1):
    return perf_request(MadMethod.GET, attribute, bytes([0, port]), transaction_id=transaction_id)


def ask(bench, cycle, host, dlid, mad=None, *, slid=None, slot=0, sl=0):
    """A request, or another packet for QP 1, from a host."""
    slid = host if slid is None else slid
    packet = gmp_packet(mad or get(), slid, dlid, vl=slot, sl=sl, src_qp=SOURCE_QP)
    bench.posts.append(Post(cycle, host, slot, packet.data))


def with_switch_lid(bench):
    bench.write(0, lft_address(SWITCH_LID), 0, 990)
    return bench


def given_to_agent(bench, node):
    return bench.of(Kind.DELIVER, node, port=0)


def sent_by_agent(bench, node=0):
    return bench.of(Kind.SEND, node, port=0)


def answers(bench):
    """(node, slot, MAD) of what hosts were given that is an answer."""
    found = [(one.node, one.slot, PERF_MAD.unpack(one.data[MAD])) for one in bench.delivered if len(one.data) == 4 * N]
    return [entry for entry in found if entry[2].method == MadMethod.GET_RESP]


def step_0(bench, node=0):
    return given_to_agent(bench, node)[0].cycle + Z_TO_STEP_0


# From end to end.


@pytest.mark.parametrize("queueing", [{}, {"queueing": "fifo", "readers": 1}])
def test_a_switch_answers_on_a_data_vl(star, ready, queueing):
    bench = with_switch_lid(star(2, vls=2, **queueing))
    ask(bench, ready, 1, SWITCH_LID, slot=1, sl=1)
    bench.run(ready + 2000)
    (taken,) = given_to_agent(bench, 0)
    (sent,) = sent_by_agent(bench)
    assert (taken.a, taken.b) == (1, N)
    assert (sent.cycle, sent.a, sent.b) == (taken.cycle + Z_TO_STEP_0 + ANSWERED + 1, 1, N)
    ((node, slot, answer),) = answers(bench)
    assert (node, slot, answer.status) == (1, 1, 0)


def test_a_wrong_icrc_is_an_error_of_the_port_that_it_came_by(star, ready):
    packet = gmp_packet(get(), 2, SWITCH_LID).data

    def run(*reads):
        bench = with_switch_lid(star(2))
        bench.posts.append(Post(ready, 2, 0, packet[:-1] + bytes([packet[-1] ^ 1])))
        for port, cycle in reads:
            bench.read_port(0, port, Counter.RCV_ERRORS, cycle - 2)
        bench.run(ready + 500)
        assert not sent_by_agent(bench)
        return bench

    shows = step_0(run()) + 1
    assert run((2, shows - 1), (2, shows), (1, shows + 1)).values() == [0, 1, 0]


def test_the_request_keeps_its_vl_towards_port_0_whatever_the_sl_to_vl_table_says(star, ready):
    bench = with_switch_lid(star(2, vls=2))
    ask(bench, ready, 1, SWITCH_LID, slot=0, sl=1)
    bench.run(ready + 2000)
    assert [record.a for record in given_to_agent(bench, 0)] == [0]
    assert [record.a for record in sent_by_agent(bench)] == [1], "SL 1 of the answer"


def test_hosts_ask_each_other_s_adapters(star, ready):
    bench = star(2)
    ask(bench, ready, 1, 2)
    bench.run(ready + 2000)
    (sent,) = sent_by_agent(bench, 2)
    assert sent.cycle == step_0(bench, 2) + ANSWERED + 1
    assert [(node, slot) for node, slot, _ in answers(bench)] == [(1, 0)]
    assert not [one for one in bench.delivered if one.node == 2], "its host knows nothing of it"


@pytest.mark.parametrize("slot", [0, 1])
def test_a_host_asks_its_own_adapter_and_nothing_is_on_the_link(star, ready, slot):
    bench = star(2, vls=2)
    ask(bench, ready, 1, 1, slot=slot, sl=0)
    bench.run(ready + 2000)
    (taken,) = given_to_agent(bench, 1)
    joined = ready + 1 + N + 2
    assert taken.c == joined + 1 + GRANT_TO_WORD
    (sent,) = sent_by_agent(bench, 1)
    assert (sent.cycle, sent.a) == (taken.cycle + Z_TO_STEP_0 + ANSWERED + 1, slot)
    assert [(node, where) for node, where, _ in answers(bench)] == [(1, slot)]
    assert not bench.of(Kind.TX_DATA)


@pytest.mark.parametrize(
    ("lid", "lmc", "dlid", "own"),
    [(8, 0, 8, True), (8, 0, 9, False), (8, 2, 11, True), (11, 2, 8, True), (8, 2, 12, False), (0, 0, 0, False)],
)
def test_the_lids_of_its_own_are_those_of_lid_and_lmc(star, ready, lid, lmc, dlid, own):
    bench = star(2)
    bench.write(1, node_address(NodeRegister.LID), lid, 980)
    bench.write(1, node_address(NodeRegister.LMC), lmc, 981)
    ask(bench, ready, 1, dlid)
    bench.run(ready + 500)
    assert len(given_to_agent(bench, 1)) == own
    assert len(bench.of(Kind.TX_DATA, 1)) == (not own)


@pytest.mark.parametrize("register", [NodeRegister.LID, NodeRegister.LMC])
@pytest.mark.parametrize(("visible", "own"), [(0, True), (1, False)])
def test_they_are_compared_in_the_cycle_of_the_last_row(star, ready, register, visible, own):
    """LID 4 becomes 5, or LMC 1 lets 4 be 5's neighbour."""
    bench = star(2)
    bench.write(1, node_address(NodeRegister.LID), 4, 980)
    last_row = ready + 1 + N
    bench.write(1, node_address(register), {NodeRegister.LID: 5, NodeRegister.LMC: 1}[register], last_row + visible - 2)
    ask(bench, ready, 1, 5)
    bench.run(ready + 500)
    assert len(given_to_agent(bench, 1)) == own
    assert len(bench.of(Kind.TX_DATA, 1)) == (not own)


def test_a_lid_that_is_its_own_no_longer_leads_to_the_link(star, ready):
    bench = star(2)
    bench.write(1, node_address(NodeRegister.LID), 7, ready + 10)
    ask(bench, ready, 1, 1)
    bench.run(ready + 500)
    assert not given_to_agent(bench, 1)
    assert len(bench.of(Kind.TX_DATA, 1)) == 1


# What is no request.


def ud(dlid, **changes):
    fields = {"slid": 1, "dlid": dlid, "dest_qp": 1, "src_qp": 1, "q_key": Q_KEY_GSI, "payload": get().pack()}
    return build_ud_send(**fields | changes).data


NO_REQUESTS = {
    "another class": lambda dlid: ud(dlid, payload=get().replace(mgmt_class=3).pack()),
    "an answer": lambda dlid: ud(dlid, payload=get().replace(method=0x81).pack()),
    "a trap": lambda dlid: ud(dlid, payload=get().replace(method=5).pack()),
    "another Q_Key": lambda dlid: ud(dlid, q_key=Q_KEY_GSI ^ 1),
    "another QP": lambda dlid: ud(dlid, dest_qp=2),
    "a shorter one": lambda dlid: ud(dlid, payload=get().pack()[:252]),
    "a longer one": lambda dlid: ud(dlid, payload=get().pack() + bytes(4)),
}


@pytest.mark.parametrize("kind", NO_REQUESTS)
@pytest.mark.parametrize("dlid", [1, 2])
def test_what_is_no_request_goes_from_link_to_host_and_from_host_to_link(star, ready, kind, dlid):
    """Also with the sender's own LID: the switch sends it nowhere then."""
    bench = star(2)
    data = NO_REQUESTS[kind](dlid)
    bench.posts.append(Post(ready, 1, 0, data))
    bench.run(ready + 1000)
    assert not given_to_agent(bench, 1)
    assert not given_to_agent(bench, 2)
    assert len(bench.of(Kind.TX_DATA, 1)) == 1
    assert [(one.node, one.data) for one in bench.delivered] == ([(2, data)] if dlid == 2 else [])


@pytest.mark.parametrize("kind", NO_REQUESTS)
def test_a_switch_drops_what_is_no_request_and_is_free_again(star, ready, kind):
    bench = with_switch_lid(star(2))
    bench.posts.append(Post(ready, 1, 0, NO_REQUESTS[kind](SWITCH_LID)))
    ask(bench, ready, 1, SWITCH_LID)
    bench.run(ready + 2000)
    dropped, taken = given_to_agent(bench, 0)
    assert taken.c == dropped.cycle + Z_TO_STEP_0 + GRANT_TO_WORD
    assert len(answers(bench)) == 1


# No room for an answer.


def with_link_down(star, ready, *, up_again, **switch):
    """Host 1's link is lost from cycle 1101 on: what is for it waits in ActiveDefer that long."""
    bench = with_switch_lid(star(2, **switch))
    bench.link(ready + 100, 0, False)
    bench.link(up_again, 0, True)
    return bench


def test_an_answer_that_has_no_room_on_its_data_vl_is_dropped_and_the_agent_free_in_the_next_cycle(star, ready):
    """Host 2 asks three times in the name of host 1, whose link is down; there is room for one answer."""
    bench = with_link_down(star, ready, up_again=5000)
    for number in range(3):
        ask(bench, ready + 110, 2, SWITCH_LID, get(transaction_id=number), slid=1)
    bench.run(6000)
    taken = given_to_agent(bench, 0)
    (sent,) = sent_by_agent(bench)
    assert sent.cycle == taken[0].cycle + Z_TO_STEP_0 + ANSWERED + 1
    # Not taken in the cycle after the last step; granted in the next.
    assert taken[2].c == taken[1].cycle + Z_TO_STEP_0 + ANSWERED + 1 + GRANT_TO_WORD
    assert [(node, answer.transaction_id) for node, _, answer in answers(bench)] == [(1, 0)]
    assert bench.delivered[0].cycle > 5000


def test_an_answer_on_another_vl_has_room(star, ready):
    bench = with_link_down(star, ready, up_again=5000, vls=2)
    for slot in (0, 1, 0):
        ask(bench, ready + 110, 2, SWITCH_LID, get(transaction_id=slot), slid=1, slot=slot, sl=slot)
    bench.run(6000)
    assert sorted(answer.transaction_id for _, _, answer in answers(bench)) == [0, 1]


def test_smps_are_answered_while_a_data_vl_has_no_room(star, ready):
    bench = with_link_down(star, ready, up_again=7000)
    for number in range(2):
        ask(bench, ready + 110, 2, SWITCH_LID, get(transaction_id=number), slid=1)
    smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(1,))
    bench.posts.append(Post(ready + 2000, 2, 1, smp_packet(smp).data))
    bench.run(6000)
    assert [(one.node, one.slot) for one in bench.delivered] == [(2, 1)]


# In which cycle a counter is read.


def asked_of(star, ready, attribute, *data_posts, port=2):
    """Host 1 asks the switch about a port; host 2 sends packets to host 3."""
    bench = with_switch_lid(star(3))
    ask(bench, ready, 1, SWITCH_LID, get(attribute, port))
    for cycle in data_posts:
        bench.post(cycle, 2, 3)
    return bench.run(ready + 2000)


def posted_to_count_in(star, ready, attribute, step):
    """When host 2 has to post so that its packet is counted, visible in the cycle in which a read of a step is."""
    quiet = asked_of(star, ready, attribute, ready)
    (received,) = quiet.of(Kind.RX_DATA, 0, 2)
    visible = received.cycle + 1 - ready
    return step_0(quiet) + cycles_to(step, MadMethod.GET, attribute, pma=True) + 2 - visible


@pytest.mark.parametrize(("late", "counted"), [(0, 1), (1, 0)])
@pytest.mark.parametrize(("counter", "step"), [("port_rcv_data", 144 + 8 * 7), ("port_rcv_pkts", 144 + 8 * 9)])
def test_a_counter_is_read_at_its_word_s_step(star, ready, counter, step, late, counted):
    cycle = posted_to_count_in(star, ready, PmaAttribute.PORT_COUNTERS, step)
    bench = asked_of(star, ready, PmaAttribute.PORT_COUNTERS, cycle + late)
    ((_, _, answer),) = answers(bench)
    value = PORT_COUNTERS.unpack(mad_data(answer))[counter]
    rows = len(bench.words(2, 3))
    assert value == counted * (rows if counter == "port_rcv_data" else 1)


@pytest.mark.parametrize(("late", "counted"), [(0, 1), (1, 0)])
def test_a_counter_of_64_bits_is_read_at_the_step_of_its_upper_half(star, ready, late, counted):
    """The packet carries into the upper half: neither half is read a packet later than the other."""
    attribute = PmaAttribute.PORT_COUNTERS_EXTENDED
    cycle = posted_to_count_in(star, ready, attribute, 144 + 8 * 8)
    bench = with_switch_lid(star(3))
    ask(bench, ready, 1, SWITCH_LID, get(attribute, 2))
    bench.write_port(0, 2, PortRegister.EXTENDED_LOW, 0xFFFF_FFFF, 995)
    bench.write_port(0, 2, CounterHigh.RCV_PKTS_HIGH, 6, 996)
    bench.post(cycle + late, 2, 3)
    bench.run(ready + 2000)
    ((_, _, answer),) = answers(bench)
    found = PORT_COUNTERS_EXTENDED.unpack(mad_data(answer))
    assert found.port_rcv_pkts == (6 << 32 | 0xFFFF_FFFF) + counted


def test_a_request_and_its_answer_are_packets_that_are_counted_too(star, ready):
    """The switch reads PortRcvPkts with the request in it, and PortXmitPkts without the answer."""
    bench = with_switch_lid(star(2))
    ask(bench, ready, 1, SWITCH_LID)
    ask(bench, ready, 1, SWITCH_LID)
    bench.run(ready + 3000)
    found = [PORT_COUNTERS.unpack(mad_data(answer)) for _, _, answer in answers(bench)]
    assert [(one.port_rcv_pkts, one.port_xmit_pkts, one.port_xmit_data) for one in found] == [(2, 0, 0), (2, 1, N)]


def test_a_counter_that_is_set_goes_on_from_there(star, ready):
    bench = with_switch_lid(star(2))
    data = PORT_COUNTERS.pack(port_select=1, counter_select=1 << 14, port_xmit_pkts=100)
    ask(bench, ready, 1, SWITCH_LID, perf_request(MadMethod.SET, PmaAttribute.PORT_COUNTERS, data, transaction_id=1))
    ask(bench, ready + 1000, 1, SWITCH_LID)
    bench.run(ready + 3000)
    found = [PORT_COUNTERS.unpack(mad_data(answer)) for _, _, answer in answers(bench)]
    assert [one.port_xmit_pkts for one in found] == [100, 101], "with the first answer"
