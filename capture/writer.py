"""Writes a capture, packet by packet, for others to follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from capture.erf_record import WHOLE
from capture.formats import CaptureFormat, capture_format
from capture.wire_packet import Direction, WirePacket
from toolchain.growing_file import GrowingFile, growing_file

__all__ = ["CaptureWriter", "capture_writer"]


class CaptureWriter:
    """Takes the packets of a capture, in the order in which they stand there; Wireshark likes them by time."""

    def __init__(self, file: GrowingFile, form: CaptureFormat, keep_bytes: int) -> None:
        self._file = file
        self._keep_bytes = keep_bytes
        self._record = form.record
        self._statistics = form.statistics

    def write(self, packet: WirePacket) -> None:
        """Take a packet.

        Raises:
            OutputError: the file cannot be written.
        """
        self._file.add(self._record(packet, self._keep_bytes))

    def end_host(self, direction: int, time_ns: int, captured: int, lost: int) -> None:
        """Say how many packets a host captured and missed up to its last one, if the format has a place for it.

        Raises:
            OutputError: the file cannot be written.
        """
        self._file.add(self._statistics(direction, time_ns, captured, lost))

    def flush(self) -> None:
        """Let readers have all packets so far: before a pause, for example.

        Raises:
            OutputError: the file cannot be written.
        """
        self._file.flush()

    @property
    def reader_gone(self) -> bool:
        """The capture is a pipe that nobody reads any more: packets are dropped."""
        return self._file.reader_gone


@contextmanager
def capture_writer(place: str, directions: Sequence[Direction], keep_bytes: int = WHOLE) -> Iterator[CaptureWriter]:
    """A capture for the block to write: a file whose suffix says its format, a pipe, or `-` for standard output.

    A packet's direction is an index into DIRECTIONS. Of data packets KEEP_BYTES are kept, a multiple of 8. A file has
    the name PLACE.part until the block is left, and, however it is left, whole records.

    Raises:
        UserError: no such format, more directions than it has room for, or a place that cannot be written.
    """
    form = capture_format(place, directions)
    with growing_file(place) as file:
        file.add(form.header(directions))
        file.flush()
        yield CaptureWriter(file, form, keep_bytes)
