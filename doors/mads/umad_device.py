"""An open umad device: what a program writes to it, asks of it, and finds there to read."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from doors.mads.agents import Agent, RegistrationError
from doors.mads.host_port import HostPort
from doors.mads.mad_layer import Moment, SendError
from doors.mads.user_mad import (
    HEADER_BYTES,
    SHORT_HEADER_BYTES,
    Address,
    Ioctl,
    UserMad,
    packed_registration,
    unpacked_registration,
)
from wire.mad import MAD_BYTES, MAD_HEADER

__all__ = ["DeviceError", "UmadDevice"]

_MOST_AGENTS: Final = 32
_KNOWN_FLAGS: Final = 1


class DeviceError(Exception):
    """What a system call fails with.

    Attributes:
        errno: the system's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(errno.errorcode[number])
        self.errno = number


class UmadDevice:
    """One opening of a port's umad device: the owner of its agents.

    Attributes:
        port: the port.
    """

    def __init__(self, port: HostPort, give: Callable[[bytes, int], None]) -> None:
        """GIVE takes what there is to read, and for how many bytes a read must have room."""
        self.port = port
        self._give = give
        self._agents: dict[int, Agent] = {}
        self._header_bytes = SHORT_HEADER_BYTES

    def close(self) -> int:
        """Close it; how many answers will not be read."""
        given_up = sum(map(self.port.mads.unregister, self._agents.values()))
        self._agents.clear()
        return given_up

    # What a program does.

    def write(self, data: bytes, now: Moment) -> int:
        """Send a MAD; how many bytes were taken.

        Raises:
            DeviceError: it cannot be sent.
        """
        try:
            written = UserMad.unpack(data, self._header_bytes)
        except ValueError:
            raise DeviceError(errno.EINVAL) from None
        agent = self._agents.get(written.agent)
        if agent is None:
            raise DeviceError(errno.EINVAL)
        try:
            self.port.mads.send(agent, written.address, written.mad, written.timeout_ms, written.retries, now)
        except SendError as error:
            raise DeviceError(error.errno) from None
        return len(data)

    def ioctl(self, request: int, data: bytes) -> bytes:
        """Answer a request with the bytes to be put in the place of its own.

        Raises:
            DeviceError: there is no such request, or it cannot be granted.
        """
        match request:
            case Ioctl.REGISTER_AGENT | Ioctl.REGISTER_AGENT2:
                return self._register(Ioctl(request), data)
            case Ioctl.UNREGISTER_AGENT:
                agent = self._agents.pop(int.from_bytes(data, "little"), None)
                if agent is None:
                    raise DeviceError(errno.EINVAL)
                self.port.mads.unregister(agent)
                return b""
            case Ioctl.ENABLE_PKEY:
                if self._agents:
                    raise DeviceError(errno.EINVAL)
                self._header_bytes = HEADER_BYTES
                return b""
            case _:
                raise DeviceError(errno.ENOTTY)

    def _register(self, request: Ioctl, data: bytes) -> bytes:
        try:
            wanted = unpacked_registration(request, data)
        except ValueError:
            raise DeviceError(errno.EINVAL) from None
        if wanted.flags & ~_KNOWN_FLAGS:
            raise DeviceError(errno.EINVAL)
        free = next((number for number in range(_MOST_AGENTS) if number not in self._agents), None)
        if free is None:
            raise DeviceError(errno.ENOMEM)
        try:
            self._agents[free] = self.port.mads.register(self, wanted)
        except RegistrationError as error:
            raise DeviceError(error.errno) from None
        if request is Ioctl.REGISTER_AGENT2:
            self._header_bytes = HEADER_BYTES
        return packed_registration(data, free)

    # What it owns agents for.

    def arrived(self, agent: Agent, address: Address, mad: bytes) -> None:
        """There is a MAD to read, or a message of several segments."""
        self._put(agent, 0, address, mad, min(len(mad), MAD_BYTES))

    def unanswered(self, agent: Agent, address: Address, mad: bytes) -> None:
        """There is the header of a MAD to read that has no answer."""
        head = mad[: MAD_HEADER.size_bytes]
        self._put(agent, errno.ETIMEDOUT, address, head, len(head))

    def _put(self, agent: Agent, status: int, address: Address, mad: bytes, least: int) -> None:
        number = next(number for number, one in self._agents.items() if one is agent)
        read = UserMad(number, status, 0, 0, address, mad).pack(self._header_bytes)
        self._give(read, self._header_bytes + least)
