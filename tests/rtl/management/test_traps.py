"""Traps: what makes one pending, when it is sent, what it says, and how it is repressed."""

from typing import Any

import pytest

from tests.agent_steps import cycles_to, of_trap, steps_of_request
from tests.rtl.management.agent_bench import Bench, Work, request
from wire.codes import VL15
from wire.mad import MadMethod
from wire.notice import NOTICE, ProducerType, TrapNumber, notice
from wire.packet import build_ud_send
from wire.parameters import AdapterParameters, SwitchParameters
from wire.port_info import ADAPTER_CAPABILITIES, PORT_INFO, CapabilityMask
from wire.registers import lft_address
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import KeyViolation

SWITCH = SwitchParameters(ports=4)
ADAPTER = AdapterParameters()
LID, SM_LID, SM_SL = 0x123, 0x45, 6
KEY = 0xFEDC_BA98_7654_3210
STEPS = len(of_trap())
TO_STEP_0 = 80
SENT = 73


def answered(method: MadMethod, attribute: SmaAttribute) -> int:
    """Cycles from T to the agent being free, if the answer is taken at once."""
    return steps_of_request(method, attribute) + SENT


OF_SET = answered(MadMethod.SET, SmaAttribute.PORT_INFO)


def settings(**fields: int) -> bytes:
    values = {"lid": LID, "master_sm_lid": SM_LID, "master_sm_sl": SM_SL, "neighbor_mtu": 4}
    return PORT_INFO.pack({**values, **fields})


async def know_the_sm(bench: Bench, m_key: int = 0, **fields: int) -> None:
    """The Subnet Manager, at port 3 of a switch, says where it is."""
    bench.registers[lft_address(SM_LID)] = 3
    if not bench.is_switch:
        bench.drive(active=1)
    await bench.set(SmaAttribute.PORT_INFO, settings(**fields), m_key=m_key)


async def pulse(bench: Bench) -> int:
    """Something happens to a switch's port in this cycle."""
    bench.drive(state_reported=1)
    await bench.cycle()
    bench.drive(state_reported=0)
    return bench.now - 1


def on(script: Any, parameters: Any = SWITCH) -> None:
    Bench(parameters).run(script)


def trap_packet(number: TrapNumber, events: int, producer: ProducerType, **details: int) -> bytes:
    told = notice(number, producer, LID, **details)
    smp = smp_request(MadMethod.TRAP, SmaAttribute.NOTICE, data=told.pack(), transaction_id=number << 32 | events)
    return build_ud_send(
        slid=LID, dlid=SM_LID, dest_qp=0, src_qp=0, q_key=0, payload=smp.pack(), vl=VL15, sl=SM_SL
    ).data


def link_state_change(events: int) -> bytes:
    return trap_packet(TrapNumber.LINK_STATE_CHANGE, events, ProducerType.SWITCH, lid=LID)


async def repress(bench: Bench, number: int, events: int, m_key: int = 0) -> Work:
    smp = request(MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE, m_key=m_key, transaction_id=number << 32 | events)
    work = await bench.smp(smp)
    assert (work.steps, work.offered) == (16, None)
    return work


async def no_trap(bench: Bench, cycles: int) -> None:
    for _ in range(cycles):
        assert bench.available
        await bench.cycle()


def test_a_port_state_change_is_told() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        event = await pulse(bench)
        # Pending and due from the second cycle on, in which the agent is free; step 0 is in the next cycle but one.
        await no_trap(bench, 1)
        assert not bench.available
        work = await bench.trap(event + 4)
        assert work.offered == work.start + STEPS
        assert work.outputs == (2,)
        assert work.reads == [(2, lft_address(SM_LID))]
        assert work.data == link_state_change(1)
        assert work.free == work.offered + SENT

    on(script)


def test_a_trap_waits_until_the_agent_is_free() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        bench.at[bench.now + 95] = lambda: bench.drive(state_reported=1)
        bench.at[bench.now + 96] = lambda: bench.drive(state_reported=0)
        work = await bench.smp(
            request(MadMethod.GET, SmaAttribute.NODE_INFO), cycles=answered(MadMethod.GET, SmaAttribute.NODE_INFO)
        )
        assert work.data
        assert not bench.available
        trap = await bench.trap(bench.now + 2)
        assert trap.data == link_state_change(1)

    on(script)


def test_without_a_subnet_manager_nothing_is_told() -> None:
    async def script(bench: Bench) -> None:
        await pulse(bench)
        await no_trap(bench, 10)
        await know_the_sm(bench)
        await no_trap(bench, 20)

    on(script)


