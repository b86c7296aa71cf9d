"""PortInfo field by field (docs/management.md, section 4.2)."""

from itertools import product

import pytest

from model.management.port_info import PortInfo, PortKind, at_reset, set_fields, set_states, shown_state
from tests.agent_steps import cycles_to
from tests.model.management.agent_bench import ARRIVES, START, change, get
from wire.codes import PortPhysicalState, PortState
from wire.mad import MadMethod, MadStatus, mad_data
from wire.port_info import ADAPTER_CAPABILITIES, PORT_INFO, SWITCH_CAPABILITIES, CapabilityMask
from wire.registers import Detail, PartitionCheck, PortRegister, port_address
from wire.sma import SmaAttribute
from wire.stimulus import KeyViolation

MANAGEMENT, EXTERNAL, ADAPTER = PortKind
KINDS = {"0": MANAGEMENT, "E": EXTERNAL, "A": ADAPTER}
MTU, VLS = 1024, 2
ALL = "0EA"
CHECKS = (
    "partition_enforcement_inbound",
    "partition_enforcement_outbound",
    "filter_raw_inbound",
    "filter_raw_outbound",
)

# (field, kinds that have it, value at reset there)
RESET = [
    ("m_key", "0A", 0),
    ("gid_prefix", "0A", 0xFE80_0000_0000_0000),
    ("lid", "0A", 0),
    ("master_sm_lid", "0A", 0),
    ("capability_mask", "0", SWITCH_CAPABILITIES),
    ("capability_mask", "A", ADAPTER_CAPABILITIES),
    ("diag_code", "", 0),
    ("m_key_lease_period", "0A", 0),
    ("link_width_enabled", ALL, 3),
    ("link_width_supported", ALL, 3),
    ("link_speed_supported", ALL, 1),
    ("link_speed_active", ALL, 1),
    ("link_speed_enabled", ALL, 1),
    ("link_width_active", "0", 2),
    ("port_state", "0", 4),
    ("port_physical_state", "0", 5),
    ("link_down_default_state", ALL, 2),
    ("m_key_protect_bits", "0A", 0),
    ("lmc", "A", 0),
    ("neighbor_mtu", ALL, 3),
    ("mtu_cap", ALL, 3),
    ("vl_cap", ALL, 2),
    ("master_sm_sl", "0A", 0),
    ("init_type", "0A", 0),
    ("vl_high_limit", "EA", 0),
    ("vl_stall_count", "EA", 0),
    ("hoq_life", "EA", 31),
    ("vl_arbitration_high_cap", "EA", 8),
    ("vl_arbitration_low_cap", "EA", 8),
    ("operational_vls", ALL, 2),
    ("partition_enforcement_inbound", "E", 0),
    ("guid_cap", "0A", 8),
    ("subnet_timeout", "0A", 0),
    ("resp_time_value", "0A", 8),
    ("local_phy_errors", "EA", 15),
    ("overrun_errors", "EA", 15),
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_at_reset(kind):
    expected = {name: value for name, kinds, value in RESET if kind in kinds}
    assert at_reset(KINDS[kind], MTU, VLS) == PORT_INFO.record({name: int(value) for name, value in expected.items()})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("vls", "entries"), [(1, 0), (2, 8), (4, 8), (8, 16), (15, 16)])
def test_the_vl_arbitration_that_a_port_has(kind, vls, entries):
    """By the standard, tables of at least as many entries as it has data VLs; none for one data VL."""
    info = at_reset(KINDS[kind], MTU, vls)
    entries = 0 if kind == "0" else entries
    assert (info.vl_arbitration_high_cap, info.vl_arbitration_low_cap) == (entries, entries)


