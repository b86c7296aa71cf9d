"""Builds that find nothing built before."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["cold_builds", "environment"]


@contextmanager
def cold_builds(work_dir: Path) -> Iterator[Path]:
    """For the time of the block, what is built goes to an empty folder in WORK_DIR, without a compiler cache.

    Yields:
        The folder, which goes with the block.
    """
    with (
        tempfile.TemporaryDirectory(dir=work_dir) as empty,
        environment({"IRONBAND_SIM_BUILD": empty, "CCACHE_DISABLE": "1"}),
    ):
        yield Path(empty)


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the time of the block, for us and what we start."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
