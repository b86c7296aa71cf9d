"""Contents of memories, written as loops."""

import re

import pytest
from amaranth.hdl import Module
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

from verilog.emit import to_verilog


def initialised(contents):
    """Verilog of a memory with these contents, and the values that its `initial` gives the words."""

    class Stored(wiring.Component):
        address: In(8)
        q: Out(8)

        def elaborate(self, platform):
            m = Module()
            m.submodules.words = words = memory.Memory(shape=8, depth=len(contents), init=contents)
            read = words.read_port()
            m.d.comb += [read.addr.eq(self.address), self.q.eq(read.data)]
            return m

    text = to_verilog(Stored(), "stored")
    words = {}
    loop = r"for \(\S+ = (\d+); \S+ < (\d+); .*\)\n\s+\S+\[\S+\] = (?:8'h([0-9a-f]+)|\S+(?: (\+|-) (\d+))?);"
    for first, end, same, sign, ahead in re.findall(loop, text):
        for place in range(int(first), int(end)):
            words[place] = int(same, 16) if same else place + int(f"{sign}{ahead or 0}")
    words |= {int(place): int(value, 16) for place, value in re.findall(r"\[(\d+)\] = 8'h([0-9a-f]+);", text)}
    return text, [words[place] for place in range(len(contents))]


@pytest.mark.parametrize(
    "contents",
    [
        [0] * 200,
        [*range(1, 200), 0],
        [7, 7, 7, 1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 0, 0],
        [200 - 3 + place for place in range(20)],
        [5, 4, 3, 2, 1],
        list(range(100, 0, -7)),
    ],
)
def test_contents_of_memories_are_kept(contents):
    assert initialised(contents)[1] == contents


def test_large_memories_are_filled_in_loops():
    assert len(initialised([0] * 250)[0].splitlines()) < 50
