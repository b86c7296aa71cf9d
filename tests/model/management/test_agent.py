"""The agent in its cycles (docs/management.md, sections 2 to 4.3)."""

import random

import pytest

from model.management.mad_in_packet import smp_in, with_fields
from tests.agent_steps import of_request, steps_of_request
from tests.model.management.agent_bench import ARRIVES, IDENTITY, START, SWITCH, Bench, change, get
from wire.codes import LID_PERMISSIVE, LinkWidth, PortPhysicalState, PortState
from wire.crc import icrc_good
from wire.headers import LRH
from wire.mad import MadMethod, MadStatus, mad_data
from wire.mad_packet import smp_packet
from wire.node_info import NODE_INFO, NodeType
from wire.port_info import PORT_INFO
from wire.registers import Detail, NodeRegister, PortRegister, lft_address, node_address, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request

NODE_INFO_GET = get(SmaAttribute.NODE_INFO)
SHORT, LONG = 16, steps_of_request(MadMethod.GET, SmaAttribute.NODE_INFO)


# Taking and dropping.


def test_an_answer_is_offered_after_its_steps_and_the_agent_free_when_it_is_taken(switch):
    switch.ask(NODE_INFO_GET, arrival=3)
    switch.run()
    (offered, output, data, slot), (freed,) = switch.of("offer")[0], switch.of("freed")[0]
    assert offered == ARRIVES + 4 + LONG
    assert output == 2, "back by port 3"
    assert slot == SWITCH.vls, "VL15's"
    assert freed == offered + 73
    assert len(data) == 4 * 72
    assert icrc_good(data)


def test_an_agent_whose_packet_is_not_taken_is_not_free(switch):
    switch.is_taken = False
    switch.ask(NODE_INFO_GET)
    switch.run()
    assert [event[1] for event in switch.events] == ["offer"]


GOOD = smp_packet(NODE_INFO_GET).data


@pytest.mark.parametrize(
    "data",
    [None, GOOD[:-1] + bytes([GOOD[-1] ^ 1]), GOOD[:100] + bytes([GOOD[100] ^ 4]) + GOOD[101:], GOOD[:-4], b""],
    ids=["bad or early", "wrong ICRC", "changed on its way", "71 words", "nothing"],
)
def test_a_packet_that_is_dropped_frees_the_agent_in_cycle_t(switch, data):
    switch.arrive(data)
    switch.hold([START - 1, START])
    switch.run()
    assert [event for event in switch.events if event[1] != "icrc wrong"] == [(START, "freed")]


@pytest.mark.parametrize("arrival", [1, 3])
def test_a_wrong_icrc_is_told_to_the_node_and_counts_a_cycle_after_t(switch, arrival):
    switch.arrive(GOOD[:-1] + bytes([GOOD[-1] ^ 1]), arrival=arrival)
    switch.arrive(GOOD[:-5] + bytes(5), cycle=ARRIVES + 100, slot=0)  # no request: its ICRC is not looked at
    switch.run()
    assert switch.of("icrc wrong") == [(ARRIVES, arrival, START + 1 - ARRIVES)]


@pytest.mark.parametrize("slot", [0, 1])
def test_an_smp_on_a_data_vl_is_dropped(switch, slot):
    switch.arrive(GOOD, slot=slot)
    switch.run()
    assert switch.events == [(START, "freed")]


def test_the_vl_is_not_in_the_icrc(switch):
    switch.arrive(LRH["vl"].write(GOOD, 3))
    switch.run()
    assert LRH["vl"].read(switch.of("offer")[0][2]) == 3, "it stays as it came"


# Passing on.


def test_an_smp_is_passed_on_after_16_steps(switch):
    smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(1, 4)).replace(hop_pointer=1)
    switch.ask(smp, arrival=2)
    switch.run()
    assert [event[:3] for event in switch.events] == [(START + SHORT, "offer", 3), (START + SHORT + 73, "freed")]
    passed = switch.answer()
    assert passed.hop_pointer == 2
    assert passed.replace(hop_pointer=1, return_path=0) == smp


