"""`ironband synth`: area and clock of a configured switch on an FPGA."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from ironband.common import MTUS, VLS, input_errors, json_option, write_json
from toolchain.atomic_files import output_directory
from verilog.synth.device import DEVICES, SPEED_GRADES
from verilog.synth.tools import ToolFailed, ToolMissing, require
from wire.parameters import SwitchParameters

__all__ = ["synth"]

_MAX_SEED = (1 << 31) - 1


@click.command()
@click.option("--ports", type=click.IntRange(2, 64), default=8, show_default=True, help="Ports of the switch.")
@click.option("--vls", type=VLS, default="1", show_default=True, help="Data VLs.")
@click.option("--mtu", type=MTUS, default="2048", show_default=True, help="MTU in bytes.")
@click.option(
    "--buffer-blocks",
    type=click.IntRange(1, 4095),
    default=116,
    show_default=True,
    help="Buffer of each data VL of each port, in blocks of 64 bytes.",
)
@click.option("--queueing", type=click.Choice(("voq", "fifo")), default="voq", show_default=True, help="Of the switch.")
@click.option(
    "--readers",
    type=click.IntRange(1, 2),
    help="Packets that an input sends at once.  [default: 2 with voq, 1 with fifo]",
)
@click.option("--device", type=click.Choice(tuple(DEVICES)), default="LFE5U-85", show_default=True, help="The FPGA.")
@click.option(
    "--speed", type=click.Choice(SPEED_GRADES), default="8", show_default=True, help="Its speed grade; 8 is fastest."
)
@click.option(
    "--freq",
    type=click.FloatRange(1, 1000),
    default=62.5,
    show_default=True,
    metavar="MHZ",
    help="The clock to reach.",
)
@click.option("--seed", type=click.IntRange(0, _MAX_SEED), default=1, show_default=True, help="Of the placement.")
@click.option("--only-area", is_flag=True, help="Do not place and route: no clock, but much faster.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep the netlist and nextpnr's report and log in DIR.",
)
@json_option
def synth(
    ports: int,
    vls: str,
    mtu: str,
    buffer_blocks: int,
    queueing: Literal["voq", "fifo"],
    readers: int | None,
    device: str,
    speed: str,
    freq: float,
    seed: int,
    only_area: bool,
    output: Path | None,
    json_file: str | None,
) -> int:
    """Area and clock of a switch on a Lattice ECP5, by Yosys and nextpnr.

    Exit status 1 if it does not fit or is slower than --freq. Needs the extra `synth`.
    """
    try:
        parameters = SwitchParameters(
            ports=ports,
            vls=int(vls),
            mtu=int(mtu),
            buffer_blocks=buffer_blocks,
            queueing=queueing,
            readers=readers or (2 if queueing == "voq" else 1),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    with input_errors():
        if output is not None:
            output_directory(output)
        try:
            require()

            from ironband.progress import stages, text_console
            from ironband.synth_report import synth_json
            from verilog.synth.describe import describe
            from verilog.synth.place import Target
            from verilog.synth.synthesis import SynthesisOptions, synthesise

            options = SynthesisOptions(parameters, Target(device, speed, freq, seed), route=not only_area)
            console = text_console(json_file)
            with stages("synth", console) as progress:
                synthesis = synthesise(options, progress, output)
        except (ToolMissing, ToolFailed) as error:
            raise click.ClickException(str(error)) from error
        if json_file is not None:
            write_json(json_file, synth_json(synthesis))
    for line in describe(synthesis):
        console.print_line(line)
    return 0 if synthesis.held else 1
