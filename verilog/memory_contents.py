"""Initial contents of memories, written as loops.

Yosys writes a statement for each word of a memory, which is most of the text of a design with large buffers and takes
simulators longer to read than all else. Here words in a row that are equal, or count up, become a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

__all__ = ["with_contents_in_loops"]

_INITIAL = re.compile(r"^  initial begin\n(?P<words>(?:    [^\s\[]+ ?\[\d+\] = \d+'h[0-9a-f]+;\n)+)  end\n", re.M)
_WORD = re.compile(r"\[(\d+)\] = (\d+)'h([0-9a-f]+);\n")
"""Place, width and value."""
_SHORTEST = 4
"""Words that are worth a loop."""


def with_contents_in_loops(module: str) -> str:
    """The same module, as Yosys wrote it, with loops in its `initial` blocks."""
    return _INITIAL.sub(_looped, module)


def _looped(initial: re.Match[str]) -> str:
    words = [(int(place), int(value, 16), int(width)) for place, width, value in _WORD.findall(initial["words"])]
    name = initial["words"][: initial["words"].index("[")].strip(" ")
    target = f"{name} " if name.startswith("\\") else name
    counter = f"_{re.sub('[^A-Za-z0-9]+', '_', name)}_word"
    return (
        f"  integer {counter};\n  initial begin\n" + "".join(_statements(words, f"    {target}", counter)) + "  end\n"
    )


def _statements(words: Sequence[tuple[int, int, int]], target: str, counter: str) -> Iterator[str]:
    at = 0
    while at < len(words):
        first, value, width = words[at]
        equal, counted = (_run(words, at, step) for step in (0, 1))
        length = max(equal, counted)
        if length < _SHORTEST:
            yield from (f"{target}[{place}] = {width}'h{value:x};\n" for place, value, _ in words[at : at + length])
        else:
            sign = "+" if value > first else "-"
            ahead = f" {sign} {abs(value - first)}" if value != first else ""
            contents = f"{counter}{ahead}" if counted > equal else f"{width}'h{value:x}"
            yield (
                f"    for ({counter} = {first}; {counter} < {first + length}; {counter} = {counter} + 1)\n"
                f"  {target}[{counter}] = {contents};\n"
            )
        at += length


def _run(words: Sequence[tuple[int, int, int]], start: int, step: int) -> int:
    """How many words from START on are at consecutive places, with values that grow by STEP."""
    place, value, _ = words[start]
    length = 1
    while start + length < len(words) and words[start + length][:2] == (place + length, value + step * length):
        length += 1
    return length