@pytest.mark.parametrize(("late", "told"), [(0, False), (1, True)])
def test_master_sm_lid_counts_from_the_cycle_after_step_143_on(late: int, told: bool) -> None:
    async def script(bench: Bench) -> None:
        step = cycles_to(143, MadMethod.SET, SmaAttribute.PORT_INFO) + late
        bench.at[TO_STEP_0 + step] = lambda: bench.drive(state_reported=1)
        bench.at[TO_STEP_0 + step + 1] = lambda: bench.drive(state_reported=0)
        bench.registers[lft_address(SM_LID)] = 3
        await bench.smp(request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, settings()), cycles=OF_SET)
        assert bench.available == (not told)

    on(script)


def test_a_trap_needs_an_own_lid() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench, lid=0)
        await pulse(bench)
        await no_trap(bench, 20)
        await bench.smp(request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, settings()), cycles=OF_SET)
        assert not bench.available

    on(script)


@pytest.mark.parametrize("code", [0, 1, 2])
def test_a_trap_is_sent_again_until_it_is_repressed(code: int) -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench, subnet_timeout=code)
        event = await pulse(bench)
        start = event + 4
        for _ in range(3):
            work = await bench.trap(start)
            assert work.data == link_state_change(1)
            # Due again when the timer is 0, free as the agent is; two cycles on begins the work.
            start = max(start + (1024 << code), work.free) + 2
            await no_trap(bench, start - 2 - bench.now)
        work = await bench.trap(start)
        for number, events in ((128, 2), (144, 1), (256, 1), (128, 0), (0x1_0000_0080, 1)):
            await repress(bench, number & 0xFFFFFFFF if number < 1 << 32 else 127, events)
        await no_trap(bench, start + (1024 << code) - bench.now)
        work = await bench.trap(start + (1024 << code) + 2)
        await repress(bench, 128, 1)
        await no_trap(bench, (1024 << code) + 100)

    on(script)


def test_each_event_has_a_transaction_id_of_its_own() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        start = await pulse(bench) + 4
        await bench.trap(start)
        await pulse(bench)
        await pulse(bench)
        await bench.until(start + 1024)
        work = await bench.trap(start + 1024 + 2)
        assert work.data == link_state_change(3)
        await repress(bench, 128, 1)
        await repress(bench, 128, 2)
        await bench.until(work.start + 1024)
        assert not bench.available
        await bench.trap(work.start + 1024 + 2)
        await repress(bench, 128, 3)
        await no_trap(bench, 1100)

    on(script)


def test_what_a_trap_says_is_as_visible_at_its_step_0() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        for offset, told in ((1, 2), (2, 4), (3, 5)):  # step 0 is at 4
            event = await pulse(bench)
            bench.at[event + offset] = lambda: bench.drive(state_reported=1)
            bench.at[event + offset + 1] = lambda: bench.drive(state_reported=0)
            work = await bench.trap(event + 4)
            assert work.data == link_state_change(told)
            await bench.until(work.start + 1024 - TO_STEP_0)
            await repress(bench, 128, told if offset < 3 else told + 1)
            await no_trap(bench, 5)

    on(script)


def test_an_event_in_the_cycle_of_its_repress_stays() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        start = await pulse(bench) + 4
        await bench.trap(start)
        now = bench.now
        bench.at[now + TO_STEP_0] = lambda: bench.drive(state_reported=1)
        bench.at[now + TO_STEP_0 + 1] = lambda: bench.drive(state_reported=0)
        await repress(bench, 128, 1)
        await bench.until(start + 1024)
        work = await bench.trap(start + 1024 + 2)
        assert work.data == link_state_change(2)

    on(script)


def test_the_test_bus_holds_up_a_traps_first_step() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        event = await pulse(bench)
        bench.holds = lambda cycle: event + 2 <= cycle <= event + 6
        work = await bench.trap(event + 7)
        assert work.answered

    on(script)


def test_a_trap_that_has_no_route_is_dropped_after_its_steps() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        bench.registers[lft_address(SM_LID)] = 255
        event = await pulse(bench)
        work = await bench.trap(event + 4)
        assert (work.answered, work.offered) == (True, None)

    on(script)


