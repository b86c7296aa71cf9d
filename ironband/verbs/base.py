"""What all objects have in common: they end with `with` or `close`, and with what they were made of."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from ironband.verbs.pyverbs_error import PyverbsRDMAError, PyverbsUserError
from verbs.memory import MemoryFaultError
from verbs.receive_queue import QueueFullError
from verbs.regions import InUseError, ProtectionError

__all__ = ["PyverbsCM", "PyverbsObject", "inc_rkey", "refusals"]

_VARIANT: int = 0xFF


class PyverbsObject:
    """An object."""

    @property
    def logger(self) -> logging.Logger:
        """That of its class."""
        return logging.getLogger(type(self).__name__)

    def set_log_level(self, val: int) -> None:
        """Sets what is logged."""
        self.logger.setLevel(val)


class PyverbsCM(PyverbsObject):
    """An object that the adapter has, until it is closed. What was made of it is closed before, the newest first.

    Attributes:
        is_open: it has been made, and was not closed.
    """

    def __init__(self, *owners: PyverbsCM) -> None:
        """Begins to make it of its owners; `made` ends that."""
        super().__init__()
        for owner in owners:
            owner.check_open()
        self.is_open = False
        self._owners = owners
        self._owned: list[PyverbsCM] = []

    def made(self) -> None:
        """The adapter has it: from now on it can be closed, and its owners do that, too."""
        self.is_open = True
        for owner in self._owners:
            owner._owned.append(self)

    def check_open(self) -> None:
        """Raises PyverbsUserError if it has been closed."""
        if not self.is_open:
            raise PyverbsUserError(f"{type(self).__name__}: has been closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends it; nothing if that has happened.

        Raises:
            PyverbsRDMAError: the adapter still needs it.
        """
        if not self.is_open:
            return
        while self._owned:
            self._owned[-1].close()
        with refusals(f"Failed to close {type(self).__name__}"):
            self._end()
        self.is_open = False
        for owner in self._owners:
            owner._owned.remove(self)

    def move(self, before: PyverbsCM, after: PyverbsCM) -> None:
        """Is another's from now on."""
        self._owners = tuple(after if owner is before else owner for owner in self._owners)
        before._owned.remove(self)
        after._owned.append(self)

    def _end(self) -> None:
        """Takes it from the adapter."""


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Turns what the adapter raises into errors of this API, which say WHAT failed."""
    try:
        yield
    except QueueFullError as full:
        raise PyverbsRDMAError(f"{what}: {full}", errno.ENOMEM) from None
    except MemoryFaultError as fault:
        raise PyverbsRDMAError(f"{what}: {fault}", errno.EFAULT) from None
    except InUseError as used:
        raise PyverbsRDMAError(f"{what}: {used}", errno.EBUSY) from None
    except (ValueError, ProtectionError) as refused:
        raise PyverbsRDMAError(f"{what}: {refused}", errno.EINVAL) from None


def inc_rkey(rkey: int) -> int:
    """The next R_Key of a window of type 2: only its lower 8 bits are the consumer's."""
    return rkey & ~_VARIANT | rkey + 1 & _VARIANT
