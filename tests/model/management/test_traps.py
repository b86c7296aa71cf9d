"""PortStateChange and traps (docs/management.md, section 5)."""

import pytest

from model.kernel import DECIDE, MATCH, STATE
from model.management.mad_in_packet import smp_in
from model.management.traps import Traps, transaction_id
from tests.agent_steps import cycles_to, of_trap, steps_of_request
from tests.model.management.agent_bench import ADAPTER, SWITCH, Bench, change, get
from wire.codes import PortState
from wire.headers import BTH, DETH, LRH
from wire.mad import MadMethod, MadStatus, mad_data
from wire.notice import NOTICE, NoticeType, ProducerType, TrapNumber, details_of, notice
from wire.packet import parse
from wire.port_info import ADAPTER_CAPABILITIES, PORT_INFO, CapabilityMask
from wire.registers import lft_address
from wire.sma import SmaAttribute
from wire.smp import SMP_LID_ROUTED, smp_request
from wire.stimulus import KeyViolation
from wire.switch_info import SWITCH_INFO

DOWN, INITIALIZE, ARMED, ACTIVE, DEFER = (PortState(code) for code in range(1, 6))
LINK_STATE, LOCAL, BAD_KEY = TrapNumber.LINK_STATE_CHANGE, TrapNumber.LOCAL_CHANGES, TrapNumber.BAD_M_KEY
P_KEY, Q_KEY, AT_SWITCH = TrapNumber.BAD_P_KEY, TrapNumber.BAD_Q_KEY, TrapNumber.BAD_P_KEY_AT_SWITCH
CC_KEY = TrapNumber.BAD_CC_KEY
LID, SM_LID, SM_SL = 21, 33, 5
TIMEOUT = 3
AGAIN = 1024 << TIMEOUT
KEY = 77
WORK = len(of_trap())
CONFIGURATION = {"lid": LID, "master_sm_lid": SM_LID, "master_sm_sl": SM_SL, "subnet_timeout": TIMEOUT}


def configured(bench):
    """An agent that knows its Subnet Manager; now a multiple of 1000 and the agent free."""
    bench.registers[lft_address(SM_LID)] = 3
    assert bench.set_port_info(CONFIGURATION).status == MadStatus.OK
    bench.events.clear()
    return bench


@pytest.fixture
def node():
    return configured(Bench(SWITCH))


@pytest.fixture
def host():
    return configured(Bench(ADAPTER))


def sent(bench):
    """Cycles and SMPs of the traps offered."""
    offers = [(cycle, smp_in(data)) for cycle, _, data, _ in bench.of("offer")]
    return [(cycle, smp) for cycle, smp in offers if smp.method == MadMethod.TRAP]


def traps(bench):
    """Cycle of the offer, trap number and count of events, of each."""
    return [(cycle, smp.transaction_id >> 32, smp.transaction_id & 0xFFFF_FFFF) for cycle, smp in sent(bench)]


def repress(transaction_id, attribute=SmaAttribute.NOTICE, **fields):
    return smp_request(MadMethod.TRAP_REPRESS, attribute, transaction_id=transaction_id, path=()).replace(**fields)


def violate(bench, at, **fields):
    """A Set with a wrong key, its step 0 in this cycle."""
    bench.ask(change(SmaAttribute.GUID_INFO, b"", **fields), at - 4)


# PortStateChange.


def port_state_change(bench):
    return SWITCH_INFO.unpack(mad_data(bench.carry_out(get(SmaAttribute.SWITCH_INFO)))).port_state_change


