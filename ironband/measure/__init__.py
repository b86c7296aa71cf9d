"""`ironband measure`: the laboratory's measurements, each from captures alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from ironband.common import DIRECTORY, FILE, VLS, input_errors, json_option, sim_option

__all__ = ["measure"]

_Command = TypeVar("_Command", bound=Callable[..., Any])

_BLOCKS: Final = click.IntRange(36, 4095)


@click.group()
def measure() -> None:
    """Measure credits, times and buffers of a fabric from captures.

    The fabric is simulated, or with --from any other.
    """


def _packets(default: int, what: str) -> Callable[[_Command], _Command]:
    return click.option("--packets", type=click.IntRange(16, 1 << 20), default=default, help=what)


def _options(command: _Command) -> _Command:
    """What all measurements have."""
    for option in (
        json_option,
        click.option("--out", type=DIRECTORY, metavar="DIR", help="Where the picture goes.  [default: out/measure]"),
        click.option("--capture", "keep", type=FILE, metavar="FILE", help="Keep the capture, .pcapng."),
        click.option("--from", "given", metavar="CAPTURE|-", help="Measure in this capture; nothing is simulated."),
        sim_option,
    ):
        command = option(command)
    return command


@measure.command()
@_options
@_packets(2048, "Of the burst of packets of one block.")
@click.option("--buffer-blocks", type=_BLOCKS, default=512, help="Input buffer of the switch, which drains.")
def credits(**asked: Any) -> int:
    """Follow FCTBS and FCCL in what passes a link.

    Are all blocks counted, how does room come back, how often is it told?
    """
    with input_errors():
        from ironband.measure.credits import measure_credits

        return measure_credits(**asked)


@measure.command()
@_options
@_packets(65_536, "Of each flow; as many as the published tables have.")
@click.option(
    "--transport",
    type=click.Choice(("uc", "rc")),
    default="uc",
    help="Of the RDMA WRITE that packets are of: uc, without answers, or rc, with ACKs.",
)
def intervals(**asked: Any) -> int:
    """Time one flow, and two to one receiver, by link and by host.

    The link's times are those of the cable, the hosts' those of their own clocks.
    """
    with input_errors():
        from ironband.measure.intervals import measure_intervals

        return measure_intervals(**asked)


@measure.command()
@_options
@_packets(300, "That each of two hosts sends on each VL: 40, and four times what the buffer holds.")
@click.option("--vls", type=VLS, default=1, help="Data VLs, measured one after the other.")
@click.option("--buffer-blocks", type=_BLOCKS, default=512, help="Input buffer of each VL, which is not told.")
def buffer(**asked: Any) -> int:
    """Find how much a switch buffers, as two hosts send to one."""
    with input_errors():
        from ironband.measure.buffer import measure_buffer

        return measure_buffer(**asked)


@measure.command()
@_options
@_packets(16_384, "That each of the two hosts sends; few may leave two neighbours to choose from.")
@click.option("--tick", type=click.IntRange(1, 256), default=32, help="Of PortXmitWait in cycles, which is not told.")
@click.option("--xmit-wait", type=click.IntRange(0), help="With --from: by how much the counter has gone up.")
@click.option("--port", metavar="NAME", help="With --from: whose packets are looked at.")
def tick(**asked: Any) -> int:
    """Find the tick of PortXmitWait, from its counter and the link."""
    with input_errors():
        from ironband.measure.tick import measure_tick

        return measure_tick(**asked)


@measure.command()
@_options
@_packets(2048, "Of each flow.")
@click.option("--control", is_flag=True, help="With congestion control, and ACKs, which tell hosts of congestion.")
def congestion(**asked: Any) -> int:
    """Find rates of flows over time, and congestion: FECN and BECN."""
    with input_errors():
        from ironband.measure.congestion import measure_congestion

        return measure_congestion(**asked)
