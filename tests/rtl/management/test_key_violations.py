"""PortInfo's P_KeyViolations and Q_KeyViolations: what an adapter's host finds is counted, and cleared by a Set."""

from typing import Any

import pytest

from rtl.management.key_violations import KeyViolations
from tests.agent_steps import cycles_to
from tests.rtl.management.agent_bench import Bench, Work
from tests.rtl.simulation import Simulation
from wire.layout import Record
from wire.mad import MadMethod, MadStatus
from wire.parameters import AdapterParameters
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute
from wire.stimulus import KeyViolation

ADAPTER = AdapterParameters(vls=4, mtu=2048)
P, Q = "p_key_violations", "q_key_violations"
SETS = {P: 105, Q: 113}
ANSWERS = {P: 232, Q: 240}
"""The steps of the slots of their words."""
TO_STEP_0 = 80
"""Cycles from the call of the bench to step 0 of what it sends."""
KEY = {P: KeyViolation.P_KEY, Q: KeyViolation.Q_KEY}


class Host:
    """An adapter whose host finds wrong keys, and is asked for its PortInfo."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def find(self, cycle: int, keys: int, times: int = 1) -> None:
        """In a cycle, and those after it."""
        self.bench.at[cycle] = lambda: self.bench.drive(key_violation={"found": keys})
        self.bench.at[cycle + times] = lambda: self.bench.drive(key_violation={})

    async def now(self, keys: int, times: int = 1) -> None:
        await self.bench.until_available()
        self.find(self.bench.now + 1, keys, times)

    async def at_step(self, step: int, method: MadMethod, keys: int, late: int) -> None:
        """So many cycles after a step of what is asked next."""
        await self.bench.until_available()
        reached = cycles_to(step, method, SmaAttribute.PORT_INFO, is_switch=False)
        self.find(self.bench.now + TO_STEP_0 + reached + late, keys)

    async def get(self) -> Record:
        work = await self.bench.get(SmaAttribute.PORT_INFO)
        assert work.status == MadStatus.OK
        return PORT_INFO.unpack(work.attribute)

    async def set(self, **fields: int) -> Work:
        data = PORT_INFO.pack(**{"lid": 1, "master_sm_lid": 1, "neighbor_mtu": 4, P: 1, Q: 1} | fields)
        return await self.bench.set(SmaAttribute.PORT_INFO, data)


def at_host(script: Any) -> None:
    async def run(bench: Bench) -> None:
        await script(Host(bench))

    Bench(ADAPTER).run(run)


def test_each_key_has_its_count() -> None:
    async def script(host: Host) -> None:
        await host.now(KeyViolation.P_KEY, 3)
        info = await host.get()
        assert (info[P], info[Q]) == (3, 0)
        await host.now(KeyViolation.Q_KEY)
        info = await host.get()
        assert (info[P], info[Q]) == (3, 1)
        await host.now(KeyViolation.P_KEY | KeyViolation.Q_KEY)
        info = await host.get()
        assert (info[P], info[Q], info.m_key_violations) == (4, 2, 0)

    at_host(script)


@pytest.mark.parametrize(("name", "other"), [(P, Q), (Q, P)])
def test_a_set_of_0_clears_one_and_all_else_is_ignored(name: str, other: str) -> None:
    async def script(host: Host) -> None:
        await host.now(KeyViolation.P_KEY | KeyViolation.Q_KEY, 5)
        for value in (1, 7, 0xFFFF):
            work = await host.set(**{name: value})
            assert work.status == MadStatus.OK
            assert PORT_INFO.unpack(work.attribute)[name] == 5
        work = await host.set(**{name: 0})
        assert work.status == MadStatus.OK
        found = PORT_INFO.unpack(work.attribute)
        assert (found[name], found[other]) == (0, 5)

    at_host(script)


@pytest.mark.parametrize("name", [P, Q])
@pytest.mark.parametrize(("late", "left"), [(-1, 0), (0, 1), (1, 1)])
def test_what_is_found_in_the_cycle_that_clears_counts(name: str, late: int, left: int) -> None:
    async def script(host: Host) -> None:
        await host.now(KEY[name], 4)
        await host.at_step(SETS[name], MadMethod.SET, KEY[name], late)
        work = await host.set(**{name: 0})
        assert PORT_INFO.unpack(work.attribute)[name] == left

    at_host(script)


@pytest.mark.parametrize("name", [P, Q])
def test_an_answer_has_the_count_that_is_visible_at_its_words_step(name: str) -> None:
    async def script(host: Host) -> None:
        await host.at_step(ANSWERS[name], MadMethod.GET, KEY[name], -1)
        assert (await host.get())[name] == 1
        await host.at_step(ANSWERS[name], MadMethod.GET, KEY[name], 0)
        assert (await host.get())[name] == 1
        assert (await host.get())[name] == 2

    at_host(script)


def test_a_count_stops_at_all_ones() -> None:
    counter = KeyViolations(ADAPTER)

    async def bench(ctx: Any) -> None:
        ctx.set(counter.found, KeyViolation.P_KEY)
        await ctx.tick().repeat(0xFFFE)
        assert ctx.get(counter.counts.p_key_violations) == 0xFFFE
        await ctx.tick().repeat(3)
        assert ctx.get(counter.counts.p_key_violations) == 0xFFFF
        assert ctx.get(counter.counts.q_key_violations) == 0

    Simulation(counter).run(bench)