@pytest.mark.parametrize(
    ("old", "new", "by_write", "is_told"),
    [
        (DOWN, INITIALIZE, False, 1),
        (INITIALIZE, DOWN, False, 1),
        (ARMED, DOWN, False, 1),
        (ACTIVE, DOWN, False, 1),
        (DEFER, DOWN, False, 1),
        (ARMED, DOWN, True, 0),
        (INITIALIZE, ARMED, False, 0),
        (ARMED, ACTIVE, False, 0),
        (ACTIVE, DEFER, False, 0),
        (DEFER, ACTIVE, False, 0),
    ],
)
def test_what_port_state_change_tells(switch, old, new, by_write, is_told):
    assert port_state_change(switch) == 0
    switch.state_changes(switch.kernel.now + 10, old, new, by_write=by_write)
    assert port_state_change(switch) == is_told
    assert port_state_change(switch) == is_told, "until it is cleared"


@pytest.mark.parametrize(("late", "shown"), [(0, 1), (1, 0)])
def test_port_state_change_is_visible_a_cycle_after_the_state_and_read_at_step_160(switch, late, shown):
    start = 104
    switch.state_changes(start + cycles_to(160, MadMethod.GET, SmaAttribute.SWITCH_INFO) - 1 + late, ACTIVE, DOWN)
    switch.ask(get(SmaAttribute.SWITCH_INFO))
    switch.run()
    assert SWITCH_INFO.unpack(mad_data(switch.answer())).port_state_change == shown


@pytest.mark.parametrize(("value", "after"), [(0, 1), (1, 0)])
def test_a_1_clears_port_state_change(switch, value, after):
    switch.state_changes(10, ACTIVE, DOWN)
    switch.carry_out(change(SmaAttribute.SWITCH_INFO, SWITCH_INFO.pack(port_state_change=value)))
    assert SWITCH_INFO.unpack(mad_data(switch.answer())).port_state_change == after
    assert port_state_change(switch) == after


@pytest.mark.parametrize(("late", "after"), [(-1, 0), (0, 1), (1, 1)])
def test_a_change_in_the_cycle_of_its_clearing_wins(switch, late, after):
    switch.state_changes(104 + cycles_to(33, MadMethod.SET, SmaAttribute.SWITCH_INFO) + late, ACTIVE, DOWN)
    switch.ask(change(SmaAttribute.SWITCH_INFO, SWITCH_INFO.pack(port_state_change=1)))
    switch.run()
    assert SWITCH_INFO.unpack(mad_data(switch.answer())).port_state_change == after


def test_an_adapter_has_no_port_state_change(host):
    host.state_changes(host.kernel.now + 10, ACTIVE, DOWN)
    host.run(host.kernel.now + 5000)
    assert not host.events


# When a trap is sent.


def test_a_trap_is_offered_two_cycles_and_its_steps_after_its_event_is_visible(node):
    now = node.kernel.now
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.run(now + 2000)
    assert [event[:3] for event in node.events] == [
        (now + 102, "trap"),
        (now + 102 + 2 + 2, "read", lft_address(SM_LID)),
        (now + 102 + 2 + WORK, "offer", 2),
        (now + 102 + 2 + WORK + 73, "freed"),
    ]


@pytest.mark.parametrize("offset", range(-1, WORK + 4))
def test_a_trap_stands_still_for_the_test_bus(node, offset):
    now = node.kernel.now
    node.state_changes(now + 100, ACTIVE, DOWN)
    start = now + 104
    node.hold([start + offset])
    node.run(now + 2000)
    delay = 1 if 0 <= offset < WORK else 0
    assert [cycle for cycle, *_ in node.of("offer")] == [start + WORK + delay]
    assert [cycle for cycle, *_ in node.of("trap")] == [now + 102]


def test_a_trap_is_sent_again_until_it_is_repressed(node):
    now = node.kernel.now
    start = now + 104
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.run(start + 2 * AGAIN + 1500)
    again = [(start + WORK + turn * (AGAIN + 2), LINK_STATE, 1) for turn in range(3)]
    assert traps(node) == again
    node.ask(repress(LINK_STATE << 32 | 1), node.kernel.now + 100)
    node.run(node.kernel.now + 5 * AGAIN)
    assert traps(node) == again


