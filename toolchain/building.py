"""What is being built, told to those who wait for it: a build may take minutes, and is made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

__all__ = ["BuildListener", "BuildStage", "building", "told_of_builds"]


@dataclass(frozen=True)
class BuildStage:
    """How far the building of something is.

    Attributes:
        what: what is built, as it is told.
        blocks: into how many it is divided.
        seconds: about how long all of it takes where two processors have nothing else to do.
        done: blocks that are there.
    """

    what: str
    blocks: int
    seconds: float
    done: int = 0

    def __str__(self) -> str:
        seconds = max(1, round(self.seconds))
        return f"building {self.what} ({self.done} of {self.blocks} blocks, about {seconds} s, once)"


BuildListener = Callable[[BuildStage | None], None]
"""Takes how far a build is when it begins and after each block, and None when it has ended, also if it failed."""

_LISTENER: Final[ContextVar[BuildListener]] = ContextVar("listener", default=lambda stage: None)


@contextmanager
def told_of_builds(listener: BuildListener) -> Iterator[None]:
    """In this block LISTENER is told of what is built, and of nothing that was built before."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def building(what: str, blocks: int, seconds: float) -> Iterator[Callable[[], None]]:
    """Build in this block; gives a function that is called after each of the BLOCKS."""
    tell = _LISTENER.get()
    stage = BuildStage(what, blocks, seconds)
    tell(stage)

    def built() -> None:
        nonlocal stage
        stage = replace(stage, done=stage.done + 1)
        tell(stage)

    try:
        yield built
    finally:
        tell(None)
