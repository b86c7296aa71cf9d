"""Congestion control's trap, about wrong CC_Keys (docs/management.md, sections 5 and 7; IBTA vol 1, A10.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rtl.management.agent_bench import MAD_START, Bench, Work, request
from tests.rtl.management.pma_bench import SENDER, SENDERS_QP
from wire.congestion_control import (
    CC_CLASS_PORT_INFO,
    CC_MAD,
    CC_NOTICE,
    CONGESTION_KEY_INFO,
    CcAttribute,
    cc_request,
)
from wire.headers import DETH
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet
from wire.notice import NOTICE, ProducerType, TrapNumber, details_of, notice
from wire.packet import build_ud_send
from wire.parameters import SwitchParameters
from wire.pma import perf_request
from wire.port_info import PORT_INFO
from wire.port_tables import SL_TO_VL_MAPPING_TABLE, SL_TO_VL_MODIFIER
from wire.registers import congestion_address, lft_address
from wire.sma import SmaAttribute

SWITCH = SwitchParameters(ports=3, vls=4, lft_size=128, mft_size=64)
LID, SM_LID = 5, 9
MANAGER, PORT_TO_MANAGER = 0x2A, 2
SL, P_KEY, QP, Q_KEY = 11, 0x8123, 0x00ABCD, 0x8001_0000
KEY, WRONG = 0xFEDC_BA98_7654_3210, 0x0123_4567_89AB_CDEF
TO = {"trap_lid": MANAGER, "trap_sl": SL, "trap_p_key": P_KEY, "trap_qp": QP, "trap_q_key": Q_KEY}
TRAP_STEPS = 144 + 16 * 3 + 8
"""Steps 0 to 143, the answer's 16 slots, which are short, and the last."""


async def write_window(bench: Bench, attribute: CcAttribute, data: bytes) -> None:
    """The test bus writes the words of an attribute, one in each cycle."""
    for word in range(8, len(data) // 4):
        offset = congestion_address(attribute, word) & 0xFFFF
        bench.access_congestion(select=1, write=1, offset=offset, wdata=int.from_bytes(data[4 * word : 4 * word + 4]))
        await bench.cycle()
    bench.access_congestion()


async def manage(bench: Bench, *, lid: int = LID, sm_lid: int = SM_LID, **to: int) -> None:
    """LIDs, a CC_Key, and who wants to hear of others."""
    bench.registers |= {lft_address(MANAGER): PORT_TO_MANAGER, lft_address(SENDER): 3, lft_address(SM_LID): 1}
    await bench.set(SmaAttribute.PORT_INFO, PORT_INFO.pack(lid=lid, master_sm_lid=sm_lid, neighbor_mtu=4))
    key_info = CONGESTION_KEY_INFO.pack(cc_key=KEY, protect_bit=1)
    await write_window(bench, CcAttribute.CONGESTION_KEY_INFO, key_info.ljust(48, b"\0"))
    await write_window(bench, CcAttribute.CLASS_PORT_INFO, CC_CLASS_PORT_INFO.pack({**TO, **to}))


async def ask(bench: Bench, method: MadMethod, attribute: int, cc_key: int, *, transaction_id: int = 7) -> Work:
    mad = cc_request(method, attribute, transaction_id=transaction_id, cc_key=cc_key, modifier=0x0102_0304)
    data = gmp_packet(mad, SENDER, LID, sl=2, vl=1, src_qp=SENDERS_QP).data
    # Free in the cycle after step 15, if there is no answer.
    return await bench.send(data, slot=1, cycles=16 if cc_key != KEY or method == MadMethod.TRAP_REPRESS else None)


async def violate(bench: Bench, attribute: int = CcAttribute.SWITCH_CONGESTION_SETTING) -> Work:
    work = await ask(bench, MadMethod.SET, attribute, WRONG)
    assert (work.steps, work.offered, bench.available) == (16, None, False)
    return work


async def hear(bench: Bench) -> Work:
    """The trap that takes the agent in this cycle."""
    assert not bench.available
    return await bench.trap(bench.now + 2)


async def no_trap(bench: Bench, cycles: int = 20) -> None:
    for _ in range(cycles):
        assert bench.available
        await bench.cycle()


def trap_packet(events: int = 1, attribute: int = CcAttribute.SWITCH_CONGESTION_SETTING) -> bytes:
    said = notice(
        TrapNumber.BAD_CC_KEY,
        ProducerType.SWITCH,
        LID,
        slid=SENDER,
        method=MadMethod.SET,
        attribute_id=attribute,
        attribute_modifier=0x0102_0304,
        qp=1,
        cc_key=WRONG,
    )
    mad = cc_request(MadMethod.TRAP, CcAttribute.NOTICE, CC_NOTICE.pack(said), transaction_id=events)
    return build_ud_send(
        slid=LID, dlid=MANAGER, dest_qp=QP, src_qp=1, q_key=Q_KEY, p_key=P_KEY, payload=mad.pack(), vl=0, sl=SL
    ).data


def on(script: Any) -> None:
    Bench(SWITCH).run(script)


def test_a_request_with_a_wrong_cc_key_is_told_to_whom_class_port_info_names() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        await violate(bench)
        work = await hear(bench)
        assert work.reads == [(2, lft_address(MANAGER))]
        assert work.data == trap_packet()
        assert (work.outputs, work.slot) == ((PORT_TO_MANAGER - 1,), SL % SWITCH.vls)
        assert work.offered == work.start + TRAP_STEPS
        await no_trap(bench)

    on(script)


def test_nobody_is_told_without_a_trap_lid() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench, trap_lid=0)
        work = await ask(bench, MadMethod.SET, CcAttribute.SWITCH_CONGESTION_SETTING, WRONG)
        assert work.offered is None
        await no_trap(bench)
        # That one is not told later either.
        await write_window(bench, CcAttribute.CLASS_PORT_INFO, CC_CLASS_PORT_INFO.pack(TO))
        await no_trap(bench)

    on(script)