def test_the_trap_timer_does_not_stand_still(node):
    now = node.kernel.now
    start = now + 104
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.hold(range(start + 1000, start + 2000))
    node.run(start + AGAIN + 1000)
    assert [cycle for cycle, *_ in node.of("offer")] == [start + WORK, start + AGAIN + 2 + WORK]


def test_the_timer_runs_from_step_0_which_may_be_late(node):
    now = node.kernel.now
    start = now + 104
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.hold(range(start, start + 50))
    node.run(start + AGAIN + 1000)
    assert [cycle for cycle, *_ in node.of("offer")] == [start + 50 + WORK, start + 50 + AGAIN + 2 + WORK]


@pytest.mark.parametrize(
    ("transaction_id", "fields"),
    [
        (LINK_STATE << 32 | 2, {}),
        (LINK_STATE << 32, {}),
        (BAD_KEY << 32 | 1, {}),
        (LINK_STATE << 32 | 1, {"attribute": SmaAttribute.NODE_INFO}),
    ],
)
def test_another_repress_does_not_end_it(node, transaction_id, fields):
    now = node.kernel.now
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.ask(repress(transaction_id, **fields), now + 1000)
    node.run(now + 2 * AGAIN)
    assert len(traps(node)) == 2


def test_a_repress_has_no_answer_and_16_steps(node):
    now = node.kernel.now
    node.ask(repress(1), now + 100)
    node.run(now + 2000)
    assert node.events == [(now + 104 + 16, "freed")]


def test_a_repress_of_an_older_event_does_not_end_a_newer_one(node):
    now = node.kernel.now
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.state_changes(now + 900, DOWN, INITIALIZE)
    node.ask(repress(LINK_STATE << 32 | 1), now + 1500)
    node.run(now + 2 * AGAIN)
    assert [events for _, _, events in traps(node)] == [1, 2]
    node.ask(repress(LINK_STATE << 32 | 2), node.kernel.now + 100)
    node.run(node.kernel.now + 3 * AGAIN)
    assert len(traps(node)) == 2


def test_an_event_in_the_cycle_of_a_repress_is_pending(node):
    now = node.kernel.now
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.ask(repress(LINK_STATE << 32 | 1), now + 1500)
    node.state_changes(now + 1504, DOWN, INITIALIZE)
    node.run(now + 2 * AGAIN)
    assert [events for _, _, events in traps(node)] == [1, 2]


def test_ports_that_change_in_one_cycle_are_one_event(node):
    now = node.kernel.now
    for _ in range(3):
        node.state_changes(now + 100, ACTIVE, DOWN)
    node.state_changes(now + 101, DOWN, INITIALIZE)
    node.run(now + AGAIN)
    assert [events for _, _, events in traps(node)] == [2]


def test_a_trap_says_what_is_visible_at_its_step_0(node):
    now = node.kernel.now
    start = now + 104
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.state_changes(start - 2, DOWN, INITIALIZE)
    node.state_changes(start - 1, INITIALIZE, DOWN)
    node.run(now + AGAIN)
    assert [events for _, _, events in traps(node)] == [2]


def test_a_trap_waits_until_the_agent_is_free(node):
    now = node.kernel.now
    node.ask(get(SmaAttribute.NODE_INFO), now + 100)
    node.state_changes(now + 150, ACTIVE, DOWN)
    node.run(now + 2000)
    answered = now + 104 + steps_of_request(MadMethod.GET, SmaAttribute.NODE_INFO)
    free = answered + 73
    assert [cycle for cycle, *_ in node.of("offer")] == [answered, free + 2 + WORK]
    assert [event[:2] for event in node.events if event[1] in ("trap", "freed")] == [(free + 2 + WORK + 73, "freed")], (
        "the agent is not free in between"
    )


