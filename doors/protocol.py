"""What the server and others say to each other: the preloaded library (doors/shim.c), and `ironband tell`."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from enum import IntEnum
from typing import Final, NamedTuple

__all__ = [
    "CONTROL_SOCKET",
    "DONE",
    "MOST_BYTES",
    "MOST_INLINE",
    "REFUSED",
    "VERSION",
    "WATCH",
    "DeviceKind",
    "Operation",
    "ProtocolError",
    "PutKind",
    "Request",
    "arrival",
    "put",
    "reply",
]

CONTROL_SOCKET: Final = "control"
"""Lines for the laboratory are taken there."""

DONE, REFUSED = b"0", b"2"
"""What the answer to one begins with."""

WATCH: Final = b"\0watch"
"""Asks there for the next records of the trace, packed; an answer without any says that there are none yet."""

VERSION: Final = 2

MOST_INLINE: Final = 1 << 16
"""Bytes that go in a message; what is longer goes in a memory file."""

MOST_BYTES: Final = 1 << 26
"""No program has more to send."""

_REQUEST: Final = struct.Struct("=IIQ")
_REPLY: Final = struct.Struct("=ii")
_ARRIVAL: Final = struct.Struct("=II")
_PUT: Final = struct.Struct("=QII")


class Operation(IntEnum):
    """What a program does."""

    OPEN = 1  # flags: the version << 16 | not to wait << 8 | DeviceKind; argument: the device's number; the host
    WRITE = 2  # flags: 1 not to wait; argument: how many bytes
    IOCTL = 3  # argument: the request's number; its bytes
    WAIT = 4  # flags: the thread; argument: nanoseconds, after which there is a reply
    MAP = 5  # argument: the offset; how many bytes, 8 bytes; with the reply goes a memory file
    WHICH = 6  # the result: DeviceKind << 16 | the device's number


class DeviceKind(IntEnum):
    """The devices that there are."""

    UMAD = 0
    ISSM = 1
    UVERBS = 2
    RDMA_CM = 3


class PutKind(IntEnum):
    """What a part of the reply to WRITE does."""

    BYTES = 0
    DESCRIPTOR = 1  # the number of the descriptor passed goes to the address
    TAKEN = 2  # the first of what has arrived to be read is taken away


class ProtocolError(Exception):
    """What a client sent is no request."""


class Request(NamedTuple):
    """A request of a program."""

    operation: Operation
    flags: int
    argument: int
    data: bytes

    @classmethod
    def of(cls, message: bytes, memory: int | None) -> Request:
        """From a message, and a memory file's descriptor if its bytes are there.

        Raises:
            ProtocolError: it is none.
        """
        if len(message) < _REQUEST.size:
            raise ProtocolError(f"{len(message)} bytes: expected at least {_REQUEST.size}")
        code, flags, argument = _REQUEST.unpack_from(message)
        data = message[_REQUEST.size :]
        try:
            operation = Operation(code)
        except ValueError:
            raise ProtocolError(f"operation {code}: expected 1..{max(Operation)}") from None
        if memory is not None:
            if argument > MOST_BYTES:
                raise ProtocolError(f"{argument} bytes: expected at most {MOST_BYTES}")
            with suppress(OSError):
                data = os.pread(memory, argument, 0)
        return cls(operation, flags, argument, data)


def reply(error: int, result: int = 0, data: bytes = b"") -> bytes:
    """The reply to a request: an error's number or 0, what the call returns, and bytes that it fills in."""
    return _REPLY.pack(error, result) + data


def put(address: int, data: bytes, kind: PutKind) -> bytes:
    """A part of the reply to WRITE: for an address of the program's, bytes or what else there is."""
    return _PUT.pack(address, len(data), kind) + data


def arrival(total: int, least: int) -> bytes:
    """What precedes bytes to be read: how many there are, and for how many a read must have room."""
    return _ARRIVAL.pack(total, least)
