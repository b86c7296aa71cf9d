"""An engine of Amaranth's simulator that evaluates only what may have changed.

Amaranth evaluates all combinational statements of a module when one of its inputs changes, and all others at every
clock edge. Here statements are evaluated apart where they drive different signals, those of a clock domain only if
something that they read or drive has changed, and a signal knows who reads it. Most of a design is idle most of the
time, so it runs several times as fast, and does the same. Statements that differ only in the signals that they name
are compiled once.

Combinational statements are evaluated in the order in which they depend on each other, each when all that it reads has
its value, and a signal that is nothing but another one is that one. What is between is never seen: there are no waves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from amaranth.hdl._ast import Assign, Signal, SignalDict, SignalSet, Slice, Value, _StatementList
from amaranth.hdl._mem import MemoryInstance
from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.sim._pyeval import eval_assign, eval_value
from amaranth.sim._pyrtl import (
    _FragmentCompiler,
    _LHSValueCompiler,
    _PythonEmitter,
    _RHSValueCompiler,
    _StatementCompiler,
    _ValueCompiler,
)
from amaranth.sim.pysim import PySimEngine, _PyEngineState, _PyMemoryState, _PySignalState, _run_wakers

from tests.rtl.quick_test_bench import QuickTestBench

__all__ = ["QuickEngine"]

_Evaluation = Callable[[], None]
_Waiting = set[_Evaluation]

_COMB = "comb"
_WHOLE = re.compile(r"\((0x[0-9a-f]+) & slots\[(\d+)\]\.curr\)")
_NAMED = re.compile(r"\bslots\[(\d+)\]|\bnext_(\d+)\b")


class _Signal(_PySignalState):
    """A signal that has its readers evaluated when it changes.

    Attributes:
        readers: of each set of evaluations that wait for something, those to be added to it.
    """

    curr: int
    next: int

    def __init__(self, signal: Any, pending: set[Any]) -> None:
        self.readers: list[tuple[_Waiting, _Waiting]] = []
        super().__init__(signal, pending)

    def commit(self) -> bool:
        if self.curr == self.next:
            return False
        for waiting, readers in self.readers:
            waiting.update(readers)
        if self.wakers:
            _run_wakers(self.wakers, self.curr, self.next)
        self.curr = self.next
        return True

    def settle(self, value: int) -> None:
        """Have another value at once, as what combinational statements drive."""
        for waiting, readers in self.readers:
            waiting.update(readers)
        if self.wakers:
            _run_wakers(self.wakers, self.curr, value)
        self.curr = self.next = value

    def add_reader(self, waiting: _Waiting, evaluation: _Evaluation) -> None:
        """Have an evaluation added to those waiting when this signal changes."""
        for known, readers in self.readers:
            if known is waiting:
                readers.add(evaluation)
                return
        self.readers.append((waiting, {evaluation}))


class _Memory(_PyMemoryState):
    """A memory that changes only where something else is written."""

    def write(self, addr: int, value: int, mask: int | None = None) -> None:
        if mask != 0:
            super().write(addr, value, mask)

    def commit(self) -> bool:
        if all(self.data[addr] == value for addr, value in self.write_queue.items()):
            self.write_queue.clear()
            return False
        return bool(super().commit())


class _State(_PyEngineState):
    """The state of a simulation, which takes down what memories' processes name and are woken by.

    Attributes:
        named: signals that were asked for, None if nobody takes them down.
        wakers: (signal, process, polarity of an edge or None of any change).
    """

    def __init__(self) -> None:
        super().__init__()
        self.named: list[_Signal] | None = None
        self.wakers: list[tuple[Any, Any, int | None]] = []

    def get_signal(self, signal: Any) -> int:
        index = self.signals.get(signal)
        if index is None:
            index = self.signals[signal] = len(self.slots)
            self.slots.append(_Signal(signal, self.pending))
        if self.named is not None:
            self.named.append(self.slots[index])
        return int(index)

    def get_memory(self, memory: Any) -> int:
        if memory not in self.memories:
            self.memories[memory] = len(self.slots)
            self.slots.append(_Memory(memory, self.pending))
        return int(self.memories[memory])

    def add_signal_waker(self, signal: Any, waker: Any) -> None:
        if self.named is None:
            super().add_signal_waker(signal, waker)
        else:
            # What it is bound to says whom it wakes, and whether at an edge.
            bound = dict(zip(waker.__code__.co_freevars, waker.__closure__, strict=True))
            polarity = bound["polarity"].cell_contents if "polarity" in bound else None
            self.wakers.append((signal, bound["process"].cell_contents, polarity))

    def add_memory_waker(self, memory: Any, waker: Any) -> None:
        if self.named is None:
            super().add_memory_waker(memory, waker)


class _Reads(_RHSValueCompiler):
    def on_Operator(self, value: Any) -> str:
        if value.operator == "r^":
            (operand,) = value.operands
            return f"(({(1 << len(operand)) - 1:#x} & {self(operand)}).bit_count() & 1)"
        return str(super().on_Operator(value))


class QuickEngine(PySimEngine):
    """For `amaranth.sim.Simulator(design, engine=QuickEngine)`."""

    def __init__(self, design: Any) -> None:
        self._design = design
        self._state = _State()
        self._processes: set[Any] = set()
        self._testbenches: list[Any] = []
        self._delta_cycles = 0
        self._active_triggers: set[Any] = set()
        self._combinational: list[tuple[_Evaluation, Sequence[_Signal], Sequence[_Signal]]] = []
        self._levels: list[_Waiting] = []
        self._edges: list[_Waiting] = []
        self._at_edge: dict[tuple[int, int], _Waiting] = {}
        self._first: list[tuple[_Waiting, _Evaluation]] = []
        self._by_identity: dict[int, tuple[Signal, _Signal]] = {}
        self._is_settled = False
        self._copies = SignalDict(_copies(design.fragment))
        for signal, original in self._copies.items():
            while original in self._copies:
                original = self._copies[original]
            self._state.signals[signal] = self._state.get_signal(original)
        self._add(design.fragment)
        self._put_in_order()
        self._wait()

    def _add(self, fragment: Any) -> None:
        for inside, _name, _source in fragment.subfragments:
            self._add(inside)
        if isinstance(fragment, MemoryInstance):
            self._add_memory(fragment)
            return
        for name, statements in fragment.statements.items():
            for together in _apart(statements):
                if name == _COMB and _copied(together) is not None:
                    continue
                self._add_statements(_StatementList(together), None if name == _COMB else fragment.domains[name])

    def _add_memory(self, fragment: Any) -> None:
        """Amaranth compiles it."""
        state = self._state
        named: list[_Signal] = []
        state.named, state.wakers = named, []
        _FragmentCompiler(state)(fragment)
        state.named = None
        memory = state.slots[state.get_memory(fragment._data)]
        driven = [
            signal for port in fragment._read_ports if port._domain == _COMB for signal in port._data._lhs_signals()
        ]
        at_once: dict[Any, list[_Signal]] = {}
        for signal, process, polarity in state.wakers:
            if polarity is None:
                at_once.setdefault(process, []).append(state.slots[state.get_signal(signal)])
            else:
                waiting = self._edge(signal, polarity)
                self._have_wait(waiting, process.run, named)
                memory.add_waker(_memory_waker(waiting, process.run))
        for process, read in at_once.items():
            self._combinational.append(
                (process.run, [*read, memory], [state.slots[state.get_signal(signal)] for signal in driven])
            )

    def _add_statements(self, statements: Any, domain: Any) -> None:
        """Add statements of a clock domain, or combinational ones."""
        state, emitter, inputs = self._state, _PythonEmitter(), SignalSet()
        collector = LHSMaskCollector()
        collector.visit_stmt(statements)
        driven = [(signal, state.get_signal(signal), mask) for signal, mask in collector.masks()]
        compiler = _StatementCompiler(state, emitter)
        compiler.rhs = _Reads(state, emitter, mode="curr", inputs=inputs)
        compiler.lhs = _LHSValueCompiler(state, emitter, rhs=compiler.rhs)
        emitter._level = 2
        for signal, index, _mask in driven:
            state.slots[index].is_comb = domain is None
            emitter.append(f"next_{index} = {signal.init if domain is None else f'slots[{index}].next'}")
        compiler(statements)
        if domain is not None and domain.rst is not None:
            emitter.append(f"if {compiler.rhs(domain.rst)}:")
            with emitter.indent():
                emitter.append("pass")
                for signal, index, _mask in driven:
                    if not signal.reset_less:
                        emitter.append(f"next_{index} = {signal.init}")
        for signal, index, mask in driven:
            width, new = len(signal), f"next_{index}"
            if mask != (1 << width) - 1:
                if signal.shape().signed and mask >> (width - 1) & 1:
                    mask |= -1 << width
                new = f"slots[{index}].{'curr' if domain is None else 'next'} & {~mask} | {new} & {mask}"
                emitter.append(f"next_{index} = {new}")
            emitter.append(f"if slots[{index}].{'curr' if domain is None else 'next'} != next_{index}:")
            with emitter.indent():
                if domain is None:
                    emitter.append(f"slots[{index}].settle(next_{index})")
                else:
                    emitter.append(f"slots[{index}].next = next_{index}; pending.add(slots[{index}])")
        run = self._compiled(emitter.flush())
        reads = [state.slots[state.get_signal(signal)] for signal in inputs]
        drives = [state.slots[index] for _signal, index, _mask in driven]
        if domain is None:
            self._combinational.append((run, reads, drives))
            return
        self._have_wait(self._edge(domain.clk, int(domain.clk_edge == "pos")), run, reads + drives)
        if domain.async_reset and domain.rst is not None:
            self._have_wait(self._edge(domain.rst, 1), run, reads + drives)

    def _compiled(self, code: str) -> _Evaluation:
        slots = self._state.slots

        def without_mask(found: re.Match[str]) -> str:
            signal = slots[int(found[2])].signal
            is_whole = int(found[1], 16) == (1 << len(signal)) - 1 and not signal.shape().signed
            return f"slots[{found[2]}].curr" if is_whole else found[0]

        places: dict[str, int] = {}

        def named(found: re.Match[str]) -> str:
            place = places.setdefault(found[1] or found[2], len(places))
            return f"s{place}" if found[1] else f"n{place}"

        text = _NAMED.sub(named, _WHOLE.sub(without_mask, code))
        evaluation: _Evaluation = _maker(text, len(places))(
            self._state.pending, *(slots[int(index)] for index in places)
        )
        return evaluation

    def _put_in_order(self) -> None:
        """Give combinational evaluations levels: each has a higher one than those that drive what it reads.

        Where they drive each other, bit by bit, somebody's is too low; it is evaluated again.
        """
        drivers: dict[Any, list[int]] = {}
        for number, (_run, _reads, drives) in enumerate(self._combinational):
            for signal in drives:
                drivers.setdefault(signal, []).append(number)
        levels: dict[int, int] = {}

        def level_of(number: int) -> int:
            if number not in levels:
                levels[number] = 0
                before = {driver for signal in self._combinational[number][1] for driver in drivers.get(signal, ())}
                levels[number] = 1 + max(map(level_of, before - {number}), default=-1)
            return levels[number]

        for number in range(len(self._combinational)):
            level_of(number)
        self._levels += [set() for _ in range(1 + max(levels.values(), default=-1))]
        for number, (run, reads, _drives) in enumerate(self._combinational):
            waiting = self._levels[levels[number]]
            self._have_wait(waiting, run, [signal for signal in reads if isinstance(signal, _Signal)])
            for memory in reads:
                if isinstance(memory, _Memory):
                    memory.add_waker(_memory_waker(waiting, run))

    def _have_wait(self, waiting: _Waiting, run: _Evaluation, signals: Sequence[_Signal]) -> None:
        """Have an evaluation wait at first, and when one of these signals changes."""
        self._first.append((waiting, run))
        for signal in signals:
            signal.add_reader(waiting, run)

    def _edge(self, signal: Any, polarity: int) -> _Waiting:
        """Those that wait for an edge of a clock."""
        place = self._state.get_signal(signal), polarity
        if place not in self._at_edge:
            waiting: _Waiting = set()
            self._at_edge[place] = waiting

            def waker(curr: int, next: int) -> bool:
                if next == polarity:
                    self._edges.append(waiting)
                return True

            self._state.add_signal_waker(signal, waker)
        return self._at_edge[place]

    def _wait(self) -> None:
        """Have all evaluations wait that do so at first."""
        for waiting in (*self._levels, *self._at_edge.values()):
            waiting.clear()
        self._edges.clear()
        for waiting, run in self._first:
            waiting.add(run)
        self._is_settled = False

    def add_async_testbench(self, simulator: Any, process: Any, *, background: bool) -> None:
        """Have a test bench drive the design."""
        self._testbenches.append(QuickTestBench(self._design, self, process, background=background))

    def note_changes(self, names: list[str]) -> None:
        """Add the name of each register and memory to NAMES when it changes, the first time from now on.

        What a memory's read at a clock edge is kept in is a register. A name has those of the modules around it.
        """
        state = self._state
        for fragment, path in _modules(self._design.fragment):
            if isinstance(fragment, MemoryInstance):
                state.slots[state.get_memory(fragment._data)].add_waker(_noting(names, ".".join(path)))
                registers = [port._data for port in fragment._read_ports if port._domain != _COMB]
            else:
                by_domain = fragment.statements.items()
                registers = [one for name, statements in by_domain if name != _COMB for one in statements]
            for signal in SignalSet(signal for one in registers for signal in one._lhs_signals()):
                state.slots[state.get_signal(signal)].add_waker(_noting(names, ".".join((*path, signal.name))))

    def reset(self) -> None:
        """Go back to the state at power-up."""
        super().reset()
        self._wait()

    def _signal(self, signal: Any) -> _Signal:
        """A signal's state, which is found by comparing signals only the first time. The signal is kept with it, or
        another might come to its identity."""
        found = self._by_identity.get(id(signal))
        if found is None:
            found = signal, self._state.slots[self._state.get_signal(signal)]
            self._by_identity[id(signal)] = found
        return found[1]

    def get_value(self, expr: Any) -> int:
        """What a test bench reads, mostly a signal or a part of one."""
        value = Value.cast(expr)
        if type(value) is Signal:
            return self._signal(value).curr
        if type(value) is Slice and type(value.value) is Signal:
            return self._signal(value.value).curr >> value.start & (1 << value.stop - value.start) - 1
        return int(eval_value(self._state, value))

    def set_value(self, expr: Any, value: int) -> None:
        """Have a test bench drive something, mostly a signal or a part of one."""
        driven = Value.cast(expr)
        whole, start, width = driven, 0, len(driven)
        if type(driven) is Slice:
            whole, start = driven.value, driven.start
        if type(whole) is Signal and not whole.shape().signed:
            signal = self._signal(whole)
            if not signal.is_comb:
                mask = (1 << width) - 1
                new = signal.next & ~(mask << start) | (value & mask) << start
                if new != signal.next:
                    signal.next = new
                    signal.pending.add(signal)
                return
        eval_assign(self._state, driven, value)

    def step_design(self) -> None:
        """Evaluate until nothing changes any more."""
        state, edges, triggers = self._state, self._edges, self._active_triggers
        if self._is_settled and not (
            state.pending or edges or triggers or any(one.runnable for one in self._processes)
        ):
            return
        self._is_settled = True
        while True:
            for trigger_state in triggers:
                trigger_state.run()
            triggers.clear()
            runs = [run for waiting in edges for run in waiting]
            for waiting in edges:
                waiting.clear()
            edges.clear()
            for run in runs:
                run()
            for process in self._processes:
                if process.runnable:
                    process.runnable = False
                    process.run()
            state.commit()
            self._settle()
            if not edges and not triggers:
                return

    def _settle(self) -> None:
        """Evaluate what is combinational, until nothing of it waits."""
        pending = self._state.pending
        again = True
        while again:
            again = False
            for waiting in self._levels:
                while waiting:
                    again = True
                    runs = list(waiting)
                    waiting.clear()
                    for run in runs:
                        run()
                    if pending:
                        self._state.commit()

    def write_vcd(self, **_options: Any) -> Any:
        """There are no waves."""
        raise NotImplementedError("waves: expected Amaranth's own engine")


def _modules(fragment: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """A fragment and all in it, with their names' path."""
    yield fragment, path
    for inside, name, _source in fragment.subfragments:
        yield from _modules(inside, (*path, name or ""))


