"""The parts of a node: what has to be forgotten when it is reset."""

import gc
from collections import deque
from collections.abc import Iterable
from functools import partial
from types import BuiltinMethodType, MethodType

from .kernel import Kernel

__all__ = ["parts_of"]

_CONTAINERS = (list, tuple, dict, set, deque, partial, MethodType, BuiltinMethodType)
_PACKAGE = __name__.partition(".")[0]


def parts_of(node: object, outside: Iterable[object]) -> set[int]:
    """The ids of a node and of all objects of the model that it refers to, but not of or through those outside it."""
    known = {id(one) for one in outside}
    found: set[int] = set()
    left = [node]
    while left:
        one = left.pop()
        of_model = type(one).__module__.partition(".")[0] == _PACKAGE
        if id(one) in known or not (of_model or isinstance(one, _CONTAINERS)) or isinstance(one, Kernel):
            continue
        known.add(id(one))
        if of_model:
            found.add(id(one))
        left += gc.get_referents(one)
    return found
