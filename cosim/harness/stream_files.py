"""The mail between Python and a running simulation: files that one side appends to and the other reads along.

Stimulus goes in by `Outbox`: one file of control operations, one file of packets for each stream. The players
in the simulation read only what a doorbell register says is there, so a file may grow while they read it.
Deliveries and trace records come out by files that `DeliveryReader` and `TraceReader` follow. What was read can be
forgotten, so that the files of a long run take little space, which may be memory.

Where a fabric is only a part of one, what stands in for the rest is mail as well: files of entries for its open ports,
and two that are written before the simulation starts, of the nodes' identities and of idle data.

Going in, numbers are big-endian, as `$fread` takes them; coming out, little-endian, as `%u` gives them.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import BinaryIO, Self

from rtl.fabric.ports import FabricPorts
from rtl.management.identity import IdentitySignature, identity_values
from wire.packet import WORD_BYTES
from wire.parameters import NodeIdentity
from wire.stimulus import Control, Delivery, Post
from wire.symbols import IDLE_PERIOD, idle_byte
from wire.trace import RECORD, Record

__all__ = [
    "CHUNK_WORDS",
    "CONTROL",
    "CONTROL_FILE",
    "DELIVERY_FILE",
    "DELIVERY_HEAD",
    "IDENTITY_FIELDS",
    "IDENTITY_FILE",
    "IDLE_FILE",
    "POST_HEAD",
    "TAP_FILE",
    "TRACE_FILE",
    "WIRE_ENTRY",
    "DeliveryReader",
    "Outbox",
    "TapReader",
    "TraceReader",
    "stream_file",
    "wire_file",
    "write_surroundings",
]

CONTROL_FILE = "control.bin"
DELIVERY_FILE = "deliveries.bin"
TAP_FILE = "taps.bin"
TRACE_FILE = "trace.bin"
IDENTITY_FILE = "identities.bin"
IDLE_FILE = "idle.bin"

IDENTITY_FIELDS = {name: int(member.shape) for name, member in IdentitySignature().members.items()}
"""Bits of what makes up an identity, highest first."""

CONTROL = Struct(">QHH4I")
"""A control operation: cycle, operation, target, args from the last to the first."""

POST_HEAD = Struct(">QI")
"""A packet in a stream's file: the cycle it is posted for and its words, which follow."""

WIRE_ENTRY = Struct(">QBBHI")
"""What changes on a port's wires: cycle, flags, K symbols of the row, place of the idle row in its period, data of the
row. Flags: the row is this one, else the idle one; << 1: pace from now on, no row (0), one in every cycle (1), in every
fourth (2); << 3: the widths that the port offers; << 5: the cycle in four."""

DELIVERY_HEAD = Struct("<QHHI")
"""A delivered packet: cycle of the last word, node index, slot, words, which follow in whole chunks."""

TAPPED_ROW = Struct("<QIHBx")
"""A row that enters a link: cycle, data, number of the tap, K symbols."""

_FORGET_BYTES = 1 << 20
"""Disk space is given back in pieces of this size and above."""

_LIBC = ctypes.CDLL(None)
_LIBC.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
_KEEP_SIZE = 1
_PUNCH_HOLE = 2

CHUNK_WORDS = 16
"""Words of a packet that the simulation writes at once; the last chunk's rest is not meaningful."""


def stream_file(index: int) -> str:
    """Name of the packet file of stream INDEX."""
    return f"send.{index}.bin"


def wire_file(index: int) -> str:
    """Name of the file of entries for wire INDEX: what goes into open port 0, what comes out of it, then of port 1."""
    return f"wire.{index}.bin"


