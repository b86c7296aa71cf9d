"""What `ironband campaign` runs and says: how far it is, and what has not passed."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from ironband.campaign.campaign_file import Campaign
from ironband.campaign.database import FINAL, STATUSES, Database, Status, opened, read
from ironband.campaign.runs import Run
from ironband.campaign.sources import sources_digest
from ironband.common import work_directory
from ironband.progress import cycle_bar, text_console
from toolchain.errors import UserError

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["report_status", "run_campaign"]

_MOST_TOLD: Final = 20
_LEFT: Final = "left"

Outcomes = Mapping[str, tuple[Status, str]]
"""Status and report by the key of a run."""


def run_campaign(campaign: Campaign, scheduler: str | None, workers: int | None) -> int:
    """Run what its database does not have yet, and tell what became of all; the exit status.

    Raises:
        UserError: the database cannot be written, or there is no such scheduler.
    """
    console, sources = text_console(), sources_digest()
    with opened(campaign.database) as database:
        found = database.outcomes(sources)
        missing = [run for run in campaign.runs if found.get(run.key(sources), (_LEFT, ""))[0] not in FINAL]
        if missing:
            if find_spec("distributed") is None:
                raise UserError("campaign needs Dask: expected the extra `campaign`, pip install 'ironband[campaign]'")

            from ironband.campaign.perform import perform_all

            with cycle_bar("campaign", len(missing), console) as progress, _workers(scheduler, workers) as cluster:
                for number, (run, done) in enumerate(perform_all(*cluster, missing, sources), 1):
                    database.keep(run, sources, done)
                    progress(number)
        found = database.outcomes(sources)
        for line in _description(campaign.runs, found, sources, database):
            console.print_line(line)
    return 0 if all(found[run.key(sources)][0] == "passed" for run in campaign.runs) else 1


def report_status(campaign: Campaign) -> int:
    """Tell what the database has; the exit status.

    Raises:
        UserError: it cannot be read.
    """
    console, sources = text_console(), sources_digest()
    with read(campaign.database) as database:
        found = {} if database is None else database.outcomes(sources)
        for line in _description(campaign.runs, found, sources, database):
            console.print_line(line)
    return 0


@contextmanager
def _workers(scheduler: str | None, workers: int | None) -> Iterator[tuple[Client, Callable[[], None]]]:
    """A client, and what keeps its workers alive."""
    from ironband.campaign.cluster import local_cluster, scheduler_at

    with ExitStack() as stack:
        if scheduler is not None:
            client = stack.enter_context(scheduler_at(scheduler))
            if not client.nthreads():
                print(f"campaign: no workers at {scheduler} yet", file=sys.stderr)
            yield client, lambda: None
            return
        directory = stack.enter_context(work_directory())
        yield stack.enter_context(local_cluster(workers or os.cpu_count() or 1, directory))


def _description(runs: Sequence[Run], outcomes: Outcomes, sources: str, database: Database | None) -> Iterator[str]:
    """The lines: a table by kind, what checks have reached, and what has not passed."""
    counts: dict[str, Counter[str]] = {}
    wrong = []
    for run in runs:
        status, report = outcomes.get(run.key(sources), (_LEFT, ""))
        counts.setdefault(run.kind, Counter())[status] += 1
        if status not in ("passed", _LEFT):
            wrong.append((run, status, report))
    columns = (*STATUSES, _LEFT)
    yield f"{'':<8}{'runs':>8}{''.join(f'{name:>13}' for name in columns)}"
    for kind, found in counts.items():
        yield f"{kind:<8}{found.total():>8,}{''.join(f'{found[name]:>13,}' for name in columns)}"
    if database is not None:
        for name, (reached, ways) in database.reached(sources).items():
            of_what = "" if name == "counters" else " ways"
            yield f"{name} of the golden model: {reached:,} of {ways:,}{of_what} reached ({reached / ways:.1%})"
        if others := database.others(sources):
            yield f"of other sources the database has {others:,} more"
    for run, status, report in wrong[:_MOST_TOLD]:
        yield f"{status}: {run.replay}"
        if said := report.strip().splitlines():
            # Of a traceback the last line says what happened.
            yield f"  {said[-1 if said[0].startswith('Traceback') else 0]}"
    if len(wrong) > _MOST_TOLD:
        yield f"and {len(wrong) - _MOST_TOLD:,} more: the database has all of them"