@pytest.mark.parametrize(("granted", "goes_first"), [(101, "answer"), (102, "trap")])
def test_a_trap_goes_before_a_packet_that_could_be_granted_in_that_cycle(node, granted, goes_first):
    now = node.kernel.now
    node.state_changes(now + 100, ACTIVE, DOWN)
    # The matcher would grant in `granted`, if it may.
    node.at(now + granted, MATCH, lambda: node.agent.granted() if not node.of("trap") else None)
    node.run(now + 103)
    assert bool(node.of("trap")) == (goes_first == "trap")


def test_a_trap_needs_a_subnet_manager_s_lid():
    bench = Bench(SWITCH)
    bench.registers[lft_address(SM_LID)] = 3
    bench.state_changes(50, ACTIVE, DOWN)
    bench.set_port_info(CONFIGURATION)
    bench.run(bench.kernel.now + AGAIN)
    assert not sent(bench), "before it was known, nothing became pending"
    bench.state_changes(bench.kernel.now + 50, DOWN, INITIALIZE)
    bench.run(bench.kernel.now + AGAIN)
    assert [events for _, _, events in traps(bench)] == [1]


def test_a_trap_needs_a_lid():
    bench = Bench(SWITCH)
    bench.registers[lft_address(SM_LID)] = 3
    bench.set_port_info({"master_sm_lid": SM_LID})
    bench.state_changes(bench.kernel.now + 50, ACTIVE, DOWN)
    bench.run(bench.kernel.now + 1000)
    assert not sent(bench)
    now = bench.kernel.now
    bench.set_port_info({"lid": LID})
    bench.run(now + 5000)
    assert sent(bench), "it was pending all the time"


@pytest.mark.parametrize(("late", "is_told"), [(0, False), (1, True)])
def test_a_subnet_manager_s_lid_is_known_from_the_cycle_after_step_143(late, is_told):
    bench = Bench(SWITCH)
    data = mad_data(bench.carry_out(get(SmaAttribute.PORT_INFO)))
    now = bench.kernel.now
    data = data[:16] + bytes([0, LID, 0, SM_LID]) + data[20:32] + bytes(2) + data[34:]
    bench.ask(change(SmaAttribute.PORT_INFO, data), now + 100)
    bench.state_changes(now + 104 + cycles_to(143, MadMethod.SET, SmaAttribute.PORT_INFO) + late, ACTIVE, DOWN)
    bench.registers[lft_address(SM_LID)] = 3
    bench.run(now + 1000)
    assert bool(sent(bench)) == is_told


def test_an_adapter_s_trap_waits_until_its_port_is_active(host):
    now = host.kernel.now
    host.active = False
    host.host_sm(now + 100, True)
    host.run(now + 1000)
    assert not host.events
    host.at(now + 1100, STATE, lambda: setattr(host, "active", True))
    host.state_changes(now + 1100, ARMED, ACTIVE)
    host.run(now + 3000)
    assert [event[:2] for event in host.events] == [
        (now + 1100, "trap"),
        (now + 1102 + WORK, "offer"),
        (now + 1102 + WORK + 73, "freed"),
    ]


def test_a_trap_that_cannot_be_routed_takes_its_time_and_is_tried_again(node):
    node.registers[lft_address(SM_LID)] = 0
    now = node.kernel.now
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.run(now + AGAIN + 1000)
    assert node.of("trap") == [(now + 102,), (now + 104 + AGAIN,)]
    assert node.of("freed") == [(now + 104 + WORK,), (now + 104 + AGAIN + 2 + WORK,)]


# Turns.


def test_traps_take_turns():
    pending = Traps()
    for trap in (BAD_KEY, LINK_STATE, LOCAL):
        pending.event(trap)
    assert [pending.next(pending.pending) for _ in range(4)] == [LINK_STATE, LOCAL, BAD_KEY, LINK_STATE]
    pending.repress(LOCAL << 32 | 1)
    assert [pending.next(pending.pending) for _ in range(3)] == [BAD_KEY, LINK_STATE, BAD_KEY]


