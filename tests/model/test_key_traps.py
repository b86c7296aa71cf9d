"""Traps about wrong keys, from the packet to the Subnet Manager's host (docs/management.md, sections 5 and 8)."""

import pytest

from tests.agent_steps import of_trap
from tests.model.link.partitions import arrival, checking, iba, post, raw
from wire.codes import Q_KEY_GSI
from wire.congestion_control import (
    CC_CLASS_PORT_INFO,
    CC_MAD,
    CC_NOTICE,
    CC_RESP_TIME,
    CONGESTION_KEY_INFO,
    CcAttribute,
    cc_request,
)
from wire.headers import DETH
from wire.mad import MadMethod, MgmtClass, mad_data
from wire.mad_packet import gmp_packet
from wire.notice import NOTICE, TrapNumber, details_of
from wire.packet import build, parse
from wire.port_info import PORT_INFO
from wire.registers import Detail, PartitionCheck, congestion_address, lft_address, mft_address, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request, unpack_smp
from wire.stimulus import KeyViolation, Operation, Post, WrongKey
from wire.trace import Kind, Verdict
from wire.trace_layout import RxData

IN, OUT, RAW_IN, RAW_OUT = PartitionCheck
FULL = 0x8000
SWITCH_LID, SM_LID = 9, 1
"""The Subnet Manager is at adapter 1."""
SLOW = 4
"""SubnetTimeOut, so that traps come once in these tests."""


def managed(bench, ready, path=(1,), **own):
    """The node at the end of a path knows its Subnet Manager."""
    info = PORT_INFO.pack(lid=SWITCH_LID, master_sm_lid=SM_LID, subnet_timeout=SLOW, **own)
    bench.smp(ready, 1, smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, info, transaction_id=1, path=path))
    return bench


def traps(bench):
    """Their notices, and the cycles in which adapter 1's host has them."""
    smps = [(one.cycle, unpack_smp(one.data[28:-4])) for one in bench.delivered if one.node == 1 and one.slot == 1]
    return [
        (cycle, NOTICE.unpack(mad_data(smp)))
        for cycle, smp in smps
        if smp.mgmt_class == MgmtClass.SUBN_LID_ROUTED and smp.method == MadMethod.TRAP
    ]


def told(bench):
    """What they say."""
    return [details_of(notice) for _, notice in traps(bench)]


@pytest.mark.parametrize("forwarding", ["cut-through", "store-and-forward"])
@pytest.mark.parametrize("grh", [False, True])
@pytest.mark.parametrize(("checks", "port"), [((IN, 0), 1), ((IN, OUT), 1), ((0, OUT), 2)])
def test_a_switch_tells_of_a_p_key_that_a_port_rejects(star, ready, checks, port, grh, forwarding):
    bench = managed(checking(star, checks, [FULL | 9], [FULL | 9], forwarding=forwarding), ready)
    packet = build(
        lrh={"slid": 1, "dlid": 2, "sl": 13},
        grh={} if grh else None,
        bth={"opcode": 4, "p_key": 0x8123, "dest_qp": 5},
        payload=bytes(64),
    )
    words = [int.from_bytes(packet.data[at : at + 4], "big") for at in range(0, len(packet.data), 4)]
    post(bench, ready + 1000, tuple(words))
    bench.run(ready + 5000)
    (details,) = told(bench)
    assert details == details.layout.record(
        data_valid=0xF, lid1=1, lid2=2, p_key=0x8123, sl=13, sw_lid=SWITCH_LID, port=port
    )


@pytest.mark.parametrize("packet", [raw(1, 2), iba(1, 2, FULL | 9)])
def test_neither_raw_packets_nor_members_are_told_of(star, ready, packet):
    checks = (IN | RAW_IN, OUT | RAW_OUT)
    bench = managed(checking(star, checks, [FULL | 9], [FULL | 9]), ready)
    post(bench, ready + 1000, packet)
    bench.run(ready + 5000)
    assert len(bench.of(Kind.RX_DATA, 0, 1, ready + 1000)) == 1
    assert told(bench) == []


