"""The M_Key: which SMPs pass, what a violation does, and the lease of the protection."""

from typing import Any

import pytest

from tests.agent_steps import cycles_to
from tests.rtl.management.agent_bench import Bench, Work, request
from wire.layout import Record
from wire.mad import MadMethod, MadStatus
from wire.parameters import AdapterParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.registers import LEASE_SECOND_AT_RESET
from wire.sma import SmaAttribute

SWITCH = SwitchParameters(ports=2)
ADAPTER = AdapterParameters()
KEY = 0xFEDC_BA98_7654_3210
PORT_INFO_0 = (SmaAttribute.PORT_INFO, 0)
NOT_ANSWERED = 16
TO_STEP_0 = 80
"""Cycles from a grant to step 0."""


def settings(**fields: int) -> bytes:
    """No MasterSMLID is given, so there are no traps; the field is refused."""
    return PORT_INFO.pack({"lid": 1, "neighbor_mtu": 4, **fields})


async def protect(bench: Bench, bits: int, m_key: int = 0, **fields: int) -> None:
    """Set the M_Key, and who needs it."""
    data = settings(m_key=KEY, m_key_protect_bits=bits, **fields)
    work = await bench.set(SmaAttribute.PORT_INFO, data, 0, m_key)
    assert work.status == MadStatus.INVALID_ATTRIBUTE_VALUE


def info(work: Work) -> Record:
    return PORT_INFO.unpack(work.attribute)


def on(script: Any, parameters: Any = SWITCH, lease_second: int = LEASE_SECOND_AT_RESET) -> None:
    bench = Bench(parameters)
    bench.lease_second = lease_second
    bench.run(script)


@pytest.mark.parametrize("parameters", [SWITCH, ADAPTER], ids=["switch", "adapter"])
@pytest.mark.parametrize(("bits", "get", "key_seen"), [(0, True, KEY), (1, True, 0), (2, False, 0), (3, False, 0)])
def test_with_a_wrong_m_key(parameters: Any, bits: int, get: bool, key_seen: int) -> None:
    async def script(bench: Bench) -> None:
        await protect(bench, bits)
        for wrong in (0, KEY ^ 1, KEY ^ 1 << 63):
            work = await bench.get(*PORT_INFO_0, m_key=wrong)
            assert work.answered if get else work.steps == NOT_ANSWERED
            if get:
                assert work.smp.m_key == wrong
                assert info(work).m_key == key_seen
                assert info(work).m_key_protect_bits == bits
            for method in (MadMethod.SET, MadMethod.TRAP_REPRESS):
                work = await bench.smp(request(method, *PORT_INFO_0, settings(), m_key=wrong))
                assert (work.steps, work.offered, work.accesses) == (NOT_ANSWERED, None, [])
        work = await bench.get(*PORT_INFO_0, m_key=KEY)
        assert work.answered
        assert (info(work).m_key, info(work).m_key_protect_bits) == (KEY, bits)
        assert info(work).m_key_violations == (6 if get else 9)

    on(script, parameters)


def test_without_an_m_key_every_key_is_right() -> None:
    async def script(bench: Bench) -> None:
        work = await bench.set(SmaAttribute.PORT_INFO, settings(m_key_protect_bits=3), m_key=KEY)
        assert (work.answered, work.smp.m_key) == (True, KEY)
        work = await bench.get(*PORT_INFO_0, m_key=5)
        assert (work.answered, info(work).m_key_violations) == (True, 0)

    on(script)


def test_the_m_key_guards_requests_that_are_in_error_too() -> None:
    async def script(bench: Bench) -> None:
        await protect(bench, 2)
        for attribute in (SmaAttribute.SM_INFO, 0x7777):
            assert (await bench.get(attribute)).steps == NOT_ANSWERED
            assert (await bench.get(attribute, m_key=KEY)).answered

    on(script)


def test_violations_are_cleared_by_0_alone() -> None:
    async def script(bench: Bench) -> None:
        await protect(bench, 1)
        for _ in range(3):
            await bench.set(*PORT_INFO_0[:1], settings())
        for value, left in ((1, 3), (0xFFFF, 3), (0, 0)):
            data = settings(m_key=KEY, m_key_protect_bits=1, m_key_violations=value)
            work = await bench.set(SmaAttribute.PORT_INFO, data, m_key=KEY)
            assert info(work).m_key_violations == left

    on(script)