ANYTHING = [
    ("m_key", "0A"),
    ("gid_prefix", "0A"),
    ("m_key_lease_period", "0A"),
    ("m_key_protect_bits", "0A"),
    ("lmc", "A"),
    ("master_sm_sl", "0A"),
    ("init_type", "0A"),
    ("vl_high_limit", "EA"),
    ("vl_stall_count", "EA"),
    ("hoq_life", "EA"),
    ("partition_enforcement_inbound", "E"),
    ("partition_enforcement_outbound", "E"),
    ("filter_raw_inbound", "E"),
    ("filter_raw_outbound", "E"),
    ("subnet_timeout", "0A"),
    ("local_phy_errors", "EA"),
    ("overrun_errors", "EA"),
]
# (field, kinds, value, what it is then; None: refused), of a port at reset
OTHERS = [
    *((name, "0A", 0, None) for name in ("lid", "master_sm_lid")),
    *((name, "0A", lid, lid) for name in ("lid", "master_sm_lid") for lid in (1, 0xBFFF)),
    *((name, "0A", lid, None) for name in ("lid", "master_sm_lid") for lid in (0xC000, 0xFFFF)),
    *(("link_width_enabled", "EA", value, value) for value in (1, 2, 3)),
    ("link_width_enabled", "EA", 0, 3),
    ("link_width_enabled", "EA", 255, 3),
    *(("link_width_enabled", "EA", value, None) for value in (4, 5, 7, 254)),
    *(("link_speed_enabled", "EA", value, 1) for value in (0, 1, 15)),
    *(("link_speed_enabled", "EA", value, None) for value in (2, 3, 14)),
    *(("link_down_default_state", "EA", value, value) for value in (1, 2)),
    ("link_down_default_state", "EA", 0, 2),
    *(("link_down_default_state", "EA", value, None) for value in (3, 4, 15)),
    *(("neighbor_mtu", "EA", value, value) for value in (1, 2, 3)),
    *(("neighbor_mtu", "EA", value, None) for value in (0, 4, 15)),
    *(("operational_vls", "EA", value, value) for value in (1, 2)),
    ("operational_vls", "EA", 0, 2),
    *(("operational_vls", "EA", value, None) for value in (3, 15)),
]
LEGAL = {"lid": 1, "master_sm_lid": 1, "neighbor_mtu": 3}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "kinds", "value", "result"),
    [*((name, kinds, PORT_INFO[name].max, PORT_INFO[name].max) for name, kinds in ANYTHING), *OTHERS],
)
def test_a_field_that_is_set(kind, name, kinds, value, result):
    stored = at_reset(KINDS[kind], MTU, VLS).replace(**({"neighbor_mtu": 3} if kind in "EA" else {}))
    changes = set_fields(KINDS[kind], stored, PORT_INFO.record({**LEGAL, name: value}))
    new = stored.replace(**changes.fields)
    if kind not in kinds:
        assert changes.accepted
        assert new[name] == stored[name]
    elif result is None:
        assert not changes.accepted
        assert new[name] == stored[name]
    else:
        assert changes.accepted
        assert new[name] == result


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_only_takes_no_writes(kind):
    writable = {name for name, *_ in (*ANYTHING, *OTHERS)} | {"m_key_violations"}
    stored = at_reset(KINDS[kind], MTU, VLS)
    ones = PORT_INFO.from_int((1 << 512) - 1)
    new = stored.replace(**set_fields(KINDS[kind], stored, ones).fields)
    assert {name for name in new if new[name] != stored[name]} <= writable


@pytest.mark.parametrize(("value", "result"), [(0, 0), (1, 9), (0xFFFF, 9)])
def test_m_key_violations_are_cleared_by_0(value, result):
    stored = at_reset(MANAGEMENT, MTU, VLS).replace(m_key_violations=9)
    changes = set_fields(MANAGEMENT, stored, PORT_INFO.record(lid=1, master_sm_lid=1, m_key_violations=value))
    assert changes.accepted
    assert stored.replace(**changes.fields).m_key_violations == result


def test_the_count_of_violations_stops_at_all_ones(switch):
    info = PortInfo(switch, switch.parameters, 1)
    info.change_own(m_key_violations=0xFFFE)
    for _ in range(3):
        info.count_violation()
    assert info.own.m_key_violations == 0xFFFF


def test_a_refused_field_does_not_keep_the_others_from_being_set(switch):
    answer = switch.set_port_info({"lid": 0, "master_sm_lid": 7, "subnet_timeout": 9})
    assert answer.status == MadStatus.INVALID_ATTRIBUTE_VALUE
    after = switch.port_info()
    assert (after.lid, after.master_sm_lid, after.subnet_timeout) == (0, 7, 9)
    assert PORT_INFO.unpack(mad_data(answer)) == after


