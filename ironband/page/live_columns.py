"""Records of a fabric that is served as a table of events, however late one has come to look on.

Flow control packets say all blocks that were ever sent, modulo 4096. So credits and buffers are known from the first
one on that is seen (docs/pipeline.md, 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cosim.analysis.event_table import EVENT_NAMES, EventColumns
from cosim.topology.topology import Port
from wire.codes import VL15, PortState
from wire.flow_control import CREDIT_MODULUS, CREDIT_WINDOW
from wire.packet import WORD_BYTES, blocks_of_words
from wire.trace import Kind, LinkResult, Record, Verdict, port_source
from wire.trace_layout import RecordField, RxData, RxFcp, State, TxData, TxFcp

__all__ = ["RECORD_TYPE", "live_columns"]

RECORD_TYPE: Final = np.dtype([("cycle", "<i8"), ("source", "<u4"), ("kind", "<u4"), ("words", "<u4", 5)])
"""A record as it is packed (wire.trace)."""

_NAMES: Final = {
    Kind.STATE: "state",
    Kind.TX_DATA: "send",
    Kind.RX_DATA: "drop",
    Kind.RX_FCP: "credit",
    Kind.TX_FCP: "release",
}
_NAME_OF_KIND: Final = np.zeros(max(Kind) + 1, np.int8)
for _kind, _name in _NAMES.items():
    _NAME_OF_KIND[_kind] = EVENT_NAMES.index(_name)

_NONE: Final = -1
_FIRST_WORD: Final = Record._fields.index("a")
_VLS: Final = 16
_BLOCKS: Final = np.array([blocks_of_words(words) for words in range(1 << 16)], np.int64)

_Numbers = NDArray[np.int64]
_Known = NDArray[np.bool_]


@dataclass(frozen=True)
class _LiveColumns(EventColumns):
    """Texts are made when they are read."""

    values: _Numbers
    """What the text of an event says besides, (n,) int64."""

    def text_of(self, event: int) -> str:
        """What happens in an event, for a reader."""
        value, vl = int(self.values[event]), int(self.vl[event])
        match EVENT_NAMES[self.name[event]]:
            case "state":
                return f"becomes {PortState(value).name.title().replace('_', '')}"
            case "send":
                return f"sends {value * WORD_BYTES:,} bytes on VL {vl}"
            case "drop":
                return f"finds a packet bad: {Verdict(value).name}"
            case "credit":
                return f"has credit for {int(self.credits[event])} blocks on VL {vl}"
            case _:
                return f"buffer holds {int(self.buffer[event])} blocks"


def live_columns(head: Mapping[str, Any], records: NDArray[Any]) -> EventColumns:
    """The table of these records of RECORD_TYPE; `head` is that of the fabric (fabric_map.fabric_head)."""
    nodes = head["nodes"]
    ends = [end for link in head["links"] for end in (link["a"], link["b"])]
    records, port = _at_links(records, np.array([port_source(*end) for end in ends], np.int64))
    port_vls = np.array([nodes[node]["vls"] for node, _ in ends], np.int64)[port]
    port_blocks = np.array([nodes[node]["blocks"] for node, _ in ends], np.int64)[port]
    kind, words = records["kind"], records["words"].astype(np.int64)

    def of(field: RecordField) -> _Numbers:
        return words[:, field.word - _FIRST_WORD] >> field.lsb & field.mask

    state, sent, received = kind == Kind.STATE, kind == Kind.TX_DATA, kind == Kind.RX_DATA
    announced, credited = kind == Kind.TX_FCP, (kind == Kind.RX_FCP) & (of(RxFcp.result) == LinkResult.GOOD)
    vl = np.select(
        [state, sent, received, announced], [_NONE, of(TxData.slot), of(RxData.vl), of(TxFcp.vl)], of(RxFcp.vl)
    )
    vl[sent & (vl == port_vls)] = VL15
    fctbs = np.where(announced, of(TxFcp.fctbs), of(RxFcp.fctbs))
    fccl = np.where(announced, of(TxFcp.fccl), of(RxFcp.fccl))

    keyed = _Keyed(port * _VLS + vl)
    left = _modular(keyed, np.where(sent, _BLOCKS[of(TxData.pkt_len)], 0), announced, fctbs)
    limit = keyed.last(credited, fccl)
    credits = np.where((left >= 0) & (limit >= 0), (limit - left) % CREDIT_MODULUS, _NONE)
    credits[credits > CREDIT_WINDOW] = 0
    credits[~(sent | credited) | (vl == VL15)] = _NONE

    came = _modular(keyed, np.where(received, of(RxData.blocks), 0), credited, fctbs)
    room = (fccl - came) % CREDIT_MODULUS
    # No more than the window is announced, however much is free.
    used = np.where(room < CREDIT_WINDOW, np.maximum(0, port_blocks // port_vls - room), 0)
    known = announced & (came >= 0)
    gained = np.where(known, used - np.maximum(0, keyed.before(known, used)), 0)
    buffer = np.where(known, _Keyed(port).sums(gained), _NONE)

    bad = received & (of(RxData.verdict) != Verdict.GOOD)
    news = credited & (credits >= 0) & (credits != keyed.before(sent | credited, credits))
    shown = np.flatnonzero(state | sent | bad | news | (known & (gained != 0)))
    value = np.select([state, sent], [of(State.state), of(TxData.pkt_len)], of(RxData.verdict))
    none = np.full(len(shown), _NONE)
    return _LiveColumns(
        cycle=_begin(records, sent, of(TxData.first_cycle))[shown],
        until=np.where(sent, records["cycle"], _NONE)[shown],
        since=none,
        port=port[shown].astype(np.int32),
        name=_NAME_OF_KIND[kind[shown]],
        packet=none.astype(np.int32),
        vl=vl[shown].astype(np.int8),
        credits=credits[shown].astype(np.int32),
        buffer=buffer[shown].astype(np.int32),
        text_end=none,
        text=b"",
        ports=tuple(Port(nodes[node]["name"], number) for node, number in ends),
        packets=(),
        values=value[shown],
    )


class _Keyed:
    """Rows by a key of theirs: what is known of a row by those before it that have the same."""

    def __init__(self, keys: _Numbers) -> None:
        self._order = np.argsort(keys, kind="stable")
        ordered = keys[self._order]
        rows = np.arange(len(keys))
        is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(keys)]
        self._rows = rows
        self._first = np.maximum.accumulate(np.where(is_first, rows, 0))

    def sums(self, values: _Numbers) -> _Numbers:
        """Of each row the sum up to it."""
        total = np.cumsum(values[self._order])
        return self._in_rows(total - (total - values[self._order])[self._first])

    def last(self, known: _Known, values: _Numbers) -> _Numbers:
        """The last known value up to each row; -1 where there is none."""
        return self._last(known, values, self._rows)

    def before(self, known: _Known, values: _Numbers) -> _Numbers:
        """The same of the rows before each row."""
        return self._last(known, values, self._rows - 1)

    def _last(self, known: _Known, values: _Numbers, at: _Numbers) -> _Numbers:
        if not len(at):
            return values
        last = np.maximum.accumulate(np.where(known[self._order], self._rows, -1))[at]
        return self._in_rows(np.where((at >= self._first) & (last >= self._first), values[self._order][last], _NONE))

    def _in_rows(self, values: _Numbers) -> _Numbers:
        found = np.empty_like(values)
        found[self._order] = values
        return found


def _at_links(records: NDArray[Any], sources: _Numbers) -> tuple[NDArray[Any], _Numbers]:
    """Those of ports with links, in the order of the cycles in which they begin, and the number of each one's port."""
    order = np.argsort(sources)
    place = np.minimum(np.searchsorted(sources, records["source"], sorter=order), len(sources) - 1)
    port = order[place]
    known = sources[port] == records["source"]
    records, port = records[known], port[known]
    is_sent = records["kind"] == Kind.TX_DATA
    first = records["words"][:, TxData.first_cycle.word - _FIRST_WORD].astype(np.int64)
    in_time = np.argsort(_begin(records, is_sent, first), kind="stable")
    return records[in_time], port[in_time]


def _begin(records: NDArray[Any], sent: _Known, first: _Numbers) -> _Numbers:
    """The cycle of each; a packet that is sent has a first one, of which the low bits are known."""
    return records["cycle"] - np.where(sent, records["cycle"] - first & TxData.first_cycle.mask, 0)


def _modular(keyed: _Keyed, added: _Numbers, said: _Known, value: _Numbers) -> _Numbers:
    """A number of blocks modulo 4096, to which some are added, and which is said now and then; -1 before that."""
    total = keyed.sums(added)
    base = keyed.last(said, (value - total) % CREDIT_MODULUS)
    return np.where(base >= 0, (base + total) % CREDIT_MODULUS, _NONE)
