"""The command group, and how its errors and its exit status are made."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

import click

__all__ = ["SUBCOMMANDS", "ironband", "run_command"]

_BAD_USE = 2

SUBCOMMANDS: Final = {
    "bench": "Latency, throughput, speed and memory, each beside its target.",
    "campaign": "Run the campaign of FILE: checks, mutants, sweeps, curves.",
    "check": "Random traffic in a switch or a fabric: RTL against golden model.",
    "curves": "Throughput and latency over offered load, of VOQs and of FIFOs.",
    "export": "Write a switch as Verilog, with test bench and FuseSoC core.",
    "measure": "Measure credits, times and buffers of a fabric from captures.",
    "mutate": "Break the RTL in drawn places, and count what check finds.",
    "play": "Send the packets of CAPTURE into a fabric; tell what it does.",
    "reach": "Throughput over cable length, beside the buffer that it needs.",
    "run": "Simulate SCENARIO and tell what happened.",
    "serve": "Offer the fabric of TOPOLOGY to programs that others wrote.",
    "show": "Show the packets of CAPTURE: lines, a ladder, times between.",
    "sweep": "Run SCENARIO with other values of any of its keys.",
    "synth": "Area and clock of a switch on an ECP5, by Yosys and nextpnr.",
    "tell": "Tell the server of a fabric what to do.",
    "up": "Bring up the fabric of TOPOLOGY by a Subnet Manager's SMPs alone.",
    "view": "Show a run or a fabric on a page, for a browser on this machine.",
}
"""The first sentence of each subcommand's help. A subcommand is the function of its name in the module of its name."""


class _Subcommands(click.Group):
    """Imports a subcommand when it is asked for, and not to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        command: click.Command = getattr(import_module(f"ironband.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUBCOMMANDS.items()))


@click.group(
    cls=_Subcommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
)
@click.version_option(package_name="ironband", prog_name="ironband")
def ironband() -> None:
    """An InfiniBand switch in RTL and its golden model, in simulation."""


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
