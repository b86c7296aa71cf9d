"""Port 0: the agents of switch and adapter in their crossings (docs/management.md, sections 1, 2 and 8)."""

import pytest

from tests.agent_steps import cycles_to, of_trap, steps_of_request
from wire.codes import VL15, PortState
from wire.crc import fingerprint
from wire.mad import MadMethod, mad_data
from wire.node_info import NODE_INFO
from wire.port_info import PORT_INFO, CapabilityMask
from wire.registers import Counter, PortRegister, lft_address
from wire.sma import SmaAttribute
from wire.smp import smp_request, unpack_smp
from wire.stimulus import Injection, Trigger
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData, TxData

N = 72
"""Words of an SMP's packet."""
TAKE_TO_JOIN = N + 3
JOIN_TO_GRANT = 1
GRANT_TO_WORD = 5
GRANT_TO_Z = GRANT_TO_WORD + N - 1
Z_TO_STEP_0 = 4
PASSED_ON, TRAPPED = 16, len(of_trap())
ANSWERED = steps_of_request(MadMethod.GET, SmaAttribute.NODE_INFO)
"""Steps."""
GRANT_TO_WIRE = 4
WIRE_TO_JOIN = 1 + 1 + 2
"""At a switch behind a link of one cycle: its row 1, and two more."""
WIRE_TO_WHOLE = 1 + N + 2
"""At an adapter."""
FIFO = {"queueing": "fifo", "readers": 1}
MAD = slice(28, -4)


def node_info(*path, transaction_id=1):
    return smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=transaction_id, path=path)


def port_info(*path, modifier=0):
    return smp_request(MadMethod.GET, SmaAttribute.PORT_INFO, modifier, transaction_id=1, path=path)


def delivered_smps(bench):
    return [unpack_smp(delivery.data[MAD]) for delivery in bench.delivered if delivery.data[0] >> 4 == VL15]


def taken_by_agent(bench, node, since=0):
    """DELIVER records of a node's agent."""
    return bench.of(Kind.DELIVER, node, port=0, since=since)


def step_0(bench, node=0):
    """Of the first packet that a node's agent took."""
    return taken_by_agent(bench, node)[0].cycle + Z_TO_STEP_0


@pytest.mark.parametrize("queueing", [{}, FIFO])
def test_an_smp_goes_to_the_switch_by_directed_route_and_its_answer_comes_back(star, ready, queueing):
    bench = star(2, **queueing)
    bench.smp(ready, 1, node_info(1))
    bench.run(ready + 2000)

    expected = []

    def take(node, port, cycle):
        expected.append((cycle + 1, node << 8 | port, Kind.SEND))
        return cycle + TAKE_TO_JOIN + JOIN_TO_GRANT

    def deliver(node, port, granted):
        expected.append((granted + GRANT_TO_Z, node << 8 | port, Kind.DELIVER))
        return granted + GRANT_TO_Z

    def send(node, granted):
        expected.append((granted + GRANT_TO_WIRE + N, node << 8 | 1, Kind.TX_DATA))
        return granted + GRANT_TO_WIRE

    def receive(node, row_0):
        expected.append((row_0 + WIRE_TO_WHOLE, node << 8 | 1, Kind.RX_DATA))

    z = deliver(1, 0, take(1, 1, ready))
    row_0 = send(1, take(1, 0, z + Z_TO_STEP_0 + PASSED_ON))
    receive(0, row_0)
    z = deliver(0, 0, row_0 + WIRE_TO_JOIN + JOIN_TO_GRANT)
    row_0 = send(0, take(0, 0, z + Z_TO_STEP_0 + ANSWERED))
    receive(1, row_0)
    z = deliver(1, 0, row_0 + WIRE_TO_WHOLE + JOIN_TO_GRANT)
    end = deliver(1, 1, take(1, 0, z + Z_TO_STEP_0 + PASSED_ON))

    assert [record[:3] for record in bench.records if record.cycle >= ready] == sorted(expected)
    assert end == ready + 814
    (answer,) = delivered_smps(bench)
    assert (answer.method, answer.status, answer.d, answer.hop_pointer) == (MadMethod.GET_RESP, 0, 1, 0)
    info = NODE_INFO.unpack(mad_data(answer)[: NODE_INFO.size_bytes])
    identity = bench.parameters.identity("sw")
    assert (info.node_guid, info.num_ports, info.local_port_num) == (identity.node_guid, 2, 1)


