"""The data of messages: made as it is read, and compared as it is written. Nothing of it is kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final, Protocol

from cosim.stimulus.packet import IDENTITY
from verbs.memory import MemoryFaultError
from wire.headers import GRH

__all__ = ["DATAGRAM_HEAD", "ArrivingMessages", "AtomicResults", "Content", "MessageContent", "SentMessages"]

DATAGRAM_HEAD: Final = GRH.size_bytes
"""In memory a datagram begins after the room for a GRH."""

_POOL_BYTES: Final = 1_048_573
"""A prime, so that no two packets of a message are alike, whatever their size."""
_MESSAGE_STEP: Final = 1_009 * 2_048
"""The next message begins so many bytes on: messages of up to 1,009 packets of 2 KiB differ everywhere from a thousand
after them."""
_FLOW_STEP: Final = 257 * _MESSAGE_STEP


@cache
def _pool() -> bytes:
    """Twice the bytes from which messages are cut, so that a cut need not go around."""
    once = Random("messages").randbytes(_POOL_BYTES)
    return once + once


class Content(Protocol):
    """What the messages of a flow hold."""

    def part(self, number: int, offset: int, length: int) -> bytes:
        """Of a message, `length` bytes from `offset` on."""


class MessageContent:
    """Flow and number, then bytes that follow from these."""

    def __init__(self, flow: int) -> None:
        self._flow = flow

    def part(self, number: int, offset: int, length: int) -> bytes:
        """See `Content`."""
        pool, first = _pool(), number * _MESSAGE_STEP + self._flow * _FLOW_STEP + offset
        parts, at = [], 0
        while at < length:
            begin = (first + at) % _POOL_BYTES
            size = min(length - at, _POOL_BYTES)
            parts.append(pool[begin : begin + size])
            at += size
        data = b"".join(parts)
        if offset < IDENTITY.size:
            identity = IDENTITY.pack(self._flow, number)[offset : offset + length]
            data = identity + data[len(identity) :]
        return data

    def number_in(self, data: bytes) -> int | None:
        """The number of the message that begins so; None if it is of another flow."""
        flow, number = IDENTITY.unpack_from(data)
        return number if flow == self._flow else None


class AtomicResults:
    """What the atomics of a flow bring back: a counter that each of them has found one higher."""

    def part(self, number: int, offset: int, length: int) -> bytes:
        """See `Content`."""
        return number.to_bytes(8, "little")[offset : offset + length]


class SentMessages:
    """Memory (`verbs.memory.Memory`) that holds a flow's messages one after the other, from address 0 on."""

    def __init__(self, content: Content, size: int) -> None:
        self._content = content
        self._size = size

    def read(self, address: int, length: int) -> bytes:
        """Bytes of one message."""
        number, offset = divmod(address, self._size)
        return self._content.part(number, offset, length)

    def write(self, address: int, data: bytes) -> None:
        """Nobody may."""
        raise MemoryFaultError(f"{len(data)} bytes at {address:#x}: this is only read")


class ArrivingMessages:
    """Memory that compares what is written to it: places of one message each, one after the other, from address 0 on.

    Messages that are told their place by the sender come to that of their number; others say their number themselves.

    Attributes:
        on_whole: called with each place to which all bytes of a message have come.
    """

    def __init__(self, content: Content, size: int, *, head: int = 0) -> None:
        """Messages of SIZE bytes, each with so many before it that are not looked at."""
        self._content = content
        self._head = head
        self._stride = head + size
        self._size = size
        self.on_whole: Callable[[int], None] = lambda place: None
        self._coming: dict[int, tuple[int, int, str]] = {}
        """Of each place in which something is: number of the message, bytes that are there, what is wrong with it."""

    def read(self, address: int, length: int) -> bytes:
        """Nobody may."""
        raise MemoryFaultError(f"{length} bytes at {address:#x}: this is only written")

    def write(self, address: int, data: bytes) -> None:
        """Compares them."""
        place, offset = divmod(address, self._stride)
        offset -= self._head
        if offset < 0:
            return
        number, filled, wrong = self._coming.get(place, (place, 0, ""))
        if offset == 0:
            number, filled, wrong = place, 0, ""
            if isinstance(self._content, MessageContent):
                said = self._content.number_in(data)
                number, wrong = (place, "of another flow") if said is None else (said, "")
        expected = self._content.part(number, offset, len(data))
        if not wrong and offset != filled:
            wrong = f"byte {filled} is missing"
        if not wrong and data != expected:
            at = next(index for index, pair in enumerate(zip(data, expected, strict=True)) if pair[0] != pair[1])
            wrong = f"byte {offset + at} is {data[at]:#04x}, sent was {expected[at]:#04x}"
        filled += len(data)
        self._coming[place] = number, filled, wrong
        if filled == self._size:
            self.on_whole(place)

    def forget(self, place: int) -> None:
        """What has come to a place will not be looked at."""
        self._coming.pop(place, None)

    def take(self, place: int) -> tuple[int, str]:
        """The number of the message in a place, which is free then, and what is wrong with it: nothing, or a text."""
        number, filled, wrong = self._coming.pop(place, (place, 0, ""))
        if not wrong and filled != self._size:
            wrong = f"{filled} bytes are there, expected {self._size}"
        return number, wrong