def test_nor_is_a_packet_that_is_too_short_to_have_a_p_key(star, ready):
    """It is rejected all the same."""
    bench = managed(checking(star, (IN, 0), [FULL | 9]), ready)
    post(bench, ready + 1000, (0x0003_0002, 8 << 16 | 1, 0, 0, 0, 0, 0, 0))
    bench.run(ready + 5000)
    assert [RxData.verdict.read(one) for one in bench.of(Kind.RX_DATA, 0, 1, ready + 1000)] == [Verdict.RCV_CONSTRAINT]
    assert told(bench) == []


def test_a_multicast_packet_is_told_of_by_the_port_that_it_came_by(star, ready):
    bench = managed(checking(star, (IN, OUT), [FULL | 9]), ready)
    bench.write(0, mft_address(0xC000, 0), 1 << 2)
    post(bench, ready + 1000, iba(1, 0xC000, 5))
    bench.run(ready + 5000)
    assert [(details.lid2, details.p_key, details.port) for details in told(bench)] == [(0xC000, 5, 1)]


@pytest.mark.parametrize(("grh", "payload"), [(False, 0), (True, 64)])
def test_a_copy_is_told_of_by_the_port_that_it_would_have_left_by(star, ready, grh, payload):
    """The others go their ways, and nobody tells of them."""
    bench = managed(checking(star, (0, 0, OUT, OUT), [], [], [FULL | 9], [FULL | 5]), ready)
    bench.write(0, mft_address(0xC000, 0), 0b11110)
    post(bench, ready + 1000, iba(1, 0xC000, 5, grh=grh, payload=payload))
    bench.run(ready + 5000)
    (details,) = told(bench)
    assert details == details.layout.record(data_valid=0xF, lid1=1, lid2=0xC000, p_key=5, sw_lid=SWITCH_LID, port=3)


def test_neither_raw_copies_nor_those_of_packets_too_short_for_a_p_key_are_told_of(star, ready):
    bench = managed(checking(star, (0, OUT | RAW_OUT)), ready)
    bench.write(0, mft_address(0xC000, 0), 0b100)
    post(bench, ready + 1000, raw(1, 0xC000))
    post(bench, ready + 1200, (0x0003_C000, 8 << 16 | 1, 0, 0, 0, 0, 0, 0))
    bench.run(ready + 5000)
    assert len(bench.of(Kind.TX_DISCARD, 0, 2)) == 2
    assert told(bench) == []


def test_a_copy_is_told_of_two_cycles_after_its_table_was_looked_into(star, ready):
    """As a packet is whose verdict is then in the trace, which came by another port: the lower one's is told."""
    words, other = iba(3, 0xC000, 5, payload=0), iba(1, 3, 6)
    said = []
    for late in (-1, 0, 1):
        bench = managed(checking(star, (IN, OUT, 0), [FULL | 9], [FULL | 9]), ready)
        bench.write(0, mft_address(0xC000, 0), 0b100)
        look = arrival(len(words), ready + 1000) + 12
        end = arrival(len(other), ready) + len(other) - ready
        post(bench, ready + 1000, words)
        post(bench, look + late - end, other)
        bench.run(ready + 5000)
        (verdict,) = bench.of(Kind.RX_DATA, 0, 1, ready + 1000)
        assert verdict.cycle == look + 2 + late
        said.append([details.lid1 for details in told(bench)])
    # The trap tells of the latest packet that was rejected before its first step.
    assert said == [[3], [1], [1]]


def test_of_packets_rejected_in_one_cycle_that_of_the_lowest_port_is_told(star, ready):
    bench = managed(checking(star, (0, IN, IN, IN), [], *[[FULL | 9]] * 3), ready)
    for source in (4, 3, 2):
        post(bench, ready + 1000, iba(source, 1, source))
    bench.run(ready + 5000)
    assert [(details.lid1, details.p_key, details.port) for details in told(bench)] == [(2, 2, 2)]


