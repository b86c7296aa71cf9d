"""Trap 0 of a switch, about wrong CC_Keys (docs/management.md, sections 5 and 7)."""

from itertools import pairwise

import pytest

from model.kernel import UPDATE
from model.management.mad_in_packet import gmp_in, smp_in
from tests.agent_steps import of_trap
from tests.model.management.agent_bench import SWITCH, Bench, change
from wire.congestion_control import CC_CLASS_PORT_INFO, CC_MAD, CC_NOTICE, CcAttribute, cc_request
from wire.headers import BTH, DETH, LRH
from wire.mad import MadMethod, MgmtClass, mad_data
from wire.notice import TrapNumber, details_of
from wire.packet import parse
from wire.port_info import PORT_INFO
from wire.port_tables import SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER
from wire.registers import lft_address
from wire.sma import SmaAttribute
from wire.smp import smp_request

A = CcAttribute
CC_KEY, LINK_STATE = TrapNumber.BAD_CC_KEY, TrapNumber.LINK_STATE_CHANGE
LID, SM_LID, CCM_LID = 21, 33, 44
SM_PORT, CCM_PORT = 3, 2
KEY, WRONG = 0xCC00_0000_0000_0001, 0x0123_4567_89AB_CDEF
TIMEOUT = 3
AGAIN = 1024 << TIMEOUT
NO_ANSWER = 16
WORK = len(of_trap())
TOLD_AFTER = NO_ANSWER + 2 + WORK
"""Cycles from step 0 of a request with a wrong key to the offer of the trap."""
TARGET = {"trap_lid": CCM_LID, "trap_sl": 1, "trap_p_key": 0x8123, "trap_qp": 0xABCDEF, "trap_q_key": 0x8765_4321}


def with_key(**port_info):
    """A switch with LID 21 and a CC_Key that a Get has to have too; the managers' LIDs are behind ports 3 and 2."""
    bench = Bench(SWITCH)
    bench.registers |= {lft_address(SM_LID): SM_PORT, lft_address(CCM_LID): CCM_PORT}
    bench.set_port_info({"lid": LID, "subnet_timeout": TIMEOUT, **port_info})
    bench.agent.cc_key.record = bench.agent.cc_key.record.replace(cc_key=KEY, protect_bit=1)
    bench.events.clear()
    return bench


def tell(bench, fields, cycle=None):
    """ClassPortInfo's trap fields are these, visible in a cycle."""
    data = CC_CLASS_PORT_INFO.pack(fields)

    def write():
        for word in range(22, 26):
            bench.agent.cc_class_port_info.write(word, int.from_bytes(data[4 * word :][:4], "big"))

    bench.at(bench.kernel.now if cycle is None else cycle, UPDATE, write)


@pytest.fixture
def node():
    """One without a Subnet Manager, which tells a congestion control manager."""
    bench = with_key()
    tell(bench, TARGET)
    return bench


def request(method, attribute, cc_key=WRONG, **fields):
    return cc_request(method, attribute, transaction_id=9, cc_key=cc_key).replace(**fields)


def violate(bench, at, cc_key=WRONG, **where):
    """A Get with a wrong key, its step 0 in this cycle."""
    bench.ask_perf(request(MadMethod.GET, A.CONGESTION_INFO, cc_key), at - 4, **where)


def repress(bench, at, events=1, *, cc_key=KEY, attribute=A.NOTICE, **fields):
    mad = cc_request(MadMethod.TRAP_REPRESS, attribute, transaction_id=CC_KEY << 32 | events, cc_key=cc_key)
    bench.ask_perf(mad.replace(**fields), at - 4)


def sent(bench):
    """Cycles and MADs of the traps offered."""
    offers = [
        (cycle, gmp_in(data) if slot < SWITCH.vls else smp_in(data)) for cycle, _, data, slot in bench.of("offer")
    ]
    return [(cycle, mad) for cycle, mad in offers if mad.method == MadMethod.TRAP]


def traps(bench):
    """Cycle of the offer, trap number and count of events, of each."""
    return [(cycle, mad.transaction_id >> 32, mad.transaction_id & 0xFFFF_FFFF) for cycle, mad in sent(bench)]


def told(mad):
    return details_of(CC_NOTICE.unpack(mad_data(mad)))


# What is told, and to whom.