def _copies(fragment: Any) -> Iterator[tuple[Signal, Signal]]:
    """(signal, original) where a signal is nothing but another one, in a fragment and all in it."""
    for inside, _name, _source in fragment.subfragments:
        yield from _copies(inside)
    if not isinstance(fragment, MemoryInstance):
        for together in _apart(fragment.statements.get(_COMB, ())):
            if (copied := _copied(together)) is not None:
                yield copied


def _copied(together: Sequence[Any]) -> tuple[Signal, Signal] | None:
    """(signal, original) if combinational statements that drive the same are only that."""
    (statement, *more) = together
    if more or not isinstance(statement, Assign):
        return None
    copy, original = statement.lhs, statement.rhs
    if isinstance(copy, Signal) and isinstance(original, Signal) and copy.shape() == original.shape():
        return copy, original
    return None


def _apart(statements: Sequence[Any]) -> Iterator[list[Any]]:
    """Statements in groups, those together that drive the same signal, in their order."""
    groups: dict[int, tuple[list[int], set[int]]] = {}
    group_of: dict[int, int] = {}
    for place, statement in enumerate(statements):
        places, driven = [place], {id(signal) for signal in statement._lhs_signals()}
        for group in {group_of[signal] for signal in driven if signal in group_of}:
            others, also_driven = groups.pop(group)
            places += others
            driven |= also_driven
        groups[place] = places, driven
        group_of |= dict.fromkeys(driven, place)
    for places, _driven in groups.values():
        yield [statements[place] for place in sorted(places)]


def _noting(names: list[str], name: str) -> Callable[..., bool]:
    """What a signal or memory calls when it changes; once is enough."""

    def waker(*_values: int) -> bool:
        names.append(name)
        return False

    return waker


def _memory_waker(waiting: _Waiting, run: _Evaluation) -> Callable[[], bool]:
    def waker() -> bool:
        waiting.add(run)
        return True

    return waker


@cache
def _maker(code: str, slots: int) -> Callable[..., _Evaluation]:
    """What makes an evaluation of the signals that it names."""
    head = f"def make(pending{''.join(f', s{place}' for place in range(slots))}):\n    def run():\n"
    scope: dict[str, Any] = {**_ValueCompiler.helpers, **_StatementCompiler.helpers}
    exec(f"{head}{code}    return run\n", scope)
    make: Callable[..., _Evaluation] = scope["make"]
    return make
