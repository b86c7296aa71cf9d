"""Answers of any length, in segments that are acknowledged (RMPP; IBTA vol 1, 13.6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sm.mad_client import MadAddress, MadClient
from sm.rmpp import RmppSender, rmpp_mad
from sm.tasks import Future, start
from wire.mad import MAD_HEADER
from wire.rmpp import RMPP_HEADER, RmppFlags, RmppStatus, RmppType
from wire.sa import SA_HEADER_BYTES

__all__ = ["Replies"]

_RETRIES: Final = 3


@dataclass(slots=True)
class _Reply:
    """A message on its way."""

    message: bytes
    to: MadAddress
    sender: RmppSender
    heard: Future[bool] = field(default_factory=Future)
    """Resolves to True when something is heard, to False when nothing was for too long."""
    ended: bool = False


class Replies:
    """Messages on their way, by TransactionID and who they are for."""

    def __init__(self, mads: MadClient, timeout: int) -> None:
        """What is not acknowledged within `timeout` cycles is sent again, three times."""
        self._mads = mads
        self._timeout = timeout
        self._under_way: dict[tuple[int, int], _Reply] = {}

    def send(self, message: bytes, to: MadAddress) -> None:
        """Sends a MAD with any number of bytes of data; one that is on its way already is not sent twice."""
        key = MAD_HEADER["transaction_id"].read(message), to.lid
        if key not in self._under_way:
            self._under_way[key] = _Reply(message, to, RmppSender(message))
            start(self._carry(key))

    def received(self, mad: bytes, source: MadAddress) -> None:
        """Takes an acknowledgement, or the end that the other side puts to it."""
        header = RMPP_HEADER.unpack(mad)
        reply = self._under_way.get((MAD_HEADER["transaction_id"].read(mad), source.lid))
        if reply is None:
            return
        if header.rmpp_type != RmppType.ACK:
            reply.ended = True
        else:
            status = reply.sender.acknowledge(header.segment_number, header.payload_length)
            if status is not RmppStatus.NORMAL:
                self._abort(reply, status)
        reply.heard.resolve(True)

    async def _carry(self, key: tuple[int, int]) -> None:
        reply = self._under_way[key]
        segments, left = reply.sender.due(), _RETRIES
        while not (reply.ended or reply.sender.finished):
            for segment in segments:
                self._mads.send(segment, reply.to)
            reply.heard = self._mads.timer(self._timeout)
            if await reply.heard:
                segments, left = reply.sender.due(), _RETRIES
            elif left:
                segments, left = reply.sender.again(), left - 1
            else:
                self._abort(reply, RmppStatus.TOO_MANY_RETRIES)
        del self._under_way[key]

    def _abort(self, reply: _Reply, status: RmppStatus) -> None:
        head = reply.message[:SA_HEADER_BYTES]
        self._mads.send(rmpp_mad(head, RmppType.ABORT, RmppFlags.ACTIVE, 0, 0, status=status), reply.to)
        reply.ended = True