def test_the_packet(node):
    now = node.kernel.now
    violate(node, now + 100, slid=0x1234)
    node.run(now + 1000)
    ((offered, output, data, slot),) = node.of("offer")
    assert (offered, output, slot) == (now + 100 + TOLD_AFTER, CCM_PORT - 1, 1)
    packet = parse(data)
    assert packet.lrh == LRH.record(vl=0, sl=1, lnh=2, dlid=CCM_LID, pkt_len=72, slid=LID)
    assert packet.header(BTH) == BTH.record(opcode=0x64, p_key=0x8123, dest_qp=0xABCDEF)
    assert packet.header(DETH) == DETH.record(q_key=0x8765_4321, src_qp=1)
    assert packet.icrc_good
    head = bytes.fromhex("01 21 02 05 0000 0000 0000000000000001 0002 0000 00000000")
    body = bytes.fromhex("82 000002 0000 0015 0000 1234 01 00 0011 0000 00000000 00 000001 0123456789ABCDEF")
    assert packet.payload == (head.ljust(64, b"\0") + body).ljust(256, b"\0")


@pytest.mark.parametrize(
    "mad",
    [
        request(MadMethod.GET, A.CLASS_PORT_INFO),
        request(MadMethod.SET, A.SWITCH_PORT_CONGESTION_SETTING, attribute_modifier=0x1234_5678),
        request(MadMethod.SET, 0xFFFF, class_version=1),
        request(MadMethod.TRAP_REPRESS, A.NOTICE),
        request(MadMethod.TRAP_REPRESS, A.TIME_STAMP, cc_key=0),
    ],
)
def test_it_tells_of_whatever_request_had_a_wrong_key(node, mad):
    now = node.kernel.now
    grh = {"ip_ver": 6, "nxt_hdr": 0x1B, "sgid": 1, "dgid": 2}
    node.ask_perf(mad, now + 96, slid=5, src_qp=0x777, grh=grh)
    node.run(now + 1000)
    ((_, trap),) = sent(node)
    details = told(trap)
    asked = {name: mad[name] for name in ("method", "attribute_id", "attribute_modifier", "cc_key")}
    assert details == details.layout.record(asked, slid=5, qp=1)


@pytest.mark.parametrize(("key", "protect"), [(KEY, 1), (WRONG, 0)])
def test_of_what_is_answered_nobody_is_told(node, key, protect):
    node.agent.cc_key.record = node.agent.cc_key.record.replace(protect_bit=protect)
    now = node.kernel.now
    violate(node, now + 100, key, slid=SM_LID)
    node.run(now + 2000)
    assert [gmp_in(data).method for _, _, data, _ in node.of("offer")] == [MadMethod.GET_RESP]


def test_without_a_trap_lid_nobody_is_told_a_subnet_manager_neither():
    bench = with_key(master_sm_lid=SM_LID)
    tell(bench, TARGET | {"trap_lid": 0})
    now = bench.kernel.now
    violate(bench, now + 100)
    tell(bench, TARGET, now + 500)
    bench.run(now + AGAIN)
    assert not bench.of("offer")
    violate(bench, now + AGAIN + 100)
    bench.run(now + AGAIN + 1000)
    assert traps(bench) == [(now + AGAIN + 100 + TOLD_AFTER, CC_KEY, 1)], "the first event"


@pytest.mark.parametrize(("late", "is_told"), [(0, True), (1, False)])
def test_the_trap_lid_counts_that_is_visible_at_step_0_of_the_violation(late, is_told):
    bench = with_key()
    now = bench.kernel.now
    violate(bench, now + 100)
    tell(bench, TARGET, now + 100 + late)
    bench.run(now + 1000)
    assert bool(sent(bench)) == is_told


def test_it_tells_of_the_latest_violation_also_of_one_when_there_was_no_trap_lid(node):
    now = node.kernel.now
    violate(node, now + 100, 1)
    tell(node, {}, now + 1000)
    violate(node, now + 1100, 2)
    tell(node, TARGET, now + 1200)
    node.run(now + 2 * AGAIN)
    assert [(mad.transaction_id, told(mad).cc_key) for _, mad in sent(node)] == [(1, 1), (1, 2)]


def test_a_trap_needs_a_lid():
    bench = Bench(SWITCH)
    bench.registers[lft_address(CCM_LID)] = CCM_PORT
    bench.agent.cc_key.record = bench.agent.cc_key.record.replace(cc_key=KEY, protect_bit=1)
    tell(bench, TARGET)
    violate(bench, 104)
    bench.run(2000)
    assert not sent(bench)
    bench.ask(change(SmaAttribute.PORT_INFO, PORT_INFO.pack(lid=LID, subnet_timeout=TIMEOUT)), 2100)
    bench.run(5000)
    assert [events for *_, events in traps(bench)] == [1], "it was pending all the time"