@pytest.mark.parametrize("out", [0, 5, 255])
def test_a_port_that_is_not_there_leads_nowhere(switch, out):
    smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(1, out)).replace(hop_pointer=1)
    switch.ask(smp)
    switch.run()
    assert switch.events == [(START + SHORT, "freed")]


def routed(dlid):
    """An SMP that has gone the directed part of its route."""
    return smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(1,), dr_dlid=dlid).replace(
        hop_pointer=1
    )


def test_the_forwarding_table_is_read_at_step_2(switch):
    switch.registers[lft_address(60)] = 4
    switch.ask(routed(60))
    switch.run()
    assert switch.of("read") == [(START + 2, lft_address(60))]
    assert switch.of("offer")[0][:2] == (START + SHORT, 3)
    assert switch.answer_lrh().dlid == 60


@pytest.mark.parametrize("entry", [0, 5, 255])
def test_an_entry_that_is_no_port_leads_nowhere(switch, entry):
    switch.registers[lft_address(60)] = entry
    switch.ask(routed(60))
    switch.run()
    assert [event[:2] for event in switch.events] == [(START + 2, "read"), (START + SHORT, "freed")]


@pytest.mark.parametrize(("dlid", "reads"), [(99, 1), (100, 0), (0xC000, 0)])
def test_a_lid_beyond_the_table_is_not_looked_up(switch, dlid, reads):
    switch.registers[lft_address(dlid)] = 1
    switch.ask(routed(dlid))
    switch.run()
    assert len(switch.of("read")) == len(switch.of("offer")) == reads


def test_a_lid_beyond_linear_fdb_top_is_looked_up_and_leads_nowhere(switch):
    switch.registers.update({lft_address(lid): 1 for lid in (59, 60)})
    switch.carry_out(change(SmaAttribute.SWITCH_INFO, bytes(6) + (59).to_bytes(2, "big")))
    for lid, offers in ((59, 1), (60, 0)):
        switch.events.clear()
        switch.ask(routed(lid), switch.kernel.now + ARRIVES)
        switch.run(switch.kernel.now + 1000)
        assert [len(switch.of(what)) for what in ("read", "offer", "freed")] == [1, offers, 1]


def test_an_adapter_passes_its_host_s_smps_to_the_link_and_what_it_does_not_answer_to_the_host(adapter):
    adapter.ask(smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(1,)), arrival=0)
    adapter.ask(smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(2,)), 1000, arrival=0)
    adapter.ask(get(SmaAttribute.SM_INFO), 2000)
    adapter.ask(smp_request(MadMethod.TRAP, SmaAttribute.NOTICE, transaction_id=1), 3000, dlid=5, slid=6)
    adapter.run()
    assert [(cycle, output) for cycle, output, *_ in adapter.of("offer")] == [
        (START + SHORT, 0),
        (2004 + SHORT, 1),
        (3004 + SHORT, 1),
    ]
    assert (1004 + SHORT,) in adapter.of("freed"), "there is no port 2"


def test_an_adapter_s_link_needs_no_forwarding_table(adapter):
    adapter.ask(smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1), slid=9, dlid=3)
    adapter.run()
    assert not adapter.of("read")
    assert [output for _, output, *_ in adapter.of("offer")] == [0]


# Where an answer goes.


def test_an_answer_along_no_path_goes_back_as_it_came(switch):
    switch.ask(NODE_INFO_GET, arrival=2, slid=7, dlid=8)
    switch.run()
    answer, lrh = switch.answer(), switch.answer_lrh()
    assert (answer.method, answer.d, answer.hop_pointer, answer.status) == (MadMethod.GET_RESP, 1, 0, MadStatus.OK)
    assert (lrh.dlid, lrh.slid) == (7, 8)
    assert switch.of("offer")[0][1] == 1
    info = NODE_INFO.unpack(mad_data(answer))
    assert (info.node_type, info.node_guid, info.local_port_num) == (NodeType.SWITCH, IDENTITY.node_guid, 2)


