"""All files of an exported switch, and the directory that they are written to."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from rtl.switch.switch import Switch
from toolchain.atomic_files import writing
from verilog.emit import merged_rtlil, rtlil_to_verilog
from verilog.export.bench import link_partner, test_bench
from verilog.export.documents import head_comment, ports_document
from verilog.export.interface import NetlistPort, TraceSlots, interface
from verilog.export.names import give_plain_names
from verilog.export.project import core_file, makefile, waivers
from verilog.export.prune import prune
from verilog.export.rtlil import parse
from verilog.export.switch_name import PARTNER, TEST_BENCH, TOP, named
from verilog.export.tidy import tidy
from wire.parameters import SwitchParameters

__all__ = ["Package", "switch_package", "write_files"]

_TIMESCALE = "`timescale 1ns / 1ps\n"


@dataclass(frozen=True)
class Package:
    """An exported switch: the text of each file by its name, and the ports of the top module."""

    files: Mapping[str, str]
    ports: Sequence[NetlistPort]


def _switch_verilog(switch: Switch, slots: TraceSlots, progress: Callable[[str], None]) -> str:
    """All modules of a switch, the top first, with the ports of `verilog.export.interface`.

    It is the netlist that simulations run, with plain names; with no SLOTS, which are the switch's own or none,
    without the trace outputs and what only they need.
    """
    progress("elaborating")
    merged = merged_rtlil(switch, TOP)
    progress("naming")
    modules = parse(merged)
    ports = {f"\\{port.before}": f"\\{port.name}" for port in interface(switch.parameters, slots)}
    top = modules[f"\\{TOP}"]
    for wire in top.wires.values():
        if wire.name not in ports:
            wire.direction = ""
    prune(modules, top.name)
    give_plain_names(modules, ports)
    top.order_ports(list(ports.values()))
    progress("writing Verilog")
    verilog = rtlil_to_verilog("\n".join(map(str, modules.values())))
    progress("tidying up")
    return tidy(verilog)


def switch_package(
    parameters: SwitchParameters,
    trace: bool = False,
    progress: Callable[[str], None] = lambda stage: None,
    name: str = TOP,
) -> Package:
    """Export a switch called NAME, with its trace outputs or without. PROGRESS gets what is done next."""
    distribution = metadata.distribution("ironband")
    version = distribution.version
    switch = Switch(parameters, alone=True)
    slots = switch.trace_slots if trace else []
    verilog = _switch_verilog(switch, slots, progress)
    files = {
        f"{TOP}.v": f"{head_comment(parameters, slots, version)}\n{_TIMESCALE}\n{verilog}",
        f"{TEST_BENCH}.v": test_bench(parameters, slots),
        f"{PARTNER}.v": link_partner(),
        f"{TOP}.vlt": waivers(),
        f"{TOP}.core": core_file(parameters, version),
        f"{TOP}_ports.md": ports_document(parameters, slots, version),
        "Makefile": makefile(),
    }
    licence = distribution.read_text("licenses/LICENSE")
    if licence is not None:
        files["LICENSE"] = licence
    return Package(named(files, name), interface(parameters, slots))


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    """Write files to DIRECTORY, made if absent. They are complete before any of them has its name there.

    Raises:
        OutputError: it cannot be written.
    """
    with writing(f"directory {directory}"):
        made = not directory.exists()
        directory.parent.mkdir(parents=True, exist_ok=True)
        beside = directory.parent if made else directory
        with tempfile.TemporaryDirectory(dir=beside, prefix=f".{directory.name or 'export'}-") as temporary:
            whole = Path(temporary) / "files"
            whole.mkdir()
            for name, text in files.items():
                (whole / name).write_text(text, encoding="utf-8")
            if made:
                whole.rename(directory)
            else:
                for name in files:
                    (whole / name).replace(directory / name)
