"""The golden model with its decisions watched: which ways each has gone, and which limits were met exactly.

A decision is what an `if`, `while`, conditional expression or `match` looks at, and each operand of its `and` and `or`:
true and false. A limit is a comparison by order (`<`, `<=`, ...): less, equal and greater. They are found in the
sources of the model, all of them, so that nobody chooses what is looked at. The watched model has a name of its own, as
the compiled one has (`cosim.engines.compiled_model`), and is several times as slow as the plain one.
"""

from __future__ import annotations

import ast
import importlib
import sys
from dataclasses import dataclass
from functools import cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, cast

import model.fabric
from toolchain.files_digest import files_digest

__all__ = ["NAME", "Outcome", "digest", "fabric_class", "outcomes", "reached", "watch_anew"]

NAME: Final = "watched_model"
"""Of the watched model's package."""

_ROOM: Final = Path(model.fabric.__file__).parent
_ELSEWHERE: Final = frozenset({"kernel.py", "parts.py", "link/playing.py", "link/wire_log.py", "link/wire_tap.py"})
"""What keeps time, captures, plays and divides a fabric, and decides nothing in it."""

_HOOKS: Final = ("_watch_decision", "_watch_order")
"""Functions of this module that those of the model call."""

_ORDERS: Final[tuple[type[ast.cmpop], ...]] = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_SIGNS: Final = ("<", "<=", ">", ">=")
_BETWEEN: Final = "_watched_between"
"""What two comparisons in a row share."""

Way = Literal["true", "false", "less", "equal", "greater"]


@dataclass(frozen=True, order=True)
class Outcome:
    """One way that a decision may go.

    Attributes:
        file: of the model, by its path in the room.
        line: from 1, and the column from 0.
        function: the one that it is in, with its class.
        source: the expression.
        way: what it was; `less`, `equal` and `greater` tell a comparison's left side from its right.
    """

    file: str
    line: int
    column: int
    function: str
    source: str
    way: Way

    @property
    def is_limit(self) -> bool:
        """Whether it is of a limit, not a decision."""
        return self.way not in ("true", "false")

    @property
    def place(self) -> str:
        """What tells it from all others of the same sources."""
        return f"{self.file}:{self.line}:{self.column} {self.way}"

    def __str__(self) -> str:
        return f"{self.place}: {self.source}"


_outcomes: Final[list[Outcome]] = []
_reached = bytearray()


def outcomes() -> tuple[Outcome, ...]:
    """All that there are."""
    fabric_class()
    return tuple(_outcomes)


def reached() -> frozenset[Outcome]:
    """Those that came, in this process, since the last `watch_anew`."""
    return frozenset(outcome for outcome, came in zip(_outcomes, _reached, strict=True) if came)


def watch_anew() -> None:
    """None has come yet."""
    _reached[:] = bytes(len(_reached))


@cache
def digest() -> str:
    """What tells these sources, and their decisions, from all others."""
    return files_digest(_files(), _ROOM)


@cache
def fabric_class() -> type[model.fabric.Fabric]:
    """`model.fabric.Fabric`, watched."""
    sys.meta_path.insert(0, _Finder())
    for file in _files():
        parts = file.relative_to(_ROOM).with_suffix("").parts
        importlib.import_module(".".join((NAME, *(part for part in parts if part != "__init__"))))
    return cast("type[model.fabric.Fabric]", sys.modules[f"{NAME}.fabric"].Fabric)


def _files() -> list[Path]:
    return sorted(_ROOM.rglob("*.py"))


class _Finder(MetaPathFinder):
    """Finds the modules of the watched model."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        first, *parts = fullname.split(".")
        if first != NAME:
            return None
        place = _ROOM.joinpath(*parts)
        if place.is_dir():
            return spec_from_file_location(
                fullname, place / "__init__.py", loader=_Watched(), submodule_search_locations=[str(place)]
            )
        return spec_from_file_location(fullname, place.with_suffix(".py"), loader=_Watched())


class _Watched(Loader):
    """Loads a module of the model with its decisions watched."""

    def exec_module(self, module: ModuleType) -> None:
        """Run it."""
        assert module.__file__ is not None
        path = Path(module.__file__)
        tree: ast.Module = ast.parse(path.read_text())
        name = path.relative_to(_ROOM).as_posix()
        if name not in _ELSEWHERE:
            tree = ast.fix_missing_locations(_Watching(name).visit(tree))
        vars(module).update(zip(_HOOKS, (_watch_decision, _watch_order), strict=True))
        exec(compile(tree, path, "exec"), vars(module))


def _watch_decision(place: int, value: Any) -> Any:
    """The value of the decision whose outcomes, false and true, are at PLACE and the next."""
    _reached[place + bool(value)] = 1
    return value


def _watch_order(place: int, order: int, left: Any, right: Any) -> bool:
    """Whether two values are in an ORDER, a place in `_ORDERS`; the limit's outcomes begin at PLACE."""
    is_less, is_equal = left < right, left == right
    _reached[place + (0 if is_less else 1 if is_equal else 2)] = 1
    return bool((is_less, is_less or is_equal, not is_less and not is_equal, not is_less)[order])


