"""Events that a program reads from a pipe: those of completion queues, and the asynchronous ones."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
from collections import deque
from contextlib import suppress
from typing import Final

from doors.descriptors import kept
from doors.uverbs.c_struct import CStruct

__all__ = ["EventChannel"]

_ELEMENT: Final = struct.Struct("=Q")
"""What an event begins with: what it is of, as the program calls it."""


class EventChannel:
    """A pipe, of which the program has the end to be read.

    Attributes:
        identity: by which the program's descriptor is known for this channel's.
        uses: how many completion queues tell there.
    """

    def __init__(self, layout: CStruct) -> None:
        """LAYOUT is that of an event.

        Raises:
            OSError: too many files are open.
        """
        self._layout = layout
        self._theirs, self._end = os.pipe2(os.O_CLOEXEC)
        try:
            kept(self._end)
        except OSError:
            os.close(self._theirs)
            raise
        os.set_blocking(self._end, False)
        self._unsent: deque[bytes] = deque()
        self.identity = os.fstat(self._end).st_ino
        self.uses = 0

    def close(self) -> None:
        """No more events: the program reads to the end."""
        os.close(self._end)

    def take_end(self) -> int:
        """The program's end, once: who takes it closes it here."""
        end, self._theirs = self._theirs, -1
        return end

    @property
    def is_left(self) -> bool:
        """Whether the program has closed its end."""
        poll = select.poll()
        poll.register(self._end, 0)
        return self._theirs < 0 and bool(poll.poll(0))

    def send(self, **values: int) -> None:
        """An event."""
        self._unsent.append(self._layout.pack(**values))
        self.push()

    def push(self) -> None:
        """Give the program what it has room for."""
        while self._unsent:
            try:
                os.write(self._end, self._unsent[0])
            except BlockingIOError:
                return
            except BrokenPipeError:
                self._unsent.clear()
                return
            self._unsent.popleft()

    def withdraw(self, element: int) -> int:
        """Take back the events of ELEMENT that were not read; how many those are."""
        with suppress(OSError):
            self._unsent.extendleft(reversed(self._unread()))
        kept = [event for event in self._unsent if _ELEMENT.unpack_from(event) != (element,)]
        taken = len(self._unsent) - len(kept)
        self._unsent = deque(kept)
        self.push()
        return taken

    def _unread(self) -> list[bytes]:
        """What is in the pipe, which is empty then: a pipe can be opened anew by what is open of it."""
        reader = os.open(f"/proc/self/fd/{self._end}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            waiting = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0]
            data = os.read(reader, waiting) if waiting else b""
        finally:
            os.close(reader)
        size = self._layout.size
        return [data[at : at + size] for at in range(0, len(data), size)]
