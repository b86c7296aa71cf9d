"""Whether two elaborated components are converted to the same RTLIL, without converting them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import Enum
from typing import Any

__all__ = ["fingerprint"]

_PLAIN = frozenset((type(None), bool, int, float, str, bytes, range))
_NOT_CONVERTED = frozenset(
    (
        "src_loc",  # left out of the text
        "duid",  # distinguishes signals, as the numbers in a fingerprint do
        "origins",  # for finding a fragment by its elaboratable
        "generated",  # for finding parts of a fragment by name
        "domains_propagated_up",  # for error messages
        "_decoder",  # for simulators' waves
        "_MustUse__used",
        "_MustUse__context",
    )
)
"""Attributes of Amaranth's objects that do not show in what they are converted to."""

_LOCATED = {"Fragment": "subfragments", "Switch": "_cases"}
"""By kind of object, the attribute that is a list of tuples whose last part is a place in a source file."""


def fingerprint(fragment: Any, ports: Any) -> tuple[bytes, tuple[object, ...]]:
    """A digest that two fragments share only if their conversion is the same but for paths in module names.

    It is taken of all that FRAGMENT and PORTS lead to: contents of containers and attributes of Amaranth's objects
    except those _NOT_CONVERTED. Each object has the number of its first appearance, so that two signals of one
    name stay two. Below FRAGMENT its submodules have become instances, known by the names of their modules.

    An object of another kind, such as a class, is known by its id, which holds as long as the object does: those
    are returned too. Where this distinguishes what is identical, one more module is converted, and merged by its text.
    Where there is none the digest holds for other processes, too.
    """
    tokens: list[str] = []
    known_by_id: list[object] = []
    numbers: dict[int, int] = {}
    made: list[object] = []  # here; it is kept, so that no two of them have one id
    stack: list[Any] = [fragment, ports]
    while stack:
        thing = stack.pop()
        kind = type(thing)
        if kind in _PLAIN:
            tokens.append(repr(thing))
            continue
        if isinstance(thing, Enum):
            tokens.append(f"{kind.__module__} {thing!r}")
            continue
        if id(thing) in numbers:
            tokens.append(f"#{numbers[id(thing)]}")
            continue
        numbers[id(thing)] = len(numbers)
        inside: Iterable[Any]
        mark: object
        if isinstance(thing, (list, tuple)):
            inside, mark = thing, len(thing)
        elif isinstance(thing, dict):
            inside, mark = (*thing.keys(), *thing.values()), len(thing)
        elif kind.__module__.startswith("amaranth.") and not isinstance(thing, type):
            attributes = {name: value for name, value in vars(thing).items() if name not in _NOT_CONVERTED}
            if (located := _LOCATED.get(kind.__qualname__)) is not None:
                attributes[located] = [part[:-1] for part in attributes[located]]
                made.append(attributes)
            inside, mark = attributes.values(), " ".join(attributes)
        else:
            known_by_id.append(thing)
            inside, mark = (), id(thing)
        tokens.append(f"{kind.__qualname__} {mark}")
        stack += inside
    return hashlib.sha256("\n".join(tokens).encode()).digest(), tuple(known_by_id)