class _Watching(ast.NodeTransformer):
    """Puts a watch on each decision and limit in the functions of a file of the model."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._names: list[str] = []
        self._functions = 0

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Of what its functions are."""
        return self._named(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """What is outside of functions decides when the model is imported, not when it runs."""
        self._functions += 1
        self._named(node)
        self._functions -= 1
        return node

    def _named(self, node: ast.ClassDef | ast.FunctionDef) -> ast.AST:
        self._names.append(node.name)
        self.generic_visit(node)
        self._names.pop()
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Decides nothing."""
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        """Of a statement. One that only refuses what no fabric can be asked for decides nothing."""
        if len(node.body) == 1 and isinstance(node.body[0], ast.Raise):
            node.orelse = [self.visit(one) for one in node.orelse]
            return node
        return self._tested(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """Of a loop."""
        return self._tested(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Of an expression."""
        return self._tested(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """Of what is left out."""
        node.target, node.iter = self.visit(node.target), self.visit(node.iter)
        node.ifs = [self._decision(one) for one in node.ifs]
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        """Taken, or not: then another is."""
        pattern = ast.unparse(node.pattern)
        guard = None if node.guard is None else self._decision(node.guard)
        node.guard = None
        self.generic_visit(node)
        node.guard = guard
        if self._functions:
            place = self._place(node.pattern, f"case {pattern}", "true")
            taken = self._call(_HOOKS[0], place - 1, ast.Constant(True))
            node.body.insert(0, ast.Expr(taken))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Each operand, as far as it is looked at."""
        node.values = [self._decision(value) for value in node.values]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """A limit, or several in a row."""
        if not self._functions or not any(type(one) in _ORDERS for one in node.ops):
            return self.generic_visit(node)
        operands = [node.left, *node.comparators]
        texts = [ast.unparse(one) for one in operands]
        parts: list[ast.expr] = []
        left = self.visit(operands[0])
        for number, one in enumerate(node.ops):
            right = self.visit(operands[number + 1])
            if number + 1 < len(node.ops):
                right = ast.NamedExpr(ast.Name(_BETWEEN, ast.Store()), right)
            if type(one) in _ORDERS:
                order = _ORDERS.index(type(one))
                source = f"{texts[number]} {_SIGNS[order]} {texts[number + 1]}"
                place = self._place(operands[number], source, "less", "equal", "greater")
                parts.append(self._call(_HOOKS[1], place, ast.Constant(order), left, right))
            else:
                parts.append(ast.Compare(left, [one], [right]))
            left = ast.Name(_BETWEEN, ast.Load())
        return parts[0] if len(parts) == 1 else ast.BoolOp(ast.And(), parts)

    def _tested(self, node: ast.If | ast.While | ast.IfExp) -> ast.AST:
        test = self._decision(node.test)
        node.test = ast.Constant(True)
        self.generic_visit(node)
        node.test = test
        return node

    def _decision(self, node: ast.expr) -> ast.expr:
        """An expression that is only asked whether it is true, watched, and what is in it."""
        if not self._functions or isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.BoolOp):
            return cast("ast.expr", self.visit(node))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self._decision(node.operand)
            return node
        place = self._place(node, ast.unparse(node), "false", "true")
        return self._call(_HOOKS[0], place, self.visit(node))

    def _place(self, node: ast.expr | ast.pattern, source: str, *ways: Way) -> int:
        """Of the first of some outcomes."""
        place, function = len(_outcomes), ".".join(self._names)
        _outcomes.extend(Outcome(self._file, node.lineno, node.col_offset, function, source, way) for way in ways)
        _reached.extend(bytes(len(ways)))
        return place

    def _call(self, hook: str, place: int, *arguments: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(hook, ast.Load()), [ast.Constant(place), *arguments], [])