def test_an_smp_and_its_answer_go_hop_by_hop_through_the_agents_on_their_way(star, ready):
    bench = star(2)
    bench.smp(ready, 1, node_info(1, 2))
    bench.run(ready + 4000)
    assert [len(taken_by_agent(bench, node, ready)) for node in (0, 1, 2)] == [2, 2, 1]
    (answer,) = delivered_smps(bench)
    info = NODE_INFO.unpack(mad_data(answer)[: NODE_INFO.size_bytes])
    assert info.node_guid == bench.parameters.identity("ca2").node_guid


def test_the_agents_of_two_nodes_work_at_the_same_time_as_each_would_alone(star, ready):
    """One host asks the switch; the other, itself."""

    def records(*asked):
        bench = star(2)
        for host, smp in asked:
            bench.smp(ready, host, smp)
        return [record for record in bench.run(ready + 1500).records if record.cycle >= ready]

    first, second = (1, node_info(1)), (2, node_info())
    assert records(first, second) == sorted(records(first) + records(second))


def test_an_adapters_host_asks_its_own_agent_over_no_link(star, ready):
    bench = star(2)
    bench.smp(ready, 1, node_info())
    bench.run(ready + 1500)
    granted = ready + TAKE_TO_JOIN + JOIN_TO_GRANT
    (came,) = taken_by_agent(bench, 1, ready)
    assert (came.cycle, came.a, came.b, came.c) == (granted + GRANT_TO_Z, 1, N, granted + GRANT_TO_WORD)
    offered = came.cycle + Z_TO_STEP_0 + ANSWERED
    assert [record.cycle for record in bench.of(Kind.SEND, 1, port=0)] == [offered + 1]
    assert [delivery.cycle for delivery in bench.delivered] == [offered + TAKE_TO_JOIN + JOIN_TO_GRANT + GRANT_TO_Z]
    assert not bench.of(Kind.TX_DATA)


def test_what_is_no_smp_passes_an_adapters_agent_by_both_ways(star, ready):
    bench = star(2)
    bench.post(ready, 1, 2, slot=1, vl=VL15, payload=256)
    bench.run(ready + 500)
    assert len(bench.delivered) == 1
    assert not taken_by_agent(bench, 1, ready)
    assert not taken_by_agent(bench, 2, ready)


def test_an_agent_with_nothing_to_say_is_free_at_step_0_of_what_it_drops(star, ready):
    """On VL 0, by an LFT entry 0: it keeps its VL, and is no SMP."""
    bench = star(2, vls=2)
    bench.write(0, lft_address(9), 0, ready)
    for i in range(2):
        bench.post(ready + 10, 1, 9, slot=1, vl=1, payload=256, seed=i)
    bench.run(ready + 1000)
    first, second = taken_by_agent(bench, 0, ready)
    assert (first.a, first.b) == (1, N)
    assert first.d == fingerprint(bench.posts[0].data)
    granted = first.cycle + Z_TO_STEP_0
    assert second.cycle == granted + GRANT_TO_Z
    assert not bench.of(Kind.SEND, 0, port=0)


def test_sl_to_vl_and_neighbormtu_are_of_no_concern_on_the_way_to_port_0(star, ready):
    bench = star(2, vls=2, mtu=2048)
    bench.write(0, lft_address(9), 0, ready)
    bench.write_port(0, 1, PortRegister.OPERATIONAL_VLS, 2, ready + 1)
    bench.write_port(0, 1, PortRegister.NEIGHBOR_MTU, 1, ready + 2)
    bench.post(ready + 10, 1, 9, slot=1, vl=1, sl=1, payload=2048)
    bench.run(ready + 1500)
    (came,) = taken_by_agent(bench, 0, ready)
    assert (came.a, came.b) == (1, len(bench.words(1, 9, payload=2048)))


def test_the_link_has_one_reader_for_an_adapters_host_and_agent_which_take_turns(star, ready):
    """Two packets wait for a host that stalls until an SMP is in transit."""
    bench = star(3)
    bench.stall(ready, 3, 0b01)
    for _ in range(2):
        bench.post(ready + 10, 1, 3, payload=2048)
    smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1)
    bench.smp(ready + 1200, 2, smp, slid=2, dlid=3)
    bench.stall(ready + 1499, 3, 0)
    bench.run(ready + 4000)
    n = len(bench.words(1, 3, payload=2048))
    first = ready + 1500
    (came,) = taken_by_agent(bench, 3, ready)
    smp_granted = first + 1 + n
    assert came.c == smp_granted + GRANT_TO_WORD
    assert [record.c for record in bench.of(Kind.DELIVER, 3, port=1)] == [
        first + GRANT_TO_WORD,
        smp_granted + 1 + N + GRANT_TO_WORD,
    ]


