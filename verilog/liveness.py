"""What of a design its outputs depend on, across instances.

A design is modules by name, each with parts by a key of the reader's: statements that decide nets from nets, and
instances. Any hashable value is a net: a name where nets live or die whole, a number where they do so bit by bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import NamedTuple

__all__ = ["Instance", "Liveness", "Net", "Part", "Statement"]

Net = Hashable


class Statement(NamedTuple):
    """What decides nets of a module, and the nets that it reads. It is alive if any of those it drives is."""

    driven: Collection[Net]
    read: Collection[Net]


class Instance(NamedTuple):
    """An instance of a module: nets outside it and inside it that are one.

    Attributes:
        module: its name.
        driven: the module's outputs by the net outside that they drive.
        read: nets outside by the input of the module that takes them.
    """

    module: str
    driven: Mapping[Net, Collection[Net]]
    read: Mapping[Net, Collection[Net]]


Part = Statement | Instance


class Liveness:
    """Goes from nets that are wanted back to all that they depend on.

    A module is the same wherever it stands: a net in it is alive if any instance needs it.

    Args:
        modules: parts of each module.
        wanted: nets of any of them.

    Attributes:
        nets: the live nets of each module.
        parts: keys of the live parts of all modules.
    """

    def __init__(self, modules: Mapping[str, Mapping[Hashable, Part]], wanted: Mapping[str, Iterable[Net]]) -> None:
        self.nets: dict[str, set[Net]] = {name: set() for name in modules}
        self.parts: set[Hashable] = set()
        self._todo: list[tuple[str, Net]] = []
        self._instances: dict[str, list[tuple[str, Instance]]] = defaultdict(list)
        self._drivers: dict[tuple[str, Net], list[tuple[Hashable, Part]]] = defaultdict(list)
        for name, parts in modules.items():
            for key, part in parts.items():
                for net in part.driven:
                    self._drivers[name, net].append((key, part))
        for name, nets in wanted.items():
            self._want(name, nets)
        while self._todo:
            self._follow(*self._todo.pop())

    def _want(self, module: str, wanted: Iterable[Net]) -> None:
        new = set(wanted) - self.nets[module]
        self.nets[module] |= new
        self._todo += [(module, net) for net in new]

    def _follow(self, module: str, net: Net) -> None:
        for key, part in self._drivers.get((module, net), ()):
            if isinstance(part, Instance):
                self._want(part.module, part.driven[net])
            if key not in self.parts:
                self.parts.add(key)
                self._enter(module, part)
        for parent, instance in self._instances[module]:
            self._want(parent, instance.read.get(net, ()))

    def _enter(self, module: str, part: Part) -> None:
        """Want what a part reads: of an instance, what its module is known to need so far."""
        if isinstance(part, Statement):
            self._want(module, part.read)
            return
        self._instances[part.module].append((module, part))
        for net in self.nets[part.module] & part.read.keys():
            self._want(module, part.read[net])
