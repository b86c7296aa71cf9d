"""What memories hold at reset, restored while the reset lasts.

A register goes back to its first value with `rst`, a memory does not: of one that is only right with what it held at
power-up, each word is written anew, one a cycle while `rst` is high, round and round. So it has it all when `rst` has
lasted as many cycles as it has words. At power-up it does not matter how long that is: memories begin with it. Later
`rst` has to last, or to be made to last.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from amaranth.hdl import Array, ClockDomain, Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib.memory import Memory, WritePort

__all__ = ["add_lasting_reset", "restored_write_port", "word_of"]

_PERIOD_BITS: Final = 4


def restored_write_port(
    m: Module, memory: Memory, at_reset: Callable[[Signal], Value], granularity: int | None = None
) -> Any:
    """What M drives in place of the one write port of MEMORY, that AT_RESET, by address, be written during reset.

    In a design without a reset it is the write port.
    """
    port = memory.write_port(granularity=granularity)
    signature: WritePort.Signature = port.signature
    given = signature.create(path=("write",))
    restored = Signal(range(memory.depth), reset_less=True)
    with m.If(ResetSignal(allow_reset_less=True)):
        m.d.sync += restored.eq(Mux(restored == memory.depth - 1, 0, restored + 1))
        m.d.comb += [port.addr.eq(restored), Value.cast(port.data).eq(at_reset(restored)), port.en.eq(~0)]
    with m.Else():
        m.d.comb += [
            port.addr.eq(given.addr),
            Value.cast(port.data).eq(Value.cast(given.data)),
            port.en.eq(given.en),
        ]
    return given


def word_of(words: Sequence[int], width: int, address: Value) -> Value:
    """The word at ADDRESS of many that are mostly repeated: a few stretches, each of up to 16 words again and again."""
    word: Value = Const(0, width)
    longest = 1 << _PERIOD_BITS
    begin = 0
    while begin < len(words):
        end = begin + 1
        while end < len(words) and (end < begin + longest or words[end] == words[end - longest]):
            end += 1
        stretch = words[begin:end]
        bits = next(bits for bits in range(_PERIOD_BITS + 1) if stretch[1 << bits :] == stretch[: -(1 << bits)])
        period = 1 << bits
        repeated = {(begin + place) % period: value for place, value in enumerate(stretch[:period])}
        found = Array(Const(repeated.get(place, 0), width) for place in range(period))[address[:bits]]
        word = Mux(address >= begin, found, word) if begin else found
        begin = end
    return word


def add_lasting_reset(m: Module, clk: Signal, rst: Signal, resetting: Signal, cycles: int) -> None:
    """Clock and reset of M, by these signals: RESETTING is what resets it, by RST and for at least so many cycles.

    Only if it has run since it was reset: while memories are as at power-up there is nothing to wait for.
    """
    m.domains.sync = sync = ClockDomain()
    sync.clk = clk
    has_run = Signal(reset_less=True)
    lasting = Signal(reset_less=True)
    lasted = Signal(range(cycles), reset_less=True)
    m.d.comb += [resetting.eq(rst | lasting), sync.rst.eq(resetting)]
    with m.If(lasting):
        m.d.sync += lasted.eq(lasted + 1)
        with m.If(lasted == cycles - 1):
            m.d.sync += [lasted.eq(0), lasting.eq(0), has_run.eq(0)]
    with m.Else():
        m.d.sync += [lasting.eq(rst & has_run), has_run.eq(has_run | ~rst)]