@pytest.mark.parametrize("parameters", [SWITCH, ADAPTER], ids=["switch", "adapter"])
@pytest.mark.parametrize("directed", [False, True], ids=["by LID", "directed"])
def test_a_violation_is_told(parameters: Any, directed: bool) -> None:
    is_switch = parameters is SWITCH
    producer = ProducerType.SWITCH if is_switch else ProducerType.CA

    async def script(bench: Bench) -> None:
        await know_the_sm(bench, m_key=0, **{"m_key_protect_bits": 1})
        await bench.set(SmaAttribute.PORT_INFO, settings(m_key=KEY))
        wrong = 0x1122_3344_5566_7788
        if directed:
            smp = request(MadMethod.SET, SmaAttribute.LED_INFO, 0x0ABC_DEF1, m_key=wrong)
            smp = smp.replace(dr_slid=0x77, dr_dlid=0xFFFF)
        else:
            smp = smp_request(MadMethod.SET, SmaAttribute.LED_INFO, 0x0ABC_DEF1, transaction_id=1, m_key=wrong)
        work = await bench.smp(smp, slid=0x66, dlid=LID, cycles=16)
        assert work.offered is None
        assert not bench.available
        trap = await bench.trap(work.start + 16 + 2)
        assert trap.outputs == ((2,) if is_switch else (0,))
        assert trap.data == trap_packet(
            TrapNumber.BAD_M_KEY,
            1,
            producer,
            lid=0x66,
            dr_slid=0x77 if directed else 0,
            method=MadMethod.SET,
            attribute_id=SmaAttribute.LED_INFO,
            attribute_modifier=0x0ABC_DEF1,
            m_key=wrong,
        )

    on(script, parameters)


def test_traps_take_turns() -> None:
    def number(work: Work) -> int:
        return NOTICE.unpack(work.attribute).trap_number

    async def script(bench: Bench) -> None:
        await know_the_sm(bench, m_key=0, m_key_protect_bits=1)
        await bench.set(SmaAttribute.PORT_INFO, settings(m_key=KEY))
        now = bench.now
        bench.at[now + 20] = lambda: bench.drive(state_reported=1)
        bench.at[now + 21] = lambda: bench.drive(state_reported=0)
        work = await bench.smp(request(MadMethod.SET, SmaAttribute.LED_INFO, 1), cycles=16)
        start = work.start + 16 + 2
        found = []
        for _ in range(4):
            work = await bench.trap(start)
            found.append(number(work))
            start += 1024 + 2
            await bench.until(start - 2)
        assert found == [128, 256, 128, 256]
        await bench.trap(start)
        await repress(bench, 256, 1, KEY)
        start += 1024 + 2
        await bench.until(start - 2)
        work = await bench.trap(start)
        assert number(work) == 128

    on(script)


@pytest.mark.parametrize("is_sm", [0, 1])
def test_an_adapter_tells_of_its_hosts_subnet_manager(is_sm: int) -> None:
    async def script(bench: Bench) -> None:
        bench.drive(host_sm=1 - is_sm)
        await know_the_sm(bench)
        bench.drive(host_sm=is_sm)
        event = bench.now
        await bench.cycle()
        await no_trap(bench, 1)
        assert not bench.available
        work = await bench.trap(event + 4)
        assert work.outputs == (0,)
        mask = ADAPTER_CAPABILITIES | (CapabilityMask.IS_SM if is_sm else 0)
        expected = trap_packet(TrapNumber.LOCAL_CHANGES, 1, ProducerType.CA, lid=LID, capability_mask=mask)
        assert work.data == expected

    on(script, ADAPTER)


@pytest.mark.parametrize(("offset", "told"), [(0, 0), (1, CapabilityMask.IS_SM)])
def test_the_is_sm_of_a_trap_is_that_of_its_step_0(offset: int, told: int) -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        bench.drive(host_sm=1)
        start = bench.now + 4
        bench.at[start + offset] = lambda: bench.drive(host_sm=0)
        await bench.cycle()
        work = await bench.trap(start)
        expected = trap_packet(
            TrapNumber.LOCAL_CHANGES, 1, ProducerType.CA, lid=LID, capability_mask=ADAPTER_CAPABILITIES | told
        )
        assert work.data == expected

    on(script, ADAPTER)


def test_an_adapter_tells_nothing_while_its_port_is_not_active() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        bench.drive(active=0, host_sm=1)
        await bench.cycle()
        await no_trap(bench, 20)
        bench.drive(active=1)
        now = bench.now
        assert not bench.available
        work = await bench.trap(now + 2)
        assert work.answered

    on(script, ADAPTER)


# Wrong keys.

FIRST = {"slid": 0x1234, "dlid": LID, "key": 0x8001, "sl": 9, "source_qp": 0xABCDEF, "dest_qp": 0x123456}
SECOND = {"slid": 0x4321, "dlid": 0xC001, "key": 0xFEDC_BA98, "sl": 15, "source_qp": 0, "dest_qp": 0xFFFFFF}


def bad_key(number: TrapNumber, events: int, key: dict[str, int]) -> bytes:
    """The packet of trap 257 or 258."""
    names = {"lid1": "slid", "lid2": "dlid", "key": "key", "sl": "sl", "qp1": "source_qp", "qp2": "dest_qp"}
    return trap_packet(number, events, ProducerType.CA, **{field: key[name] for field, name in names.items()})