# PortState and PortPhysicalState.

DOWN, INITIALIZE, ARMED, ACTIVE, DEFER = (PortState(code) for code in range(1, 6))


@pytest.mark.parametrize("state", [DOWN, INITIALIZE, ARMED, ACTIVE, DEFER])
def test_what_a_set_makes_of_the_states(state):
    written = {(1, state): 1, (3, INITIALIZE): 3, (4, ARMED): 4}
    no_change = {(0, state), (3, ARMED), (4, ACTIVE)}
    for link, physical in product(range(16), range(16)):
        changes = set_states(state, PORT_INFO.record(port_state=link, port_physical_state=physical))
        fields = {}
        if (link, state) in written:
            fields["port_state"] = link
        if physical in (1, 2, 3) and link in (0, 1):
            fields["port_physical_state"] = physical
        accepted = (link, state) in {*written, *no_change}
        accepted = accepted and (physical == 0 or "port_physical_state" in fields)
        assert changes == (fields, accepted), (link, physical)


def test_a_set_looks_at_the_state_at_its_step_16(switch):
    address = port_address(1, PortRegister.STATE)
    switch.registers[address] = ARMED
    switch.at(START + 16 + 1, 3, lambda: switch.registers.update({address: ACTIVE}))
    switch.at(START + 16 + 3, 3, lambda: switch.registers.update({address: INITIALIZE}))
    switch.ask(change(SmaAttribute.PORT_INFO, PORT_INFO.pack(port_state=ACTIVE, neighbor_mtu=1), 1))
    switch.run()
    assert switch.answer().status == MadStatus.OK, "Active in Active is no change"
    assert address not in [event[1] for event in switch.of("write")]


def test_a_link_in_recovery_is_still_active(switch):
    """Its port waits in ActiveDefer, which no Subnet Manager has to know."""
    assert [shown_state(state) for state in PortState] == [0, 1, 2, 3, 4, 4]
    switch.registers[port_address(2, PortRegister.STATE)] = PortState.ACTIVE_DEFER
    switch.registers[port_address(2, PortRegister.PHYSICAL_STATE)] = PortPhysicalState.LINK_ERROR_RECOVERY
    info = switch.port_info(port=2)
    assert (info.port_state, info.port_physical_state) == (PortState.ACTIVE, PortPhysicalState.LINK_ERROR_RECOVERY)
    answer = switch.set_port_info({"port_state": ACTIVE}, port=2)
    assert answer.status == MadStatus.OK, "Active in Active is no change"


@pytest.mark.parametrize("fields", [{"port_state": 1}, {"port_state": 4}, {"port_physical_state": 2}])
def test_the_states_of_port_0_are_what_they_are(switch, fields):
    answer = switch.set_port_info({"lid": 1, "master_sm_lid": 1, **fields})
    assert answer.status == MadStatus.INVALID_ATTRIBUTE_VALUE
    after = PORT_INFO.unpack(mad_data(answer))
    assert (after.port_state, after.port_physical_state, after.lid) == (4, 5, 1)


# What an answer says.


def test_what_is_read_from_registers_is_as_it_is_two_cycles_after_its_step(switch):
    addresses = {
        "link_width_active": (200, port_address(3, PortRegister.WIDTH)),
        "port_state": (208, port_address(3, PortRegister.STATE)),
        "port_physical_state": (209, port_address(3, PortRegister.PHYSICAL_STATE)),
        "p_key_violations": (210, port_address(3, Detail.P_KEY_VIOLATIONS)),
    }
    for step, address in addresses.values():
        for late in range(5):
            cycle = START + cycles_to(step, MadMethod.GET, SmaAttribute.PORT_INFO) + late
            switch.at(cycle, 3, lambda address=address, late=late: switch.registers.update({address: late}))
    switch.ask(get(SmaAttribute.PORT_INFO, 3))
    switch.run()
    info = PORT_INFO.unpack(mad_data(switch.answer()))
    assert [info[name] for name in addresses] == [2, 2, 2, 2]


