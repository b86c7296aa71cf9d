"""A file of records that others may read while it grows: only whole records, and a final name only for a whole file."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from toolchain.atomic_files import OutputError, is_special, output_file, writing

__all__ = ["PART", "STDOUT", "GrowingFile", "growing_file"]

STDOUT: Final = "-"
PART: Final = ".part"
"""Ends the name of a file that still grows."""

_STDOUT_HANDLE = 1
_CHUNK_BYTES = 1 << 16
_LATEST_S = 0.2
"""What is older than this is written with the next record at the latest."""


class GrowingFile:
    """Takes records one by one, and writes them in batches.

    Attributes:
        reader_gone: it is a pipe that nobody reads any more; what is added is dropped.
        failed: it could not be written, or it is a pipe that ends within a record; what is added is dropped.
    """

    def __init__(self, handle: int, place: str, *, is_pipe: bool) -> None:
        self.reader_gone = False
        self._handle = handle
        self._place = place
        self._is_pipe = is_pipe
        self._waiting = bytearray()
        self._written = 0
        self._flushed_at = time.monotonic()
        self.failed = False

    def add(self, record: bytes) -> None:
        """Take a whole record.

        Raises:
            OutputError: the file cannot be written.
        """
        self._waiting += record
        if len(self._waiting) >= _CHUNK_BYTES or time.monotonic() - self._flushed_at > _LATEST_S:
            self.flush()

    def flush(self) -> None:
        """Let readers have what was added: before a pause, for example.

        Raises:
            OutputError: the file cannot be written.
        """
        self._flushed_at = time.monotonic()
        if self.failed:
            self._waiting.clear()
        if not self._waiting:
            return
        try:
            with writing(self._place):
                self._write(bytes(self._waiting))
        except OutputError:
            self.failed = True
            raise
        except BaseException:
            # An interruption. Of a file the same bytes are written to the same place again; a pipe may have got part
            # of a record, after which nothing may follow.
            self.failed = self._is_pipe
            raise

    def _write(self, data: bytes) -> None:
        done = 0
        try:
            while done < len(data) and not self.reader_gone:
                rest = memoryview(data)[done:]
                done += (
                    os.write(self._handle, rest)
                    if self._is_pipe
                    else os.pwrite(self._handle, rest, self._written + done)
                )
        except BrokenPipeError:
            self.reader_gone = True
        self._written, self._waiting = self._written + len(data), bytearray()

    def finish(self) -> None:
        """Write what is left, and cut off what is no whole record.

        Raises:
            OutputError: the file cannot be written.
        """
        self.flush()
        if not self._is_pipe and not self.failed:
            with writing(self._place):
                os.ftruncate(self._handle, self._written)


@contextmanager
def growing_file(place: str) -> Iterator[GrowingFile]:
    """A file for the block to add records to, also for others to read meanwhile: as PLACE.part until the block is left.

    However it is left, also by an interruption, PLACE has all records that were added; only if it cannot be written
    nothing is left. A pipe, a device or `-` for standard output is written itself.

    Raises:
        OutputError: it cannot be written, or somebody else is writing it.
    """
    if place == STDOUT:
        if os.isatty(_STDOUT_HANDLE):
            raise OutputError("standard output is a terminal: give a file, or lead the output into a pipe")
        yield from _finished(GrowingFile(_STDOUT_HANDLE, "standard output", is_pipe=True))
        return
    target = output_file(Path(place)).resolve()
    if is_special(target):
        with writing(place):
            handle = os.open(target, os.O_WRONLY)
        try:
            yield from _finished(GrowingFile(handle, place, is_pipe=True))
        finally:
            os.close(handle)
        return
    part = target.with_name(target.name + PART)
    handle = _open_alone(part, place)
    file = GrowingFile(handle, place, is_pipe=False)
    try:
        try:
            yield file
        finally:
            file.finish()
            if not file.failed:
                with writing(place):
                    part.replace(target)
    finally:
        if file.failed:
            part.unlink(missing_ok=True)
        os.close(handle)


def _finished(file: GrowingFile) -> Iterator[GrowingFile]:
    try:
        yield file
    finally:
        file.finish()


def _open_alone(part: Path, place: str) -> int:
    """The file, empty, and no other process's until it is closed."""
    with writing(place):
        handle = os.open(part, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Else it has just been finished and renamed.
            alone = part.stat().st_ino == os.fstat(handle).st_ino
        except (BlockingIOError, FileNotFoundError):
            alone = False
        if not alone:
            raise OutputError(f"{place}: cannot be written: another process is writing it")
        with writing(place):
            os.ftruncate(handle, 0)
    except BaseException:
        os.close(handle)
        raise
    return handle
