"""Two traces in lockstep: whether they are the same, and if not, where they part and what led there, in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from cosim.trace.decided_by import DECIDED_BY
from wire.codes import LINK_WIDTHS, LinkWidth
from wire.parameters import FabricParameters, node_text, port_text
from wire.symbols import Row, row_text
from wire.trace import LINK_SOURCE, WORDS, Kind, LinkResult, Record, link_of_source, port_of_source, port_source
from wire.trace_layout import LAYOUTS, RowPair, Rows, RxFcp, TxFcp

__all__ = ["Comparison", "Difference", "Names", "compare", "describe", "fields"]

_HISTORY = 8
"""Equal records that a difference shows, at its place and anywhere."""

_CREDITS: Final[Mapping[int, tuple[str, type[RxFcp] | type[TxFcp]]]] = {
    Kind.RX_FCP: ("received", RxFcp),
    Kind.TX_FCP: ("sent", TxFcp),
}


@dataclass(frozen=True)
class Difference:
    """The first event that is not the same on both sides.

    Attributes:
        cycle, source, kind: of the event.
        expected: its record on the expected side, None if there is none.
        seen: its record on the other side, None if there is none.
        here: the last equal records of the same source, oldest first.
        before: the last equal records of all sources, oldest first.
        after: what comes next on the expected side, and on the other.
        credits: the last equal flow control packets that ports sent and received, by source, kind and first word, which
            has the VL and, of one received, whether it was taken.
    """

    cycle: int
    source: int
    kind: int
    expected: Record | None
    seen: Record | None
    here: tuple[Record, ...]
    before: tuple[Record, ...]
    after: tuple[tuple[Record, ...], tuple[Record, ...]] = ((), ())
    credits: Mapping[tuple[int, int, int], Record] = field(default_factory=dict)

    def report(
        self, names: Names, replay: str, waves: str = "", *, expected_by: str = "model", seen_by: str = "rtl"
    ) -> str:
        """Cycle, place, what either side says, the differing fields, the events before and after, the credits at both
        ends of the link, the files that decide it, the line that replays it; and the same with WAVES, its options.
        """
        place = names.place(self.source)
        width = max(len(expected_by), len(seen_by))
        sides = [(expected_by, self.expected), (seen_by, self.seen)]
        lines = [f"first difference: cycle {self.cycle}, {place}"]
        lines += [f"  {side:{width}}  {'no such event' if r is None else describe(r, names)}" for side, r in sides]
        if self.expected is not None and self.seen is not None:
            mine, theirs = fields(self.expected), fields(self.seen)
            parted = [f"{name} {mine[name]} / {theirs[name]}" for name in mine if mine[name] != theirs[name]]
            lines.append(f"  differs in {', '.join(parted)}")
        for title, records in (
            (f"last events at {place}", self.here),
            ("last events anywhere", self.before),
            (f"next events of {expected_by}", self.after[0]),
            (f"next events of {seen_by}", self.after[1]),
        ):
            lines.append(f"{title}:")
            lines += [f"  {describe(record, names)}" for record in records] or ["  none"]
        lines += self._credits_at(names)
        if self.kind in DECIDED_BY:
            lines.append(f"decided by: {', '.join(DECIDED_BY[Kind(self.kind)])}")
        lines.append(f"replay: {replay}")
        if waves:
            lines.append(f"waves: {replay}{waves}")
        return "\n".join(lines)

    def _credits_at(self, names: Names) -> Iterator[str]:
        """Of each VL of the port and of the other end of its link, the last flow control packets."""
        far = names.far_end(self.source)
        for source in (self.source,) if far is None else (self.source, far):
            told: dict[int, dict[str, str]] = {}
            for record in sorted(record for (one, _, _), record in self.credits.items() if one == source):
                word, layout = _CREDITS[record.kind]
                if layout is TxFcp or RxFcp.result.read(record) == LinkResult.GOOD:
                    fctbs, fccl = layout.fctbs.read(record), layout.fccl.read(record)
                    of_vl = told.setdefault(layout.vl.read(record), {})
                    of_vl[word] = f"{word} FCTBS {fctbs}, FCCL {fccl} in cycle {record.cycle}"
            for vl, of_vl in sorted(told.items()):
                yield f"credits at {names.place(source)}, VL {vl}: {'; '.join(sorted(of_vl.values()))}"


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


def compare(expected: Iterable[Record], seen: Iterable[Record], after: int = 0) -> Comparison:
    """Compare two traces, record by record, up to their end or their first difference.

    Neither trace is held in memory.

    Args:
        expected: one trace, such as the golden model's.
        seen: the other, which is asked for each record first.
        after: so many records of each side a difference has of what comes next.
    """
    here: dict[int, deque[Record]] = {}
    credits: dict[tuple[int, int, int], Record] = {}
    before: deque[Record] = deque(maxlen=_HISTORY)
    records = 0
    last_cycle = -1
    mine, theirs = iter(expected), iter(seen)

    def difference(wanted: Record | None, found: Record | None) -> Comparison:
        following = tuple(islice(mine, after)), tuple(islice(theirs, after))
        parted = _difference(wanted, found, here, before)
        # The side whose next event comes later is ahead of the other.
        ahead = tuple(() if one is None or one[:3] == parted[:3] else (one,) for one in (wanted, found))
        shown = tuple((*one, *more)[:after] for one, more in zip(ahead, following, strict=True))
        return Comparison(records, last_cycle, Difference(*parted, (shown[0], shown[1]), credits))

    for found in theirs:
        wanted = next(mine, None)
        if wanted != found:
            return difference(wanted, found)
        records += 1
        last_cycle = found.cycle
        before.append(found)
        place = here.get(found.source)
        if place is None:
            place = here[found.source] = deque(maxlen=_HISTORY)
        place.append(found)
        if found.kind in _CREDITS:
            credits[found[1:4]] = found
    wanted = next(mine, None)
    if wanted is not None:
        return difference(wanted, None)
    return Comparison(records, last_cycle, None)


def _difference(
    wanted: Record | None, found: Record | None, here: dict[int, deque[Record]], before: deque[Record]
) -> tuple[int, int, int, Record | None, Record | None, tuple[Record, ...], tuple[Record, ...]]:
    """The earlier of two records that are not the same, or both if they are of one event."""
    sides = [record for record in (wanted, found) if record is not None]
    cycle, source, kind = event = min(record[:3] for record in sides)
    return (
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

    def far_end(self, source: int) -> int | None:
        """The port at the other end of a port's link; of another source, None."""
        node, port = port_of_source(source)
        if source & LINK_SOURCE or node >= len(self._nodes):
            return None
        for link in self._links:
            ends = (link.a, link.a_port), (link.b, link.b_port)
            for here, there in (ends, ends[::-1]):
                if here == (self._nodes[node], port):
                    return port_source(self._nodes.index(there[0]), there[1])
        return None

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
        row = _row(Rows.data.read(record), Rows.k.read(record), Rows.valid.read(record), LINK_WIDTHS)
        return {"CRC": Rows.crc.text(record), "last row": row}
    if layout is not RowPair:
        return {field.label: field.text(record) for field in layout.fields}
    values = [field.read(record) for field in layout.fields]
    half = len(values) // 2
    return {"row": _row(*values[:half]), "of the model": _row(*values[half:])}


def _row(data: int, k: int, valid: int, offers: int) -> str:
    """A row symbol by symbol, and what the port says beside it."""
    row = row_text(Row(data, k)) if valid else "none"
    return row if offers == LINK_WIDTHS else f"{row}, offers {LinkWidth(offers).name or 'no width'}"


def describe(record: Record, names: Names) -> str:
    """One line for a record: cycle, place, kind and fields."""
    kind = LAYOUTS[record.kind].kind.name if record.kind in LAYOUTS else record.kind
    spelt = ", ".join(f"{name} {value}" for name, value in fields(record).items())
    return f"cycle {record.cycle}  {names.place(record.source)}  {kind}  {spelt}"
