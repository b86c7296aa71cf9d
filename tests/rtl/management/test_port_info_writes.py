"""What a Set of PortInfo writes to registers, and the states of ports that it may ask for."""

import pytest

from tests.rtl.management.agent_bench import Access
from tests.rtl.management.port_info_bench import BASE, EXTERNAL, INVALID, OF_ADAPTER, OK, PORT, REG, Port, on_port
from wire.codes import LinkWidth, PortPhysicalState, PortState
from wire.port_info import PORT_INFO
from wire.registers import Detail, NodeRegister, PartitionCheck, PortRegister, node_address, port_address


def port_write(step: int, kind: str, register: PortRegister | Detail, value: int) -> Access:
    return Access(step, port_address(PORT[kind], register), value)


OUTBOUND_RAW_INBOUND = PartitionCheck.OUTBOUND | PartitionCheck.RAW_INBOUND


def test_what_a_set_writes_to_the_registers() -> None:
    values = {
        "lid": 0x123,
        "lmc": 2,
        "neighbor_mtu": 3,
        "vl_high_limit": 77,
        "operational_vls": 2,
        "hoq_life": 18,
        "vl_stall_count": 5,
        "partition_enforcement_outbound": 1,
        "filter_raw_inbound": 1,
        "local_phy_errors": 7,
        "overrun_errors": 8,
        "port_state": PortState.DOWN,
        "port_physical_state": PortPhysicalState.DISABLED,
        "link_down_default_state": PortPhysicalState.SLEEP,
        "link_width_enabled": LinkWidth.X1,
    }

    async def script(port: Port) -> None:
        kind = port.kind
        violations = port_address(PORT[kind], Detail.P_KEY_VIOLATIONS)
        in_steps = [
            *([Access(16, port_address(PORT[kind], REG.STATE), None)]),
            *([Access(50, node_address(NodeRegister.LID), 0x123)] if kind == OF_ADAPTER else []),
            port_write(82, kind, REG.PHYSICAL_STATE, PortPhysicalState.DISABLED),
            port_write(83, kind, REG.STATE, PortState.DOWN),
            *([Access(84, node_address(NodeRegister.LMC), 2)] if kind == OF_ADAPTER else []),
            port_write(85, kind, REG.LINK_DOWN_DEFAULT, PortPhysicalState.SLEEP),
            port_write(86, kind, REG.LINK_WIDTH_ENABLED, LinkWidth.X1),
            port_write(90, kind, REG.NEIGHBOR_MTU, 3),
            port_write(91, kind, REG.VL_HIGH_LIMIT, 77),
            port_write(98, kind, REG.OPERATIONAL_VLS, 2),
            *([port_write(99, kind, REG.HOQ_LIFE, 18)] if kind == EXTERNAL else []),
            *([port_write(100, kind, REG.VL_STALL_COUNT, 5)] if kind == EXTERNAL else []),
            *([port_write(101, kind, REG.PARTITION, OUTBOUND_RAW_INBOUND)] if kind == EXTERNAL else []),
            port_write(122, kind, REG.LOCAL_PHY_ERRORS, 7),
            port_write(123, kind, REG.OVERRUN_ERRORS, 8),
            *([Access(124, violations, 0)] if kind == EXTERNAL else []),
            Access(200, port_address(PORT[kind], REG.WIDTH), None),
            Access(208, port_address(PORT[kind], REG.STATE), None),
            Access(209, port_address(PORT[kind], REG.PHYSICAL_STATE), None),
            *([Access(210, violations, None)] if kind == EXTERNAL else []),
        ]
        work = await port.set(**values)
        assert work.accesses == in_steps
        assert PORT_INFO.unpack(work.attribute).port_state == PortState.DOWN
        # The same again is written again.
        assert (await port.set(**values)).accesses == in_steps

    for kind in (EXTERNAL, OF_ADAPTER):
        on_port(kind, script)


@pytest.mark.parametrize("kind", [EXTERNAL, OF_ADAPTER])
def test_the_width_enabled_is_written_as_it_came_and_a_default_state_if_it_is_taken(kind: str) -> None:
    async def script(port: Port) -> None:
        for state, width, is_taken in ((1, 255, True), (2, 4, True), (0, 0, False), (3, 3, False)):
            # Also if another field of the word is refused.
            work = await port.set(link_down_default_state=state, link_width_enabled=width, port_state=7)
            found = [access for access in work.accesses if access.step in (85, 86)]
            default = [port_write(85, kind, REG.LINK_DOWN_DEFAULT, state)] if is_taken else []
            assert found == [*default, port_write(86, kind, REG.LINK_WIDTH_ENABLED, width)]

    on_port(kind, script)


def test_wrong_p_keys_of_a_switchs_port_are_what_its_register_counted_until_0_is_set() -> None:
    address = port_address(PORT[EXTERNAL], Detail.P_KEY_VIOLATIONS)

    async def script(port: Port) -> None:
        for counted in (0xFFFF, 0x1234):
            port.bench.registers[address] = counted
            assert (await port.get()).p_key_violations == counted
            for value in (1, 0xFFFF):
                work = await port.set(p_key_violations=value)
                assert PORT_INFO.unpack(work.attribute).p_key_violations == counted
                assert not [
                    access for access in work.accesses if access.address == address and access.value is not None
                ]
            work = await port.set(m_key_violations=9, q_key_violations=9, p_key_violations=0)
            assert PORT_INFO.unpack(work.attribute).p_key_violations == 0

    on_port(EXTERNAL, script)


