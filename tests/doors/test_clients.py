"""Connections of programs, without a fabric: how many there may be, and what is told of those that are refused."""

import os
import re
import resource
import selectors
import socket
from contextlib import ExitStack

import pytest

from doors.clients import Clients
from doors.descriptors import MANY_SPARE


class Listening:
    """Connections to programs of a host, which has no port."""

    def __init__(self, folder) -> None:
        self.told: list[str] = []
        self.accepted = 0
        self._address = str(folder / "socket")
        self._selector = selectors.DefaultSelector()
        self.clients = Clients(folder / "socket", self._selector, {"H": []}, self.told.append, lambda *port: None)
        self.clients.connected = self._count

    def _count(self) -> None:
        self.accepted += 1

    def close(self) -> None:
        self.clients.close()
        self._selector.close()

    def connected(self) -> socket.socket:
        """A new connection, and what was to be done is done."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.connect(self._address)
        self.serve()
        return connection

    def serve(self) -> None:
        while ready := self._selector.select(0):
            for key, events in ready:
                key.data(events)


@pytest.fixture
def listening(tmp_path):
    made = Listening(tmp_path)
    yield made
    made.close()


def test_a_program_for_which_no_file_is_left_is_refused_and_the_next_one_is_not(listening):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.dup(0)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + MANY_SPARE + 8, limits[1]))
    try:
        with ExitStack() as held:
            while not listening.told:
                last = held.enter_context(listening.connected())
            assert last.recv(1) == b""
        before = listening.accepted
        listening.serve()
        with listening.connected():
            assert listening.accepted == before + 1
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    (line,) = listening.told
    assert re.fullmatch(r".* \(\d+\): refused: too many files are open here, expected at most \d+ \(ulimit -n\)", line)