def write_surroundings(folder: Path, identities: Sequence[NodeIdentity]) -> None:
    """Write what a part of a fabric reads when it starts: who its nodes are, and idle data."""
    values = [identity_values(identity) for identity in identities]
    packed = [value[name].to_bytes(bits // 8, "big") for value in values for name, bits in IDENTITY_FIELDS.items()]
    (folder / IDENTITY_FILE).write_bytes(b"".join(packed))
    (folder / IDLE_FILE).write_bytes(bytes(map(idle_byte, range(IDLE_PERIOD))))


class _ReadPart:
    """The beginning of a file that is open for writing: what was read, whose disk space is given back."""

    def __init__(self) -> None:
        self._packets = 0
        self._end = 0
        self._given_back = 0

    def advance(self, descriptor: int, packets: int) -> None:
        """So many packets were read."""
        end = self._end
        for _ in range(packets - self._packets):
            _cycle, words = POST_HEAD.unpack(os.pread(descriptor, POST_HEAD.size, end))
            end += POST_HEAD.size + words * WORD_BYTES
        self._packets = packets
        self.advance_to(descriptor, end)

    def advance_to(self, descriptor: int, end: int) -> None:
        """So many bytes were read. Those given back read as 0; a file system that cannot do that keeps them."""
        self._end = end
        if end - self._given_back >= _FORGET_BYTES:
            _LIBC.fallocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, self._given_back, end - self._given_back)
            self._given_back = end


class Outbox:
    """Appends stimulus to the files that the players read.

    Attributes:
        controls: control operations posted so far.
        packets: packets posted so far, for each stream.
        entries: entries posted so far, for each wire.

    What is posted may be counted in a doorbell only after `flush`.
    """

    def __init__(self, folder: Path, ports: FabricPorts) -> None:
        self.controls = 0
        self.packets = [0] * len(ports.streams)
        self.entries = [0] * (2 * len(ports.open) if ports.identities else 0)
        self._folder = folder
        self._index = {stream: index for index, stream in enumerate(ports.streams)}
        self._control_file = (folder / CONTROL_FILE).open("wb")
        self._stream_files: dict[int, BinaryIO] = {}
        self._wire_files = [(folder / wire_file(index)).open("w+b") for index in range(len(self.entries))]
        self._read = [_ReadPart() for _player in (*self.packets, *self.entries)]

    def control(self, control: Control) -> None:
        """Post a control operation; one with a cycle in the past acts as soon as it is read."""
        self._control_file.write(
            CONTROL.pack(control.cycle, control.operation, control.target, *reversed(control.args))
        )
        self.controls += 1

    def packet(self, post: Post) -> None:
        """Post a packet; one with a cycle in the past is valid as soon as it is read.

        Raises:
            KeyError: the node has no such slot.
        """
        index = self._index[post.node, post.slot]
        file = self._stream_files.get(index)
        if file is None:
            file = self._stream_files[index] = (self._folder / stream_file(index)).open("w+b")
        file.write(POST_HEAD.pack(post.cycle, len(post.data) // WORD_BYTES) + post.data)
        self.packets[index] += 1

    def wire(self, index: int, entries: bytes) -> None:
        """Post entries for a wire, ascending by cycle, none of which has begun."""
        self._wire_files[index].write(entries)
        self.entries[index] += len(entries) // WIRE_ENTRY.size

    @property
    def posted(self) -> list[int]:
        """What each player's file holds: packets of each stream, entries of each wire."""
        return self.packets + self.entries

    def forget(self, taken: Sequence[int]) -> None:
        """Give back the disk space of what players have read: so much of what was `posted`."""
        for index, file in self._stream_files.items():
            self._read[index].advance(file.fileno(), taken[index])
        for index, file in enumerate(self._wire_files, len(self.packets)):
            self._read[index].advance_to(file.fileno(), taken[index] * WIRE_ENTRY.size)

    def flush(self) -> None:
        """Make all that was posted readable."""
        self._control_file.flush()
        for file in (*self._stream_files.values(), *self._wire_files):
            file.flush()

    def close(self) -> None:
        """Flush and close the files."""
        self._control_file.close()
        for file in (*self._stream_files.values(), *self._wire_files):
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Reader:
    """Reads a file that grows, in whole entries."""

    def __init__(self, path: Path) -> None:
        # Space can be given back only in a file open for writing.
        self._file = path.open("r+b")
        self._rest = b""
        self._read_part = _ReadPart()

    def forget(self) -> None:
        """Give back the disk space of what was read."""
        self._read_part.advance_to(self._file.fileno(), self._file.tell())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> bytes:
        """What was left over last time and all that has come since."""
        return self._rest + self._file.read()


class DeliveryReader(_Reader):
    """Follows the deliveries of a simulation."""

    def new(self) -> list[Delivery]:
        """The packets delivered since the last call, in order of (cycle, node)."""
        data = self._read()
        found = []
        at = 0
        while at + DELIVERY_HEAD.size <= len(data):
            cycle, node, slot, count = DELIVERY_HEAD.unpack_from(data, at)
            body = at + DELIVERY_HEAD.size
            end = body + -(-count // CHUNK_WORDS) * CHUNK_WORDS * WORD_BYTES
            if end > len(data):
                break
            packet = array("I", data[body : body + count * WORD_BYTES])
            packet.byteswap()
            found.append(Delivery(cycle, node, slot, packet.tobytes()))
            at = end
        self._rest = data[at:]
        # The simulation decides the order of collectors within a cycle.
        return sorted(found, key=lambda delivery: delivery[:2])


class TraceReader(_Reader):
    """Follows the trace of a simulation."""

    def new(self) -> Iterator[Record]:
        """The records written since the last call."""
        data = self._read()
        whole = len(data) - len(data) % RECORD.size
        self._rest = data[whole:]
        return map(Record._make, RECORD.iter_unpack(memoryview(data)[:whole]))


class TapReader(_Reader):
    """Follows the rows that enter the links which are looked at."""

    def new(self) -> Iterator[tuple[int, int, int, int]]:
        """Those written since the last call, as in `TAPPED_ROW`; of one tap in the order of their cycles."""
        data = self._read()
        whole = len(data) - len(data) % TAPPED_ROW.size
        self._rest = data[whole:]
        return TAPPED_ROW.iter_unpack(memoryview(data)[:whole])
