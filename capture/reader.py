"""Reads captures, ours and other people's, in memory that does not grow with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from capture.chunk import MOST_HEADER_BYTES, Chunk
from capture.erf_file import ErfFile, looks_like_erf
from capture.link_types import Damage, Packets, erf_packets, plain_packets
from capture.pcap_file import PCAP_MAGICS, PcapFile
from capture.pcapng_file import PCAPNG_MAGIC, PcapngFile
from capture.records import ERF, INFINIBAND, CaptureError, Integers, Records, RecordsFile

__all__ = ["STDIN", "CaptureReader", "capture_reader"]

STDIN: Final = "-"
_STDIN_HANDLE: Final = 0
_STRETCH_BYTES: Final = 1 << 21
_PORTS: Final = 4
_BEGINNING_BYTES: Final = 16
_TAIL: Final = bytes(MOST_HEADER_BYTES)
_LINK_TYPES: Final = {0: "null", 1: "Ethernet", 113: "Linux cooked", 242: "IP over InfiniBand, without LRH"}
_ALLOWED: Final = f"allowed {ERF} (ERF) and {INFINIBAND} (InfiniBand); RoCE, in Ethernet frames, is not read"
_NOTHING: Final = np.zeros(0, np.int64)
_PORT_NAMES: Final = "ABCD"


class CaptureReader:
    """Gives the packets of a capture, as they stand there.

    Attributes:
        directions: what packets' directions are called, as far as they have been seen: the file's name of the
            interface if it has one, else the letter that Wireshark gives to an ERF record's interface.
        speeds: of the links of the same directions in bits per second, 0 where the file does not say.
        left_out: how many records were no InfiniBand packets.
    """

    def __init__(self, handle: int, place: str) -> None:
        """Reads the beginning.

        Raises:
            CaptureError: it is that of no capture.
        """
        self.directions: list[str] = []
        self.speeds: list[int] = []
        self.left_out = 0
        self._handle = handle
        self._place = place
        self._numbers: dict[tuple[str | int, int], int] = {}
        self._table = np.zeros(0, np.int64)
        self._found = 0
        self._used = 0
        """Bytes of the file before those that are pending."""
        self._pending = b""
        while len(self._pending) < _BEGINNING_BYTES and (more := self._read()):
            self._pending += more
        self._file = self._kind()

    def _read(self) -> bytes:
        try:
            return os.read(self._handle, _STRETCH_BYTES)
        except OSError as error:
            raise CaptureError(f"{self._place}: cannot be read: {error.strerror}") from None

    def _kind(self) -> RecordsFile:
        beginning = self._pending[:_BEGINNING_BYTES]
        if beginning[:4] == PCAPNG_MAGIC:
            return PcapngFile()
        if beginning[:4] in PCAP_MAGICS:
            return PcapFile()
        if looks_like_erf(beginning) or (not beginning and self._place.endswith(".erf")):
            return ErfFile()
        shown = f"it begins with {beginning[:4].hex(' ')}" if beginning else "it is empty"
        raise CaptureError(f"{self._place}: no capture: {shown}, expected a pcapng or pcap file, or ERF records")

    def chunks(self) -> Iterator[Chunk]:
        """All packets, some thousands at a time; from a pipe, what is there.

        Raises:
            CaptureError: the file is damaged, cut off or no capture of InfiniBand; what comes before that is given.
        """
        more = True
        while more:
            yield from self._cut_up()
            read = self._read()
            self._pending += read
            more = bool(read)
        if self._pending:
            raise self._damaged(0, f"the file ends {len(self._pending)} bytes into a record")
        if self.left_out and not self._found:
            raise CaptureError(f"{self._place}: no InfiniBand packet among {self.left_out} records")

    def _cut_up(self) -> Iterator[Chunk]:
        """All that can be told of what was read."""
        data = np.frombuffer(self._pending + _TAIL, np.uint8)
        stretch = memoryview(self._pending)
        at, consumed = 0, 1
        while consumed and at < len(stretch):
            records, consumed, damage = self._file.cut(stretch[at:])
            chunk, wrong = self._chunk(data, records._replace(start=records.start + at))
            if len(chunk):
                self._found += len(chunk)
                yield chunk
            if wrong is not None:
                raise self._damaged(wrong.start, wrong.what)
            at += consumed
            if damage:
                raise self._damaged(at, damage)
        self._used += at
        self._pending = self._pending[at:]

    def _damaged(self, at: int, how: str) -> CaptureError:
        return CaptureError(f"{self._place}: byte {self._used + at}, after {self._found} packets: {how}")

    def _chunk(self, data: NDArray[np.uint8], records: Records) -> tuple[Chunk, Damage | None]:
        """The packets of some records, and what is wrong with what follows them."""
        link_types = np.array([interface.link_type for interface in self._file.interfaces], np.int64)
        kind = link_types[records.interface] if len(link_types) else records.interface
        wrong: Damage | None = None
        parts: list[Packets] = []
        for link_type in np.unique(kind).tolist():
            index = np.flatnonzero(kind == link_type)
            some = records.at(index)
            if link_type == ERF:
                packets, wrong = erf_packets(data, some)
            elif link_type == INFINIBAND:
                packets = plain_packets(some)
            elif isinstance(self._file, PcapngFile):
                continue
            else:
                name = _LINK_TYPES.get(link_type, "unknown here")
                raise CaptureError(f"{self._place}: packets of link type {link_type} ({name}), {_ALLOWED}")
            parts.append(packets._replace(record=index[packets.record]))
        columns = (np.concatenate(column) for column in zip(*parts, strict=True)) if parts else [_NOTHING] * 6
        packets = Packets(*columns)
        if len(parts) > 1:
            order = np.argsort(packets.record)
            packets = Packets(*(column[order] for column in packets))
        self.left_out += len(kind) - len(packets.record)
        direction = self._directions_of(records.interface[packets.record], packets.port)
        return Chunk(data, packets.time_ns, direction, packets.flags, packets.start, packets.length), wrong

    def _directions_of(self, interface: Integers, port: Integers) -> Integers:
        """The numbers of directions, of new ones too."""
        missing = len(self._file.interfaces) * _PORTS - len(self._table)
        self._table = np.append(self._table, np.full(missing, -1))
        key = interface * _PORTS + port
        new, first = np.unique(key[self._table[key] < 0], return_index=True)
        for one in new[np.argsort(first)].tolist():
            self._table[one] = self._new_direction(*divmod(one, _PORTS))
        result: Integers = self._table[key]
        return result

    def _new_direction(self, interface: int, port: int) -> int:
        """The number of a direction; interfaces with the same name are the same one."""
        known = self._file.interfaces[interface]
        identity = known.name or interface
        number = self._numbers.setdefault((identity, port), len(self.directions))
        if number == len(self.directions):
            single = not isinstance(self._file, PcapngFile)
            base = known.name or ("" if single else f"interface {interface}")
            others = any(what == identity and other != port for what, other in self._numbers)
            letter = _PORT_NAMES[port] if not base or others else ""
            self.directions.append(" ".join(filter(None, (base, letter))))
            self.speeds.append(known.bits_per_s)
        return number


@contextmanager
def capture_reader(place: str) -> Iterator[CaptureReader]:
    """A capture for the block to read: a file or a pipe, or `-` for standard input; what it is, its bytes say.

    Raises:
        CaptureError: it cannot be read, or is no capture.
    """
    if place == STDIN:
        yield CaptureReader(_STDIN_HANDLE, "standard input")
        return
    try:
        handle = os.open(place, os.O_RDONLY)
    except OSError as error:
        raise CaptureError(f"{place}: cannot be read: {error.strerror}") from None
    try:
        yield CaptureReader(handle, place)
    finally:
        os.close(handle)
