"""Traces as files: 36 bytes a record, as `wire.trace` lays them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from wire.trace import RECORD, Record

__all__ = ["read_trace", "write_trace"]

_RECORDS_AT_ONCE = 4096


def read_trace(path: Path) -> Iterator[Record]:
    """The records of a trace file, streamed.

    Raises:
        ValueError: the file ends inside a record.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        while data := file.read(RECORD.size * _RECORDS_AT_ONCE):
            if len(data) % RECORD.size:
                raise ValueError(f"{path} ends inside a record: expected a multiple of {RECORD.size} bytes")
            yield from map(Record._make, RECORD.iter_unpack(data))


def write_trace(path: Path, records: Iterable[Record]) -> None:
    """Write records to a trace file, which takes its name only when it is whole.

    Raises:
        OSError: it cannot be written.
    """
    partial = path.with_name(f".{path.name}.part")
    try:
        with partial.open("wb") as file:
            for record in records:
                file.write(RECORD.pack(*record))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