@pytest.mark.parametrize(("late", "said"), [(0, (CCM_LID + 1, 2, 3, 4)), (1, (CCM_LID, 0x8123, 0xABCDEF, 0x8765_4321))])
def test_it_goes_to_where_class_port_info_says_at_its_step_0(node, late, said):
    now = node.kernel.now
    step_0 = now + 100 + NO_ANSWER + 2
    violate(node, now + 100)
    other = {"trap_lid": CCM_LID + 1, "trap_sl": 2, "trap_p_key": 2, "trap_qp": 3, "trap_q_key": 4}
    tell(node, other, step_0 + late)
    node.registers[lft_address(CCM_LID + 1)] = CCM_PORT
    node.run(now + 1000)
    ((_, _, data, slot),) = node.of("offer")
    packet = parse(data)
    assert (packet.lrh.dlid, packet.bth.p_key, packet.bth.dest_qp, packet.header(DETH).q_key) == said
    assert (packet.lrh.sl, slot) == ((1, 1) if late else (2, 0))
    assert node.of("read") == [(step_0 + 2, lft_address(packet.lrh.dlid))]


def test_a_trap_lid_withdrawn_before_step_0_leads_by_the_route_of_0(node):
    now = node.kernel.now
    violate(node, now + 100)
    tell(node, {}, now + 100 + NO_ANSWER + 1)
    node.run(now + AGAIN)
    assert node.of("trap") == [], "the agent is not free in between"
    assert [address for _, address in node.of("read")] == [lft_address(0)]
    assert not node.of("offer")
    assert node.of("freed") == [(now + 100 + TOLD_AFTER,)]


# Its VL.


@pytest.mark.parametrize("sl", range(16))
def test_at_first_it_is_on_the_vl_of_the_sl_modulo_their_number(node, sl):
    tell(node, TARGET | {"trap_sl": sl})
    now = node.kernel.now
    violate(node, now + 100)
    node.run(now + 1000)
    assert [(LRH.unpack(data).sl, slot) for _, _, data, slot in node.of("offer")] == [(sl, sl % SWITCH.vls)]


@pytest.mark.parametrize(("vl", "slots"), [(0, [0]), (1, [1]), (2, []), (15, [])])
def test_it_is_on_the_vl_of_input_0_and_the_output_of_route_if_there_is_that(node, vl, slots):
    """A trap that is dropped has had all its steps; it is tried again."""
    for output, there in ((CCM_PORT, vl), (0, 1 - vl % 2), (SM_PORT, 1 - vl % 2)):
        modifier = SL_TO_VL_MODIFIER.to_int(input_port=0, output_port=output)
        node.write(SmaAttribute.SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MAPPING_TABLE.pack([0, there]), modifier)
    node.events.clear()
    now = node.kernel.now
    violate(node, now + 100)
    node.run(now + 1000)
    assert [slot for *_, slot in node.of("offer")] == slots
    first = now + 100 + TOLD_AFTER
    assert node.of("freed") == [(first + 73 if slots else first,)]
    node.run(now + 1000 + AGAIN)
    assert node.of("trap") == [(first - WORK + AGAIN,)]


@pytest.mark.parametrize("lid", [CCM_LID + 1, SWITCH.lft_size, 0xC000, 0xFFFF])
def test_it_is_dropped_where_route_leads_nowhere(node, lid):
    tell(node, TARGET | {"trap_lid": lid})
    now = node.kernel.now
    violate(node, now + 100)
    node.run(now + 1000)
    assert not node.of("offer")
    assert node.of("freed") == [(now + 100 + TOLD_AFTER,)]
    assert len(node.of("read")) == (lid < SWITCH.lft_size)


# Until it is repressed.


def test_it_is_sent_again_until_it_is_repressed(node):
    now = node.kernel.now
    violate(node, now + 100)
    node.run(now + 2 * AGAIN + 1500)
    again = [(now + 100 + TOLD_AFTER + turn * (AGAIN + 2), CC_KEY, 1) for turn in range(3)]
    assert traps(node) == again
    repress(node, node.kernel.now + 100)
    node.run(node.kernel.now + 5 * AGAIN)
    assert traps(node) == again