def test_it_needs_no_subnet_manager() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench, sm_lid=0)  # refused: it stays 0
        await violate(bench)
        assert (await hear(bench)).data == trap_packet()

    on(script)


def test_it_needs_an_own_lid() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench, lid=0)  # refused likewise
        await ask(bench, MadMethod.SET, CcAttribute.SWITCH_CONGESTION_SETTING, WRONG)
        await no_trap(bench)

    on(script)


def test_the_vl_is_that_of_trap_sl_at_the_output() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        table = SL_TO_VL_MAPPING_TABLE.pack([2 if sl == SL else 1 for sl in range(16)])
        modifier = SL_TO_VL_MODIFIER.to_int(input_port=0, output_port=PORT_TO_MANAGER)
        await bench.set(SmaAttribute.SL_TO_VL_MAPPING_TABLE, table, modifier)
        await violate(bench)
        assert (await hear(bench)).slot == 2

    on(script)


def test_a_vl_that_the_switch_has_not_drops_it() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        table = SL_TO_VL_MAPPING_TABLE.pack([SWITCH.vls if sl == SL else 0 for sl in range(16)])
        modifier = SL_TO_VL_MODIFIER.to_int(input_port=0, output_port=PORT_TO_MANAGER)
        await bench.set(SmaAttribute.SL_TO_VL_MAPPING_TABLE, table, modifier)
        await violate(bench)
        work = await hear(bench)
        assert (work.offered, work.steps) == (None, TRAP_STEPS)

    on(script)


def test_it_does_not_wait_for_credits() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        bench.take_after = 1
        await violate(bench)
        work = await hear(bench)
        assert work.data == b""
        assert work.free == work.offered + 1

    on(script)


def test_it_is_repeated_until_a_trap_repress_with_the_cc_key() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        await violate(bench)
        first = await hear(bench)
        await bench.until(first.start + 1024)
        again = await hear(bench)
        assert again.data == first.data
        for wrong in (
            {"cc_key": KEY, "attribute": CcAttribute.CLASS_PORT_INFO},
            {"cc_key": KEY, "attribute": CcAttribute.NOTICE, "transaction_id": 2},
        ):
            await ask(bench, MadMethod.TRAP_REPRESS, **wrong)
        await bench.until(again.start + 1024)
        more = await hear(bench)
        work = await ask(bench, MadMethod.TRAP_REPRESS, CcAttribute.NOTICE, KEY, transaction_id=1)
        assert (work.steps, work.offered) == (16, None)
        await bench.until(more.start + 1024)
        await no_trap(bench)

    on(script)


