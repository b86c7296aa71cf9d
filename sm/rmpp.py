"""RMPP between two ports: a message sent in segments, and one put together from them (IBTA vol 1, 13.6)."""

from __future__ import annotations

from typing import Final

from wire.mad import MAD_BYTES, MAD_HEADER, RESPONSE_BIT
from wire.rmpp import (
    RMPP_END,
    RMPP_HEADER,
    RMPP_VERSION,
    SEGMENT_BYTES,
    RmppFlags,
    RmppStatus,
    RmppType,
    data_offset,
)

__all__ = ["WINDOW", "RmppReceiver", "RmppSender", "rmpp_mad"]

WINDOW: Final = 64
"""Segments that a receiver takes before it acknowledges them."""

_METHOD_AT: Final = 3


class RmppSender:
    """A message on its way out, segment by segment.

    Attributes:
        count: how many segments it has.
        acknowledged: so many of them have arrived.
    """

    def __init__(self, message: bytes) -> None:
        """MESSAGE is the MAD with all its data."""
        offset = data_offset(message[1])
        self._head, self._data = message[:offset], message[offset:]
        self._room = MAD_BYTES - offset
        self.count = max(1, -(-len(self._data) // self._room))
        self.acknowledged = 0
        self._sent = 0
        self._window = 1

    @property
    def finished(self) -> bool:
        """Whether all segments have been acknowledged."""
        return self.acknowledged == self.count

    def due(self) -> list[bytes]:
        """The segments that may be sent now and were not."""
        last = min(self._window, self.count)
        segments = [self._segment(number) for number in range(self._sent + 1, last + 1)]
        self._sent = max(self._sent, last)
        return segments

    def again(self) -> list[bytes]:
        """The segments to be sent again, none having been acknowledged in time."""
        self._sent = self.acknowledged
        return self.due()

    def acknowledge(self, segment: int, window: int) -> RmppStatus:
        """Takes an acknowledgement; what is wrong with it, if anything."""
        if segment > self._sent:
            return RmppStatus.SEGMENT_TOO_BIG
        if window < segment:
            return RmppStatus.NEW_WINDOW_TOO_SMALL
        self.acknowledged = max(self.acknowledged, segment)
        self._window = max(self._window, window)
        return RmppStatus.NORMAL

    def _segment(self, number: int) -> bytes:
        padding = self.count * self._room - len(self._data)
        flags, length = RmppFlags.ACTIVE, 0
        if number == 1:
            flags |= RmppFlags.FIRST
            length = self.count * SEGMENT_BYTES - padding
        if number == self.count:
            flags |= RmppFlags.LAST
            length = SEGMENT_BYTES - padding
        part = self._data[(number - 1) * self._room : number * self._room]
        return rmpp_mad(self._head, RmppType.DATA, flags, number, length, part)


class RmppReceiver:
    """A message that arrives segment by segment.

    Attributes:
        message: all of it, once it is complete; who has taken it may empty it.
        deadline: it is given up then; whose time that is, the user knows.
    """

    def __init__(self, deadline: int) -> None:
        self.message: bytes | None = None
        self.deadline = deadline
        self._segments: dict[int, bytes] = {}
        self._arrived = 0
        self._window = 1
        self._last = 0

    def receive(self, mad: bytes) -> bytes | None:
        """Takes a segment; the acknowledgement to be sent, if it is time for one."""
        header = RMPP_HEADER.unpack(mad)
        number = header.segment_number
        is_new = self.message is None and self._arrived < number <= self._arrived + WINDOW
        if is_new:
            self._segments[number] = mad
            if header.rmpp_flags & RmppFlags.LAST:
                self._last = number
            while self._arrived + 1 in self._segments:
                self._arrived += 1
        if self._last and self._arrived == self._last and self.message is None:
            self._put_together()
        elif is_new and self._arrived < self._window:
            return None
        self._window = max(self._window, self._arrived + WINDOW if self.message is None else self._arrived)
        head = mad[: data_offset(mad[1])]
        head = head[:_METHOD_AT] + bytes([head[_METHOD_AT] ^ RESPONSE_BIT]) + head[_METHOD_AT + 1 :]
        return rmpp_mad(head, RmppType.ACK, RmppFlags.ACTIVE, self._arrived, self._window)

    def _put_together(self) -> None:
        first, last = self._segments[1], self._segments[self._last]
        offset = data_offset(first[1])
        length = RMPP_HEADER["payload_length"].read(last)
        padding = SEGMENT_BYTES - length if 0 <= SEGMENT_BYTES - length <= MAD_BYTES - offset else 0
        rest = b"".join(self._segments[number][offset:] for number in range(2, self._last + 1))
        whole = first + rest
        self.message = whole[: len(whole) - padding]
        self._segments.clear()


def rmpp_mad(
    head: bytes,
    kind: RmppType,
    flags: int,
    number: int,
    length: int,
    data: bytes = b"",
    status: RmppStatus = RmppStatus.NORMAL,
) -> bytes:
    """A MAD with this RMPP header. HEAD is what precedes the data: of its RMPP header the response time stays."""
    header = RMPP_HEADER.pack(
        rmpp_version=RMPP_VERSION,
        rmpp_type=kind,
        resp_time=RMPP_HEADER["resp_time"].read(head),
        rmpp_flags=flags,
        rmpp_status=status,
        segment_number=number,
        payload_length=length,
    )
    made = head[: MAD_HEADER.size_bytes] + header[MAD_HEADER.size_bytes :] + head[RMPP_END:] + data
    return made.ljust(MAD_BYTES, b"\0")
