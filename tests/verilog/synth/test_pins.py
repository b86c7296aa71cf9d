"""A component on three pins: every input is reached, every output shows."""

from amaranth.sim import Simulator

from verilog.synth.pins import ThreePins

from .examples import Delayed


def test_on_three_pins_every_input_is_reached_and_every_output_shows():
    wrapped = ThreePins(Delayed())
    sent, seen = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0], []

    async def bench(ctx):
        for bit in sent:
            ctx.set(wrapped.serial_in, bit)
            await ctx.delay(2e-9)
            ctx.set(wrapped.clk, 1)
            await ctx.delay(2e-9)
            ctx.set(wrapped.clk, 0)
            seen.append(ctx.get(wrapped.serial_out))

    simulator = Simulator(wrapped)
    simulator.add_testbench(bench)
    simulator.run()
    # Input i sees the 1 after 1 + i ticks, output i one later, and the fold takes 3 - i: all three meet.
    assert seen == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_long_chains_of_pins_are_broken_and_every_input_still_shows():
    wrapped = ThreePins(Delayed(), chain=2)
    seen = []

    async def bench(ctx):
        for bit in (1, 0, 0, 0, 0, 0):
            ctx.set(wrapped.serial_in, bit)
            await ctx.delay(2e-9)
            ctx.set(wrapped.clk, 1)
            await ctx.delay(2e-9)
            ctx.set(wrapped.clk, 0)
            seen.append((ctx.get(wrapped.component.taken), ctx.get(wrapped.serial_out)))

    simulator = Simulator(wrapped)
    simulator.add_testbench(bench)
    simulator.run()
    # Inputs 0 and 1 are a chain, input 2 begins another: with what comes in and what came before it.
    assert [taken for taken, _ in seen] == [0b101, 0b110, 0, 0, 0, 0]
    # A tick later they are given, and one more tick later folded: output 0 reaches output 1's register after that one's
    # own next value, and is the same there; output 2 is by itself.
    assert [bit for _, bit in seen] == [0, 0, 0 ^ 1, 1 ^ 1 ^ 1, 0, 0]
