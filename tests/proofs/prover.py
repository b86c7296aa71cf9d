"""Proofs of what the RTL does in every case: Amaranth to SMT by Yosys, and z3 (docs/proofs.md).

A claim is a component with `Assert`, `Assume` and `Cover` beside the thing that it holds; all of its inputs are free.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, Final

from amaranth.back import rtlil
from amaranth.hdl import Assert, ClockDomain, Const, Fragment, Module, Shape, Signal, Value
from amaranth.hdl._ast import SignalSet
from amaranth.lib import wiring
from amaranth.utils import ceil_log2

from tests.mutations.mutant import ROOT, Change
from toolchain.build_cache import cached
from verilog.tools import SMTBMC, YOSYS, Z3, ToolFailed, run, versions

__all__ = ["Failed", "Opened", "Proof", "Proven", "Refuted", "invariants"]

_SCRIPT: Final = (
    "read_rtlil design.il; hierarchy -top top; proc; flatten; chformal -lower; async2sync; memory -nomap -nordff; "
    "memory_nordff; opt_clean; setundef -undriven -anyseq; opt; dffunmap; write_smt2 -wires design.smt2"
)
"""`dffunmap` comes last: what is behind it makes registers with enables anew."""

_TRACE: Final = "trace.vcd"
_STATUS = re.compile(r"Status: (\w+)")
_ASSERT = re.compile(r"Assert failed in top: (?P<file>[^:]+):(?P<line>\d+)")
_CHECKED = re.compile(r"Checking assertions in step (\d+)")
_SMT_ASSERT = re.compile(r"^; yosys-smt2-assert (\d+) \S+ (\S+)", re.MULTILINE)
_INDUCTION = re.compile(r"Trying induction in step (\d+)")


_with_invariants = True


def invariants(*conditions: Value) -> list[Any]:
    """What is true of registers in every state, for induction to begin from.

    It is asserted like a claim, except of a broken RTL: there the claim itself has to fail.
    """
    return [Assert(condition, src_loc_at=2) for condition in conditions] if _with_invariants else []


class Failed(Exception):
    """No answer: the proof is neither true nor refuted."""


@dataclass(frozen=True)
class Proven:
    """It holds, in all cycles by induction, or in the first ones.

    Attributes:
        how: k of k-induction, or the number of cycles, in words.
        seconds: that it took.
    """

    how: str
    seconds: float


@dataclass(frozen=True)
class Refuted:
    """It does not hold.

    Attributes:
        assertion: what fails, its file, line and text.
        cycle: in which it fails, 0 the first after reset.
        trace: what leads there.
    """

    assertion: str
    cycle: int
    trace: str


class Opened:
    """A component of which a claim may name what is inside, for what is true of its registers in every state.

    Its fragment is what becomes a submodule.
    """

    def __init__(self, component: wiring.Component) -> None:
        self.fragment = Fragment.get(component, None)

    def inside(self, path: str) -> Any:
        """The register of this name, behind those of the submodules that it is in, with dots between."""
        *folders, name = path.split(".")
        fragment = self._at(folders)
        written = SignalSet(chain.from_iterable(it._lhs_signals() for it in fragment.statements["sync"]))
        (signal,) = (signal for signal in written if signal.name == name)
        return signal

    def words(self, path: str) -> list[Signal]:
        """What the words of the memory of this name are: it has a read port more for each."""
        *_, name = parts = path.split(".")
        memory = self._at(parts)
        depth, width = memory._data.depth, Shape.cast(memory._data.shape).width
        words = [Signal(width, name=f"{name}_{number}") for number in range(depth)]
        for number, word in enumerate(words):
            address = Const(number, ceil_log2(depth))
            memory.read_port(domain="comb", addr=address, data=word, en=Const(1), transparent_for=())
        return words

    def read(self, path: str) -> tuple[Value, Value]:
        """Address and data of the only read port of the memory of this name."""
        (port,) = self._at(path.split("."))._read_ports
        return port._addr, port._data

    def _at(self, path: Iterable[str]) -> Any:
        """The fragment of this name, each name being that of a submodule of the one before."""
        fragment = self.fragment
        for folder in path:
            fragment = next(inner for inner, inner_name, _ in fragment.subfragments if inner_name == folder)
        return fragment


@dataclass(frozen=True)
class Proof:
    """A claim, how it is proven, and what refutes it.

    Attributes:
        name: the claim, as a sentence.
        claim: the component that makes it.
        parameters: of the claim.
        cycles: within which a counterexample is found if there is one, and for which it is proven if not for all.
        induction: it is proven for all, by induction with k up to this; 0: it is not.
        apart: induction is made for one assertion at a time, all of them being true in the cycles before: z3 does not
            get through many at once.
        reaches: cycles by which all that is to be covered happens.
        mutants: changes of the RTL, each of which refutes it within `cycles`.
        quick: a part of `make test`.
    """

    name: str
    claim: type[wiring.Component]
    cycles: int
    mutants: tuple[Change, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    induction: int = 1
    apart: bool = False
    reaches: int = 0
    quick: bool = False

    def proven(self) -> Proven | Refuted:
        """Whether it holds: the first cycles, then induction.

        Raises:
            Failed: induction does not get there, or the assumptions contradict each other.
        """
        began = time.monotonic()
        text = self._rtlil()
        # A cycle more than induction needs, for assumptions to contradict each other.
        refuted = _refuted(text, self.induction + 1 if self.induction else self.cycles)
        how = f"only {self.cycles} cycles"
        if self.induction and not refuted:
            try:
                k = _apart(text, self.induction) if self.apart else _by_induction(text, self.induction)
                how = f"induction, k = {k}"
            except Failed:
                refuted = _refuted(text, self.cycles)
                if refuted is None:
                    raise
        return refuted or Proven(how, time.monotonic() - began)

    def covered(self) -> None:
        """Hold that what it speaks of does happen.

        Raises:
            Failed: something does not.
        """
        with _solved(self._rtlil(), "-c", "-t", str(self.reaches or self.cycles)) as (said, _):
            if _status(said) != "PASSED":
                raise Failed(said)

    def refuted_by(self, mutant: Change) -> Refuted | None:
        """The counterexample of the claim in a broken RTL, None if it holds in its first cycles.

        Raises:
            Failed: there is no such RTL.
        """
        with tempfile.TemporaryDirectory(prefix="ironband-") as folder:
            tree = Path(folder).resolve()
            shutil.copytree(ROOT / "rtl", tree / "rtl", ignore=shutil.ignore_patterns("__pycache__"))
            with mutant.applied(tree):
                text = self._rtlil(tree)
        return _refuted(text, self.cycles)

    def _rtlil(self, tree: Path = ROOT) -> str:
        """The claim in RTLIL, of the RTL in TREE, where paths of files begin."""
        if tree == ROOT:
            text = _converted(self.claim(**self.parameters))
        else:
            order = [self.claim.__module__, self.claim.__qualname__, json.dumps(self.parameters)]
            environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tree), str(ROOT)))}
            command = [sys.executable, "-c", f"from {__name__} import {_print.__name__} as p; p()", *order]
            converted = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
            if converted.returncode != 0:
                raise Failed(converted.stderr)
            text = converted.stdout
        return text.replace(f"{tree}/", "").replace(f"{ROOT}/", "")


def _print() -> None:
    """Print a claim in RTLIL: its module, class and parameters are our arguments."""
    global _with_invariants
    _with_invariants = False
    module, name, parameters = sys.argv[1:]
    print(_converted(getattr(import_module(module), name)(**json.loads(parameters))))


def _converted(claim: wiring.Component) -> str:
    """A component in RTLIL, its inputs free, without a reset but the one before its first cycle."""
    top = Module()
    top.domains.sync = sync = ClockDomain(reset_less=True)
    top.submodules.claim = claim
    ports = [Value.cast(member) for _, _, member in claim.signature.flatten(claim)]
    # Without its port the clock would be a constant, registers would vanish, and everything would hold.
    text: str = rtlil.convert(top, ports=[sync.clk, *ports])
    return text


@contextmanager
def _solved(text: str, *arguments: str) -> Iterator[tuple[str, Path]]:
    """What the solver said of a claim, and the folder of what it wrote, which lasts as long as the block."""
    design = _translated(text) / "design.smt2"
    with tempfile.TemporaryDirectory(prefix="ironband-") as name:
        folder = Path(name)
        with suppress(ToolFailed):  # as it is where something does not hold
            run(SMTBMC, ["-s", "z3", "--presat", *arguments, str(design)], folder, lambda _: None)
        yield (folder / f"{SMTBMC}.log").read_text(), folder


def _translated(text: str) -> Path:
    """The folder in which RTLIL is translated to SMT."""

    def translate(directory: Path) -> None:
        (directory / "design.il").write_text(text)
        run(YOSYS, ["-q", "-p", _SCRIPT], directory, lambda _: None)

    return cached("proof", {"design": text, "script": _SCRIPT, "yosys": versions(YOSYS)}, translate)


def _status(said: str) -> str:
    """PASSED, FAILED or PREUNSAT: the assumptions contradict each other."""
    found = _STATUS.findall(said)
    if not found:
        raise Failed(said)
    return str(found[-1])


def _refuted(text: str, cycles: int) -> Refuted | None:
    """The counterexample of a claim in its first cycles, None if it holds there."""
    with _solved(text, "-t", str(cycles), "--dump-vcd", _TRACE) as (said, folder):
        if (status := _status(said)) == "PASSED":
            return None
        found = _ASSERT.search(said)
        if status != "FAILED" or found is None:
            raise Failed(said)
        line = (ROOT / found["file"]).read_text().splitlines()[int(found["line"]) - 1].strip(" ,")
        cycle = int(_CHECKED.findall(said)[-1])
        return Refuted(f"{found['file']}:{found['line']}: {line}", cycle, _table(folder))


def _by_induction(text: str, most: int) -> int:
    """The k by which a claim holds in a cycle if it does in the k before; k is at most MOST.

    Raises:
        Failed: there is none; with a trace, that may never happen.
    """
    with _solved(text, "-i", "-t", str(most), "--dump-vcd", _TRACE) as (said, folder):
        if _status(said) != "PASSED":
            raise Failed(f"induction fails with k = {most}\n{said}\n{_table(folder)}")
        return most - int(_INDUCTION.findall(said)[-1])


def _apart(text: str, k: int) -> int:
    """The same, of each assertion by itself."""
    design = (_translated(text) / "design.smt2").read_text()
    states = range(k + 1)
    lines = [
        *(
            f"(declare-fun s{state} () |top_s|) (assert (|top_h| s{state})) (assert (|top_u| s{state}))"
            for state in states
        ),
        *(f"(assert (|top_a| s{state})) (assert (|top_t| s{state} s{state + 1}))" for state in states[:-1]),
    ]
    before = "\n".join(["(reset) (set-logic QF_AUFBV)", design, *lines])
    assertions = _SMT_ASSERT.findall(design)
    with tempfile.TemporaryDirectory(prefix="ironband-") as name:
        folder = Path(name)
        asked = (f"{before} (assert (not (|top_a {number}| s{k}))) (check-sat)\n" for number, _ in assertions)
        (folder / "steps.smt2").write_text("".join(asked))
        run(Z3, ["steps.smt2"], folder, lambda _: None)
        answers = (folder / f"{Z3}.log").read_text().split()
    if fail := [place for (_, place), answer in zip(assertions, answers, strict=True) if answer != "unsat"]:
        raise Failed(f"induction fails with k = {k} of {', '.join(fail)}")
    return k


def _table(folder: Path) -> str:
    """A trace, of each signal of the claim what it is in each cycle, the last being that in which it fails."""
    values = _values((folder / _TRACE).read_text())
    width = max(len(name) for name in values)
    return "\n".join(
        f"{name:{width}}  {' '.join(f'{value:>5}' for value in of_one)}" for name, of_one in values.items()
    )


def _values(dump: str) -> dict[str, list[str]]:
    """Of each signal of a claim, what it is in each cycle, hexadecimal, from a value change dump."""
    names: dict[str, str] = {}
    scopes: list[str] = []
    now: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for line in dump.splitlines():
        match line.split():
            case ["$scope", _, scope, "$end"]:
                scopes.append(scope)
            case ["$upscope", "$end"]:
                scopes.pop()
            case ["$var", _, _, code, name, *_] if scopes[-1:] == ["claim"] and "<" not in name and name != "clk":
                names[code] = name
            case [value, code] if value.startswith("b") and code in names:
                now[code] = f"{int(value[1:], 2):x}" if set(value) <= set("b01") else "x"
            case [time] if time.startswith("#") and time.endswith("5"):  # in the middle of a cycle of ten
                for code, value in now.items():
                    found.setdefault(names[code], []).append(value)
    return found
