"""What all tests share."""

import gc
import importlib
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

import verbs.adapter  # noqa: F401 - before `cosim`, which would have it compiled: tests run it as it stands

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background ignores interrupts, and so would the programs that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each of pytest-xdist's workers imports other files first, whose rewritten assertions the others find on disk.

    In a fresh clone each would else rewrite all of them, at the same time.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    number, workers = int(os.environ["PYTEST_XDIST_WORKER"][2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    folders = [folder for argument in session.config.args if (folder := Path(argument).resolve()).is_dir()]
    files = sorted({file for folder in folders for file in folder.rglob("test_*.py")})
    for file in files[number::workers]:
        # Collection tells what is wrong with it.
        with suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests come first, so that no core is left with one of them when all others are done."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """What was imported and collected lives to the end: the garbage collector need not search it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