@pytest.mark.parametrize(("arrival", "output"), [(0, 1), (1, 0)])
def test_an_adapter_answers_to_where_it_was_asked_from(adapter, arrival, output):
    adapter.ask(NODE_INFO_GET, arrival=arrival)
    adapter.run()
    assert adapter.of("offer")[0][1] == output


def test_an_answer_goes_back_along_the_return_path(switch):
    smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(1, 4)).replace(hop_pointer=2)
    switch.ask(smp, arrival=3)
    switch.run()
    answer = switch.answer()
    assert (answer.d, answer.hop_pointer, answer.hop_count) == (1, 2, 2)
    assert switch.of("offer")[0][1] == 2
    assert (switch.answer_lrh().dlid, switch.answer_lrh().slid) == (LID_PERMISSIVE, LID_PERMISSIVE)


def test_the_answer_to_a_lid_routed_smp_is_routed(switch):
    switch.registers[lft_address(9)] = 2
    switch.ask(smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1), arrival=3, slid=9, dlid=77)
    switch.run()
    assert switch.of("read") == [(START + 2, lft_address(9))]
    assert switch.of("offer")[0][:2] == (START + LONG, 1)
    assert (switch.answer_lrh().dlid, switch.answer_lrh().slid) == (9, 77)


def test_an_answer_that_cannot_be_routed_is_dropped_after_its_steps(switch):
    switch.ask(smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1), arrival=3, slid=9, dlid=77)
    switch.run()
    assert switch.of("freed") == [(START + LONG,)]


def test_an_adapter_answers_its_host_by_lid(adapter):
    adapter.set_port_info({"lid": 3, "master_sm_lid": 3})
    answer = adapter.carry_out(
        smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1), arrival=0, slid=3, dlid=3
    )
    assert adapter.of("offer")[-1][1] == 1
    assert NODE_INFO.unpack(mad_data(answer)).local_port_num == 1


def test_an_answer_that_goes_on_by_lid_has_the_node_s_own(switch):
    switch.registers[lft_address(9)] = 2
    switch.set_port_info({"lid": 44, "master_sm_lid": 9})
    smp = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=1, path=(1,), dr_dlid=44)
    switch.carry_out(smp.replace(hop_pointer=2), slid=9, dlid=44)
    assert switch.of("offer")[-1][1] == 1
    assert (switch.answer_lrh().dlid, switch.answer_lrh().slid) == (9, 44)
    assert switch.answer().hop_pointer == 2, "the switch at the path's end begins it"


def test_a_set_lid_is_in_the_answer_that_says_so(switch):
    switch.registers[lft_address(9)] = 2
    smp = smp_request(
        MadMethod.SET,
        SmaAttribute.PORT_INFO,
        data=PORT_INFO.pack(lid=55, master_sm_lid=9),
        transaction_id=1,
        path=(1,),
        dr_dlid=44,
    )
    switch.carry_out(smp.replace(hop_pointer=2), slid=9, dlid=44)
    assert switch.answer_lrh().slid == 55


def test_an_answer_keeps_the_key_the_sl_and_what_is_reserved(switch):
    reserved = slice(28 + 40, 28 + 64)
    data = GOOD[: reserved.start] + bytes(range(24)) + GOOD[reserved.stop :]
    switch.arrive(with_fields(data, {"sl": 9}, {"m_key": 5}))
    switch.run()
    assert switch.answer().m_key == 5
    assert switch.answer_lrh().sl == 9
    assert switch.of("offer")[0][2][reserved] == bytes(range(24))


# Standing still.

