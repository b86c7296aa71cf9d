"""A configured switch on an FPGA: does it fit, and how fast is its clock."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from typing import Literal

from rtl.switch.switch import Switch
from toolchain.build_cache import cached, code_of
from verilog import liveness, tools
from verilog.emit import merged_rtlil
from verilog.synth import comparisons, delays, estimate, floorplan, multiplexers, netlist, refine
from verilog.synth import place as placing
from verilog.synth import placed as placed_design
from verilog.synth.area import MappedMemory, Part, mapped_memories, parts
from verilog.synth.device import DEVICES, Area
from verilog.synth.netlist import NETLIST, PREPARED, TOP, make_netlist
from verilog.synth.pins import ThreePins
from verilog.synth.place import REPORT, Placement, Target, place, placement
from wire.parameters import SwitchParameters

__all__ = ["Synthesis", "SynthesisOptions", "synthesise"]

_KEPT = (NETLIST, REPORT, f"{tools.NEXTPNR}.log")
_NO_ROOM = re.compile(r"no Bels remaining|legal placement|utilisation limit", re.I)
_MAPPING = (netlist, comparisons, delays, multiplexers, liveness)
_STEPS = (
    (re.compile(r"^Preparing to run"), "compiling the tool, the first time only"),
    (re.compile(r"^Info: Packing"), "packing"),
    (re.compile(r"^Info: Creating initial analytic placement for [1-9]"), "placing"),
    (re.compile(r"^Info: Running simulated annealing"), "placing, refinement"),
    (re.compile(rf"^{placing.REFINING}$"), "moving what is late"),
    (re.compile(r"^Info: Routing"), "routing"),
)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class SynthesisOptions:
    """What is built, and for what.

    Attributes:
        until: the last step: all, or without wires and with an estimate of the clock, or the area alone.
    """

    parameters: SwitchParameters
    target: Target = field(default_factory=Target)
    until: Literal["area", "placement", "routing"] = "routing"


@dataclass(frozen=True)
class Synthesis:
    """What became of a switch.

    Attributes:
        parts: area by component.
        memories: what each memory became.
        too_much: why it does not fit; empty if it does.
        placement: None if not asked for, or if it does not fit.
    """

    options: SynthesisOptions
    parts: list[Part]
    memories: list[MappedMemory]
    too_much: str
    placement: Placement | None

    @property
    def area(self) -> Area:
        """All parts together, the registers that stand for pins included."""
        return sum((part.area for part in self.parts), Area())

    @property
    def fits(self) -> bool:
        """There is room on the device."""
        return not self.too_much

    @property
    def held(self) -> bool:
        """It fits, and has the wires and reaches the clock that are wanted if that was asked."""
        placed, options = self.placement, self.options
        if not self.fits or placed is None:
            return self.fits
        return placed.fmax_mhz >= options.target.freq_mhz and (placed.is_routed or options.until == "placement")


def synthesise(options: SynthesisOptions, progress: Progress, output: Path | None = None) -> Synthesis:
    """Map, place and route a switch; what was done before comes from the build cache.

    Args:
        options: what is built.
        progress: gets each step.
        output: an existing directory for netlist, report and log.

    Raises:
        ToolMissing: Yosys or nextpnr is not installed.
        ToolFailed: one of them ended with an error.
        BuildDirectoryError: the build output cannot be written.
    """

    def watch(line: str) -> None:
        for pattern, step in _STEPS:
            if pattern.match(line):
                progress(step)

    tools.require("synth", tools.YOSYS, tools.NEXTPNR)
    versions = tools.versions(tools.YOSYS, tools.NEXTPNR)
    progress("elaborating")
    rtlil = merged_rtlil(ThreePins(Switch(options.parameters)), TOP)
    key: dict[str, object] = {
        "rtlil": hashlib.sha256(rtlil.encode()).hexdigest(),
        "tools": versions,
        "code": code_of(*_MAPPING),
    }
    progress("mapping")
    mapped = cached("netlist", key, lambda directory: make_netlist(rtlil, directory, watch))
    prepared, cells = (json.loads((mapped / file).read_text())["modules"] for file in (PREPARED, NETLIST))
    found = parts(cells)
    too_much = _too_much(sum((part.area for part in found), Area()), options.target.device)

    directories, done = [mapped], None
    if options.until != "area" and not too_much:
        route = options.until == "routing"
        key |= asdict(options.target) | {"route": route}
        key["placing"] = code_of(floorplan, placing, placed_design, estimate, refine)
        try:
            placed = cached(
                "place", key, lambda directory: place(mapped / NETLIST, options.target, directory, watch, route=route)
            )
        except tools.ToolFailed as failure:
            if not _NO_ROOM.search(failure.reason):
                raise
            too_much = failure.reason
        else:
            directories.append(placed)
            done = placement(placed)
    if output is not None:
        for file in (directory / name for directory in directories for name in _KEPT):
            if file.exists():
                shutil.copy(file, output)
    return Synthesis(options, found, mapped_memories(prepared, cells), too_much, done)


def _too_much(area: Area, name: str) -> str:
    wanted = zip(
        ("LUTs", "registers", "block RAMs", "LUT RAMs"), astuple(area), astuple(DEVICES[name].room), strict=True
    )
    return "; ".join(f"{used:,} {what}, {name} has {room:,}" for what, used, room in wanted if used > room)