def test_one_that_is_not_due_is_passed_over():
    traps = Traps()
    assert [traps.next(due) for due in ([BAD_KEY], [LINK_STATE, CC_KEY], [LINK_STATE, CC_KEY])] == [
        BAD_KEY,
        CC_KEY,
        LINK_STATE,
    ]


def test_the_turns_of_all_traps():
    pending = Traps()
    order = (LINK_STATE, LOCAL, BAD_KEY, P_KEY, Q_KEY, AT_SWITCH, CC_KEY)
    for trap in sorted(order, reverse=True):
        pending.event(trap)
    assert [pending.next(pending.pending) for _ in range(8)] == [*order, LINK_STATE]


def test_events_are_counted_in_16_bits():
    pending = Traps()
    pending.event(LINK_STATE)
    assert pending.pending == {LINK_STATE: transaction_id(LINK_STATE, 1)} == {LINK_STATE: LINK_STATE << 32 | 1}
    assert transaction_id(LINK_STATE, 0xFFFF) == LINK_STATE << 32 | 0xFFFF
    assert transaction_id(LINK_STATE, 1 << 16) == LINK_STATE << 32


def test_two_traps_of_a_switch_alternate(node):
    node.set_port_info({"m_key": KEY})
    now = node.kernel.now
    violate(node, now + 200)
    node.state_changes(now + 300, ACTIVE, DOWN)
    node.run(now + 4 * AGAIN)
    assert [trap for _, trap, _ in traps(node)] == [BAD_KEY, LINK_STATE, BAD_KEY, LINK_STATE]


# What a trap says.


def test_the_packet_of_a_trap(node):
    now = node.kernel.now
    node.state_changes(now + 100, ACTIVE, DOWN)
    node.run(now + 1000)
    packet = parse(node.of("offer")[0][2])
    assert packet.lrh == LRH.record(vl=15, sl=SM_SL, lnh=2, dlid=SM_LID, pkt_len=72, slid=LID)
    assert packet.header(BTH) == BTH.record(opcode=0x64, p_key=0xFFFF)
    assert packet.header(DETH) == DETH.record()
    assert packet.icrc_good
    smp = sent(node)[0][1]
    body = notice(LINK_STATE, ProducerType.SWITCH, LID, lid=LID)
    assert smp == SMP_LID_ROUTED.record(
        method=MadMethod.TRAP,
        attribute_id=SmaAttribute.NOTICE,
        transaction_id=128 << 32 | 1,
        data=int.from_bytes(body.pack().ljust(64, b"\0"), "big"),
    )
    assert (body.is_generic, body.notice_type) == (1, NoticeType.URGENT)


def told(smp):
    return NOTICE.unpack(mad_data(smp))


@pytest.mark.parametrize("value", [True, False])
def test_trap_144_tells_that_the_host_s_subnet_manager_came_or_went(value):
    bench = Bench(ADAPTER)
    if not value:
        bench.host_sm(1, True)  # no event: there is no one yet to notify
    host = configured(bench)
    now = host.kernel.now
    host.host_sm(now + 100, value)
    host.run(now + 1000)
    ((cycle, smp),) = sent(host)
    assert cycle == now + 102 + 2 + WORK
    said = told(smp)
    assert (said.producer_type, said.trap_number, said.issuer_lid) == (ProducerType.CA, LOCAL, LID)
    details = details_of(said)
    mask = ADAPTER_CAPABILITIES | (CapabilityMask.IS_SM if value else 0)
    assert details == details.layout.record(lid=LID, capability_mask=int(mask))
    (_, output, _, slot) = host.of("offer")[0]
    assert (output, slot) == (0, ADAPTER.vls), "it leaves by the link, on VL15"


def test_a_host_that_says_the_same_again_is_no_event(host):
    host.host_sm(host.kernel.now + 100, False)
    host.run(host.kernel.now + 1000)
    assert not host.events


