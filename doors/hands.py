"""Where lines for the laboratory come from: standard input, and a socket that other programs send them to."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from doors.descriptors import FEW_SPARE, NoRoom, check_room
from doors.lab import Lab, LabError
from doors.protocol import CONTROL_SOCKET, DONE, REFUSED, WATCH
from doors.watch import Watch

__all__ = ["Hands"]

_MOST_BYTES: Final = 1 << 12
"""Of a line."""

_TOO_LONG: Final = f"a line has more than {_MOST_BYTES} bytes, which are dropped up to its end"


class Hands:
    """Gives lines to the laboratory, and its answers to those who gave them."""

    def __init__(self, directory: Path, selector: selectors.BaseSelector, lab: Lab, watch: Watch) -> None:
        """Takes lines at DIRECTORY/control, where others look on, too."""
        self._selector = selector
        self._lab = lab
        self._watch = watch
        self._connections: set[socket.socket] = set()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        self._listener.bind(str(directory / CONTROL_SOCKET))
        self._listener.listen()
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def close(self) -> None:
        """End all connections."""
        for connection in list(self._connections):
            self._end(connection)
        self._selector.unregister(self._listener)
        self._listener.close()

    def read_input(self, descriptor: int, answer: Callable[[str], None]) -> None:
        """Take the lines of a file, too, as they come; `answer` takes what is said to them."""
        rest = bytearray()

        def take(_events: int = 0) -> bool:
            try:
                data = os.read(descriptor, _MOST_BYTES)
            except OSError:
                # A terminal that is no longer ours to read.
                return False
            was_told = len(rest) > _MOST_BYTES
            *lines, last = bytes(rest + data).split(b"\n")
            for line in (lines if data else [*lines, last])[was_told:]:
                if line.strip():
                    self._do(line, answer, answer)
            rest[:] = last[: _MOST_BYTES + 1]
            if len(rest) > _MOST_BYTES and not (was_told and not lines):
                answer(_TOO_LONG)
            return bool(data)

        def serve(events: int) -> None:
            if not take(events):
                self._selector.unregister(descriptor)

        try:
            self._selector.register(descriptor, selectors.EVENT_READ, serve)
        except PermissionError:
            # A file on a disk, all of which is there.
            while take():
                pass

    def _do(self, line: bytes, answer: Callable[[str], None], refuse: Callable[[str], None]) -> None:
        try:
            if len(line) > _MOST_BYTES:
                raise LabError(_TOO_LONG)
            self._lab.do(line.decode(errors="replace"), answer)
        except LabError as error:
            refuse(str(error))

    def _accept(self, _events: int) -> None:
        with suppress(BlockingIOError):
            connection, _address = self._listener.accept()
            connection.setblocking(False)
            try:
                check_room(connection.fileno(), FEW_SPARE)
            except NoRoom as error:
                self._send(connection, REFUSED, str(error).encode())
                connection.close()
                return
            self._connections.add(connection)
            self._selector.register(connection, selectors.EVENT_READ, partial(self._serve, connection))

    def _serve(self, connection: socket.socket, _events: int) -> None:
        try:
            line = connection.recv(_MOST_BYTES + 1)
        except OSError:
            line = b""
        if line == WATCH:
            self._send(connection, DONE, self._watch.take(connection))
        elif line:
            self._do(line, partial(self._say, connection, DONE), partial(self._say, connection, REFUSED))
        else:
            self._end(connection)

    def _say(self, connection: socket.socket, kind: bytes, text: str) -> None:
        self._send(connection, kind, text.encode())

    def _send(self, connection: socket.socket, kind: bytes, data: bytes) -> None:
        with suppress(OSError):
            connection.send(kind + data)

    def _end(self, connection: socket.socket) -> None:
        self._connections.discard(connection)
        self._watch.leave(connection)
        self._selector.unregister(connection)
        connection.close()
