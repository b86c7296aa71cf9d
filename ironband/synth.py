"""`ironband synth`: area and clock of a configured switch on an FPGA."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from ironband.common import (
    DIRECTORY,
    MTUS,
    PORTS,
    QUEUEINGS,
    VLS,
    NumberRange,
    input_errors,
    json_option,
    switch_parameters,
    write_json,
)
from toolchain.atomic_files import output_directory
from verilog.synth.device import DEVICES, SPEED_GRADES
from verilog.tools import NEXTPNR, YOSYS, require

__all__ = ["synth"]

_MAX_SEED = (1 << 31) - 1


@click.command()
@click.option("--ports", type=PORTS, default=8, help="Ports of the switch.")
@click.option("--vls", type=VLS, default=1, help="Data VLs.")
@click.option("--mtu", type=MTUS, default=2048, help="MTU in bytes.")
@click.option(
    "--buffer-blocks",
    type=click.IntRange(1, 4095),
    default=96,
    help="Buffer of each data VL of each port, in blocks of 64 bytes.",
)
@click.option("--queueing", type=QUEUEINGS, default="voq", help="Of the switch.")
@click.option(
    "--readers",
    type=click.IntRange(1, 2),
    help="Packets that an input sends at once.  [default: 2 with voq, 1 with fifo]",
)
@click.option("--device", type=click.Choice(tuple(DEVICES)), default="LFE5U-85", help="The FPGA.")
@click.option("--speed", type=click.Choice(SPEED_GRADES), default="8", help="Its speed grade; 8 is fastest.")
@click.option("--freq", type=NumberRange(1, 1000), default=62.5, metavar="MHZ", help="The clock to reach.")
@click.option("--seed", type=click.IntRange(0, _MAX_SEED), default=2, help="Of the placement.")
@click.option("--only-area", "until", flag_value="area", help="Do not place and route: no clock, but much faster.")
@click.option("--only-place", "until", flag_value="placement", help="Do not route: nextpnr's estimate of the clock.")
@click.option(
    "-o", "--output", type=DIRECTORY, metavar="DIR", help="Keep the netlist and nextpnr's report and log in DIR."
)
@json_option
def synth(
    device: str,
    speed: str,
    freq: float,
    seed: int,
    until: Literal["area", "placement"] | None,
    output: Path | None,
    json_file: str | None,
    **given: Any,
) -> int:
    """Area and clock of a switch on an ECP5, by Yosys and nextpnr.

    Exit status 1 if it does not fit, cannot be routed, or is slower than --freq. Needs the extra `synth`.
    """
    parameters = switch_parameters(**given)
    with input_errors():
        if output is not None:
            output_directory(output)
        require("synth", YOSYS, NEXTPNR)

        from ironband.progress import stages, text_console
        from ironband.synth_report import describe, synth_json
        from verilog.synth.place import Target
        from verilog.synth.synthesis import SynthesisOptions, synthesise

        options = SynthesisOptions(parameters, Target(device, speed, freq, seed), until or "routing")
        console = text_console(json_file)
        with stages("synth", console) as progress:
            synthesis = synthesise(options, progress, output)
        if json_file is not None:
            write_json(json_file, synth_json(synthesis))
    for line in describe(synthesis):
        console.print_line(line)
    return 0 if synthesis.held else 1
