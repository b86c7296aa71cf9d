"""What an open verbs device has: its objects by handle, its rings, its channels, and the program's memory."""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar, cast

from doors.mads.umad_device import DeviceError
from doors.uverbs.adapter import UverbsAdapter
from doors.uverbs.event_channel import EventChannel
from doors.uverbs.layouts import ASYNC_EVENT_DESC, COMP_EVENT_DESC
from doors.uverbs.process_memory import ProcessMemory
from doors.uverbs.rxe_rings import Ring, RingFile

__all__ = ["Command", "Context", "Handled", "Reply", "check"]


def check(is_so: object, number: int = errno.EINVAL) -> None:
    """Refuse what is not so.

    Raises:
        DeviceError: with this number.
    """
    if not is_so:
        raise DeviceError(number)


class Command(NamedTuple):
    """A command that is being carried out.

    Attributes:
        process: whose it is: that which opened the device, or a child of it.
        driver: what follows the command's own structure: the provider's.
        room: bytes of the answer, of them `own_room` before the provider's.
    """

    process: int
    driver: bytes
    response: int
    room: int
    own_room: int


@dataclass(slots=True)
class Reply:
    """What a command answers.

    Attributes:
        driver: what follows for the provider.
        descriptor: is passed, and its number put where the answer begins.
        elsewhere: bytes that go to other addresses.
    """

    data: bytes = b""
    driver: bytes = b""
    descriptor: int | None = None
    elsewhere: tuple[tuple[int, bytes], ...] = ()


@dataclass(eq=False, slots=True)
class Handled:
    """Something that has a handle."""

    RANK: ClassVar = 1
    """When all end, those of a lower rank come first: nothing needs them then."""

    handle: int = field(default=0, kw_only=True)

    def end(self) -> None:
        """Ends it.

        Raises:
            InUseError: something else needs it.
        """
        raise NotImplementedError

    def abandon(self) -> None:
        """Ends it as its program has ended, which has tidied up nothing."""
        self.end()


_Kind = TypeVar("_Kind", bound=Handled)


class Context:
    """The state of one opening of a host's verbs device.

    Attributes:
        host: the host's adapter.
        memory: that of the process that opened it.
        events: asynchronous events, once the program has asked for the context.
    """

    def __init__(self, host: UverbsAdapter, process: int) -> None:
        """Raises OSError if the process's memory cannot be reached."""
        self.host = host
        self.process = process
        self.memory = ProcessMemory(process)
        try:
            self.rings = RingFile()
        except OSError:
            self.memory.close()
            raise
        self.events: EventChannel | None = None
        self._channels: dict[int, EventChannel] = {}
        self._objects: dict[type[Handled], dict[int, Handled]] = defaultdict(dict)
        self._handles = count(1)
        self._new_rings: list[Ring] = []
        host.listeners[self] = self.tell

    def close(self) -> None:
        """End everything."""
        del self.host.listeners[self]
        for kind in sorted(self._objects, key=lambda kind: kind.RANK):
            for handled in self._objects[kind].values():
                handled.abandon()
        self._objects.clear()
        for channel in (*self._channels.values(), *((self.events,) if self.events else ())):
            channel.close()
        self.rings.close()
        self.memory.close()

    # Objects.

    def add(self, handled: _Kind) -> _Kind:
        """Give something a handle."""
        handled.handle = next(self._handles)
        self._objects[type(handled)][handled.handle] = handled
        return handled

    def get(self, handle: int, kind: type[_Kind]) -> _Kind:
        """What has this handle.

        Raises:
            DeviceError: nothing of this kind has.
        """
        found = self.find(handle, kind)
        if found is None:
            raise DeviceError(errno.EINVAL)
        return found

    def find(self, handle: int, kind: type[_Kind]) -> _Kind | None:
        """What has this handle, if it is of this kind."""
        return cast("_Kind | None", self._objects[kind].get(handle))

    def remove(self, handled: Handled) -> None:
        """End something.

        Raises:
            InUseError: something else needs it.
        """
        handled.end()
        del self._objects[type(handled)][handled.handle]

    def objects(self, kind: type[_Kind]) -> Collection[_Kind]:
        """All of a kind."""
        return cast("Collection[_Kind]", self._objects[kind].values())

    # What programs share with us.

    def ring(self, entries: int, element: int) -> Ring:
        """A new ring, for a command that has to succeed if the ring is to stay."""
        self._new_rings.append(Ring(self.rings, entries, element))
        return self._new_rings[-1]

    def keep_rings(self, *, succeeded: bool) -> None:
        """A command is over: the rings that were made for it stay, or go."""
        while self._new_rings:
            ring = self._new_rings.pop()
            if not succeeded:
                ring.close()

    def memory_of(self, process: int) -> tuple[ProcessMemory, Callable[[], None]]:
        """The memory of a process that uses the device, and what lets go of it: a child has another than its parent.

        Raises:
            DeviceError: it cannot be reached.
        """
        if process == self.process:
            return self.memory, lambda: None
        try:
            memory = ProcessMemory(process)
        except OSError as error:
            raise DeviceError(error.errno or errno.EFAULT) from None
        return memory, memory.close

    # Events.

    def tell(self, element: int, event: int) -> None:
        """An asynchronous event."""
        if self.events is not None:
            self.events.send(element=element, event_type=event)

    def take_back(self, element: int) -> int:
        """Take back the asynchronous events of ELEMENT that were not read; how many those are."""
        return self.events.withdraw(element) if self.events else 0

    def open_events(self) -> EventChannel:
        """The pipe of asynchronous events."""
        check(self.events is None)
        self.events = EventChannel(ASYNC_EVENT_DESC)
        return self.events

    def open_channel(self) -> EventChannel:
        """A completion channel. Those that the program has closed end now, as nobody says when it does."""
        for identity, channel in list(self._channels.items()):
            if channel.is_left and not channel.uses:
                self._channels.pop(identity).close()
        channel = EventChannel(COMP_EVENT_DESC)
        self._channels[channel.identity] = channel
        return channel

    def channel(self, process: int, descriptor: int) -> EventChannel:
        """The completion channel that a process has as this descriptor.

        Raises:
            DeviceError: it is none.
        """
        try:
            identity = Path(f"/proc/{process}/fd/{descriptor}").stat().st_ino
        except OSError:
            raise DeviceError(errno.EBADF) from None
        channel = self._channels.get(identity)
        if channel is None:
            raise DeviceError(errno.EINVAL)
        return channel