def test_the_trace_tells_what_an_adapters_host_sends_from_what_its_agent_passes_on(star, ready):
    bench = star(2)
    bench.smp(ready, 1, node_info(1))
    bench.post(ready, 1, 2, payload=256)
    bench.run(ready + 2000)
    assert [(TxData.slot.read(record), TxData.input.read(record)) for record in bench.of(Kind.TX_DATA, 1)] == [
        (0, 1),
        (1, 2),
    ]


# What becomes of bad packets.


def cut(row):
    """Row `row` is no clean row: the packet is cut there."""
    return Injection(Trigger.DATA, first=row, last=row, flip=8 << 32)


def test_a_packet_that_ends_early_is_given_to_the_agent_as_far_as_it_came_and_dropped(star, ready):
    bench = star(2)
    bench.inject(ready, 0, 1, cut(20))
    bench.post(ready + 10, 1, 0xFFFF, slot=1, vl=VL15, payload=256)
    bench.post(ready + 10, 1, 0xFFFF, slot=1, vl=VL15, payload=256, seed=1)
    bench.run(ready + 1000)
    first, second = taken_by_agent(bench, 0, ready)
    granted = first.c - GRANT_TO_WORD
    assert first.cycle == granted + 1 + 20 + 3
    assert (first.b, first.d) == (N, fingerprint(bench.posts[0].data[: 4 * 20 - 1] + b"\0"))
    joined = bench.of(Kind.TX_DATA, 1)[1].c + WIRE_TO_JOIN
    assert second.c == max(joined + JOIN_TO_GRANT, first.cycle + Z_TO_STEP_0) + GRANT_TO_WORD


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 20])
def test_blocks_of_an_early_end_return_two_cycles_after_its_last_read(star, ready, rows):
    """Row n - rows is the last; VL 0, so that the blocks are announced."""
    bench = star(2)
    bench.write(0, lft_address(9), 0, ready)
    bench.write_port(0, 1, PortRegister.FCP_THRESHOLD, 0, ready + 1)
    bench.inject(ready + 2, 0, 1, cut(N - rows))
    bench.post(ready + 10, 1, 9, payload=256)
    bench.run(ready + 1000)
    (came,) = taken_by_agent(bench, 0, ready)
    first_read = came.c - 4
    assert came.cycle == first_read + N - rows + 3
    (announced,) = [record for record in bench.of(Kind.TX_FCP, 0, 1) if record.cycle > came.c]
    # Asked for, free one later, flags one later, granted at once, row 1 on the wire 5 later.
    assert announced.cycle == first_read + N - rows + 2 + 1 + 1 + 5


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 20, 0])
def test_the_reader_of_a_packet_for_the_agent_goes_on_after_its_last_read(star, ready, rows):
    """The reader of a `fifo` input, with a packet for another output behind it."""
    bench = star(2, **FIFO)
    bench.write(0, lft_address(9), 0, ready)
    if rows:
        bench.inject(ready + 2, 0, 1, cut(N - rows))
    bench.post(ready + 10, 1, 9, payload=256)
    bench.post(ready + 10, 1, 2, payload=256)
    bench.run(ready + 1000)
    (came,) = taken_by_agent(bench, 0, ready)
    first_read = came.c - 4
    available = first_read + (min(N, N - rows + 3) if rows else N)
    joined = bench.of(Kind.TX_DATA, 1)[1].c + WIRE_TO_JOIN
    (sent,) = bench.of(Kind.TX_DATA, 0, 2)
    assert sent.c == max(available, joined + JOIN_TO_GRANT) + GRANT_TO_WIRE


def test_a_packet_known_to_be_bad_before_its_grant_is_scrapped_and_the_agent_free_eight_cycles_later(star, ready):
    """While the agent answers one host, a bad packet and a good one wait for it."""
    bench = star(3)
    bench.inject(ready, 1, 1, Injection(Trigger.DATA, first=5, last=5, flip=1))
    bench.smp(ready + 10, 1, node_info(1))
    bench.post(ready + 300, 2, 0xFFFF, slot=1, vl=VL15, payload=256)
    bench.post(ready + 300, 3, 0xFFFF, slot=1, vl=VL15, payload=256)
    bench.run(ready + 2000)
    assert [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0, 2)] == [Verdict.PHYSICAL]
    (sent,) = bench.of(Kind.SEND, 0, port=0)
    granted = sent.cycle - 1 + 1 + N
    (scrap,) = bench.of(Kind.SCRAP, 0, port=0)
    assert (scrap.cycle, scrap.a, scrap.b) == (granted + 3, 1 | 1 << 16, N)
    assert [record.c for record in taken_by_agent(bench, 0, ready)][1:] == [granted + 8 + GRANT_TO_WORD]