@pytest.mark.parametrize("path", [None, ()])
def test_trap_256_tells_who_had_a_wrong_key(node, path):
    node.set_port_info({"m_key": KEY})
    now = node.kernel.now
    fields = {} if path is None else {"dr_slid": 99}
    smp = smp_request(
        MadMethod.SET, SmaAttribute.PORT_INFO, 0x12345678, transaction_id=1, m_key=0xABCDEF, path=path
    ).replace(**fields)
    node.ask(smp, now + 100, slid=55, dlid=LID)
    node.run(now + 1000)
    ((cycle, trap),) = sent(node)
    free = now + 104 + 16
    assert cycle == free + 2 + WORK
    assert trap.transaction_id == 256 << 32 | 1
    details = details_of(told(trap))
    assert details == details.layout.record(
        lid=55,
        dr_slid=0 if path is None else 99,
        method=MadMethod.SET,
        attribute_id=SmaAttribute.PORT_INFO,
        attribute_modifier=0x12345678,
        m_key=0xABCDEF,
    )


def test_trap_256_is_about_the_latest_violation(node):
    node.set_port_info({"m_key": KEY})
    now = node.kernel.now
    for at, key in ((1000, 1), (2000, 2), (3000, 3)):
        node.ask(change(SmaAttribute.GUID_INFO, b"", m_key=key), now + at)
    node.run(now + 2 * AGAIN)
    assert [details_of(told(smp)).m_key for _, smp in sent(node)] == [1, 3]
    assert [events for *_, events in traps(node)] == [1, 3]


PACKET = {"key": 0x8000_0012, "slid": 7, "dlid": 8, "sl": 15, "source_qp": 0xFF_FFFE, "dest_qp": 0xAB_CDEF}
DETAILS = {"key": 0x8000_0012, "lid1": 7, "lid2": 8, "sl": 15, "qp1": 0xFF_FFFE, "qp2": 0xAB_CDEF}
"""Of a packet, as the host says it and as a trap does."""


@pytest.mark.parametrize(("found", "trap"), [(KeyViolation.P_KEY, P_KEY), (KeyViolation.Q_KEY, Q_KEY)])
def test_traps_257_and_258_tell_of_the_packet_in_which_the_host_has_found_a_wrong_key(host, found, trap):
    now = host.kernel.now
    host.key_violation(now + 101, found, **PACKET)
    host.run(now + 1000)
    ((cycle, smp),) = sent(host)
    assert cycle == now + 102 + 2 + WORK
    assert smp.transaction_id == trap << 32 | 1
    said = told(smp)
    assert (said.trap_number, said.notice_type) == (trap, NoticeType.SECURITY)
    assert (said.producer_type, said.issuer_lid) == (ProducerType.CA, LID)
    assert details_of(said) == details_of(said).layout.record(**DETAILS)


def test_two_wrong_keys_are_two_traps(host):
    now = host.kernel.now
    host.key_violation(now + 101, KeyViolation.P_KEY | KeyViolation.Q_KEY, **PACKET)
    host.run(now + 2 * AGAIN)
    assert [trap for _, trap, _ in traps(host)] == [P_KEY, Q_KEY]
    assert [details_of(told(smp)).qp2 for _, smp in sent(host)] == [0xAB_CDEF] * 2


@pytest.mark.parametrize(("late", "is_told"), [(0, False), (1, True)])
def test_a_wrong_key_is_an_event_in_the_cycle_in_which_it_is_given(late, is_told):
    """That is, the one before it is visible in the counts. MasterSMLID is visible after step 143."""
    bench = Bench(ADAPTER)
    now = bench.kernel.now
    bench.ask(change(SmaAttribute.PORT_INFO, PORT_INFO.pack(CONFIGURATION, neighbor_mtu=1)), now + 100)
    step = now + 104 + cycles_to(143, MadMethod.SET, SmaAttribute.PORT_INFO)
    bench.key_violation(step + late + 1, KeyViolation.P_KEY)
    bench.run(step + 1000)
    assert bool(sent(bench)) == is_told


