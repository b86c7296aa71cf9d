"""Records of the trace in words: which place, which event, which fields."""

from __future__ import annotations

from enum import IntEnum

from wire.codes import PortState
from wire.parameters import FabricParameters
from wire.stimulus import Trigger
from wire.symbols import Row, row_text
from wire.trace import LINK_SOURCE, Kind, LinkResult, Record, Verdict

__all__ = ["Names", "describe", "fields"]

_DELIMITERS = ("cut", "EGP", "EBP")


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
            index, back = (source ^ LINK_SOURCE) >> 1, source & 1
            if index >= len(self._links):
                return f"link {index}, direction {back}"
            link = self._links[index]
            ends = [f"{link.a}[{link.a_port}]", f"{link.b}[{link.b_port}]"]
            return " -> ".join(reversed(ends) if back else ends)
        node, port = source >> 8, source & 0xFF
        name = self._nodes[node] if node < len(self._nodes) else f"node {node}"
        return f"{name}[{port}]" if port else name


def fields(record: Record) -> dict[str, int | str]:
    """The fields of a record by name, as `wire.trace.Kind` lays them out; codes by their names."""
    words = record.a, record.b, record.c, record.d, record.e
    a, b, c, d, e = words
    low, high = b & 0xFFFF, b >> 16
    match record.kind:
        case Kind.RX_DATA:
            return {
                "verdict": _name(Verdict, a & 0xFF),
                "vl": a >> 8 & 0xFF,
                "delimiter": _DELIMITERS[a >> 16] if a >> 16 < len(_DELIMITERS) else a >> 16,
                "PktLen": low,
                "end row": high,
                "DLID": f"0x{c >> 16:04x}",
                "SL": c & 0xFFFF,
                "blocks": d,
            }
        case Kind.RX_FCP:
            result = _name(LinkResult, a & 0xFF)
            return {"result": result, "op": a >> 8 & 0xFF, "vl": a >> 16, "FCTBS": high, "FCCL": low}
        case Kind.STATE:
            return {"state": _name(PortState, a)}
        case Kind.SCRAP:
            return {"slot": a & 0xFFFF, "input": a >> 16, "PktLen": b}
        case Kind.TX_DATA:
            return {
                "slot": a & 0xFF,
                "marked bad": a >> 8 & 0xFF,
                "input": a >> 16,
                "PktLen": low,
                "end row": high,
                "first cycle": c,
                "fingerprint": f"0x{d:08x}",
                "LRH": f"0x{e:08x}",
            }
        case Kind.TX_FCP:
            return {"op": a & 0xFF, "vl": a >> 8, "FCTBS": high, "FCCL": low}
        case Kind.TX_DISCARD:
            return {"slot": a & 0xFFFF, "input": a >> 16, "PktLen": low, "end row": high}
        case Kind.SEND:
            return {"slot": a, "PktLen": b}
        case Kind.DELIVER:
            return {"slot": a, "PktLen": b, "first cycle": c, "fingerprint": f"0x{d:08x}"}
        case Kind.INJECT:
            return {"trigger": _name(Trigger, a & 0xFF), "row": a >> 8}
        case Kind.BUS_READ:
            return {"address": f"0x{a:06x}", "value": f"0x{b:08x}"}
        case Kind.ROW:
            return {"row": _row(a, b), "of the model": _row(c, d)}
        case _:
            return {name: f"0x{word:08x}" for name, word in zip("abcde", words, strict=True)}


def _row(data: int, flags: int) -> str:
    """A row as ROW has it, symbol by symbol, and what the port says beside it."""
    row = row_text(Row(data, flags & 0xF)) if flags & 0x10 else "none"
    return row if flags & 0x20 else f"{row}, not polling"


def describe(record: Record, names: Names) -> str:
    """One line for a record: cycle, place, kind and fields."""
    spelt = ", ".join(f"{name} {value}" for name, value in fields(record).items())
    return f"cycle {record.cycle}  {names.place(record.source)}  {_name(Kind, record.kind)}  {spelt}"


def _name(codes: type[IntEnum], code: int) -> str:
    """The name of a code, or the number of one that is not there."""
    try:
        return codes(code).name
    except ValueError:
        return str(code)
