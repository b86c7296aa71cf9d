"""The database of a campaign: a SQLite file with a row for each run, and views of them for a notebook.

One process writes it, a run at a time, each in a transaction of its own; others may read meanwhile.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ironband.campaign.runs import REACHED, Run
from toolchain.atomic_files import output_directory, writing
from toolchain.errors import UserError

__all__ = ["FINAL", "STATUSES", "Database", "Done", "Status", "opened", "read"]

Status = Literal["passed", "failed", "error", "worker died"]

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
FINAL: Final = ("passed", "failed")
"""What a run can come to. The others say why it came to nothing, and it is run again."""

_APPLICATION: Final = 0x49424E44
_VERSION: Final = 1
_BUSY_SECONDS: Final = 60.0

_TABLE: Final = """
CREATE TABLE runs (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, parameters TEXT NOT NULL, sources TEXT NOT NULL, status TEXT NOT NULL,
    seconds REAL NOT NULL, finished TEXT NOT NULL, machine TEXT NOT NULL, figures TEXT NOT NULL, report TEXT NOT NULL,
    replay TEXT NOT NULL
)"""

_VIEWS: Final[Mapping[str, tuple[str, str, str]]] = {
    "checks": (
        "check",
        "seed ports fabric vls mtu queueing cycles widths errors load sim",
        "cycles_compared records_compared sent_packets delivered_packets lost_packets under_way_packets errors_given"
        " injections_acted packets_refused",
    ),
    "mutants": ("mutate", "node count seed number", "verdict mode component cell port wire check cycle by"),
    "sweeps": (
        "sweep",
        "scenario set sim",
        "offered delivered gbit_per_s busiest_share mean_cycles p99_cycles faults",
    ),
    "points": (
        "curves",
        "ports topology size buffer_blocks cycles pattern hot hot_share burst seed queueing sim",
        "offered delivered mean_cycles p99_cycles packets keeps_up",
    ),
}
"""By name: of which kind, and which parameters and figures are columns."""

_REACHED_VIEW: Final = """
SELECT value AS way, sum(here) AS runs FROM (
    SELECT value, 1 AS here FROM runs, json_each(figures, '$.{name}_reached') WHERE sources = {sources}
    UNION ALL SELECT value, 0 FROM runs, json_each(figures, '$.{name}_not_reached') WHERE sources = {sources}
) GROUP BY value"""
"""Of the golden model's decisions, or limits, each way, or each counter; and how many checks have reached it, 0 too."""

_NEWEST: Final = "(SELECT sources FROM runs ORDER BY finished DESC, rowid DESC LIMIT 1)"

_COLUMNS: Final = {"set": "settings", "check": "found_by", "by": "difference"}
"""What would be a keyword of SQL is called otherwise."""


@dataclass(frozen=True)
class Done:
    """What became of a run, and where and in which time; figures and report as of `Result`."""

    status: Status
    seconds: float = 0.0
    machine: str = ""
    figures: Mapping[str, Any] | None = None
    report: str = ""


class Database:
    """That of a campaign, open."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def keep(self, run: Run, sources: str, done: Done) -> None:
        """Write a run's row, in place of an earlier one's.

        Raises:
            UserError: another program has the file locked, or the disk is full.
        """
        row = (
            run.key(sources),
            run.kind,
            json.dumps(run.parameters, ensure_ascii=False),
            sources,
            done.status,
            done.seconds,
            datetime.now(UTC).isoformat(timespec="seconds"),
            done.machine,
            json.dumps(done.figures or {}, ensure_ascii=False),
            done.report,
            run.replay,
        )
        with _errors(self._path):
            self._connection.execute(f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' * len(row))})", row)

    def outcomes(self, sources: str) -> dict[str, tuple[Status, str]]:
        """Status and report of each run with these sources, by its key."""
        with _errors(self._path):
            found = self._connection.execute("SELECT key, status, report FROM runs WHERE sources = ?", (sources,))
            return {key: (status, report) for key, status, report in found}

    def reached(self, sources: str) -> dict[str, tuple[int, int]]:
        """Of the golden model's `decisions`, `limits` and `counters`, how many checks have reached, and of how many."""
        with _errors(self._path):
            counts = "SELECT count(*) FILTER (WHERE runs > 0), count(*) FROM ({})"
            found = {
                name: self._connection.execute(counts.format(_reached(name, "?1")), (sources,)).fetchone()
                for name in REACHED
            }
        return {name: (here, ways) for name, (here, ways) in found.items() if ways}

    def others(self, sources: str) -> int:
        """How many runs are of other sources."""
        with _errors(self._path):
            (count,) = self._connection.execute("SELECT count(*) FROM runs WHERE sources != ?", (sources,)).fetchone()
        return int(count)


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """The database, to be written; made if there is none.

    Raises:
        UserError: it cannot be written, is of something else, or another campaign writes it.
    """
    output_directory(path.parent)
    with writing(f"database {path}"):
        # Closed last: by closing it SQLite's own locks of the file would end.
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"database {path}: another campaign writes it") from None
        with _connected(path) as connection:
            with _errors(path):
                _prepare(path, connection)
            yield Database(path, connection)
    finally:
        os.close(file)


@contextmanager
def read(path: Path) -> Iterator[Database | None]:
    """The database, to be read; None if there is none.

    Raises:
        UserError: it cannot be read, or is of something else.
    """
    if not path.exists():
        yield None
        return
    with _connected(path) as connection:
        with _errors(path):
            _require(path, connection)
        yield Database(path, connection)


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with _errors(path):
        address = f"{path.resolve().as_uri()}?mode=rw"
        connection = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    with closing(connection):
        yield connection


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    """Make the table where nothing is yet, and the views anew: those of an earlier version may have fewer columns."""
    connection.execute("BEGIN IMMEDIATE")
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    _require(path, connection)
    for name, (kind, parameters, figures) in _VIEWS.items():
        connection.execute(f"DROP VIEW IF EXISTS {name}")
        columns = [*_columns("parameters", parameters.split()), "status", "seconds"]
        columns += [*_columns("figures", figures.split()), "report", "replay", "finished", "machine", "key"]
        connection.execute(
            f"CREATE VIEW {name} AS SELECT {', '.join(columns)} FROM runs WHERE kind = '{kind}' AND sources = {_NEWEST}"
        )
    for name in REACHED:
        connection.execute(f"DROP VIEW IF EXISTS {name}")
        connection.execute(f"CREATE VIEW {name} AS {_reached(name, _NEWEST)}")
    connection.execute("COMMIT")


def _reached(name: str, sources: str) -> str:
    return _REACHED_VIEW.format(name=name, sources=sources)


def _columns(place: str, names: Sequence[str]) -> Iterator[str]:
    return (f"json_extract({place}, '$.{name}') AS {_COLUMNS.get(name, name)}" for name in names)


def _require(path: Path, connection: sqlite3.Connection) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if (application, version) != (_APPLICATION, _VERSION):
        raise UserError(f"database {path}: is of something else: expected one that a campaign wrote, or no file")


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise UserError(f"database {path}: {error}: expected one that a campaign can write, or no file") from None