def test_each_check_of_partitions_has_its_bit() -> None:
    checks = {
        "partition_enforcement_inbound": PartitionCheck.INBOUND,
        "partition_enforcement_outbound": PartitionCheck.OUTBOUND,
        "filter_raw_inbound": PartitionCheck.RAW_INBOUND,
        "filter_raw_outbound": PartitionCheck.RAW_OUTBOUND,
    }

    async def script(port: Port) -> None:
        for name, check in checks.items():
            # Also if another field of the word is refused.
            for others in ({}, {"operational_vls": 9}):
                work = await port.set(**{name: 1, **others})
                assert PORT_INFO.unpack(work.attribute)[name] == 1
                write = port_write(101, port.kind, REG.PARTITION, check)
                assert [access for access in work.writes if access.address == write.address] == [write]

    on_port(EXTERNAL, script)


@pytest.mark.parametrize("kind", [BASE, OF_ADAPTER])
def test_only_a_switchs_external_ports_are_told_to_check_partitions(kind: str) -> None:
    async def script(port: Port) -> None:
        work = await port.set(partition_enforcement_inbound=1, filter_raw_outbound=1)
        assert REG.PARTITION not in [access.address & 0xFFFF for access in work.writes]

    on_port(kind, script)


def test_what_a_set_leaves_alone() -> None:
    async def script(port: Port) -> None:
        # No change, or refused.
        work = await port.set(lid=0, neighbor_mtu=9, operational_vls=0, port_state=7, port_physical_state=9)
        kept = {86: REG.LINK_WIDTH_ENABLED, 91: REG.VL_HIGH_LIMIT, 122: REG.LOCAL_PHY_ERRORS, 123: REG.OVERRUN_ERRORS}
        if port.kind == EXTERNAL:
            kept |= {99: REG.HOQ_LIFE, 100: REG.VL_STALL_COUNT, 101: REG.PARTITION, 124: Detail.P_KEY_VIOLATIONS}
        ports = [access for access in work.writes if access.address >> 16]
        assert ports == [port_write(step, port.kind, register, 0) for step, register in sorted(kept.items())]
        work = await port.set(operational_vls=9)
        assert port_address(PORT[port.kind], REG.OPERATIONAL_VLS) not in [access.address for access in work.writes]

    for kind in (EXTERNAL, OF_ADAPTER):
        on_port(kind, script)


def test_nothing_of_port_0_is_in_registers() -> None:
    async def script(port: Port) -> None:
        work = await port.set(lid=9, lmc=1, neighbor_mtu=1, operational_vls=1, hoq_life=3, local_phy_errors=3)
        assert (work.status, work.accesses) == (OK, [])

    on_port(BASE, script)


@pytest.mark.parametrize("field", ["port_state", "port_physical_state"])
def test_the_state_of_port_0_cannot_be_set(field: str) -> None:
    async def script(port: Port) -> None:
        for value in (1, 4, 5, 15):
            work = await port.set(**{field: value})
            assert (work.status, work.accesses) == (INVALID, [])
            assert PORT_INFO.unpack(work.attribute)[field] == {"port_state": 4, "port_physical_state": 5}[field]

    on_port(BASE, script)


S = PortState
STATES = (S.DOWN, S.INITIALIZE, S.ARMED, S.ACTIVE, S.ACTIVE_DEFER)


def state_of_set(value: int, now: int) -> tuple[int | None, bool]:
    """What a Set of PortState writes, if anything, and whether it is refused."""
    now = S.ACTIVE if now == S.ACTIVE_DEFER else now
    if value == S.NO_CHANGE or (value, now) in ((S.ARMED, S.ARMED), (S.ACTIVE, S.ACTIVE)):
        return None, False
    if value == S.DOWN or (value, now) in ((S.ARMED, S.INITIALIZE), (S.ACTIVE, S.ARMED)):
        return value, False
    return None, True


@pytest.mark.slow
@pytest.mark.parametrize("kind", [EXTERNAL, OF_ADAPTER])
def test_port_state(kind: str) -> None:
    async def script(port: Port) -> None:
        address = port_address(PORT[kind], REG.STATE)
        for now in STATES:
            for value in range(7):
                port.bench.registers[address] = now
                work = await port.set(port_state=value)
                writes, refused = state_of_set(value, now)
                assert work.status == (INVALID if refused else OK), (value, now)
                found = [access for access in work.writes if access.address == address]
                assert found == ([] if writes is None else [Access(83, address, writes)]), (value, now)
                shown = PORT_INFO.unpack(work.attribute).port_state
                assert shown == (writes or (S.ACTIVE if now == S.ACTIVE_DEFER else now)), (value, now)

    on_port(kind, script)


@pytest.mark.slow
def test_port_physical_state() -> None:
    async def script(port: Port) -> None:
        address = port_address(PORT[port.kind], REG.PHYSICAL_STATE)
        for state in (S.NO_CHANGE, S.DOWN, S.ARMED):
            for value in (*range(7), 15):
                port.bench.registers[port_address(PORT[port.kind], REG.STATE)] = S.INITIALIZE
                work = await port.set(port_state=state, port_physical_state=value)
                settable = 1 <= value <= 3 and state in (S.NO_CHANGE, S.DOWN)
                assert work.status == (OK if settable or value == 0 else INVALID), (state, value)
                found = [access for access in work.writes if access.address == address]
                assert found == ([Access(82, address, value)] if settable else []), (state, value)

    on_port(EXTERNAL, script)


def test_the_state_that_counts_is_that_of_step_16() -> None:
    address = port_address(PORT[EXTERNAL], REG.STATE)

    async def script(port: Port) -> None:
        bench = port.bench
        # Step 0 of a packet sent at once comes 80 cycles after its grant.
        bench.at[80 + 17] = lambda: bench.registers.update({address: S.ARMED})
        work = await port.set(port_state=S.ARMED)
        assert (work.start, work.status) == (80, OK)
        assert Access(83, address, S.ARMED) in work.accesses

    on_port(EXTERNAL, script)