@pytest.mark.parametrize("fields", [{}, {"class_version": 1}, {"attribute_modifier": 5}])
def test_a_repress_has_no_answer_and_16_steps_whatever_its_version_and_modifier(node, fields):
    now = node.kernel.now
    violate(node, now + 100)
    node.run(now + 1000)
    node.events.clear()
    repress(node, now + 1100, **fields)
    node.run(now + 2 * AGAIN)
    assert node.events == [(now + 1100 + NO_ANSWER, "freed")]
    assert node.agent.cc_key.record.violations == 1


def test_where_there_is_no_key_any_is_good(node):
    now = node.kernel.now
    violate(node, now + 100)
    node.run(now + 1000)
    node.agent.cc_key.record = node.agent.cc_key.record.replace(cc_key=0)
    repress(node, now + 1100, cc_key=WRONG)
    node.run(now + 2 * AGAIN)
    assert len(sent(node)) == 1


@pytest.mark.parametrize(
    ("events", "fields"),
    [(2, {}), (0, {}), (LINK_STATE << 32 | 1, {}), (1, {"attribute": A.CONGESTION_INFO}), (1, {"attribute": 0})],
)
def test_another_repress_does_not_end_it(node, events, fields):
    now = node.kernel.now
    violate(node, now + 100)
    repress(node, now + 1000, events, **fields)
    node.run(now + 2 * AGAIN)
    assert [events for *_, events in traps(node)] == [1, 1]


def test_a_repress_with_a_wrong_key_is_a_violation_more(node):
    now = node.kernel.now
    violate(node, now + 100)
    repress(node, now + 1000, cc_key=WRONG + 1)
    node.run(now + 2 * AGAIN)
    assert [events for *_, events in traps(node)] == [1, 2]
    last = told(sent(node)[-1][1])
    assert (last.method, last.attribute_id, last.cc_key) == (MadMethod.TRAP_REPRESS, A.NOTICE, WRONG + 1)
    assert node.agent.cc_key.record.violations == 2


def test_a_repress_of_an_older_event_does_not_end_a_newer_one(node):
    now = node.kernel.now
    violate(node, now + 100)
    violate(node, now + 1000)
    repress(node, now + 1500)
    node.run(now + 2 * AGAIN)
    assert [events for *_, events in traps(node)] == [1, 2]


@pytest.mark.parametrize("path", [None, ()])
def test_a_repress_of_subnet_management_does_not_end_it(node, path):
    now = node.kernel.now
    violate(node, now + 100)
    smp = smp_request(MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE, transaction_id=CC_KEY << 32 | 1, path=path)
    node.ask(smp, now + 1000, dlid=LID)
    node.run(now + 2 * AGAIN)
    assert [events for *_, events in traps(node)] == [1, 1]


def test_a_repress_of_congestion_control_ends_no_other():
    bench = with_key(master_sm_lid=SM_LID)
    now = bench.kernel.now
    bench.state_changes(now + 100, 4, 1)
    repress(bench, now + 1000, LINK_STATE << 32 | 1)
    bench.run(now + 2 * AGAIN)
    assert [trap for _, trap, _ in traps(bench)] == [LINK_STATE] * 2


def test_another_class_s_repress_is_for_nobody(node):
    now = node.kernel.now
    violate(node, now + 100)
    repress(node, now + 1000, mgmt_class=MgmtClass.PERF)
    node.run(now + 2 * AGAIN)
    assert [events for *_, events in traps(node)] == [1, 1]


# The trap LID while it is pending.


def test_it_waits_for_a_trap_lid_that_was_withdrawn(node):
    now = node.kernel.now
    violate(node, now + 100)
    tell(node, TARGET | {"trap_lid": 0}, now + 1000)
    node.run(now + 3 * AGAIN)
    assert len(sent(node)) == 1
    tell(node, TARGET, now + 3 * AGAIN + 77)
    node.run(now + 4 * AGAIN)
    assert node.of("trap") == [(now + 3 * AGAIN + 77,)], "in the cycle in which it is visible"
    assert traps(node)[1:] == [(now + 3 * AGAIN + 77 + 2 + WORK, CC_KEY, 1)]


def test_it_may_be_repressed_meanwhile(node):
    now = node.kernel.now
    violate(node, now + 100)
    tell(node, {}, now + 1000)
    repress(node, now + 1100)
    tell(node, TARGET, now + 1200)
    node.run(now + 3 * AGAIN)
    assert len(sent(node)) == 1


