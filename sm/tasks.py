"""Coroutines without an event loop: futures that resume who awaits them at once, and several awaited together.

There is no clock and no queue here. Whoever resolves a future runs the coroutine that awaits it, until that awaits
again; so a coroutine resumes inside the call that resolves its future, and an error it does not catch is raised there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "gather", "start"]

T = TypeVar("T")


class Future(Generic[T]):
    """A result that is not there yet, awaited by one coroutine."""

    def __init__(self) -> None:
        self.done = False
        """Whether the result is there; what comes later is ignored."""
        self.abandoned = False
        """Whether the coroutine that awaited it was cancelled: nobody wants the result now."""
        self._value: T
        self._error: Exception | None = None
        self._resume: Callable[[], None] | None = None

    def resolve(self, value: T) -> None:
        """The result is `value`."""
        if not self.done:
            self._value = value
            self._finish()

    def fail(self, error: Exception) -> None:
        """There is no result but this error, raised where it is awaited."""
        if not self.done:
            self._error = error
            self._finish()

    def _finish(self) -> None:
        self.done = True
        if self._resume is not None and not self.abandoned:
            self._resume()

    def when_done(self, resume: Callable[[], None]) -> None:
        """Calls `resume` once the result is there."""
        self._resume = resume

    def __await__(self) -> Generator[Future[T], None, T]:
        """Waits for the result."""
        if not self.done:
            yield self
        if self._error is not None:
            raise self._error
        return self._value


class _Task(Generic[T]):
    """A coroutine in progress."""

    def __init__(
        self, coroutine: Coroutine[Any, None, T], ended: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        self.value: T
        self._coroutine = coroutine
        self._ended = ended
        self._failed = failed
        self._awaited: Future[Any] | None = None

    def step(self) -> None:
        """Runs until the coroutine awaits what is not there yet, or ends."""
        try:
            self._awaited = self._coroutine.send(None)
        except StopIteration as stop:
            self._awaited = None
            self.value = stop.value
            self._ended()
        except Exception as error:  # handed on to whoever gathers
            self._awaited = None
            self._failed(error)
        else:
            self._awaited.when_done(self.step)

    def cancel(self) -> None:
        """Ends a coroutine that waits or has not begun; no effect on one that has ended."""
        if self._awaited is not None:
            self._awaited.abandoned = True
        self._coroutine.close()


def start(coroutine: Coroutine[Any, None, None]) -> None:
    """Runs a coroutine until it waits; what it awaits resumes it."""

    def failed(error: Exception) -> None:
        raise error

    _Task(coroutine, lambda: None, failed).step()


async def gather(coroutines: Iterable[Coroutine[Any, None, T]]) -> list[T]:
    """The results of coroutines that run side by side, in their order.

    If one fails the others are cancelled, and its error is raised.
    """
    every: Future[None] = Future()
    left = 0

    def ended() -> None:
        nonlocal left
        left -= 1
        if not left:
            every.resolve(None)

    tasks = [_Task(coroutine, ended, every.fail) for coroutine in coroutines]
    left = len(tasks)
    if not tasks:
        return []
    try:
        for task in tasks:
            if every.done:
                break
            task.step()
        await every
        return [task.value for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