def test_a_packet_that_is_bad_at_its_end_is_dropped_when_all_of_it_has_come(star, ready):
    """Its VCRC is wrong."""
    bench = star(2)
    bench.inject(ready, 0, 1, Injection(Trigger.DATA, first=40, last=40, flip=1))
    bench.smp(ready + 10, 1, node_info(1))
    bench.smp(ready + 20, 1, node_info(1, transaction_id=2))
    bench.run(ready + 2000)
    first, second = taken_by_agent(bench, 0, ready)
    assert first.cycle == first.c + N - 1
    assert first.d != second.d
    assert [answer.transaction_id for answer in delivered_smps(bench)] == [2]


def test_a_packet_from_a_1x_link_joins_late_as_for_any_4x_output(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.WIDTH, 1, ready - 10)
    bench.write_port(1, 1, PortRegister.WIDTH, 1, ready - 9)
    bench.smp(ready, 1, node_info(1))
    bench.run(ready + 2000)
    (sent,) = bench.of(Kind.TX_DATA, 1)
    (came,) = taken_by_agent(bench, 0, ready)
    joined = sent.c + bench.flight + 4 * (N - N // 4) + 2
    assert came.c == joined + JOIN_TO_GRANT + GRANT_TO_WORD
    assert len(delivered_smps(bench)) == 1


def test_a_late_packet_that_is_cut_before_it_joins_is_cancelled(star, ready):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.WIDTH, 1, ready - 10)
    bench.write_port(1, 1, PortRegister.WIDTH, 1, ready - 9)
    bench.inject(ready, 0, 1, cut(20))
    bench.smp(ready + 10, 1, node_info(1))
    bench.run(ready + 2000)
    (received,) = bench.of(Kind.RX_DATA, 0, 1)
    assert (RxData.verdict.read(received), received.d) == (Verdict.PHYSICAL, 5)
    assert not taken_by_agent(bench, 0, ready)


# Registers.


@pytest.mark.parametrize(("given", "seen"), [(27, 255), (28, 7)])
def test_the_agent_sets_a_register_as_a_bus_would_and_stands_still_for_the_test_bus(star, ready, given, seen):
    """LFT entry 5 is written at step 16 + 8 + 2 + 1 = 27; a read in that very cycle puts it off."""
    table = bytes([255, 255, 255, 255, 255, 7])
    smp = smp_request(MadMethod.SET, SmaAttribute.LINEAR_FORWARDING_TABLE, 0, table, transaction_id=1, path=(1,))

    def set_table(*reads):
        bench = star(2)
        bench.smp(ready, 1, smp)
        for cycle in reads:
            bench.read(0, lft_address(5), cycle)
        return bench.run(ready + 2000)

    start = step_0(set_table())
    bench = set_table(start + given)
    assert bench.values() == [seen]
    (sent,) = bench.of(Kind.SEND, 0, port=0)
    assert sent.cycle == start + steps_of_request(MadMethod.SET, SmaAttribute.LINEAR_FORWARDING_TABLE) + 1 + 1


def test_a_set_of_portinfo_takes_a_port_down_and_the_answer_tells_its_state(star, ready):
    """PortState is written at step 16 + 64 + 3 = 83; step 144 + 64 reads it."""
    data = PORT_INFO.pack(port_state=1, neighbor_mtu=4)
    smp = smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 2, data, transaction_id=1, path=(1,))
    bench = star(2)
    bench.smp(ready, 1, smp)
    bench.run(ready + 2000)
    down, initialize = bench.of(Kind.STATE, 0, 2, since=ready)
    assert (down.cycle, down.a) == (step_0(bench) + cycles_to(83, MadMethod.SET, SmaAttribute.PORT_INFO) + 2, 1)
    assert (initialize.cycle, initialize.a) == (down.cycle + 1, 2)
    (answer,) = delivered_smps(bench)
    assert (answer.status, PORT_INFO.unpack(mad_data(answer)).port_state) == (0, 2)


def test_a_set_of_portinfo_disables_a_port_and_its_neighbour_defers(star, ready):
    """PortPhysicalState is written at step 82, visible two cycles later; the link is down one later."""
    data = PORT_INFO.pack(port_physical_state=3, neighbor_mtu=4)
    smp = smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 2, data, transaction_id=1, path=(1,))
    bench = star(2)
    bench.smp(ready, 1, smp)
    bench.run(ready + 2000)
    deferred = step_0(bench) + cycles_to(82, MadMethod.SET, SmaAttribute.PORT_INFO) + 2 + 1 + 1
    assert [(record.cycle, record.a) for record in bench.of(Kind.STATE, 0, 2)] == [(deferred, 5)]
    assert [(record.cycle, record.a) for record in bench.of(Kind.STATE, 2)] == [(deferred, 5)]
    (answer,) = delivered_smps(bench)
    info = PORT_INFO.unpack(mad_data(answer))
    assert (info.port_state, info.port_physical_state) == (4, 3), "until LINK_DOWN_TIMEOUT"


