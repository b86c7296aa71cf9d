"""When signals arrive in a placed design, by nextpnr's own estimate: from where cells lie, before there are wires.

In ns, as of speed grade 8: of 7 and 6 both cells and wires are slower. Cells' delays are those of Project Trellis'
database, the longest; a wire's are what nextpnr's placer takes.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from verilog.synth.placed import BLOCK_RAM, COMB, FF, Arc, PlacedDesign, Unit

__all__ = ["Estimate"]

_WIRE: Final = {"6": 0.080, "7": 0.071, "8": 0.062}
"""A tile's length of wire, by speed grade."""
_CELL: Final = {"6": 1.31, "7": 1.16, "8": 1.0}
"""What a cell takes, by speed grade, to what it takes of grade 8."""
_NEAR: Final = 5
"""Tiles to the side, and up or down, that cost twice that."""
_OUT: Final = 6
"""What it costs to leave a cell, in tiles."""

_NO_SHORT_WAY: Final = (1, 6)
"""Places in a tile from which a LUT has none to the others."""

_LUT_PINS: Final = "ABCD"
_LUT: Final = 0.180
_LUT_AND_MULTIPLEXER: Final = 0.306
_MULTIPLEXER: Final = 0.193
_INTO_CARRY: Final = 0.355
_CARRY: Final = 0.056
_OUT_OF_CARRY: Final = 0.349
_STARTS: Final = {FF: 0.395, BLOCK_RAM: 4.263}
_RAM_WRITES: Final = frozenset(("WD", "WRE", "WAD0", "WAD1", "WAD2", "WAD3"))
_RESET_SETUP: Final = 0.287
_BLOCK_RAM_SETUP: Final = 0.202
_WRITE_SETUP: Final = 0.266
_NEVER: Final = 1e9

Node = tuple[int, str]
"""An output of a cell."""


