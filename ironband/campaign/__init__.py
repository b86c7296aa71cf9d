"""`ironband campaign`: many runs on many processors, their results in a database."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from ironband.common import input_errors

__all__ = ["campaign"]


_ADDRESS: Final = re.compile(r"((tcp|tls|ws|wss)://)?([^\s/:]+|\[[0-9a-fA-F:]+\]):\d{1,5}")


def _address(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    if text is not None and not (_ADDRESS.fullmatch(text) and int(text.rpartition(":")[2]) < 1 << 16):
        raise click.BadParameter(f"{text!r}: expected an address such as tcp://host:8786")
    return text


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--workers", type=click.IntRange(1, 1_024), help="On this machine.  [default: as many as processors]")
@click.option("--scheduler", metavar="ADDRESS", callback=_address, help="Run on the workers of this Dask scheduler.")
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
