"""Moves what is late in a placed design, until it is in time or nothing helps.

nextpnr's placer makes wires short as a whole. With a device four fifths full it leaves some cells where there was room,
far from what they are joined to; its refinement moves cells for the sum of wires, to which a register half a device off
its path adds little. Here the latest are moved first, and for time alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from verilog.synth.estimate import Estimate
from verilog.synth.placed import BLOCK_RAM, PlacedDesign, Unit

__all__ = ["refine"]

_MARGIN: Final = 0.05
"""Slack in ns that is wanted."""
_GAIN: Final = 0.02
"""In ns; less is not worth a move."""
_LATEST: Final = 2
"""Of what comes to a unit and goes from it, so many decide where it is to be tried."""
_STEPS: Final = 4
_AROUND: Final = 3
"""Tiles around a place that are tried."""
_TRIED: Final = 120
"""Tiles at most, the best first."""
_IN_A_ROW: Final = 4
"""Units that move together at most."""
_NEXT: Final = 12
"""Tiles between two of them."""
_FARTHEST: Final = 24
"""Tiles that they go, across and along."""
_ROUNDS: Final = 30


def refine(placed: Path, refined: Path, *, period: float, speed: str) -> int:
    """Write a placed design with late cells moved, and all cells to stay where they are.

    Args:
        placed, refined: a design as nextpnr writes it, and where it goes.
        period: of the clock, in ns.
        speed: the speed grade.

    Returns:
        How many units have moved.
    """
    design = PlacedDesign(placed)
    estimate = Estimate(design, period, speed)
    count = 0
    is_thorough = False
    for _ in range(_ROUNDS):
        slacks = {unit: estimate.slack_of(unit) for unit in design.unit_of if unit is not None}
        late = sorted((unit for unit, slack in slacks.items() if slack < _MARGIN), key=slacks.__getitem__)
        moved = sum(_moved(design, estimate, unit, _AROUND if is_thorough else 0) for unit in late)
        count += moved
        if not moved and is_thorough:
            break
        is_thorough = not moved
    design.write(refined)
    return count


def _moved(design: PlacedDesign, estimate: Estimate, unit: Unit, apart: int) -> bool:
    """Whether a unit, if it is still late, has found a better place, alone or with those behind it on its path, the
    last of which may move so many tiles farther or less far than the others."""
    now = estimate.slack_of(unit)
    if now >= _MARGIN:
        return False
    places = [(estimate.slack_at(unit, tile, 0), tile) for tile in _tiles(design, estimate, unit)]
    better = sorted(((slack, tile) for slack, tile in places if slack > now + _GAIN), reverse=True)
    if any(_go(design, estimate, {unit: tile}, now + _GAIN) for _, tile in better[:_TRIED]):
        return True
    return any(_go(design, estimate, tiles, now + _GAIN) for tiles in _together(design, estimate, unit, apart))


def _together(
    design: PlacedDesign, estimate: Estimate, unit: Unit, apart: int
) -> Iterable[dict[Unit, tuple[int, int]]]:
    """Where a unit might go with those next to it on its path: of cells in a row often none gains alone."""
    row = [unit]
    while len(row) < _IN_A_ROW:
        _, sinks = estimate.latest(row[-1], 1)
        behind = design.unit_of[sinks[0]] if sinks else None
        if behind is None or behind in row or _distance(_tile(design, row[-1]), _tile(design, behind)) > _NEXT:
            break
        row.append(behind)
    sources, _ = estimate.latest(unit, 1)
    if not sources or len(row) == 1:
        return
    at = [_tile(design, one) for one in row]
    to = design.places[sources[0]]
    across, along = _steps(to[0] - at[0][0]), _steps(to[1] - at[0][1])
    for x, y in sorted({(x, y) for x in across for y in along} - {(0, 0)}, key=lambda step: _distance(step, (0, 0))):
        tiles = {one: (column + x, line + y) for one, (column, line) in zip(row, at, strict=True)}
        for last in _square(tiles[row[-1]], apart):
            wanted = tiles | {row[-1]: last}
            if all(tile in design.tiles_for(one) for one, tile in wanted.items()):
                yield wanted


def _steps(tiles: int) -> range:
    """Towards something that is so far."""
    return range(min(tiles, _FARTHEST) + 1) if tiles >= 0 else range(max(tiles, -_FARTHEST), 1)


def _tile(design: PlacedDesign, unit: Unit) -> tuple[int, int]:
    return design.places[unit.cells[0]][:2]


def _go(design: PlacedDesign, estimate: Estimate, tiles: dict[Unit, tuple[int, int]], enough: float) -> bool:
    """Move units to tiles if that leaves all a slack of so much, and whatever gives way enough, or as much."""
    if len(tiles) == 1:
        ((unit, tile),) = tiles.items()
        return any(
            estimate.slack_at(unit, tile, place) > enough and _try(design, estimate, {unit: (tile, place)}, enough)
            for place in design.places_for(unit)
        )
    return _try(design, estimate, {unit: (tile, None) for unit, tile in tiles.items()}, enough)


def _try(
    design: PlacedDesign,
    estimate: Estimate,
    wanted: dict[Unit, tuple[tuple[int, int], int | None]],
    enough: float,
) -> bool:
    """Move units, each to a tile and a place in it, or to any place; all or none.

    What gives way is in time, or at least less late than what moves was.
    """
    done: list[tuple[Unit, tuple[int, int, int], list[Unit]]] = []
    cells: list[int] = []
    for unit, (tile, place) in wanted.items():
        before = design.places[unit.cells[0]]
        for at in design.places_for(unit) if place is None else (place,):
            others = design.in_the_way(unit, tile, at)
            if others is None or wanted.keys() & set(others):
                continue
            if design.exchange(unit, tile, at, others):
                done.append((unit, before, others))
                cells += [number for one in (unit, *others) for number in one.cells]
                break
        else:
            break
    if len(done) == len(wanted):
        estimate.moved(cells)
        gave_way = [other for *_, others in done for other in others]
        in_time = all(estimate.slack_of(other) >= min(_MARGIN, enough) for other in gave_way)
        if in_time and all(estimate.slack_of(unit) > enough for unit in wanted):
            return True
    for unit, (column, row, place), others in reversed(done):
        design.exchange(unit, (column, row), place, others)
    if len(done) == len(wanted):
        estimate.moved(cells)
    return False


def _distance(tile: tuple[int, int], other: tuple[int, int]) -> int:
    return abs(tile[0] - other[0]) + abs(tile[1] - other[1])


def _tiles(design: PlacedDesign, estimate: Estimate, unit: Unit) -> set[tuple[int, int]]:
    """Tiles in which a unit might be better: around its latest neighbours, and on the way between them. There are few
    of block RAMs."""
    if design.types[unit.cells[0]] == BLOCK_RAM:
        return design.tiles_for(unit)
    sources, sinks = estimate.latest(unit, _LATEST)
    points = [design.places[cell][:2] for cell in (*sources, *sinks, unit.cells[0])]
    for source in sources:
        for sink in sinks:
            (x, y), (to_x, to_y) = design.places[source][:2], design.places[sink][:2]
            points += [(x + (to_x - x) * step // _STEPS, y + (to_y - y) * step // _STEPS) for step in range(1, _STEPS)]
    return {tile for point in points for tile in _square(point, _AROUND)} & design.tiles_for(unit)


def _square(tile: tuple[int, int], around: int) -> list[tuple[int, int]]:
    """So many tiles around one, and itself."""
    steps = range(-around, around + 1)
    return [(tile[0] + across, tile[1] + along) for across in steps for along in steps]