class Estimate:
    """Arrivals of all outputs, and when they have to be there.

    Args:
        period: of the clock, in ns.
        speed: the speed grade.
    """

    def __init__(self, design: PlacedDesign, period: float, speed: str) -> None:
        self._design = design
        # In times of grade 8.
        self._period = period / _CELL[speed]
        self._wire = _WIRE[speed] / _CELL[speed]
        self._users: defaultdict[Node, list[Arc]] = defaultdict(list)
        for arcs in design.fanout:
            for arc in arcs:
                self._users[arc.source, arc.output].append(arc)
        self._order = self._sorted()
        self._at = {node: number for number, node in enumerate(self._order)}
        self._arrival: dict[Node, float] = {}
        self._required: dict[Node, float] = {}
        for node in self._order:
            self._arrival[node] = self._arrives(node, self._arrival)
        for node in reversed(self._order):
            self._required[node] = self._is_required(node)

    def _sorted(self) -> list[Node]:
        """All outputs, each behind what it follows from in its cycle."""
        found: dict[Node, None] = {}
        seen: set[Node] = set()
        for cell, outputs in enumerate(self._design.outputs):
            stack = [((cell, output), False) for output in outputs]
            while stack:
                node, is_done = stack.pop()
                if is_done:
                    found[node] = None
                elif node not in seen:
                    seen.add(node)
                    stack.append((node, True))
                    stack += [((arc.source, arc.output), False) for arc in self._causes(node)]
        return list(found)

    def _causes(self, node: Node) -> Sequence[Arc]:
        cell, output = node
        if self._design.types[cell] != COMB:
            return ()
        return [arc for arc in self._design.fanin[cell] if _delay(arc.input, output) is not None]

    def _is_end(self, arc: Arc) -> bool:
        return self._design.types[arc.sink] != COMB or arc.input in _RAM_WRITES

    def _setup(self, arc: Arc) -> float:
        if arc.input == "LSR":
            return _RESET_SETUP
        if arc.input == "WRE":
            return _WRITE_SETUP
        return _BLOCK_RAM_SETUP if self._design.types[arc.sink] == BLOCK_RAM else 0

    def _takes(self, arc: Arc) -> float:
        """What the wire of an arc takes."""
        if (arc.output == "FCO" and arc.input == "FCI") or arc.input in {"FXA", "FXB"}:
            return 0
        if arc.output == "F" and arc.input == "DI":
            return 0
        places = self._design.places
        (column, row, place), (to_column, to_row, to_place) = places[arc.source], places[arc.sink]
        across, along = abs(column - to_column), abs(row - to_row)
        if not across and not along and arc.input in _LUT_PINS:
            is_short = place == to_place if arc.output == "Q" else arc.output == "F" and place not in _NO_SHORT_WAY
            if is_short:
                return 0
        tiles = _OUT + across + along + min(across, _NEAR) + min(along, _NEAR)
        return self._wire * tiles

    def _arrives(self, node: Node, arrival: dict[Node, float]) -> float:
        """When an output is there, by what ARRIVAL or else all arrivals say."""
        cell, output = node
        latest = _STARTS.get(self._design.types[cell], 0.0)
        for arc in self._causes(node):
            source = arc.source, arc.output
            delay = _delay(arc.input, output)
            assert delay is not None
            came = arrival[source] if source in arrival else self._arrival[source]
            latest = max(latest, came + self._takes(arc) + delay)
        return latest

    def _to_be_there(self, arc: Arc) -> float:
        """When an arc's signal has to leave."""
        if self._is_end(arc):
            return self._period - self._setup(arc) - self._takes(arc)
        soonest = _NEVER
        for output in self._design.outputs[arc.sink]:
            delay = _delay(arc.input, output)
            if delay is not None:
                soonest = min(soonest, self._required[arc.sink, output] - delay)
        return soonest - self._takes(arc)

    def _is_required(self, node: Node) -> float:
        return min(map(self._to_be_there, self._users[node]), default=_NEVER)

    def slack(self, cell: int) -> float:
        """By how much the signals through a cell are in time, the latest; below 0 they are late."""
        nodes = ((cell, output) for output in self._design.outputs[cell])
        return min((self._required[node] - self._arrival[node] for node in nodes), default=_NEVER)

    def slack_of(self, unit: Unit) -> float:
        """The least slack of what begins in, ends in or passes a unit."""
        ends = (
            self._to_be_there(arc) - self._arrival[arc.source, arc.output]
            for cell in unit.cells
            for arc in self._design.fanin[cell]
            if self._is_end(arc)
        )
        return min((*ends, *map(self.slack, unit.cells)), default=_NEVER)

    def worst(self) -> float:
        """The least slack of all."""
        return min(map(self.slack, range(len(self._design.types))), default=_NEVER)

    def slack_at(self, unit: Unit, tile: tuple[int, int], place: int) -> float:
        """What `slack_of` would be if the unit were in another place, and all else as it is."""
        places = self._design.places
        before = [places[cell] for cell in unit.cells]
        for cell, at in zip(unit.cells, before, strict=True):
            places[cell] = (*tile, place if unit.single else at[2])
        arrival: dict[Node, float] = {}
        nodes = [(cell, output) for cell in unit.cells for output in self._design.outputs[cell]]
        for node in sorted(nodes, key=self._at.__getitem__):
            arrival[node] = self._arrives(node, arrival)
        least = _NEVER
        inside = set(unit.cells)
        for cell in unit.cells:
            for arc in self._design.fanin[cell]:
                if self._is_end(arc):
                    source = arc.source, arc.output
                    came = arrival[source] if source in arrival else self._arrival[source]
                    least = min(least, self._to_be_there(arc) - came)
            for arc in self._design.fanout[cell]:
                if arc.sink not in inside:
                    least = min(least, self._to_be_there(arc) - arrival[cell, arc.output])
        for cell, at in zip(unit.cells, before, strict=True):
            places[cell] = at
        return least

    def latest(self, unit: Unit, count: int) -> tuple[list[int], list[int]]:
        """The cells outside of a unit whose signals come to it last, and those to which its own go last, so many."""
        inside = set(unit.cells)
        come = [
            (self._arrival[arc.source, arc.output] + self._takes(arc), arc.source)
            for cell in unit.cells
            for arc in self._design.fanin[cell]
            if arc.source not in inside
        ]
        go = [
            (self._to_be_there(arc), arc.sink)
            for cell in unit.cells
            for arc in self._design.fanout[cell]
            if arc.sink not in inside
        ]
        return [cell for _, cell in sorted(come, reverse=True)[:count]], [cell for _, cell in sorted(go)[:count]]

    def moved(self, cells: Iterable[int]) -> None:
        """Cells have moved: find anew what depends on it."""
        design = self._design
        near = [arc for cell in cells for arc in (*design.fanin[cell], *design.fanout[cell])]
        touched = {cell for arc in near for cell in (arc.source, arc.sink)} | set(cells)
        nodes = {(cell, output) for cell in touched for output in design.outputs[cell]}
        self._follow(set(nodes), forward=True)
        self._follow(nodes, forward=False)

    def _follow(self, nodes: set[Node], *, forward: bool) -> None:
        sign = 1 if forward else -1
        waiting = [(sign * self._at[node], node) for node in nodes]
        heapq.heapify(waiting)
        values = self._arrival if forward else self._required
        while waiting:
            _, node = heapq.heappop(waiting)
            if node not in nodes:
                continue
            nodes.discard(node)
            value = self._arrives(node, self._arrival) if forward else self._is_required(node)
            if value == values[node]:
                continue
            values[node] = value
            for other in self._behind(node) if forward else self._before(node):
                if other not in nodes:
                    nodes.add(other)
                    heapq.heappush(waiting, (sign * self._at[other], other))

    def _behind(self, node: Node) -> Iterable[Node]:
        for arc in self._users[node]:
            if not self._is_end(arc):
                yield from ((arc.sink, output) for output in self._design.outputs[arc.sink])

    def _before(self, node: Node) -> Iterable[Node]:
        yield from ((arc.source, arc.output) for arc in self._causes(node))


def _delay(pin: str, output: str) -> float | None:
    """From a pin of a LUT, or what is in its place, to an output of it; None if there is no way."""
    if pin in _LUT_PINS:
        return {"F": _LUT, "FCO": _INTO_CARRY}.get(output, _LUT_AND_MULTIPLEXER)
    if pin == "FCI":
        return {"F": _OUT_OF_CARRY, "FCO": _CARRY}.get(output)
    return _MULTIPLEXER if output == "OFX" and pin not in _RAM_WRITES else None
