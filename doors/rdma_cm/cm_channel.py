"""An open rdma_cm device and the threads of its program that wait for events: by its command, or by poll()."""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable

from doors.descriptors import MANY_SPARE, check_room
from doors.mads.umad_device import DeviceError
from doors.protocol import PutKind, put, reply
from doors.rdma_cm.cm_machine import CmMachine
from doors.rdma_cm.device import OpenIds, RdmaCmDevice

__all__ = ["CmChannel", "is_left"]


class CmChannel:
    """One opening. As long as there are events, something has arrived that can be read, so that poll() says so."""

    def __init__(
        self, machine: CmMachine, ids: OpenIds, announce: Callable[[], None], answer: Callable[[int, bytes], None]
    ) -> None:
        """ANNOUNCE lets something arrive at the program's end; ANSWER sends a reply to a descriptor."""
        self._device = RdmaCmDevice(machine, ids, self._heard)
        self._announce = announce
        self._answer = answer
        self._is_announced = False
        self._waiting: deque[tuple[bytes, int, int]] = deque()

    def close(self) -> list[int]:
        """The program has closed it, or is gone; the descriptors at whose other ends threads wait: they have no answer.

        A thread that waits while another one closes the device goes on waiting, as for a kernel.
        """
        self._device.close()
        return [end for _data, _process, end in self._waiting]

    def write(self, data: bytes, process: int, end: int, *, no_wait: bool) -> bytes | None:
        """Carries out a command, and gives what follows its reply; None if END stays open and is answered later.

        Raises:
            DeviceError: it fails.
            NoRoom: END cannot stay open.
        """
        answer = self._device.write(data, process, no_wait=no_wait)
        if answer is None:
            check_room(end, MANY_SPARE)
            self._waiting.append((data, process, end))
            return None
        parts = [put(one.address, one.data, PutKind.BYTES) for one in answer]
        if self._is_announced and not self._device.has_news:
            self._is_announced = False
            parts.append(put(0, b"", PutKind.TAKEN))
        return b"".join(parts)

    def _heard(self) -> None:
        """There is an event: for whom it was waited by, or for whoever looks."""
        while self._waiting and self._device.has_news:
            data, process, end = self._waiting.popleft()
            if not is_left(end):
                try:
                    parts = self.write(data, process, end, no_wait=True)
                except DeviceError as error:
                    self._answer(end, reply(error.errno))
                else:
                    self._answer(end, reply(0, len(data), parts or b""))
            os.close(end)
        if self._device.has_news and not self._is_announced:
            self._is_announced = True
            self._announce()


def is_left(end: int) -> bool:
    """Whether nobody waits at the other end any more."""
    poll = select.poll()
    poll.register(end, 0)
    return bool(poll.poll(0))
