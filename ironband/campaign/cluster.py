"""A Dask scheduler to run on: one of this machine with workers of its own, or any other by its address."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from distributed import Client

from toolchain.errors import UserError
from toolchain.process import nothing_left, running

__all__ = ["local_cluster", "scheduler_at"]

_Result = TypeVar("_Result")
_CONNECT_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05
_LOG: Final = "log"
_ADDRESS: Final = "scheduler.json"
_ONLY_HERE: Final = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
_LOUD: Final = ("distributed", "distributed.client", "distributed.gc", "tornado.application")
"""Loggers: what is of interest here is told in other words.

The last tells of a client that is interrupted before it has asked for anything, and would not ask any more.
"""

_SETTINGS: Final = {
    # A run whose worker dies is given to another one, once.
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES": "[]",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}


@contextmanager
def scheduler_at(address: str) -> Iterator[Client]:
    """A client of the scheduler at an address such as `tcp://host:8786`.

    Raises:
        UserError: there is none.
    """
    for name in _LOUD:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    host, _, port = address.rpartition("/")[2].rpartition(":")
    try:
        # A client would try again and again.
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise UserError(f"scheduler {address}: {error.strerror or error}: expected a Dask scheduler there") from None
    with client, client.as_current():
        yield client


@contextmanager
def local_cluster(workers: int, directory: Path) -> Iterator[tuple[Client, Callable[[], None]]]:
    """A scheduler and workers on this machine, which end with the block; their files are in a directory.

    Yields:
        A client, and a function that starts a worker in place of each that has died.

    Raises:
        UserError: they cannot run.
    """
    environment = os.environ | _SETTINGS | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
    # What a worker that is killed leaves behind is removed with the directory.
    environment |= {"TMPDIR": str(directory)}
    file = directory / _ADDRESS
    with nothing_left(), ExitStack() as stack:

        def start(program: str, *arguments: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", f"distributed.cli.{program}", *_ONLY_HERE, *arguments]
            return stack.enter_context(running(command, cwd=directory, env=environment, log=directory / _LOG))

        def start_worker() -> subprocess.Popen[bytes]:
            given = ["--scheduler-file", str(file), "--local-directory", str(directory)]
            return start("dask_worker", *given, "--no-nanny", "--nthreads", "1", "--memory-limit", "0")

        scheduler = start("dask_scheduler", "--port", "0", "--scheduler-file", str(file))
        team = [start_worker() for _ in range(workers)]

        def revive() -> None:
            for place, worker in enumerate(team):
                if worker.poll() is not None:
                    team[place] = start_worker()

        def waiting(ready: Callable[[], _Result], needed: Sequence[subprocess.Popen[bytes]]) -> _Result:
            while not (result := ready()):
                if all(process.poll() is not None for process in needed):
                    *_, said = ["", *(directory / _LOG).read_text(errors="replace").splitlines()]
                    raise UserError(f"a Dask cluster cannot run here: {said}")
                time.sleep(_LOOK_SECONDS)
            return result

        try:
            with scheduler_at(waiting(partial(_address, file), [scheduler])) as client:
                waiting(client.nthreads, team)
                yield client, revive
        finally:
            # All are asked at once; the stack waits for each in turn.
            for worker in team:
                worker.terminate()


def _address(file: Path) -> str:
    """What a scheduler has written to a file; empty as long as it has not."""
    with suppress(FileNotFoundError, ValueError):
        return str(json.loads(file.read_text())["address"])
    return ""
