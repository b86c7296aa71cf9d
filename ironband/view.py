"""`ironband view`: a run or a fabric, as a page in a browser."""

from __future__ import annotations

import signal
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Literal

import click

from cosim.engines.base import ENGINES, MODEL
from ironband.common import input_errors

__all__ = ["view"]

_MOST_PORT = 65535


@click.command()
@click.argument("what", metavar="RUN|SERVER|TOPOLOGY")
@click.option("--port", type=click.IntRange(0, _MOST_PORT), default=0, help="Of this machine; 0 is any that is free.")
@click.option(
    "--sim", type=click.Choice(ENGINES), default=MODEL, help="What simulates a scenario; all give the same events."
)
@click.option(
    "--bring-up",
    "by",
    type=click.Choice(("smp", "bus")),
    default="smp",
    help="What brings a scenario's fabric up: a Subnet Manager, or register writes, which take fewer cycles.",
)
def view(what: str, port: int, sim: str, by: Literal["smp", "bus"]) -> int:
    """Show a run or a fabric on a page, for a browser on this machine.

    RUN is a scenario, which is simulated first, or the directory of a run with --keep. SERVER is the directory of
    `ironband serve`, whose fabric is shown as it is now, about once a second. TOPOLOGY is a file of ibsim or
    ibnetdiscover, or the name of one that comes with Ironband. The page says where it is and stays until Ctrl-C.
    """
    with input_errors():
        from ironband.page.subject import kind_of

        kind = kind_of(what)
        from ironband.page.questions import answers_of
        from ironband.page.server import page_server
        from ironband.page.subject import read_subject

        with ExitStack() as stack:
            if kind == "served":
                from ironband.page.live import Live

                live = stack.enter_context(closing(Live(Path(what))))
                shown, answers = live.shown(), answers_of(live.shown, live.newest)
            else:
                shown = read_subject(kind, Path(what), sim, by)
                answers = answers_of(lambda: shown)
            address = stack.enter_context(page_server(answers, port))
            print(f"{shown.head['title']}: {address} (Ctrl-C ends it)", flush=True)
            try:
                while True:
                    signal.pause()
            except KeyboardInterrupt:
                return 0