def violations(bench, port, *cycles):
    """What PortInfo.P_KeyViolations of a switch's port is read from, as visible in these cycles, and the next ones."""
    for cycle in cycles:
        bench.read(0, port_address(port, Detail.P_KEY_VIOLATIONS), cycle - 2)


@pytest.mark.parametrize("has_manager", [False, True])
@pytest.mark.parametrize(("checks", "port"), [((IN, 0), 1), ((IN, OUT), 1), ((0, OUT), 2)])
def test_a_wrong_p_key_is_counted_by_the_port_that_rejects_it(star, ready, checks, port, has_manager):
    """Two cycles after its verdict is in the trace, whether there is a Subnet Manager to be told or not."""
    bench = checking(star, checks, [FULL | 9], [FULL | 9])
    if has_manager:
        managed(bench, ready)
    words = iba(1, 2, FULL | 5)
    verdict = arrival(len(words), ready + 1000) + len(words) + 2
    post(bench, ready + 1000, words)
    violations(bench, port, verdict + 1, verdict + 2)
    violations(bench, 3 - port, ready + 4000)
    bench.run(ready + 5000)
    assert [one.cycle for one in bench.of(Kind.RX_DATA, 0, 1, ready + 1000)] == [verdict]
    assert len(told(bench)) == has_manager
    assert bench.values() == [0, 1, 0]


@pytest.mark.parametrize("packet", [raw(1, 2), iba(1, 2, FULL | 9), (0x0003_0002, 8 << 16 | 1, 0, 0, 0, 0, 0, 0)])
def test_what_has_no_p_key_or_a_good_one_is_no_violation(star, ready, packet):
    bench = checking(star, (IN | RAW_IN, OUT | RAW_OUT), [FULL | 9], [FULL | 9])
    post(bench, ready + 1000, packet)
    violations(bench, 1, ready + 4000)
    violations(bench, 2, ready + 4001)
    bench.run(ready + 5000)
    assert len(bench.of(Kind.RX_DATA, 0, 1, ready + 1000)) == 1
    assert bench.values() == [0, 0]


@pytest.mark.parametrize("apart", [0, 1])
def test_wrong_p_keys_of_several_inputs_are_each_counted(star, ready, apart):
    """By one port, in the same cycle too, of which one trap tells."""
    bench = checking(star, (OUT, 0, 0, 0), [FULL | 9])
    for source in (2, 3, 4):
        post(bench, ready + 1000 + apart * source, iba(source, 1, 5))
    violations(bench, 1, ready + 4000)
    bench.run(ready + 5000)
    cycles = {one.cycle for port in (2, 3, 4) for one in bench.of(Kind.RX_DATA, 0, port, ready + 1000)}
    assert len(cycles) == (3 if apart else 1)
    assert bench.values() == [3]


def test_copies_are_counted_by_the_ports_that_they_would_have_left_by(star, ready):
    """Two cycles after the cycle of the event, which is two after that in which the port's table was looked into."""
    bench = checking(star, (0, 0, OUT, OUT), [], [], [FULL | 9], [FULL | 9])
    bench.write(0, mft_address(0xC000, 0), 0b11110)
    words = iba(1, 0xC000, 5)
    for cycle in (ready + 1000, ready + 2000):
        post(bench, cycle, words)
    violations(bench, 1, ready + 1900)
    for port in (2, 3, 4):
        violations(bench, port, ready + 1900 + port)
    violations(bench, 3, ready + 2900)
    bench.run(ready + 5000)
    assert bench.values() == [0, 0, 1, 1, 2]


def test_p_key_violations_are_shown_and_cleared_by_the_subnet_manager(star, ready):
    bench = checking(star, (IN, 0), [FULL | 9])
    get = smp_request(MadMethod.GET, SmaAttribute.PORT_INFO, 1, transaction_id=2, path=(1,))
    keep, clear = (
        smp_request(
            MadMethod.SET,
            SmaAttribute.PORT_INFO,
            1,
            PORT_INFO.pack(neighbor_mtu=4, p_key_violations=value),
            transaction_id=2,
            path=(1,),
        )
        for value in (1, 0)
    )
    for number in range(3):
        post(bench, ready + 100 * number, iba(1, 2, 5))
    for number, smp in enumerate((get, keep, clear, get)):
        bench.smp(ready + 1000 + 1000 * number, 1, smp)
    bench.run(ready + 6000)
    answers = [unpack_smp(one.data[28:-4]) for one in bench.delivered if one.node == 1 and one.slot == 1]
    assert [PORT_INFO.unpack(mad_data(answer)).p_key_violations for answer in answers] == [3, 3, 0, 0]


