"""`ironband tell`: a line for the laboratory of a fabric that is served."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import click

from doors.protocol import CONTROL_SOCKET, DONE
from ironband.common import DIRECTORY

__all__ = ["tell"]

_MOST_BYTES = 1 << 16


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, required=True)
@click.option("--dir", "where", type=DIRECTORY, metavar="DIRECTORY", help="Which server.  [default: $IRONBAND_DIR]")
def tell(words: tuple[str, ...], where: Path | None) -> int:
    """Tell the server of a fabric what to do.

    Cut or restore a link, make errors or traffic, read counters. WORDS are, for example: cut 'SW1[1]', flow H1 H2 0.9,
    counters H2, quit.
    """
    line = " ".join(words).strip()
    if not line:
        raise click.UsageError("say what? expected for example: time, cut H1")
    directory = where or Path(os.environ.get("IRONBAND_DIR", ""))
    if directory == Path():
        raise click.UsageError("which server? IRONBAND_DIR is not set: expected what `ironband serve` has printed")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        try:
            connection.connect(str(directory / CONTROL_SOCKET))
            connection.send(line.encode())
            answer = connection.recv(_MOST_BYTES)
        except OSError:
            answer = b""
    if not answer:
        raise click.UsageError(f"{directory}: no server there answers")
    said = answer[1:].decode(errors="replace")
    if not answer.startswith(DONE):
        raise click.UsageError(said)
    click.echo(said)
    return 0
