"""What all tests share."""

import gc
import signal

import pytest

import verbs.adapter  # noqa: F401 - before `cosim`, which would have it compiled: tests run it as it stands

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background ignores interrupts, and so would the programs that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_ALLOCATIONS_BETWEEN_COLLECTIONS = 100_000


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests come first, so that no core is left with one of them when all others are done."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """What was imported and collected lives to the end: the garbage collector need not search it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS_BETWEEN_COLLECTIONS)
