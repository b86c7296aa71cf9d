"""`ironband export`: a switch as Verilog, with all that is needed to use it."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ironband.common import FORWARDINGS, MTUS, QUEUEINGS, VLS, input_errors, json_option, switch_parameters, write_json
from toolchain.atomic_files import OutputError, writing
from verilog.export.switch_name import PARTNER, TOP, check_name
from wire.parameters import SwitchParameters

__all__ = ["check_directory", "export"]

_DEFAULTS = SwitchParameters()


@click.command()
@click.option("--ports", type=int, default=_DEFAULTS.ports, help="Ports, 2 to 64.")
@click.option("--vls", type=VLS, default=_DEFAULTS.vls, help="Data VLs.")
@click.option("--mtu", type=MTUS, default=_DEFAULTS.mtu, help="MTU in bytes.")
@click.option("--queueing", type=QUEUEINGS, default=_DEFAULTS.queueing)
@click.option("--forwarding", type=FORWARDINGS, default=_DEFAULTS.forwarding)
@click.option("--readers", type=int, help="Packets that one input can send at once, 1 or 2.  [default: 2, with fifo 1]")
@click.option(
    "--buffer-blocks",
    type=int,
    default=_DEFAULTS.buffer_blocks,
    help="Buffer for each data VL of each port, in blocks of 64 bytes.",
)
@click.option("--vl15-blocks", type=int, default=_DEFAULTS.vl15_blocks, help="Buffer for VL15 of each port.")
@click.option("--lft-size", type=int, default=_DEFAULTS.lft_size, help="LIDs in the forwarding table.")
@click.option(
    "--mft-size",
    type=int,
    default=_DEFAULTS.mft_size,
    help="Multicast LIDs in the multicast forwarding table, a multiple of 32.",
)
@click.option("--trace", is_flag=True, help="Keep the outputs with which simulations record what happens.")
@click.option(
    "-o", "--out", "directory", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Where to."
)
@click.option("--name", default=TOP, help="Of its top module, in front of all names of modules and files.")
@click.option("--force", is_flag=True, help="Write to a directory that is not empty.")
@json_option
def export(trace: bool, directory: Path, name: str, force: bool, json_file: str | None, **given: Any) -> int:
    """Write a switch as Verilog, with test bench and FuseSoC core.

    Beside the Verilog and the list of its ports there is a test bench. It needs Icarus Verilog and no Python: `make
    sim` in DIR.
    """
    parameters = switch_parameters(**given)
    started = time.monotonic()
    with input_errors():
        check_name(name)
        check_directory(directory, name, force)

        from ironband.progress import stages, text_console
        from verilog.export.package import switch_package, write_files

        console = text_console(json_file)
        with stages(f"switch of {parameters.ports} ports", console) as progress:
            package = switch_package(parameters, trace, progress, name)
        write_files(directory, package.files)
        if json_file is not None:
            write_json(
                json_file,
                {
                    "command": "export",
                    "directory": str(directory),
                    "top": name,
                    **{{"mtu": "mtu_bytes"}.get(name, name): value for name, value in asdict(parameters).items()},
                    "trace": trace,
                    "ports_of_top": [
                        {"name": port.name, "direction": port.direction, "width_bits": port.width}
                        for port in package.ports
                    ],
                    "modules": package.files[f"{name}.v"].count("\nendmodule"),
                    "files": [{"name": file, "size_bytes": len(text.encode())} for file, text in package.files.items()],
                    "elapsed_s": round(time.monotonic() - started, 3),
                },
            )
    for file, text in package.files.items():
        console.print_line(f"{directory / file!s:<44}{len(text.splitlines()):>8,} lines")
    console.print_line(f"Next: make -C {directory} sim")
    return 0


def check_directory(directory: Path, name: str, force: bool) -> None:
    """Raise OutputError unless a switch called NAME can be written to DIRECTORY.

    That is absent or empty, or has exports of other names, or there is FORCE.
    """
    if directory.exists() and not directory.is_dir():
        raise OutputError(f"{directory}: is a file, expected a directory")
    with writing(f"directory {directory}"):
        if not force and (directory / f"{name}.v").exists():
            raise OutputError(
                f"directory {directory}: has {name}.v; --name gives this switch another, --force replaces it"
            )
        there = directory.is_dir() and any(directory.iterdir())
        if not force and there and not (directory / f"{PARTNER}.v").exists():
            raise OutputError(f"directory {directory}: is not empty; --force replaces the files of an export in it")
        existing = next(place for place in (directory, *directory.absolute().parents) if place.exists())
        tempfile.TemporaryFile(dir=existing).close()