WRONG = WrongKey(KeyViolation.Q_KEY, 0x1234_5678, 3, 2, 7, 0x12_3456, 0x65_4321)


def test_an_adapter_tells_of_the_packet_in_which_its_host_has_found_a_wrong_q_key(star, ready):
    bench = managed(star(2), ready, path=(1, 2))
    bench._give(ready + 1000, Operation.KEY_VIOLATION, 2, *WRONG.args())
    bench.run(ready + 5000)
    ((_, notice),) = traps(bench)
    assert (notice.trap_number, notice.issuer_lid) == (TrapNumber.BAD_Q_KEY, SWITCH_LID)
    details = details_of(notice)
    known = {"lid1": 3, "lid2": 2, "key": 0x1234_5678, "sl": 7, "qp1": 0x12_3456, "qp2": 0x65_4321}
    assert details == details.layout.record(**known)


def test_a_wrong_key_found_while_the_adapter_is_reset_is_lost(star, ready):
    bench = managed(star(2), ready, path=(1, 2))
    bench._give(ready + 1000, Operation.RESET, 2)
    for late in (1, 5, 20):
        bench._give(ready + 1000 + late, Operation.KEY_VIOLATION, 2, *WRONG.args())
    bench.run(ready + 5000)
    assert traps(bench) == []


# Of a CC_Key.

CCM_LID = 1
"""The congestion control manager is at adapter 1, too."""
CC_KEY = 0xCC


