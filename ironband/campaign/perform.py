"""Runs on the workers of a Dask scheduler: as many under way as there are workers, each by itself."""

from __future__ import annotations

import platform
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, Final

from distributed import Client, Future, KilledWorker, wait
from distributed.client import FuturesCancelledError
from distributed.comm.core import CommClosedError

from ironband.campaign.database import Done, Status
from ironband.campaign.runs import MutantBuild, Run
from ironband.campaign.sources import sources_digest
from toolchain.errors import UserError
from toolchain.temporary_directory import temporary_directory

__all__ = ["perform_all"]

_LOOK_SECONDS: Final = 1.0
_ONE_AT_A_TIME: Final = Lock()
"""Also on a worker with several threads: what simulates is not made for these."""


def perform_all(
    client: Client, revive: Callable[[], None], runs: Sequence[Run], sources: str
) -> Iterator[tuple[Run, Done]]:
    """What becomes of each run, as it becomes known.

    What is built for several runs is built once, before all others, and they follow as soon as it is. REVIVE is called
    now and then.

    Raises:
        UserError: the scheduler is gone.
    """
    waiting: dict[MutantBuild, list[Run]] = {}
    ready: deque[Run | MutantBuild] = deque()
    for run in runs:
        if run.build is None:
            ready.append(run)
        else:
            waiting.setdefault(run.build, []).append(run)
    ready.extendleft(waiting)
    built: dict[MutantBuild, Future[Any]] = {}
    under_way: dict[Future[Any], Run | MutantBuild] = {}
    while ready or under_way:
        revive()
        try:
            while ready and len(under_way) < max(1, len(client.nthreads())):
                one = ready.popleft()
                if isinstance(one, MutantBuild):
                    future = client.submit(_build, one, sources, pure=False)
                else:
                    made = None if one.build is None else built[one.build]
                    future = client.submit(_perform, one, sources, made, pure=False)
                    if one.build is not None and one == waiting[one.build][-1]:
                        # The scheduler keeps what is built as long as it is needed, and makes it again if it is lost.
                        del built[one.build]
                under_way[future] = one
            ended = wait(list(under_way), _LOOK_SECONDS, "FIRST_COMPLETED").done
        except TimeoutError:
            continue
        except (CommClosedError, FuturesCancelledError):
            raise UserError(
                "the scheduler is gone: expected it until all runs are done; what is done is kept"
            ) from None
        for future in ended:
            one = under_way.pop(future)
            lost = _lost(future)
            if isinstance(one, Run):
                yield one, lost or future.result()
            elif lost is None:
                built[one] = future
                ready.extendleft(reversed(waiting[one]))
            else:
                yield from ((run, lost) for run in waiting[one])


def _lost(future: Future[Any]) -> Done | None:
    """What to say of a run whose worker has given no result."""
    if future.status != "error":
        return None
    error = future.exception()
    if isinstance(error, KilledWorker):
        return Done("worker died", report="its worker died, twice")
    return Done("error", report=_told(error))


def _told(error: BaseException | None) -> str:
    """Of an error of the input or the machine what it says, of another one also where it was raised."""
    return str(error) if isinstance(error, UserError) else "".join(traceback.format_exception(error))


def _perform(run: Run, sources: str, made: Any) -> Done:
    """On a worker: a run."""
    with _ONE_AT_A_TIME:
        begun = time.monotonic()
        try:
            _require(sources)
            with temporary_directory() as work_dir:
                result = run.perform(work_dir, made)
        except Exception as error:
            return Done("error", time.monotonic() - begun, platform.node(), report=_told(error))
        status: Status = "passed" if result.passed else "failed"
        return Done(status, time.monotonic() - begun, platform.node(), result.figures, result.report)


def _build(build: MutantBuild, sources: str) -> Any:
    """On a worker: what many runs need."""
    with _ONE_AT_A_TIME:
        _require(sources)
        return build.perform()


def _require(sources: str) -> None:
    if sources_digest() != sources:
        raise UserError(f"{platform.node()}: has other sources of Ironband, {sources_digest()}: expected {sources}")
