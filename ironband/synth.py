"""`ironband synth`: area and clock of a configured switch on an FPGA."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from ironband.common import STDOUT, input_errors, json_option, write_json
from ironband.console import Console
from toolchain.atomic_files import output_directory
from verilog.synth.describe import describe
from verilog.synth.device import DEVICES, SPEED_GRADES
from verilog.synth.place import Target
from verilog.synth.synthesis import Synthesis, SynthesisOptions, synthesise
from verilog.synth.tools import ToolFailed, ToolMissing
from wire.codes import MTU, mtu_bytes
from wire.parameters import SwitchParameters

__all__ = ["synth"]

_MTUS = tuple(str(mtu_bytes(code)) for code in MTU)
_MAX_SEED = (1 << 31) - 1


@click.command()
@click.option("--ports", type=click.IntRange(2, 64), default=8, show_default=True, help="Ports of the switch.")
@click.option("--vls", type=click.Choice(("1", "2", "4", "8")), default="1", show_default=True, help="Data VLs.")
@click.option("--mtu", type=click.Choice(_MTUS), default="2048", show_default=True, help="MTU in bytes.")
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
    options = SynthesisOptions(parameters, Target(device, speed, freq, seed), route=not only_area)
    console = Console(highlight=False, quiet=json_file == STDOUT, soft_wrap=True)
    with input_errors(), _tool_errors():
        if output is not None:
            output_directory(output)
        with _steps(console) as progress:
            synthesis = synthesise(options, progress, output)
        if json_file is not None:
            write_json(json_file, _json(synthesis))
    for line in describe(synthesis):
        console.print(Text(line))
    return 0 if synthesis.held else 1


@contextmanager
def _tool_errors() -> Iterator[None]:
    try:
        yield
    except (ToolMissing, ToolFailed) as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def _steps(console: Console) -> Iterator[Callable[[str], None]]:
    """The current step on a terminal, nothing in a pipe; gives a function that takes it."""
    if console.quiet or not console.is_terminal:
        console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda step: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("synth", total=None)
        yield lambda step: bar.update(task, description=f"synth: {step}")


def _json(synthesis: Synthesis) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    area, placement = synthesis.area, synthesis.placement
    parameters, target = synthesis.options.parameters, synthesis.options.target
    device = DEVICES[target.device]
    results: dict[str, Any] = {
        "command": "synth",
        "held": synthesis.held,
        "fits": synthesis.fits,
        "too_much": synthesis.too_much or None,
        "ports": parameters.ports,
        "vls": parameters.vls,
        "mtu_bytes": parameters.mtu,
        "buffer_blocks": parameters.buffer_blocks,
        "queueing": parameters.queueing,
        "readers": parameters.readers,
        "device": target.device,
        "speed_grade": int(target.speed),
        "seed": target.seed,
        "target_mhz": target.freq_mhz,
        "luts": area.luts,
        "luts_available": device.luts,
        "registers": area.registers,
        "registers_available": device.luts,
        "block_rams": area.block_rams,
        "block_rams_available": device.block_rams,
        "lut_rams": area.lut_rams,
        "lut_rams_available": device.lut_rams,
        "components": [{"name": p.name, "instances": p.instances, **asdict(p.area)} for p in synthesis.parts],
        "memories": [
            {
                "name": memory.name,
                "instances": memory.instances,
                "words": memory.depth,
                "width_bits": memory.width,
                "mapped_to": memory.mapped_to,
                "block_rams": memory.block_rams,
                "lut_rams": memory.lut_rams,
            }
            for memory in synthesis.memories
        ],
    }
    if placement is not None:
        results |= {
            "placed_luts": placement.used["TRELLIS_COMB"],
            "fmax_mhz": placement.fmax_mhz,
            "critical_path_ns": placement.path.total_ns,
            "critical_path_logic_ns": placement.path.logic_ns,
            "critical_path_routing_ns": placement.path.routing_ns,
            "critical_path": [asdict(stage) for stage in placement.path.stages],
        }
    return results