def cc_window(bench, cycle, attribute, layout, **fields):
    """The words of an attribute are written over the test bus."""
    data = layout.pack(fields)
    for word in range(8, -(-layout.size_bytes // 4)):
        value = int.from_bytes(data[4 * word : 4 * word + 4].ljust(4, b"\0"), "big")
        bench.write(0, congestion_address(attribute, word), value, cycle + word)


def of_congestion_manager(star, ready, timeout=SLOW, **switch):
    """A switch with a CC_Key and a congestion control manager; host 2's request at ready + 1000 has a wrong one."""
    bench = star(2, vls=2, **switch)
    info = PORT_INFO.pack(lid=SWITCH_LID, master_sm_lid=SM_LID, subnet_timeout=timeout)
    bench.smp(ready, 1, smp_request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, info, transaction_id=1, path=(1,)))
    bench.write(0, lft_address(SWITCH_LID), 0, 990)
    target = {"trap_lid": CCM_LID, "trap_sl": 1, "trap_p_key": 0xFFFF, "trap_qp": 1, "trap_q_key": Q_KEY_GSI}
    cc_window(bench, ready + 700, CcAttribute.CLASS_PORT_INFO, CC_CLASS_PORT_INFO, **target)
    cc_window(bench, ready + 800, CcAttribute.CONGESTION_KEY_INFO, CONGESTION_KEY_INFO, cc_key=CC_KEY)
    cc_ask(bench, ready + 1000, 2, MadMethod.SET, CcAttribute.SWITCH_CONGESTION_SETTING, cc_key=5)
    return bench


def cc_ask(bench, cycle, host, method, attribute, transaction_id=7, **fields):
    mad = cc_request(method, attribute, transaction_id=transaction_id, **fields)
    bench.posts.append(Post(cycle, host, 0, gmp_packet(mad, host, SWITCH_LID).data))


def cc_traps(bench):
    """(cycle, slot, MAD) of those that adapter 1's host has."""
    packets = [(one.cycle, one.slot, parse(one.data)) for one in bench.delivered if one.node == 1]
    mads = [(cycle, slot, CC_MAD.unpack(packet.payload)) for cycle, slot, packet in packets if packet.bth.dest_qp == 1]
    return [entry for entry in mads if entry[2].method == MadMethod.TRAP]


def test_a_switch_tells_its_congestion_control_manager_of_a_wrong_cc_key(star, ready):
    bench = of_congestion_manager(star, ready).run(ready + 5000)
    ((_, slot, mad),) = cc_traps(bench)
    notice = CC_NOTICE.unpack(mad_data(mad))
    assert (slot, mad.transaction_id, notice.issuer_lid, notice.issuer_gid) == (1, 1, SWITCH_LID, 0)
    details = details_of(notice)
    asked = {"method": MadMethod.SET, "attribute_id": CcAttribute.SWITCH_CONGESTION_SETTING, "cc_key": 5}
    assert details == details.layout.record(asked, slid=2, qp=1)


def test_the_manager_sets_where_it_is_told_and_ends_it(star, ready):
    """All by requests of its own: ClassPortInfo is set and read back, the trap comes there, and is repressed."""
    bench = of_congestion_manager(star, ready, timeout=0)
    target = CC_CLASS_PORT_INFO.pack(trap_lid=CCM_LID, trap_sl=2, trap_p_key=0x7FFF, trap_qp=1, trap_q_key=6)
    cc_ask(bench, ready + 900, 1, MadMethod.SET, CcAttribute.CLASS_PORT_INFO, data=target, cc_key=CC_KEY)
    cc_ask(bench, ready + 4500, 1, MadMethod.TRAP_REPRESS, CcAttribute.NOTICE, 1, cc_key=CC_KEY)
    bench.run(ready + 9000)
    packets = [parse(one.data) for one in bench.delivered if one.node == 1 and one.slot < 2]
    mads = [CC_MAD.unpack(packet.payload) for packet in packets]
    answer, *traps = mads
    held = CC_CLASS_PORT_INFO.unpack(mad_data(answer))
    fixed = {"class_version": 2, "capability_mask": 1, "resp_time_value": CC_RESP_TIME}
    assert (answer.status, held) == (0, CC_CLASS_PORT_INFO.unpack(target).replace(**fixed))
    assert [mad.transaction_id for mad in traps] == [1, 1, 1]
    assert {(one.lrh.sl, one.bth.p_key, one.header(DETH).q_key) for one in packets[1:]} == {(2, 0x7FFF, 6)}


def test_one_that_has_no_room_on_its_data_vl_is_dropped_and_sent_with_its_next_turn(star, ready):
    """While host 1's link is lost there is room for one; the agent answers others meanwhile."""
    bench = of_congestion_manager(star, ready, timeout=0)
    bench.link(ready + 1100, 0, False)
    bench.link(ready + 5500, 0, True)
    for cycle in range(ready + 1600, ready + 5000, 900):
        bench.smp(cycle, 2, smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=2, path=(1,)))
    bench.run(ready + 9000)
    on_vl = [one.cycle for one in bench.of(Kind.SEND, 0, 0, ready + 1000) if one.a == 1]
    first, second = on_vl[:2]
    assert second > ready + 5500
    assert second - first > 4 * 1026
    assert sum(one.node == 2 and one.slot == 2 for one in bench.delivered) == 4
    assert {mad.transaction_id for *_, mad in cc_traps(bench)} == {1}


def test_a_bus_write_of_the_trap_lid_lets_a_pending_trap_go(star, ready):
    """It is visible two cycles after it is given, and takes the free agent in that cycle."""
    bench = of_congestion_manager(star, ready, timeout=0)
    word = congestion_address(CcAttribute.CLASS_PORT_INFO, 23)
    bench.write(0, word, 0, ready + 1600)
    given = ready + 4000
    bench.write(0, word, CCM_LID << 16 | 0xFFFF, given)
    bench.run(given + 1000)
    on_vl = [one.cycle for one in bench.of(Kind.SEND, 0, 0, ready + 1000) if one.a == 1]
    assert len(on_vl) == 2
    assert on_vl[1] == given + 2 + 2 + len(of_trap()) + 1