@pytest.mark.parametrize(("late", "said"), [(0, (2, 8)), (1, (1, 7))])
def test_a_trap_tells_of_the_latest_packet_as_visible_at_its_step_0(host, late, said):
    now = host.kernel.now
    host.key_violation(now + 101, KeyViolation.Q_KEY, slid=7)
    host.key_violation(now + 103 + late, KeyViolation.Q_KEY, slid=8)
    host.run(now + 1000)
    ((_, smp),) = sent(host)
    assert (smp.transaction_id & 0xFF, details_of(told(smp)).lid1) == said


@pytest.mark.parametrize(("arrival", "port"), [(2, 2), (2, 4)])
def test_trap_259_tells_of_the_packet_that_a_switch_s_port_rejects(node, arrival, port):
    now = node.kernel.now
    node.p_key_rejected(now + 100, arrival, port, p_key=0x8123, slid=7, dlid=8, sl=14)
    node.run(now + 1000)
    ((cycle, smp),) = sent(node)
    assert cycle == now + 102 + 2 + WORK
    said = told(smp)
    assert (said.producer_type, said.trap_number, said.issuer_lid) == (ProducerType.SWITCH, AT_SWITCH, LID)
    details = details_of(said)
    known = {"data_valid": 0xF, "lid1": 7, "lid2": 8, "p_key": 0x8123, "sl": 14, "sw_lid": LID, "port": port}
    assert details == details.layout.record(**known)


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (3, 2, 1)])
def test_packets_that_ports_reject_in_one_cycle_are_one_event_that_of_the_lowest(node, order):
    now = node.kernel.now
    for arrival in order:
        node.p_key_rejected(now + 100, arrival, 4, slid=arrival)
    node.run(now + 1000)
    assert [events for *_, events in traps(node)] == [1]
    assert [details_of(told(smp)).lid1 for _, smp in sent(node)] == [1]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_a_copy_s_packet_is_told_of_behind_another_that_came_by_the_same_port_alone(node, order):
    """Of a packet and a copy that came by port 2, and a packet that came by port 3."""
    now = node.kernel.now
    for slid in order:
        node.p_key_rejected(now + 100, 3 if slid == 3 else 2, 4, is_copy=slid == 2, slid=slid)
    node.run(now + 1000)
    assert [events for *_, events in traps(node)] == [1]
    assert [details_of(told(smp)).lid1 for _, smp in sent(node)] == [1]


def test_a_copy_s_packet_that_came_by_a_lower_port_is_told_of(node):
    now = node.kernel.now
    node.p_key_rejected(now + 100, 3, 4, slid=3)
    node.p_key_rejected(now + 100, 2, 4, is_copy=True, slid=2)
    node.run(now + 1000)
    assert [details_of(told(smp)).lid1 for _, smp in sent(node)] == [2]


@pytest.mark.parametrize(
    ("changed", "told"),
    [(213, [(218 + WORK, "offer")]), (214, [(218 + WORK, "offer")]), (215, [(216, "freed"), (217, "trap")])],
)
def test_an_agent_whose_trap_is_due_when_it_would_be_free_is_not(node, changed, told):
    now = node.kernel.now
    node.ask(repress(0), now + 200 - 4)  # 16 steps
    node.state_changes(now + changed, ACTIVE, DOWN)
    node.run(now + 550)
    events = [(cycle - now, what) for cycle, what, *_ in node.events if what != "read"]
    assert events[: len(told)] == told


def test_a_trap_may_be_due_before_the_one_before_has_left(host):
    host.set_port_info({"subnet_timeout": 0})
    host.is_taken = False
    now = host.kernel.now
    host.host_sm(now + 100, True)
    host.run(now + 3000)
    assert len(sent(host)) == 1
    host.at(now + 3100, DECIDE, host.agent.sent)
    host.run(now + 4000)
    assert [cycle - now for cycle, _ in sent(host)] == [102 + 2 + WORK, 3100 + 2 + WORK]
