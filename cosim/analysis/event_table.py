"""All events of a run, in columns: little memory for many of them, and a file that holds them."""

from __future__ import annotations

import json
import threading
import zipfile
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from cosim.analysis.event import Event
from cosim.scenario.tables import EventName
from cosim.topology.topology import Port
from toolchain.atomic_files import atomic_file, writing
from toolchain.errors import UserError

__all__ = ["EVENT_NAMES", "EventColumns", "EventTable", "EventsError", "load_events", "save_events"]

EVENT_NAMES: Final[tuple[str, ...]] = get_args(EventName)
"""Their numbers are the places in here."""

_NONE: Final = -1
_VERSION: Final = 1
_COLUMNS: Final = {
    "cycle": "q",
    "until": "q",
    "since": "q",
    "port": "i",
    "name": "b",
    "packet": "i",
    "vl": "b",
    "credits": "i",
    "buffer": "i",
    "text_end": "q",
}
"""Columns and the type codes of their numbers."""


class EventsError(UserError):
    """A file that does not hold the events of a run; the text is one line."""


@dataclass(frozen=True)
class EventColumns:
    """Events in the order of their cycles; n of them. -1 stands for none.

    Attributes:
        cycle: when, (n,) int64.
        until: of a packet sent the cycle of its last row, (n,) int64.
        since: of a packet sent the cycle from which on it waited for that, (n,) int64.
        port: the place in `ports`, (n,) int32.
        name: the place in EVENT_NAMES, (n,) int8.
        packet: the place in `packets`, (n,) int32.
        vl: (n,) int8.
        credits: blocks left to the port on the VL, (n,) int32.
        buffer: blocks in use behind the port, (n,) int32.
        text_end: where the text of each ends in `text`, (n,) int64.
        text: the texts one after another, in UTF-8.
        ports: all ports that there are events of.
        packets: `flow/sequence` of each packet, in the order in which they first appear.
    """

    cycle: NDArray[np.int64]
    until: NDArray[np.int64]
    since: NDArray[np.int64]
    port: NDArray[np.int32]
    name: NDArray[np.int8]
    packet: NDArray[np.int32]
    vl: NDArray[np.int8]
    credits: NDArray[np.int32]
    buffer: NDArray[np.int32]
    text_end: NDArray[np.int64]
    text: bytes
    ports: tuple[Port, ...]
    packets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.cycle)

    def text_of(self, event: int) -> str:
        """What happens in an event, for a reader."""
        begin = self.text_end[event - 1] if event else 0
        return self.text[begin : self.text_end[event]].decode()


class EventTable:
    """Takes events, in the order of cycles, while others may look at those that are there."""

    def __init__(self, ports: list[Port]) -> None:
        """`ports` have these numbers; those that are met besides get later ones."""
        self._columns = {name: array(code) for name, code in _COLUMNS.items()}
        self._text = bytearray()
        self._ports = {port: number for number, port in enumerate(ports)}
        self._packets: dict[str, int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._columns["text_end"])

    def add(self, event: Event) -> None:
        """Take one event."""
        with self._lock:
            self._text += event.text.encode()
            row = (
                event.cycle,
                _number(event.until),
                _number(event.since),
                self._ports.setdefault(event.place, len(self._ports)),
                EVENT_NAMES.index(event.name),
                _NONE if event.packet is None else self._packets.setdefault(event.packet, len(self._packets)),
                _number(event.vl),
                _number(event.credit_blocks),
                _number(event.buffer_blocks),
                len(self._text),
            )
            for column, value in zip(self._columns.values(), row, strict=True):
                column.append(value)

    def columns(self) -> EventColumns:
        """A copy of what there is so far."""
        with self._lock:
            arrays: dict[str, Any] = {name: np.array(column) for name, column in self._columns.items()}
            return EventColumns(
                **arrays, text=bytes(self._text), ports=tuple(self._ports), packets=tuple(self._packets)
            )


def save_events(path: Path, head: dict[str, Any], events: EventColumns) -> None:
    """Write events, and what else there is to know of their run as JSON, to a file of NumPy's.

    Raises:
        OutputError: it cannot be written.
    """
    rest = {"version": _VERSION, "head": head, "ports": events.ports, "packets": events.packets}
    arrays = {name: getattr(events, name) for name in _COLUMNS}
    arrays["text"] = np.frombuffer(events.text, np.uint8)
    arrays["rest"] = np.frombuffer(json.dumps(rest).encode(), np.uint8)
    with atomic_file(path) as temporary, writing(f"{path}"), temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load_events(path: Path) -> tuple[dict[str, Any], EventColumns]:
    """What `save_events` wrote.

    Raises:
        EventsError: it cannot be read, or was not written so.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            rest = json.loads(arrays["rest"].tobytes())
            if rest["version"] != _VERSION:
                raise EventsError(f"{path}: version {rest['version']}: expected {_VERSION}, of this Ironband")
            columns: dict[str, Any] = {
                name: arrays[name].astype(np.dtype(code), casting="equiv") for name, code in _COLUMNS.items()
            }
            text = arrays["text"].tobytes()
    except OSError as error:
        raise EventsError(f"{path}: {error.strerror or 'is no file of events'}") from None
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise EventsError(f"{path}: expected a file of `ironband run --keep`") from error
    ports = tuple(Port(node, number) for node, number in rest["ports"])
    return rest["head"], EventColumns(**columns, text=text, ports=ports, packets=tuple(rest["packets"]))


def _number(value: int | None) -> int:
    return _NONE if value is None else value
