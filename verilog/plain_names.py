"""Names for waves in place of Amaranth's, which have a `$` where nobody gave a name, or several nets have the same.

It numbers names that meet in one module (`busy$215`), and calls what has none `$signal`. Here the former become
`busy_215`; the latter begin with an underscore, which Verilator leaves out of waves.
"""

from __future__ import annotations

import re

__all__ = ["PlainNames", "with_plain_names"]

_NET = re.compile(r"(?<!\.)\\(?P<base>[^\s.\[]*\$[^\s.\[]*)(?P<part>\S*) ")
"""One with a `$`, not a port of an instance."""
_PORT = re.compile(r"^  (?:input|output) (?:\[\d+:0\] )?\\(\S+) ", re.M)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ILLEGAL = re.compile(r"\W+")


class PlainNames:
    """New names of a module's nets; TAKEN are names that are in use there."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._names: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        """A name without `$`, which no other net has."""
        if name not in self._names:
            plain = _ILLEGAL.sub("_", name)
            while plain in self._taken:
                plain += "_"
            self._taken.add(plain)
            self._names[name] = plain
        return self._names[name]


def with_plain_names(module: str) -> str:
    """The same module, as Yosys wrote it, with nets without `$` in their names; its ports keep theirs."""
    ports = set(_PORT.findall(module))
    names = PlainNames(set(_WORD.findall(module)))

    def plain(net: re.Match[str]) -> str:
        if net["base"] in ports:
            return net[0]
        # Parts of what has no name have none either.
        part = _ILLEGAL.sub("_", net["part"]) if net["base"].startswith("$") else net["part"]
        return f"\\{names[net['base']]}{part} "

    return _NET.sub(plain, module)
