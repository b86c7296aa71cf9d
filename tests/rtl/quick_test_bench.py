"""What a test bench sets in a design on the quick engine: numbers, without Amaranth's constants first."""

from __future__ import annotations

from functools import cache
from typing import Any

from amaranth.hdl import Shape, Value
from amaranth.lib.data import StructLayout, View
from amaranth.sim._async import AsyncProcess, TestbenchContext

__all__ = ["QuickTestBench"]


class _Context(TestbenchContext):
    """What a test bench sets, mostly numbers of few bits, alone or in a structure, is not made a constant first."""

    def set(self, expr: Any, value: Any) -> None:
        if type(value) is dict and isinstance(expr, View):
            packed = _packed(expr, value)
            if packed is not None:
                expr, value = expr.as_value(), packed
        if type(value) is int and isinstance(expr, Value):
            self._engine.set_value(expr, value)
            self._engine.step_design()
        else:
            super().set(expr, value)


class QuickTestBench(AsyncProcess):
    """Drives a design by its constructor's coroutine."""

    def __init__(self, design: Any, engine: Any, constructor: Any, *, background: bool) -> None:
        self.constructor, self.background = constructor, background
        self.context = _Context(design, engine, self)
        self.reset()


def _packed(view: Any, values: dict[Any, Any]) -> int | None:
    """Members of a structure, the others 0, as one number. None of what Amaranth has to look at."""
    layout = view.shape()
    if type(layout) is not StructLayout:
        return None
    packed = 0
    for name, value in values.items():
        place = _places(layout).get(name)
        if place is None or not isinstance(value, int) or value >> place[1]:
            return None
        packed |= value << place[0]
    return packed


@cache
def _places(layout: Any) -> dict[Any, tuple[int, int]]:
    """Offset and width of those members that are numbers."""
    return {
        name: (field.offset, field.width)
        for name, field in layout
        if isinstance(field.shape, int) or (isinstance(field.shape, Shape) and not field.shape.signed)
    }
