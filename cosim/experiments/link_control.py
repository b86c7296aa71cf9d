"""Hands on the cables of a stepped run: links cut and restored, errors, counters."""

from __future__ import annotations

from random import Random
from typing import Final, get_args

from cosim.analysis.observer import Observer
from cosim.experiments.stepped_run import SteppedRun
from cosim.scenario.tables import ErrorKind
from cosim.stimulus.row_errors import link_error
from cosim.topology.topology import Port, port_named
from toolchain.errors import UserError
from wire.parameters import FabricParameters
from wire.registers import Counter, place_of_address, port_address
from wire.stimulus import ROW_MAX, Operation, injection_target
from wire.trace import Kind, Record, port_of_source
from wire.trace_layout import BusRead

__all__ = ["ERROR_KINDS", "CounterReader", "LinkControl", "LinkControlError"]

ERROR_KINDS: Final[tuple[ErrorKind, ...]] = tuple(kind for kind in get_args(ErrorKind) if not kind.startswith("link_"))
"""Errors that can happen to what passes a link."""

_BITS: Final = 32
_STEP: Final = 1_000
_READING_CYCLES: Final = 4 * _STEP


class LinkControlError(UserError):
    """Something that cannot be done with the links of this fabric."""


class CounterReader(Observer):
    """Follows the trace for what is read over the test bus.

    Attributes:
        values: by port and counter, as it was read last.
    """

    kinds = frozenset({Kind.BUS_READ})

    def __init__(self, fabric: FabricParameters) -> None:
        self.values: dict[tuple[Port, Counter], int] = {}
        self._nodes = list(fabric.nodes)

    def observe(self, record: Record) -> None:
        """Takes a record."""
        page, offset = place_of_address(BusRead.address.read(record))
        port = Port(self._nodes[port_of_source(record.source)[0]], page)
        self.values[port, Counter(offset)] = BusRead.value.read(record)


class LinkControl:
    """The links of a run. Ports are called as people call them: `SW1[2]`, `H1`."""

    def __init__(self, fabric: FabricParameters, run: SteppedRun, reader: CounterReader, seed: int) -> None:
        """READER has to follow the run. SEED draws errors."""
        self._fabric = fabric
        self._run = run
        self._reader = reader
        self._random = Random(f"{seed}/links")
        self._nodes = list(fabric.nodes)
        self._links: dict[Port, tuple[int, int]] = {}
        for index, link in enumerate(fabric.links):
            self._links[Port(link.a, link.a_port)] = index, 0
            self._links[Port(link.b, link.b_port)] = index, 1
        self._cut: set[int] = set()
        self._rates: dict[tuple[int, ErrorKind], int] = {}
        self._drawn = 0

    def cut(self, port: str) -> None:
        """Cuts the link at a port; up to 1,000 cycles pass until that is done.

        Raises:
            LinkControlError: there is none, or it is cut.
        """
        self._connect(port, up=False)

    def restore(self, port: str) -> None:
        """Joins the link at a port again, likewise.

        Raises:
            LinkControlError: there is none, or it is not cut.
        """
        self._connect(port, up=True)

    def _connect(self, port: str, *, up: bool) -> None:
        link, _direction = self._link(port)
        if up is (link not in self._cut):
            raise LinkControlError(f"{port}: its link is {'not cut' if up else 'cut already'}")
        self._cut ^= {link}
        self._give(Operation.LINK_UP if up else Operation.LINK_DOWN, link)

    def inject(self, port: str, kind: str, *, row: int = 1, bit: int = 0) -> None:
        """Makes one error happen to the next packet that a port sends after up to 1,000 cycles, which pass.

        Raises:
            LinkControlError: no such port or link, kind, row or bit.
        """
        target = injection_target(*self._link(port))
        known = _kind(kind)
        if not 0 <= row < ROW_MAX:
            raise LinkControlError(f"row {row}: allowed 0..{ROW_MAX - 1}")
        if not 0 <= bit < _BITS:
            raise LinkControlError(f"bit {bit}: allowed 0..{_BITS - 1}")
        self._give(Operation.INJECT, target, link_error(known, row=row, bit=bit).args())

    def _give(self, operation: Operation, target: int, args: tuple[int, int, int, int] = (0, 0, 0, 0)) -> None:
        """Gives a control operation; time passes until nothing that is sent from now on can be before it."""
        self._run.control(operation, target, args)
        while self._run.has_wanted:
            self._run.step(_STEP)

    def errors(self, port: str, kind: str, every: int) -> None:
        """Makes errors happen to what a port sends, one in EVERY cycles on the average; 0: no more.

        Raises:
            LinkControlError: no such port or link, or kind, or a negative number of cycles.
        """
        target, known = injection_target(*self._link(port)), _kind(kind)
        if every < 0:
            raise LinkControlError(f"every {every}: allowed 0 and above")
        self._rates.pop((target, known), None)
        if every:
            self._rates[target, known] = every
        self._drawn = self._run.now

    def draw(self) -> None:
        """Draws the errors of the cycles that have passed, one of a kind at the most, for those that come."""
        passed, self._drawn = self._run.now - self._drawn, self._run.now
        for (target, kind), every in self._rates.items():
            if self._random.random() < min(1.0, passed / every):
                error = link_error(kind, row=self._random.randint(1, 8), bit=self._random.randrange(_BITS))
                self._run.control(Operation.INJECT, target, error.args())

    def counters(self, port: str) -> dict[str, int]:
        """The counters of a port by name; some simulated time passes until they are read.

        Raises:
            LinkControlError: there is no such port.
        """
        place = self._port(port)
        for counter in Counter:
            self._reader.values.pop((place, counter), None)
            address = port_address(place.number, counter)
            self._run.control(Operation.BUS_READ, self._nodes.index(place.node), (address, 0, 0, 0))
        # As many cycles on every engine: some show what happened in a step when they have run another. Where only some
        # nodes are RTL, it is shown later still.
        end = self._run.now + _READING_CYCLES
        while self._run.now < end or not all((place, counter) in self._reader.values for counter in Counter):
            self._run.step(end - self._run.now if self._run.now < end else _STEP)
        return {counter.name.lower(): self._reader.values[place, counter] for counter in Counter}

    def _link(self, text: str) -> tuple[int, int]:
        found = self._links.get(self._port(text))
        if found is None:
            raise LinkControlError(f"{text}: has no link")
        return found

    def _port(self, text: str) -> Port:
        try:
            return port_named(self._fabric, text)
        except ValueError as error:
            raise LinkControlError(str(error)) from None


def _kind(text: str) -> ErrorKind:
    known = next((one for one in ERROR_KINDS if one == text), None)
    if known is None:
        raise LinkControlError(f"errors of kind {text!r}: expected {', '.join(ERROR_KINDS)}")
    return known
