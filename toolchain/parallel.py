"""Calls at the same time, each in a Python process of its own.

Unlike those of `multiprocessing` the processes do not run the program's main module again, which need not be made for
that, and do not outlive us.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from toolchain.process import running
from toolchain.temporary_directory import temporary_directory

__all__ = ["in_parallel"]

_Result = TypeVar("_Result")
_CALL = "call"
_RESULT = "result"
_LOG = "log"


@contextmanager
def in_parallel(
    calls: Sequence[Callable[[], _Result]], ended: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], list[_Result]]]:
    """Begin CALLS, to run beside the body of the `with` block, at whose end those that still run are ended.

    Calls, results and exceptions must be picklable; a call is a function at the top of its module or a `partial` of
    one. Who waits hears of each by `ended`, in order.

    Yields:
        A function that waits for all calls and returns their results, in order, or raises what the first one that
        failed has raised.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", __name__]
    with temporary_directory() as folder, ExitStack() as stack:
        started = []
        for number, call in enumerate(calls):
            place = folder / str(number)
            place.mkdir()
            (place / _CALL).write_bytes(pickle.dumps(call))
            process = stack.enter_context(
                running([*command, str(place)], cwd=Path.cwd(), env=environment, log=place / _LOG)
            )
            started.append((process, place))

        def results() -> list[_Result]:
            for process, _place in started:
                process.wait()
                ended()
            return [_result(place) for _process, place in started]

        try:
            yield results
        finally:
            # All are asked at once; the stack waits for each in turn.
            for process, _place in started:
                process.terminate()


def _result(place: Path) -> Any:
    try:
        raised, result = pickle.loads((place / _RESULT).read_bytes())
    except FileNotFoundError:
        raise RuntimeError(f"a process died\n{(place / _LOG).read_text(errors='replace')}") from None
    if raised:
        raise result
    return result


def _main(place: Path) -> None:
    """In the process: make the call that is in PLACE, and leave its result there."""
    signal.signal(signal.SIGTERM, _end)
    outcome: tuple[bool, object]
    try:
        outcome = (False, pickle.loads((place / _CALL).read_bytes())())
    except Exception as error:
        error.add_note(traceback.format_exc())
        outcome = (True, error)
    (place / _RESULT).write_bytes(pickle.dumps(outcome))


def _end(number: int, frame: FrameType | None) -> None:
    """Asked to end, the process ends what it has started, undisturbed."""
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    sys.exit(128 + number)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