def test_a_trap_lid_does_not_shorten_the_timer(node):
    now = node.kernel.now
    violate(node, now + 100)
    tell(node, {}, now + 1000)
    tell(node, TARGET, now + 2000)
    node.run(now + 2 * AGAIN)
    assert [cycle for cycle, *_ in traps(node)] == [now + 100 + TOLD_AFTER + turn * (AGAIN + 2) for turn in range(2)]


def test_a_trap_lid_that_shows_while_the_agent_works_makes_it_due_when_that_is_done(node):
    now = node.kernel.now
    violate(node, now + 100)
    tell(node, {}, now + 1000)
    node.run(now + 3 * AGAIN)
    node.events.clear()
    repress(node, now + 3 * AGAIN + 100, 7)
    tell(node, TARGET, now + 3 * AGAIN + 100 + NO_ANSWER)
    node.run(now + 4 * AGAIN)
    assert [cycle for cycle, *_ in node.of("offer")] == [now + 3 * AGAIN + 100 + NO_ANSWER + 2 + WORK]
    assert not node.of("trap")


# Turns, and one timer.


def both():
    """A switch that tells both managers."""
    bench = with_key(master_sm_lid=SM_LID)
    tell(bench, TARGET)
    return bench


def test_it_takes_turns_with_traps_to_the_subnet_manager():
    bench = both()
    now = bench.kernel.now
    violate(bench, now + 100)
    bench.state_changes(now + 200, 4, 1)
    bench.run(now + 4 * AGAIN)
    assert [trap for _, trap, _ in traps(bench)] == [CC_KEY, LINK_STATE, CC_KEY, LINK_STATE]
    step_0s = [cycle - WORK for cycle, *_ in traps(bench)]
    assert {after - before for before, after in pairwise(step_0s)} == {AGAIN + 2}


def test_it_goes_behind_trap_259_and_before_trap_128():
    bench = both()
    now = bench.kernel.now
    bench.p_key_rejected(now + 100, 1, 2)
    violate(bench, now + 1000)
    bench.state_changes(now + 1100, 4, 1)
    bench.run(now + 4 * AGAIN)
    assert [trap for _, trap, _ in traps(bench)] == [259, CC_KEY, LINK_STATE, 259]


def test_without_a_trap_lid_it_is_not_waited_for():
    bench = both()
    now = bench.kernel.now
    bench.state_changes(now + 100, 4, 1)
    violate(bench, now + 1000)
    tell(bench, {}, now + 1100)
    bench.run(now + 3 * AGAIN)
    assert [trap for _, trap, _ in traps(bench)] == [LINK_STATE] * 3


def test_without_a_subnet_manager_other_events_are_lost(node):
    node.set_port_info({"m_key": 5})
    now = node.kernel.now
    node.ask(change(SmaAttribute.GUID_INFO, b"", m_key=6), now + 100)
    node.state_changes(now + 200, 4, 1)
    violate(node, now + 300)
    node.run(now + 3 * AGAIN)
    assert [trap for _, trap, _ in traps(node)] == [CC_KEY] * 3


@pytest.mark.parametrize(("late", "chosen"), [(-1, CC_KEY), (0, CC_KEY), (1, LINK_STATE)])
def test_it_is_chosen_in_the_cycle_in_which_the_trap_takes_the_agent(late, chosen):
    """Its turn is behind that of 128, which was sent before."""
    bench = both()
    now = bench.kernel.now
    bench.state_changes(now + 100, 4, 1)
    due = now + 104 + AGAIN
    violate(bench, now + 1000)
    tell(bench, {}, now + 1100)
    tell(bench, TARGET, due + late)
    bench.run(now + 2 * AGAIN)
    assert bench.of("trap") == [(now + 102,), (due,)]
    assert [trap for _, trap, _ in traps(bench)] == [LINK_STATE, chosen]


@pytest.mark.parametrize("offset", [-1, 0, 1, WORK - 1, WORK])
def test_it_stands_still_for_the_test_bus(node, offset):
    now = node.kernel.now
    step_0 = now + 100 + NO_ANSWER + 2
    violate(node, now + 100)
    node.hold([step_0 + offset])
    node.run(now + 1000)
    delay = 1 if 0 <= offset < WORK else 0
    assert [cycle for cycle, *_ in node.of("offer")] == [step_0 + WORK + delay]


def test_its_class_is_that_of_congestion_control(node):
    now = node.kernel.now
    violate(node, now + 100)
    node.run(now + 1000)
    ((_, mad),) = sent(node)
    assert mad.layout == CC_MAD
