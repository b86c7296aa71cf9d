"""Records of the trace in words: which place, which event, which fields."""

from __future__ import annotations

from wire.parameters import FabricParameters
from wire.symbols import Row, row_text
from wire.trace import LINK_SOURCE, WORDS, Record, link_of_source, port_of_source
from wire.trace_layout import LAYOUTS, RowPair

__all__ = ["Names", "describe", "fields"]


class Names:
    """Names of the places of a fabric's trace."""

    def __init__(self, parameters: FabricParameters) -> None:
        self._nodes = tuple(parameters.nodes)
        self._links = parameters.links

    def place(self, source: int) -> str:
        """Such as `sw0[3]` for a port, `sw0` for a node itself, `h0[1] -> sw0[3]` for a link's direction.

        A source that the fabric does not have is given as a number.
        """
        if source & LINK_SOURCE:
            index, back = link_of_source(source)
            if index >= len(self._links):
                return f"link {index}, direction {back}"
            link = self._links[index]
            ends = [f"{link.a}[{link.a_port}]", f"{link.b}[{link.b_port}]"]
            return " -> ".join(reversed(ends) if back else ends)
        node, port = port_of_source(source)
        name = self._nodes[node] if node < len(self._nodes) else f"node {node}"
        return f"{name}[{port}]" if port else name


def fields(record: Record) -> dict[str, int | str]:
    """The fields of a record by name, as `wire.trace_layout` has them; codes by their names."""
    layout = LAYOUTS.get(record.kind)
    if layout is None:
        return {name: f"{word:#010x}" for name, word in zip("abcde", record[-WORDS:], strict=True)}
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