def test_a_trap_repress_with_a_wrong_key_is_itself_a_violation() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        await violate(bench)
        first = await hear(bench)
        await ask(bench, MadMethod.TRAP_REPRESS, CcAttribute.NOTICE, WRONG, transaction_id=1)
        await bench.until(first.start + 1024)
        told = (await hear(bench)).data[MAD_START:]
        details = details_of(NOTICE.unpack(told, 64))
        assert details is not None
        assert (CC_MAD.unpack(told).transaction_id, details.method) == (2, MadMethod.TRAP_REPRESS)

    on(script)


def test_a_trap_repress_of_subnet_management_leaves_it_pending() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        await violate(bench)
        first = await hear(bench)
        await bench.smp(request(MadMethod.TRAP_REPRESS, SmaAttribute.NOTICE, transaction_id=1))
        await bench.until(first.start + 1024)
        assert (await hear(bench)).data == first.data

    on(script)


def test_one_of_congestion_control_leaves_traps_of_subnet_management_pending() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        bench.drive(state_reported=1)
        await bench.cycle()
        bench.drive(state_reported=0)
        await bench.cycle()
        first = await hear(bench)
        transaction = TrapNumber.LINK_STATE_CHANGE << 32 | 1
        await ask(bench, MadMethod.TRAP_REPRESS, CcAttribute.NOTICE, KEY, transaction_id=transaction)
        await bench.until(first.start + 1024)
        assert (await hear(bench)).data == first.data

    on(script)


def test_there_is_no_trap_repress_of_performance_management() -> None:
    async def script(bench: Bench) -> None:
        mad = perf_request(MadMethod.TRAP_REPRESS, CcAttribute.NOTICE, transaction_id=1)
        work = await bench.send(gmp_packet(mad, SENDER, LID, sl=2, vl=1).data, slot=1)
        assert (work.steps, work.offered) == (0, None)

    on(script)


def test_while_nobody_is_named_a_pending_one_is_not_sent_and_then_it_is() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        await violate(bench)
        first = await hear(bench)
        await write_window(bench, CcAttribute.CLASS_PORT_INFO, CC_CLASS_PORT_INFO.pack())
        await bench.until(first.start + 1024)
        await no_trap(bench)
        await write_window(bench, CcAttribute.CLASS_PORT_INFO, CC_CLASS_PORT_INFO.pack(TO))
        while bench.available:
            await bench.cycle()
        assert (await hear(bench)).data == first.data

    on(script)


@pytest.mark.parametrize("late", [0, 1])
def test_what_is_written_from_step_0_on_counts_for_the_next(late: int) -> None:
    """A write is visible in the cycle after it is given to the page."""

    async def script(bench: Bench) -> None:
        await manage(bench)
        await violate(bench)
        start = bench.now + 2
        offset = congestion_address(CcAttribute.CLASS_PORT_INFO, 25) & 0xFFFF
        given = start - 1 + late
        bench.at[given] = lambda: bench.access_congestion(select=1, write=1, offset=offset, wdata=0x1234)
        bench.at[given + 1] = bench.access_congestion
        work = await hear(bench)
        assert DETH.unpack(work.data, 20).q_key == (Q_KEY if late else 0x1234)

    on(script)


def test_traps_of_both_classes_take_turns() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        bench.at[bench.now + 90] = lambda: bench.drive(state_reported=1)
        bench.at[bench.now + 91] = lambda: bench.drive(state_reported=0)
        await violate(bench)
        classes = []
        for _ in range(3):
            while bench.available:
                await bench.cycle()
            work = await hear(bench)
            classes.append(work.data[MAD_START + 1])
        assert classes == [0x01, 0x21, 0x01]

    on(script)


def test_the_latest_violation_is_told() -> None:
    async def script(bench: Bench) -> None:
        await manage(bench)
        await violate(bench)
        first = await hear(bench)
        await ask(bench, MadMethod.SET, CcAttribute.CONGESTION_KEY_INFO, WRONG)
        await bench.until(first.start + 1024)
        assert (await hear(bench)).data == trap_packet(2, CcAttribute.CONGESTION_KEY_INFO)

    on(script)
