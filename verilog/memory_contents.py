"""Initial contents of memories, told in loops.

Yosys writes a statement for each word of a memory, which is most of the text of a design with large buffers and takes
simulators longer to read than all else. Here words in a row that are alike, or count up, become a loop.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

__all__ = ["with_contents_in_loops"]

_INITIAL = re.compile(r"^  initial begin\n(?P<words>(?:    [^\s\[]+ ?\[\d+\] = \d+'h[0-9a-f]+;\n)+)  end\n", re.M)
_WORD = re.compile(r"    (?P<name>[^\s\[]+ ?)\[(?P<place>\d+)\] = (?P<width>\d+)'h(?P<value>[0-9a-f]+);\n")
_SHORTEST = 4
"""Words that are worth a loop."""


def with_contents_in_loops(verilog: str) -> str:
    """The same design, as Yosys wrote it, with loops in its `initial` blocks."""
    return _INITIAL.sub(_looped, verilog)


def _looped(initial: re.Match[str]) -> str:
    words = [
        (int(word["place"]), int(word["value"], 16), int(word["width"])) for word in _WORD.finditer(initial["words"])
    ]
    name = initial["words"][: initial["words"].index("[")].strip(" ")
    target = f"{name} " if name.startswith("\\") else name
    counter = f"_{re.sub('[^A-Za-z0-9]+', '_', name)}_word"
    return (
        f"  integer {counter};\n  initial begin\n" + "".join(_statements(words, f"    {target}", counter)) + "  end\n"
    )


def _statements(words: list[tuple[int, int, int]], target: str, counter: str) -> Iterator[str]:
    for _run, found in itertools.groupby(_runs(words), key=lambda run_and_word: run_and_word[0]):
        run = [word for _number, word in found]
        if len(run) < _SHORTEST:
            yield from (f"{target}[{place}] = {width}'h{value:x};\n" for place, value, width in run)
            continue
        (first, value, width), (second, following, _width) = run[:2]
        assert second == first + 1
        counted = counter if value == first else f"{counter} + {value - first}" if value > first else None
        contents = f"{width}'h{value:x}" if following == value else counted or f"{counter} - {first - value}"
        yield (
            f"    for ({counter} = {first}; {counter} < {first + len(run)}; {counter} = {counter} + 1)\n"
            f"  {target}[{counter}] = {contents};\n"
        )


def _runs(words: list[tuple[int, int, int]]) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Each word with the number of its run: consecutive places with one value, or with values that count up by 1."""
    run = 0
    step: int | None = None
    before: tuple[int, int, int] | None = None
    for word in words:
        if before is not None:
            change = word[1] - before[1]
            follows = word[0] == before[0] + 1 and change in (0, 1)
            if not follows or (step is not None and change != step):
                run, step = run + 1, None
            else:
                step = change
        before = word
        yield run, word
