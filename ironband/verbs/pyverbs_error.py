"""What this API raises: pyverbs' errors, and one of its own for waiting in vain."""

from __future__ import annotations

import errno
import os

__all__ = ["NothingComesError", "PyverbsError", "PyverbsRDMAError", "PyverbsUserError"]

_NONE = -1


class PyverbsError(Exception):
    """Any error of this API; the text is one line."""

    def __init__(self, msg: str, error_code: int = _NONE) -> None:
        super().__init__(msg if error_code == _NONE else f"{msg}. Errno: {error_code}, {os.strerror(error_code)}")


class PyverbsRDMAError(PyverbsError):
    """The adapter refuses what was asked; `error_code` is what a kernel would say."""

    def __init__(self, msg: str, error_code: int = _NONE) -> None:
        super().__init__(msg, error_code)
        self._error_code = error_code

    @property
    def error_code(self) -> int:
        """An errno, or -1."""
        return self._error_code


class PyverbsUserError(PyverbsError):
    """What was asked makes no sense, whatever the adapter."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg)


class NothingComesError(PyverbsRDMAError, TimeoutError):
    """What was waited for has not come within the cycles given, or cannot come any more."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg, errno.ETIMEDOUT)