def protection(work: Work) -> int:
    return info(work).m_key_protect_bits


@pytest.mark.parametrize(("period", "second"), [(1, 900), (3, 300), (900, 1)])
@pytest.mark.parametrize("late", [False, True])
def test_the_lease_expires_to_the_cycle(period: int, second: int, late: bool) -> None:
    """A Get whose step 0 is in the last protected cycle is a violation, one a cycle later is answered."""

    async def script(bench: Bench) -> None:
        await protect(bench, 2, m_key_lease_period=period)
        await bench.idle(50)
        violating = await bench.set(SmaAttribute.PORT_INFO, settings())
        assert violating.steps == NOT_ANSWERED
        expires = violating.start + period * second
        await bench.until(expires - TO_STEP_0 - (0 if late else 1))
        work = await bench.get(*PORT_INFO_0)
        assert work.start == expires - (0 if late else 1)
        assert work.answered if late else work.steps == NOT_ANSWERED
        if late:
            assert (protection(work), info(work).m_key, info(work).m_key_violations) == (0, KEY, 1)

    on(script, lease_second=second)


def test_a_lease_is_as_long_as_it_was_when_it_began() -> None:
    async def script(bench: Bench) -> None:
        await protect(bench, 2, m_key_lease_period=2)
        violating = await bench.set(SmaAttribute.PORT_INFO, settings())
        bench.drive(lease_second=10)
        await bench.until(violating.start + 2 * 400 - TO_STEP_0 - 1)
        assert (await bench.get(*PORT_INFO_0)).steps == NOT_ANSWERED
        assert (await bench.get(*PORT_INFO_0)).answered

    on(script, lease_second=400)


def test_another_violation_does_not_prolong_a_lease() -> None:
    async def script(bench: Bench) -> None:
        await protect(bench, 3, m_key_lease_period=1)
        first = await bench.set(SmaAttribute.PORT_INFO, settings())
        await bench.set(SmaAttribute.PORT_INFO, settings())
        await bench.until(first.start + 600 - TO_STEP_0)
        assert (await bench.get(*PORT_INFO_0)).answered

    on(script, lease_second=600)


@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET, MadMethod.TRAP_REPRESS])
def test_an_smp_with_the_right_key_ends_the_lease(method: MadMethod) -> None:
    data = settings(m_key=KEY, m_key_protect_bits=2, m_key_lease_period=1)

    async def script(bench: Bench) -> None:
        await protect(bench, 2, m_key_lease_period=1)
        await bench.set(SmaAttribute.PORT_INFO, settings())
        await bench.smp(request(method, *PORT_INFO_0, data, m_key=KEY))
        await bench.idle(800)
        assert (await bench.get(*PORT_INFO_0)).steps == NOT_ANSWERED

    on(script, lease_second=700)


def test_a_period_of_0_is_no_lease() -> None:
    async def script(bench: Bench) -> None:
        await protect(bench, 2)
        await bench.set(SmaAttribute.PORT_INFO, settings())
        await bench.idle(200)
        assert (await bench.get(*PORT_INFO_0)).steps == NOT_ANSWERED

    on(script, lease_second=1)


def test_an_expiry_during_an_answer_is_seen_from_step_208_on() -> None:
    async def script(bench: Bench) -> None:
        step_208 = cycles_to(208, MadMethod.GET, SmaAttribute.PORT_INFO)
        for step, seen in ((step_208, 0), (step_208 + 1, 1)):
            await protect(bench, 1, KEY, m_key_lease_period=1)
            violating = await bench.set(SmaAttribute.PORT_INFO, settings())
            await bench.until(violating.start + 1000 - step - TO_STEP_0)
            work = await bench.get(*PORT_INFO_0)
            assert violating.start + 1000 == work.start + step
            # Whether the key may be seen is decided at step 0.
            assert (info(work).m_key, protection(work)) == (0, seen)

    on(script, lease_second=1000)
