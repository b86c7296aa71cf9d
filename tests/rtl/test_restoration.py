"""What memories hold at reset comes back with it, and a reset of its own lasts until it has."""

import random
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib.memory import Memory

from rtl.restoration import add_lasting_reset, restored_write_port, word_of
from tests.rtl.simulation import Simulation

SEED = random.randrange(1 << 32)
WORDS = 11
CYCLES = 5


@pytest.mark.parametrize("granularity", [None, 4])
def test_each_word_is_there_again_when_a_reset_has_lasted_as_many_cycles_as_there_are(granularity: int | None) -> None:
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.memory = memory = Memory(shape=8, depth=WORDS, init=[3 * place for place in range(WORDS)])
    write = restored_write_port(m, memory, lambda place: (3 * place)[:8], granularity)
    read = memory.read_port(domain="comb")

    async def words(ctx: Any) -> list[int]:
        found = []
        for place in range(WORDS):
            ctx.set(read.addr, place)
            found.append(ctx.get(read.data))
        return found

    async def bench(ctx: Any) -> None:
        at_power_up = await words(ctx)
        for _reset in range(3):
            ctx.set(write.en, ~0)
            for place in range(WORDS):
                ctx.set(write.addr, place)
                ctx.set(write.data, 200 + place)
                await ctx.tick()
            assert await words(ctx) == [200 + place for place in range(WORDS)]
            # What is written meanwhile is not.
            ctx.set(sync.rst, 1)
            for _word in range(WORDS):
                await ctx.tick()
            ctx.set(sync.rst, 0)
            assert await words(ctx) == at_power_up

    Simulation(m).run(bench)


def test_a_word_that_is_repeated_is_found_at_each_of_its_addresses() -> None:
    print(f"seed {SEED}")
    choose = random.Random(SEED)
    words: list[int] = []
    for _stretch in range(20):
        pattern = [choose.randrange(4) << 30 for _ in range(choose.choice((1, 2, 4, 8, 16)))]
        words += (pattern * choose.randrange(1, 30))[: choose.randrange(1, 200)]
    m = Module()
    address, word = Signal(range(len(words))), Signal(32)
    m.d.comb += word.eq(word_of(words, 32, address))

    async def bench(ctx: Any) -> None:
        for place, expected in enumerate(words):
            ctx.set(address, place)
            assert ctx.get(word) == expected

    Simulation(m).run(bench)


def resets(given: str) -> str:
    """What a lasting reset makes of one that is given, a figure a cycle."""
    m = Module()
    clk, rst, resetting = Signal(), Signal(), Signal()
    add_lasting_reset(m, clk, rst, resetting, CYCLES)
    seen = []

    async def bench(ctx: Any) -> None:
        for figure in given:
            ctx.set(rst, int(figure))
            seen.append(str(ctx.get(resetting)))
            await ctx.tick()

    Simulation(m).run(bench)
    return "".join(seen)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        # At power-up, short or long, memories are right.
        ("1000000000", "1000000000"),
        ("1110000000", "1110000000"),
        ("1111111110000", "1111111110000"),
        # Later it lasts, wherever it comes.
        ("0100000000", "0111111000"),
        ("1000010000000000", "1000011111100000"),
        ("0001010100000000", "0001111110000000"),
        # One that is long enough ends when it is told to.
        ("0001111111111000", "0001111111111000"),
        # And again.
        ("01000000010000000000", "01111110011111100000"),
    ],
)
def test_a_reset_lasts_until_memories_are_restored_unless_nothing_has_run(given: str, made: str) -> None:
    assert resets(given) == made