@pytest.mark.parametrize("port", range(5))
def test_local_port_num_is_the_port_that_the_smp_came_in_by(switch, port):
    answer = switch.carry_out(get(SmaAttribute.PORT_INFO, port), arrival=4)
    assert PORT_INFO.unpack(mad_data(answer)).local_port_num == 4


@pytest.mark.parametrize("arrival", [0, 1])
def test_an_adapter_s_local_port_num_is_1(adapter, arrival):
    answer = adapter.carry_out(get(SmaAttribute.PORT_INFO), arrival=arrival)
    assert PORT_INFO.unpack(mad_data(answer)).local_port_num == 1


@pytest.mark.parametrize("late", [0, 1])
def test_is_sm_is_as_visible_at_step_184(adapter, late):
    adapter.host_sm(START + cycles_to(184, MadMethod.GET, SmaAttribute.PORT_INFO) + late, True)
    adapter.ask(get(SmaAttribute.PORT_INFO))
    adapter.run()
    mask = PORT_INFO.unpack(mad_data(adapter.answer())).capability_mask
    assert mask == ADAPTER_CAPABILITIES | (0 if late else CapabilityMask.IS_SM)


KEYS = {"p_key_violations": (KeyViolation.P_KEY, 105, 232), "q_key_violations": (KeyViolation.Q_KEY, 113, 240)}
"""The key, the step that clears its count and the one that answers it."""


@pytest.mark.parametrize("name", KEYS)
def test_wrong_keys_that_an_adapter_s_host_finds_are_counted(adapter, name):
    for cycle in range(3):
        adapter.key_violation(1 + cycle, KEYS[name][0])
    counts = {other: 3 if other == name else 0 for other in KEYS}
    info = adapter.port_info()
    assert {other: info[other] for other in KEYS} == counts


def test_wrong_keys_are_counted_up_to_all_ones(adapter):
    """Both are, in the same cycles, and then in others."""
    now, both = adapter.kernel.now, KeyViolation.P_KEY | KeyViolation.Q_KEY
    for cycle in range(0xFFFE):
        adapter.key_violation(now + 1 + cycle, both)
    adapter.run(now + 1 + 0xFFFE)
    seen = []
    for keys in (KeyViolation.P_KEY, KeyViolation.Q_KEY, both):
        adapter.key_violation(adapter.kernel.now + 1, keys)
        info = adapter.port_info()
        seen.append(tuple(info[name] for name in ("p_key_violations", "q_key_violations")))
    assert seen == [(0xFFFF, 0xFFFE), (0xFFFF, 0xFFFF), (0xFFFF, 0xFFFF)]


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize(("value", "result"), [(0, 0), (1, 2), (0xFFFF, 2)])
def test_a_count_of_wrong_keys_is_cleared_by_0_alone(adapter, name, value, result):
    for cycle in range(2):
        adapter.key_violation(1 + cycle, KeyViolation.P_KEY | KeyViolation.Q_KEY)
    answer = adapter.set_port_info(
        {"lid": 1, "master_sm_lid": 1, "p_key_violations": 1, "q_key_violations": 1} | {name: value}
    )
    assert answer.status == MadStatus.OK
    info = PORT_INFO.unpack(mad_data(answer))
    assert {other: info[other] for other in KEYS} == {other: result if other == name else 2 for other in KEYS}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize(("late", "result"), [(0, 0), (1, 1), (2, 1)])
def test_a_wrong_key_that_is_visible_after_the_clearing_step_counts(adapter, name, late, result):
    key, clears, _answers = KEYS[name]
    adapter.key_violation(1, key)
    adapter.key_violation(START + cycles_to(clears, MadMethod.SET, SmaAttribute.PORT_INFO) + late, key)
    adapter.ask(change(SmaAttribute.PORT_INFO, PORT_INFO.pack(lid=1, master_sm_lid=1, neighbor_mtu=1)))
    adapter.run()
    assert PORT_INFO.unpack(mad_data(adapter.answer()))[name] == result


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("late", [0, 1])
def test_a_count_of_wrong_keys_is_as_visible_at_its_word_s_step(adapter, name, late):
    key, _clears, answers = KEYS[name]
    adapter.key_violation(START + cycles_to(answers, MadMethod.GET, SmaAttribute.PORT_INFO) + late, key)
    adapter.ask(get(SmaAttribute.PORT_INFO))
    adapter.run()
    assert PORT_INFO.unpack(mad_data(adapter.answer()))[name] == 1 - late


