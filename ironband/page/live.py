"""A fabric that is served, as it is now: looks on at the server that a directory is of."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cosim.scenario.limits import SDR_CYCLE_NS
from doors.protocol import CONTROL_SOCKET, DONE, WATCH
from doors.watch import AT_ONCE
from ironband.page.live_columns import RECORD_TYPE, live_columns
from ironband.page.run_view import RunView
from ironband.page.subject import FABRIC_FILE, SubjectError
from wire.trace import Kind

__all__ = ["Live"]

_SHOWN: Final = 300_000
"""Records."""
_SECONDS: Final = 0.2
"""A server that does not answer is busy: it has more to say the next time."""
_MOST_ANSWERS: Final = 100
_MOST_BYTES: Final = 1 << 18


class Live:
    """Looks on when it is asked, and not otherwise."""

    def __init__(self, directory: Path) -> None:
        """Of a server's directory.

        Raises:
            SubjectError: no server answers there.
        """
        self._lock = Lock()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            head = json.loads((directory / FABRIC_FILE).read_bytes())
            self._socket.connect(str(directory / CONTROL_SOCKET))
        except (OSError, ValueError):
            self.close()
            raise SubjectError(f"{directory}: no server there answers") from None
        self._socket.settimeout(_SECONDS)
        self._head = head | {"symbol_time_ns": SDR_CYCLE_NS, "start": 0, "flows": [], "live": True}
        self._records = np.empty(0, RECORD_TYPE)
        self._is_asked = False
        self._shown = RunView(self._head, live_columns(self._head, self._records))

    def close(self) -> None:
        """Look on no more."""
        self._socket.close()

    def shown(self) -> RunView:
        """As it was when it was last asked for."""
        return self._shown

    def newest(self) -> RunView:
        """As it is now."""
        with self._lock:
            news: list[NDArray[Any]] = []
            while len(news) < _MOST_ANSWERS:
                news.append(np.frombuffer(self._answer(), RECORD_TYPE))
                if len(news[-1]) < AT_ONCE:
                    break
            if len(news[0]):
                records = np.concatenate([self._records, *news])
                self._records = np.concatenate([_last_states(records[:-_SHOWN]), records[-_SHOWN:]])
                moving = self._records["cycle"][self._records["kind"] != Kind.STATE]
                self._head["start"] = int(moving.min() if len(moving) else self._records["cycle"][-1])
                self._shown = RunView(self._head, live_columns(self._head, self._records))
            return self._shown

    def _answer(self) -> bytes:
        """The next records; none if there are none, or the server is busy, or gone."""
        try:
            if not self._is_asked:
                self._socket.send(WATCH)
                self._is_asked = True
            answer = self._socket.recv(_MOST_BYTES)
        except TimeoutError:
            return b""
        except OSError:
            answer = b""
        self._is_asked = False
        if not answer.startswith(DONE):
            self._head["live"] = False
            return b""
        return answer.removeprefix(DONE)


def _last_states(records: NDArray[Any]) -> NDArray[Any]:
    """Of records that are no longer shown those of the ports' states as they were in the end."""
    states = records[records["kind"] == Kind.STATE]
    _, from_end = np.unique(states["source"][::-1], return_index=True)
    last: NDArray[Any] = states[np.sort(len(states) - 1 - from_end)]
    return last