PORT = 2
SET_PORT_INFO = change(
    SmaAttribute.PORT_INFO,
    PORT_INFO.pack(port_state=PortState.ARMED, neighbor_mtu=2, operational_vls=1, hoq_life=18, vl_stall_count=7),
    PORT,
    path=None,
)
EXPECTED = (
    (2, "read", lft_address(9)),
    (16, "read", port_address(PORT, PortRegister.STATE)),
    (83, "write", port_address(PORT, PortRegister.STATE)),
    (86, "write", port_address(PORT, PortRegister.LINK_WIDTH_ENABLED)),
    (90, "write", port_address(PORT, PortRegister.NEIGHBOR_MTU)),
    (91, "write", port_address(PORT, PortRegister.VL_HIGH_LIMIT)),
    (98, "write", port_address(PORT, PortRegister.OPERATIONAL_VLS)),
    (99, "write", port_address(PORT, PortRegister.HOQ_LIFE)),
    (100, "write", port_address(PORT, PortRegister.VL_STALL_COUNT)),
    (101, "write", port_address(PORT, PortRegister.PARTITION)),
    (122, "write", port_address(PORT, PortRegister.LOCAL_PHY_ERRORS)),
    (123, "write", port_address(PORT, PortRegister.OVERRUN_ERRORS)),
    (124, "write", port_address(PORT, Detail.P_KEY_VIOLATIONS)),
    (200, "read", port_address(PORT, PortRegister.WIDTH)),
    (208, "read", port_address(PORT, PortRegister.STATE)),
    (209, "read", port_address(PORT, PortRegister.PHYSICAL_STATE)),
    (210, "read", port_address(PORT, Detail.P_KEY_VIOLATIONS)),
)


SET_STEPS = of_request(MadMethod.SET, SmaAttribute.PORT_INFO)


def held(holds):
    """The events of a Set while the test bus has accesses, and the answer."""
    bench = Bench(SWITCH)
    bench.registers[lft_address(9)] = 2
    bench.hold(holds)
    bench.ask(SET_PORT_INFO, slid=9, dlid=1)
    bench.run(3000)
    return bench.events, bench.answer()


def expected(holds):
    """The same, every step in a cycle without an access; the offer is in the cycle after the last step."""
    free = [cycle for cycle in range(START, START + 1500) if cycle not in set(holds)]
    offered = free[len(SET_STEPS) - 1] + 1
    return [(free[SET_STEPS.index(step)], *rest) for step, *rest in EXPECTED] + [
        (offered, "offer", 1),
        (offered + 73, "freed"),
    ]


@pytest.mark.parametrize("step", range(-2, len(SET_STEPS) + 2))
def test_an_access_of_the_test_bus_delays_all_that_follows_by_a_cycle(step):
    events, answer = held([START + step])
    assert [event[:3] for event in events] == expected([START + step])
    assert answer.status == MadStatus.OK
    assert PORT_INFO.unpack(mad_data(answer)).port_state == PortState.ARMED


def test_the_agent_and_the_test_bus_are_never_on_the_bus_together():
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(20):
        share = rng.random() / 2
        holds = [cycle for cycle in range(START - 5, START + 600) if rng.random() < share]
        events, _ = held(holds)
        assert [event[:3] for event in events] == expected(holds)
        assert not {cycle for cycle, what, *_ in events if what in ("read", "write")} & set(holds)


# Registers that a Set writes.


