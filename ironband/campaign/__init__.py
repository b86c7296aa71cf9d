"""`ironband campaign`: many runs on many processors, their results in a database."""

from __future__ import annotations

from pathlib import Path

import click

from ironband.common import FILE, input_errors

__all__ = ["campaign"]


@click.command()
@click.argument("file", type=FILE)
@click.option("--workers", type=click.IntRange(1, 1_024), help="On this machine.  [default: as many as processors]")
@click.option("--scheduler", metavar="ADDRESS", help="Run on the workers of this Dask scheduler: tcp://host:8786.")
@click.option("--status", is_flag=True, help="Tell what the database has, and run nothing.")
def campaign(file: Path, workers: int | None, scheduler: str | None, status: bool) -> int:
    """Run the campaign of FILE: checks, mutants, sweeps, curves.

    Each run is a task for Dask, and what became of it a row of a SQLite database; what is there is not run again. Exit
    status 1 if a run did not pass. Needs the extra `campaign`.
    """
    if [workers is not None, scheduler is not None, status].count(True) > 1:
        raise click.UsageError("--workers, --scheduler, --status: expected one of them")
    with input_errors():
        from ironband.campaign.campaign_file import read_campaign
        from ironband.campaign.report import report_status, run_campaign

        asked = read_campaign(file)
        return report_status(asked) if status else run_campaign(asked, scheduler, workers)