P_KEY_VIOLATIONS = port_address(2, Detail.P_KEY_VIOLATIONS)


@pytest.mark.parametrize(("value", "cleared"), [(0, True), (1, False), (0xFFFF, False)])
def test_wrong_p_keys_that_a_switch_s_port_counts_are_cleared_by_0_alone(switch, value, cleared):
    """Whatever else is refused."""
    switch.registers[P_KEY_VIOLATIONS] = 7
    data = PORT_INFO.pack(p_key_violations=value, neighbor_mtu=0)
    answer = switch.carry_out(change(SmaAttribute.PORT_INFO, data, 2))
    assert answer.status == MadStatus.INVALID_ATTRIBUTE_VALUE
    step = START + cycles_to(16 + 8 * 13 + 2 + 2, MadMethod.SET, SmaAttribute.PORT_INFO)
    written = [(step, P_KEY_VIOLATIONS, 0)] if cleared else []
    assert [event for event in switch.of("write") if event[1] == P_KEY_VIOLATIONS] == written
    assert PORT_INFO.unpack(mad_data(answer)).p_key_violations == (0 if cleared else 7)
    assert switch.port_info(port=2).p_key_violations == (0 if cleared else 7)
    assert switch.port_info(port=1).p_key_violations == 0


def test_port_0_and_an_adapter_s_port_have_no_register_of_wrong_p_keys(switch, adapter):
    for bench in (switch, adapter):
        bench.registers[port_address(1, Detail.P_KEY_VIOLATIONS)] = 7
        assert bench.set_port_info({"lid": 1, "master_sm_lid": 1, "neighbor_mtu": 1}).status == MadStatus.OK
        assert bench.port_info().p_key_violations == 0
        accessed = {event[1] for event in [*bench.of("write"), *bench.of("read")]}
        assert port_address(1, Detail.P_KEY_VIOLATIONS) not in accessed


@pytest.mark.parametrize("value", [0, 1, 2, 3, 4, 7, 8, 16, 32, 64, 127, 128, 254, 255])
def test_link_width_enabled_is_written_as_it_came(switch, adapter, value):
    """The register ignores what is none; what is refused changes nothing that a Get shows."""
    for bench, port in ((switch, 2), (adapter, 0)):
        page = port or 1
        data = PORT_INFO.pack(lid=1, master_sm_lid=1, neighbor_mtu=1, link_width_enabled=value)
        answer = bench.carry_out(change(SmaAttribute.PORT_INFO, data, port))
        accepted = value in (0, 1, 2, 3, 255)
        assert answer.status == (MadStatus.OK if accepted else MadStatus.INVALID_ATTRIBUTE_VALUE)
        step = START + cycles_to(16 + 8 * 8 + 2 + 4, MadMethod.SET, SmaAttribute.PORT_INFO)
        register = port_address(page, PortRegister.LINK_WIDTH_ENABLED)
        assert [event for event in bench.of("write") if event[1] == register] == [(step, register, value)]
        assert PORT_INFO.unpack(mad_data(answer)).link_width_enabled == (value if value in (1, 2) else 3)


@pytest.mark.parametrize("value", range(16))
def test_link_down_default_state_is_written_if_it_is_one(switch, adapter, value):
    for bench, port in ((switch, 2), (adapter, 0)):
        data = PORT_INFO.pack(lid=1, master_sm_lid=1, neighbor_mtu=1, link_down_default_state=value)
        answer = bench.carry_out(change(SmaAttribute.PORT_INFO, data, port))
        assert answer.status == (MadStatus.OK if value <= 2 else MadStatus.INVALID_ATTRIBUTE_VALUE)
        step = START + cycles_to(16 + 8 * 8 + 2 + 3, MadMethod.SET, SmaAttribute.PORT_INFO)
        register = port_address(port or 1, PortRegister.LINK_DOWN_DEFAULT)
        written = [(step, register, value)] if value in (1, 2) else []
        assert [event for event in bench.of("write") if event[1] == register] == written
        assert PORT_INFO.unpack(mad_data(answer)).link_down_default_state == (1 if value == 1 else 2)


