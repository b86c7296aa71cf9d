"""The agent's steps, one a cycle, and its standing still (docs/management.md, section 2)."""

from collections.abc import Generator
from typing import Final

from ..kernel import DECIDE, Kernel

__all__ = ["Steps", "Work"]

Work = Generator[int, None, None]
"""Work on one packet: yields the step at which it goes on, never an earlier one."""

_DONE: Final = -1


class Steps:
    """The steps of the current work. A cycle in which the test bus has an access has none."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._work: Work | None = None
        self._step = 0
        self._stood_still = 0  # cycles, since the last step that was looked at

    def held(self) -> None:
        """The test bus has an access in the current cycle. Called before phase `DECIDE`."""
        self._stood_still += 1

    def start(self, work: Work) -> None:
        """Work whose step 0 is in the next cycle without an access."""
        self._work = work
        self._step = -1
        self._go_on()

    def _go_on(self) -> None:
        """Work until it waits for a later step."""
        assert self._work is not None
        step = next(self._work, _DONE)
        if step != _DONE:
            self._stood_still = 0
            self._kernel.at(self._kernel.now + step - self._step, DECIDE, self._reach, step)

    def _reach(self, step: int) -> None:
        """The current cycle is that of a step, unless there were accesses in between."""
        late, self._stood_still = self._stood_still, 0
        if late:
            self._kernel.at(self._kernel.now + late, DECIDE, self._reach, step)
        else:
            self._step = step
            self._go_on()
