"""The command group, and how its errors and its exit status are made."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata

import click

from ironband.bench import bench
from ironband.check import check
from ironband.curves import curves
from ironband.export import export
from ironband.run import run
from ironband.synth import synth
from ironband.up import up

__all__ = ["ironband", "run_command"]

_BAD_USE = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(metadata.version("ironband"), prog_name="ironband")
def ironband() -> None:
    """An InfiniBand switch in RTL and its golden model, in simulation."""


ironband.add_command(run)
ironband.add_command(up)
ironband.add_command(check)
ironband.add_command(bench)
ironband.add_command(curves)
ironband.add_command(synth)
ironband.add_command(export)


def run_command(arguments: Sequence[str] | None) -> int:
    """Run the group; errors of use and input become one line on standard error and status 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # Not ironband.main(), which has its own words for errors and interrupts.
        with ironband.make_context("ironband", given) as context:
            status = ironband.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.ClickException as error:
        print(f"ironband: {' '.join(error.format_message().split())}", file=sys.stderr)
        return _BAD_USE
    return int(status)
