"""`ironband show`: the packets of a capture on a terminal."""

from __future__ import annotations

from typing import Any

import click

from ironband.common import NumberRange, input_errors, json_option
from wire.opcodes import Opcode

__all__ = ["show"]

_LID = click.IntRange(0, 0xFFFF)
_NS = click.IntRange(0, (1 << 63) - 1)


def _opcodes(context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(map(_opcode, texts))


def _opcode(text: str) -> int:
    name = text.upper().replace(" ", "_")
    if name in Opcode.__members__:
        return Opcode[name]
    try:
        number = int(text, 0)
    except ValueError:
        number = -1
    if not 0 <= number <= 0xFF:
        raise click.BadParameter(f"{text!r}: expected a name such as {Opcode.UD_SEND_ONLY.name}, or 0..0xff")
    return number


@click.command()
@click.argument("capture", metavar="CAPTURE")
@click.option(
    "--view",
    type=click.Choice(("packets", "ladder", "intervals")),
    default="packets",
    help="A line a packet; arrows between two ends; or how often which time is between two packets.",
)
@click.option("--port", "ports", multiple=True, metavar="NAME", help="Packets at this port: S[1], S, 'S[1] -> H2[1]'.")
@click.option("--lid", "lids", type=_LID, multiple=True, help="Packets from this LID or to it.")
@click.option("--opcode", "opcodes", multiple=True, metavar="NAME|N", callback=_opcodes, help="Such as RC_SEND_ONLY.")
@click.option("--kind", "kinds", type=click.Choice(("data", "link")), multiple=True, help="Data or link packets.")
@click.option("--since", "since_ns", type=_NS, metavar="NS", help="Packets that start at this time or later.")
@click.option("--until", "until_ns", type=_NS, metavar="NS", help="Packets that start before this time.")
@click.option("--bin", "bin_ns", type=click.IntRange(1, 10**9), metavar="NS", default=1000, help="Of --view intervals.")
@click.option(
    "--gbps",
    type=NumberRange(0.1, 10_000),
    default=10.0,
    help="Rate of links of which the capture does not say it; 10 is 4X at SDR. Idle times depend on it.",
)
@json_option
def show(capture: str, view: str, bin_ns: int, gbps: float, json_file: str | None, **asked: Any) -> int:
    """Show the packets of CAPTURE: lines, a ladder, times between.

    A line each is what an analyser shows. CAPTURE is an ERF, pcap or pcapng file of InfiniBand, or - for standard
    input. Of options given more than once one has to fit: --port S --port H1 --lid 3 shows what is at S or at H1, and
    from LID 3 or to it.
    """
    with input_errors():
        from capture.selection import Selection
        from ironband.show_report import report_capture

        return report_capture(capture, view, Selection(**asked), bin_ns, round(gbps * 1e9), json_file)