def test_client_reregister_is_echoed_once(switch):
    answer = switch.set_port_info({"lid": 1, "master_sm_lid": 1, "client_reregister": 1})
    assert PORT_INFO.unpack(mad_data(answer)).client_reregister == 1
    assert switch.port_info().client_reregister == 0
    assert switch.port_info(port=1).client_reregister == 0


def test_an_external_port_of_a_switch_does_not_know_client_reregister(switch):
    answer = switch.set_port_info({"client_reregister": 1}, port=1)
    assert PORT_INFO.unpack(mad_data(answer)).client_reregister == 0


def test_the_ports_of_a_switch_are_set_one_by_one(switch):
    switch.set_port_info({"vl_high_limit": 9}, port=2)
    [written] = [event for event in switch.of("write") if event[1] == port_address(2, PortRegister.VL_HIGH_LIMIT)]
    [before] = [event for event in switch.of("write") if event[1] == port_address(2, PortRegister.NEIGHBOR_MTU)]
    assert written == (before[0] + 1, port_address(2, PortRegister.VL_HIGH_LIMIT), 9)
    assert [switch.port_info(port).vl_high_limit for port in range(5)] == [0, 0, 9, 0, 0]


@pytest.mark.parametrize(
    ("field", "check"),
    [
        ("partition_enforcement_inbound", PartitionCheck.INBOUND),
        ("partition_enforcement_outbound", PartitionCheck.OUTBOUND),
        ("filter_raw_inbound", PartitionCheck.RAW_INBOUND),
        ("filter_raw_outbound", PartitionCheck.RAW_OUTBOUND),
    ],
)
@pytest.mark.parametrize("on", [0, 1])
def test_what_a_switch_s_external_port_checks_is_one_register(switch, field, check, on):
    """Written in each Set, whatever else is refused."""
    others = dict.fromkeys(CHECKS, 1 - on)
    data = PORT_INFO.record({**others, field: on, "neighbor_mtu": 0}).pack()
    answer = switch.carry_out(change(SmaAttribute.PORT_INFO, data, 2))
    assert answer.status == MadStatus.INVALID_ATTRIBUTE_VALUE
    step = START + cycles_to(16 + 8 * 10 + 2 + 3, MadMethod.SET, SmaAttribute.PORT_INFO)
    register = port_address(2, PortRegister.PARTITION)
    assert [event for event in switch.of("write") if event[1] == register] == [
        (step, register, check if on else 15 - check)
    ]
    after = switch.port_info(port=2)
    assert {name: after[name] for name in CHECKS} == {**others, field: on}


def test_port_0_and_an_adapter_check_no_partition(switch, adapter):
    for bench in (switch, adapter):
        answer = bench.set_port_info({"lid": 1, "master_sm_lid": 1, "neighbor_mtu": 1, **dict.fromkeys(CHECKS, 1)})
        assert answer.status == MadStatus.OK
        assert port_address(1, PortRegister.PARTITION) not in [event[1] for event in bench.of("write")]
        assert not any(bench.port_info()[name] for name in CHECKS)


def test_the_modifier_s_bit_31_is_ignored(switch):
    switch.ask(get(SmaAttribute.PORT_INFO, 1 << 31 | 2), ARRIVES)
    switch.run()
    assert switch.answer().status == MadStatus.OK
    assert (
        START + cycles_to(208, MadMethod.GET, SmaAttribute.PORT_INFO),
        port_address(2, PortRegister.STATE),
    ) in switch.of("read")


def test_a_port_is_linked_up_only_where_it_is_said_so(switch):
    switch.registers[port_address(1, PortRegister.PHYSICAL_STATE)] = PortPhysicalState.POLLING
    assert switch.port_info(port=1).port_physical_state == PortPhysicalState.POLLING