def test_a_port_disabled_and_taken_down_by_one_set_goes_down_once(star, ready):
    """The link is down before the port could come up once more, and does not count as lost."""
    data = PORT_INFO.pack(port_state=1, port_physical_state=3, neighbor_mtu=4)
    bench = star(2)
    bench.smp(ready, 1, smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 2, data, transaction_id=1, path=(1,)))
    bench.read_port(0, 2, Counter.LINK_DOWNED, ready + 1900)
    bench.run(ready + 2000)
    assert [record.a for record in bench.of(Kind.STATE, 0, 2, since=ready)] == [PortState.DOWN]
    assert bench.values() == [0]


@pytest.mark.parametrize(("later", "is_sm"), [(0, True), (1, False)])
def test_issm_is_what_the_host_says_at_step_184(star, ready, later, is_sm):
    def ask(*said):
        bench = star(2)
        bench.smp(ready, 1, port_info(modifier=1))
        for cycle in said:
            bench.host_sm(cycle, 1, True)
        return bench.run(ready + 1500)

    shown = step_0(ask(), 1) + cycles_to(184, MadMethod.GET, SmaAttribute.PORT_INFO) + later
    (answer,) = delivered_smps(ask(shown - 1))
    assert bool(PORT_INFO.unpack(mad_data(answer)).capability_mask & CapabilityMask.IS_SM) is is_sm


def test_only_an_adapter_has_a_host_with_a_subnet_manager(star, ready):
    bench = star(2)
    bench.host_sm(ready, 0, True)
    with pytest.raises(ValueError, match="node 0 is no adapter"):
        bench.run(ready + 100)


# Traps (section 5).

POST_TO_GRANT = 257
"""Of a directed-route SMP for the switch, if nothing blocks it."""


@pytest.fixture
def trapping(star, ready):
    """A switch that knows its Subnet Manager, LID 1, and has a trap for it; the cycle in which that is due.

    The link at port 2 is not up from 3001 on: ActiveDefer at 3002, Down at 3022, trap 128 pending at 3024. It would be
    sent again 4096 cycles later.
    """
    bench = star(2)
    data = PORT_INFO.pack(lid=7, master_sm_lid=1, subnet_timeout=2)
    bench.smp(ready, 1, smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, data, transaction_id=1, path=(1,)))
    bench.write_port(0, 2, PortRegister.LINK_DOWN_TIMEOUT, 20, ready + 1)
    bench.link(3000, 1, False)
    return bench, 3024


def test_a_trap_is_sent_to_the_subnet_manager_by_the_lft(trapping):
    bench, due = trapping
    bench.run(5000)
    (sent,) = bench.of(Kind.SEND, 0, port=0, since=due)
    assert sent.cycle == due + 2 + TRAPPED + 1
    trap = delivered_smps(bench)[-1]
    assert (trap.method, trap.attribute_id) == (MadMethod.TRAP, SmaAttribute.NOTICE)
    assert trap.transaction_id == 128 << 32 | 1


def test_a_trap_due_in_a_free_agent_goes_before_a_packet_that_could_be_granted_in_that_cycle(trapping):
    bench, due = trapping
    bench.smp(due - POST_TO_GRANT, 1, node_info(1))
    bench.run(5000)
    trap, _ = bench.of(Kind.SEND, 0, port=0, since=due)
    assert trap.cycle == due + 2 + TRAPPED + 1
    (came,) = taken_by_agent(bench, 0, due)
    assert came.c == trap.cycle + N + GRANT_TO_WORD


def test_a_packet_granted_in_the_cycle_before_goes_before_the_trap(trapping):
    bench, due = trapping
    bench.smp(due - 1 - POST_TO_GRANT, 1, node_info(1))
    bench.run(5000)
    (came,) = taken_by_agent(bench, 0, due)
    assert came.c == due - 1 + GRANT_TO_WORD
    answer, trap = bench.of(Kind.SEND, 0, port=0, since=due)
    assert answer.cycle == came.cycle + Z_TO_STEP_0 + ANSWERED + 1
    assert trap.cycle == answer.cycle + N + 2 + TRAPPED + 1
