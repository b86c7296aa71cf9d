"""Two traces in lockstep: whether they are the same, and if not, where they part and what led there, in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from wire.parameters import FabricParameters, node_text, port_text
from wire.symbols import Row, row_text
from wire.trace import LINK_SOURCE, WORDS, Record, link_of_source, port_of_source
from wire.trace_layout import LAYOUTS, RowPair, Rows

__all__ = ["Comparison", "Difference", "Names", "compare", "describe", "fields"]

_HISTORY = 8
"""Equal records that a difference shows, at its place and anywhere."""


@dataclass(frozen=True)
class Difference:
    """The first event that is not the same on both sides.

    Attributes:
        cycle, source, kind: of the event.
        expected: its record on the expected side, None if there is none.
        seen: its record on the other side, None if there is none.
        here: the last equal records of the same source, oldest first.
        before: the last equal records of all sources, oldest first.
    """

    cycle: int
    source: int
    kind: int
    expected: Record | None
    seen: Record | None
    here: tuple[Record, ...]
    before: tuple[Record, ...]

    def report(self, names: Names, replay: str, expected_by: str = "model", seen_by: str = "rtl") -> str:
        """Cycle, place, what either side says, the differing fields, the events before, the line that replays it."""
        place = names.place(self.source)
        width = max(len(expected_by), len(seen_by))
        sides = [(expected_by, self.expected), (seen_by, self.seen)]
        lines = [f"first difference: cycle {self.cycle}, {place}"]
        lines += [f"  {side:{width}}  {'no such event' if r is None else describe(r, names)}" for side, r in sides]
        if self.expected is not None and self.seen is not None:
            mine, theirs = fields(self.expected), fields(self.seen)
            parted = [f"{name} {mine[name]} / {theirs[name]}" for name in mine if mine[name] != theirs[name]]
            lines.append(f"  differs in {', '.join(parted)}")
        for title, records in ((f"last events at {place}", self.here), ("last events anywhere", self.before)):
            lines.append(f"{title}:")
            lines += [f"  {describe(record, names)}" for record in records] or ["  none"]
        return "\n".join([*lines, f"replay: {replay}"])


@dataclass(frozen=True)
class Comparison:
    """What a comparison found.

    Attributes:
        records: records that were the same on both sides.
        cycle: of the last of them, -1 if there was none.
        difference: the first difference, None if there is none.
    """

    records: int
    cycle: int
    difference: Difference | None


def compare(expected: Iterable[Record], seen: Iterable[Record]) -> Comparison:
    """Compare two traces, record by record, up to their end or their first difference.

    Neither trace is held in memory.

    Args:
        expected: one trace, such as the golden model's.
        seen: the other, which is asked for each record first.
    """
    here: dict[int, deque[Record]] = {}
    before: deque[Record] = deque(maxlen=_HISTORY)
    records = 0
    last_cycle = -1
    mine = iter(expected)
    for found in seen:
        wanted = next(mine, None)
        if wanted != found:
            return Comparison(records, last_cycle, _difference(wanted, found, here, before))
        records += 1
        last_cycle = found.cycle
        before.append(found)
        place = here.get(found.source)
        if place is None:
            place = here[found.source] = deque(maxlen=_HISTORY)
        place.append(found)
    wanted = next(mine, None)
    if wanted is not None:
        return Comparison(records, last_cycle, _difference(wanted, None, here, before))
    return Comparison(records, last_cycle, None)


def _difference(
    wanted: Record | None, found: Record | None, here: dict[int, deque[Record]], before: deque[Record]
) -> Difference:
    """The earlier of two records that are not the same, or both if they are of one event."""
    sides = [record for record in (wanted, found) if record is not None]
    cycle, source, kind = event = min(record[:3] for record in sides)
    return Difference(
        cycle,
        source,
        kind,
        wanted if wanted is not None and wanted[:3] == event else None,
        found if found is not None and found[:3] == event else None,
        tuple(here.get(source, ())),
        tuple(before),
    )


class Names:
    """Names of the places of a fabric's trace."""

    def __init__(self, parameters: FabricParameters) -> None:
        self._nodes = tuple(parameters.nodes)
        self._links = parameters.links

    def place(self, source: int) -> str:
        """Such as `sw0[3]` for a port, `sw0` for a node itself, `h0[1] -> sw0[3]` for a link's direction.

        Of an adapter with several ports each is a node, such as `node H[2]`.

        A source that the fabric does not have is given as a number.
        """
        if source & LINK_SOURCE:
            index, back = link_of_source(source)
            if index >= len(self._links):
                return f"link {index}, direction {back}"
            link = self._links[index]
            ends = [port_text(link.a, link.a_port), port_text(link.b, link.b_port)]
            return " -> ".join(reversed(ends) if back else ends)
        node, port = port_of_source(source)
        name = self._nodes[node] if node < len(self._nodes) else f"node {node}"
        if port:
            return port_text(name, port)
        called = node_text(name)
        return called if called == name else f"node {called}"


def fields(record: Record) -> dict[str, int | str]:
    """The fields of a record by name, as `wire.trace_layout` has them; codes by their names."""
    layout = LAYOUTS.get(record.kind)
    if layout is None:
        return {name: f"{word:#010x}" for name, word in zip("abcde", record[-WORDS:], strict=True)}
    if layout is Rows:
        row = _row(Rows.data.read(record), Rows.k.read(record), Rows.valid.read(record), 1)
        return {"CRC": Rows.crc.text(record), "last row": row}
    if layout is not RowPair:
        return {field.label: field.text(record) for field in layout.fields}
    values = [field.read(record) for field in layout.fields]
    half = len(values) // 2
    return {"row": _row(*values[:half]), "of the model": _row(*values[half:])}


def _row(data: int, k: int, valid: int, polls: int) -> str:
    """A row symbol by symbol, and what the port says beside it."""
    row = row_text(Row(data, k)) if valid else "none"
    return row if polls else f"{row}, not polling"


def describe(record: Record, names: Names) -> str:
    """One line for a record: cycle, place, kind and fields."""
    kind = LAYOUTS[record.kind].kind.name if record.kind in LAYOUTS else record.kind
    spelt = ", ".join(f"{name} {value}" for name, value in fields(record).items())
    return f"cycle {record.cycle}  {names.place(record.source)}  {kind}  {spelt}"