async def find(bench: Bench, found: KeyViolation, key: dict[str, int]) -> int:
    """An adapter's host finds a wrong key in this cycle."""
    bench.drive(key_violation={"found": found, **key})
    await bench.cycle()
    bench.drive(key_violation={})
    return bench.now - 1


@pytest.mark.parametrize(
    ("found", "number"), [(KeyViolation.P_KEY, TrapNumber.BAD_P_KEY), (KeyViolation.Q_KEY, TrapNumber.BAD_Q_KEY)]
)
def test_a_wrong_key_that_a_host_finds_is_told(found: KeyViolation, number: TrapNumber) -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        event = await find(bench, found, FIRST)
        await no_trap(bench, 1)
        assert not bench.available
        work = await bench.trap(event + 4)
        assert work.outputs == (0,)
        assert work.data == bad_key(number, 1, FIRST)
        await repress(bench, number, 1)
        await no_trap(bench, 1100)

    on(script, ADAPTER)


def test_each_key_has_a_trap_of_its_own_and_its_latest_packet() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        event = await find(bench, KeyViolation.P_KEY | KeyViolation.Q_KEY, FIRST)
        await find(bench, KeyViolation.Q_KEY, SECOND)
        start = event + 4
        expected = [bad_key(TrapNumber.BAD_P_KEY, 1, FIRST), bad_key(TrapNumber.BAD_Q_KEY, 2, SECOND)]
        for data in (*expected, expected[0]):
            work = await bench.trap(start)
            assert work.data == data
            start += 1024 + 2
            await bench.until(start - 2)

    on(script, ADAPTER)


@pytest.mark.parametrize(("late", "told"), [(-2, (2, SECOND)), (-1, (1, FIRST)), (1, (1, FIRST)), (70, (1, FIRST))])
def test_a_trap_tells_of_the_packet_that_is_visible_at_its_step_0(late: int, told: tuple[int, dict[str, int]]) -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        start = bench.now + 4
        bench.at[start + late] = lambda: bench.drive(key_violation={"found": KeyViolation.P_KEY, **SECOND})
        bench.at[start + late + 1] = lambda: bench.drive(key_violation={})
        await find(bench, KeyViolation.P_KEY, FIRST)
        work = await bench.trap(start)
        assert work.data == bad_key(TrapNumber.BAD_P_KEY, *told)
        await bench.until(start + 1024)
        work = await bench.trap(start + 1024 + 2)
        assert work.data == bad_key(TrapNumber.BAD_P_KEY, 2, SECOND)

    on(script, ADAPTER)


def test_a_trap_waits_until_the_node_has_a_lid_and_tells_of_the_latest_packet() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench, lid=0)
        for key in (FIRST, SECOND):
            await find(bench, KeyViolation.P_KEY, key)
        await no_trap(bench, 10)
        await bench.smp(request(MadMethod.SET, SmaAttribute.PORT_INFO, 0, settings()), cycles=OF_SET)
        work = await bench.trap(bench.now + 2)
        assert work.data == bad_key(TrapNumber.BAD_P_KEY, 2, SECOND)

    on(script, ADAPTER)


REJECTED = {"slid": 0x77, "dlid": 0x88, "sl": 5, "p_key": 0x8123, "port": 4}


def test_a_p_key_that_a_switch_rejects_is_told_in_turn() -> None:
    async def script(bench: Bench) -> None:
        await know_the_sm(bench)
        bench.drive(state_reported=1, wrong_p_key={"valid": 1, **REJECTED})
        await bench.cycle()
        bench.drive(state_reported=0, wrong_p_key={})
        bench.at[bench.now + 1] = lambda: bench.drive(wrong_p_key=REJECTED)
        bench.at[bench.now + 2] = lambda: bench.drive(wrong_p_key={})
        start = bench.now + 3
        work = await bench.trap(start)
        assert work.data == link_state_change(1)
        await bench.until(start + 1024)
        work = await bench.trap(start + 1024 + 2)
        details = {"lid1": 0x77, "lid2": 0x88, "sl": 5, "p_key": 0x8123, "port": 4, "sw_lid": LID, "data_valid": 0x000F}
        assert work.data == trap_packet(TrapNumber.BAD_P_KEY_AT_SWITCH, 1, ProducerType.SWITCH, **details)
        await repress(bench, TrapNumber.BAD_P_KEY_AT_SWITCH, 1)
        await bench.until(work.start + 1024)
        work = await bench.trap(work.start + 1024 + 2)
        assert work.data == link_state_change(1)

    on(script)