def test_a_set_of_an_adapter_s_port_writes_its_registers(adapter):
    """It has none for what limits the time of heads."""
    adapter.registers[port_address(1, PortRegister.STATE)] = PortState.ACTIVE
    data = PORT_INFO.pack(
        lid=0x1234,
        master_sm_lid=1,
        lmc=2,
        port_state=PortState.DOWN,
        port_physical_state=PortPhysicalState.POLLING,
        link_width_enabled=LinkWidth.X1,
        link_down_default_state=PortPhysicalState.SLEEP,
        neighbor_mtu=1,
        vl_high_limit=5,
        hoq_life=18,
        vl_stall_count=7,
        operational_vls=2,
        local_phy_errors=3,
        overrun_errors=4,
    )
    adapter.ask(change(SmaAttribute.PORT_INFO, data))
    adapter.run()
    assert adapter.of("write") == [
        (START + SET_STEPS.index(50), node_address(NodeRegister.LID), 0x1234),
        (START + SET_STEPS.index(82), port_address(1, PortRegister.PHYSICAL_STATE), PortPhysicalState.POLLING),
        (START + SET_STEPS.index(83), port_address(1, PortRegister.STATE), PortState.DOWN),
        (START + SET_STEPS.index(84), node_address(NodeRegister.LMC), 2),
        (START + SET_STEPS.index(85), port_address(1, PortRegister.LINK_DOWN_DEFAULT), PortPhysicalState.SLEEP),
        (START + SET_STEPS.index(86), port_address(1, PortRegister.LINK_WIDTH_ENABLED), LinkWidth.X1),
        (START + SET_STEPS.index(90), port_address(1, PortRegister.NEIGHBOR_MTU), 1),
        (START + SET_STEPS.index(91), port_address(1, PortRegister.VL_HIGH_LIMIT), 5),
        (START + SET_STEPS.index(98), port_address(1, PortRegister.OPERATIONAL_VLS), 2),
        (START + SET_STEPS.index(122), port_address(1, PortRegister.LOCAL_PHY_ERRORS), 3),
        (START + SET_STEPS.index(123), port_address(1, PortRegister.OVERRUN_ERRORS), 4),
    ]


def test_a_refused_field_is_not_written(adapter):
    """But for LinkWidthEnabled, of which the register knows itself what it may be."""
    refused = PORT_INFO.pack(
        lid=0,
        neighbor_mtu=4,
        operational_vls=3,
        link_width_enabled=4,
        link_down_default_state=PortPhysicalState.DISABLED,
    )
    adapter.ask(change(SmaAttribute.PORT_INFO, refused))
    adapter.run()
    assert [address for _, address, _ in adapter.of("write")] == [
        node_address(NodeRegister.LMC),
        port_address(1, PortRegister.LINK_WIDTH_ENABLED),
        port_address(1, PortRegister.VL_HIGH_LIMIT),
        port_address(1, PortRegister.LOCAL_PHY_ERRORS),
        port_address(1, PortRegister.OVERRUN_ERRORS),
    ]
    assert adapter.answer().status == MadStatus.INVALID_ATTRIBUTE_VALUE


def test_the_time_limits_of_a_switch_s_port_are_written_with_what_they_are_set_to(switch):
    switch.set_port_info({"hoq_life": 18, "vl_stall_count": 7}, port=PORT)
    switch.set_port_info({}, port=PORT)
    registers = [PortRegister.HOQ_LIFE, PortRegister.VL_STALL_COUNT]
    written = [(address, value) for _, address, value in switch.of("write")]
    expected = [(port_address(PORT, register), value) for register, value in zip(registers, (18, 7), strict=True)]
    assert [one for one in written if one[0] in dict(expected)] == 2 * expected
    info = switch.port_info(PORT)
    assert (info.hoq_life, info.vl_stall_count) == (18, 7)


def test_port_0_of_a_switch_has_no_registers(switch):
    switch.ask(change(SmaAttribute.PORT_INFO, PORT_INFO.pack(lid=1, master_sm_lid=1)))
    switch.run()
    assert switch.of("write") == switch.of("read") == []


def test_a_set_without_a_good_version_attribute_or_modifier_does_nothing(switch):
    data = PORT_INFO.pack(lid=5, master_sm_lid=5, neighbor_mtu=1)
    for at, wrong in enumerate(
        (
            change(SmaAttribute.PORT_INFO, data, 1, class_version=2),
            change(SmaAttribute.SM_INFO, data, 1),
            change(SmaAttribute.PORT_INFO, data, 5),
        )
    ):
        switch.ask(wrong, ARRIVES + 1000 * at)
    switch.run()
    assert switch.of("write") == switch.of("read") == []
    assert [smp_in(offered).status for _, _, offered, _ in switch.of("offer")] == [
        MadStatus.BAD_VERSION,
        MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED,
        MadStatus.INVALID_ATTRIBUTE_VALUE,
    ]
    assert all(mad_data(smp_in(offered)) == data for _, _, offered, _ in switch.of("offer"))
