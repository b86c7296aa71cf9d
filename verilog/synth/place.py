"""Place and route a netlist with nextpnr."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilog.synth import tools
from verilog.synth.device import DEVICES
from verilog.synth.floorplan import fix_block_rams
from verilog.synth.timing import CriticalPath, critical_path, fmax_mhz

__all__ = ["REPORT", "Placement", "Target", "place", "placement"]

REPORT = "report.json"
"""nextpnr's account of what it did."""


@dataclass(frozen=True)
class Target:
    """What a design is placed on, and how fast it should be.

    Attributes:
        device: one of DEVICES.
        speed: its speed grade.
        freq_mhz: the clock that is wanted.
        seed: of the placement.
    """

    device: str = "LFE5U-85"
    speed: str = "8"
    freq_mhz: float = 62.5
    seed: int = 2


@dataclass(frozen=True)
class Placement:
    """A design as placed and routed.

    Attributes:
        used: of each resource, by nextpnr's names.
    """

    used: dict[str, int]
    fmax_mhz: float
    path: CriticalPath


def place(netlist: Path, target: Target, directory: Path, watch: tools.Watch) -> None:
    """Write REPORT of NETLIST, placed and routed, to DIRECTORY.

    Raises:
        ToolMissing: nextpnr is not installed.
        ToolFailed: it ended with an error.
    """
    device = DEVICES[target.device]
    design = json.loads(netlist.read_text())
    fix_block_rams(design["modules"], device)
    # The tool is shown the directory, not the machine.
    copy = directory / netlist.name
    copy.write_text(json.dumps(design))
    arguments = [
        device.option,
        *("--package", device.package),
        *("--speed", target.speed),
        *("--freq", f"{target.freq_mhz:g}"),
        *("--seed", str(target.seed)),
        *("--json", copy.name),
        *("--report", REPORT),
        # Late paths pull their cells together more than by default. The default router takes many times as long where a
        # design is dense.
        *("--placer", "heap"),
        *("--placer-heap-timingweight", "30"),
        *("--placer-heap-critexp", "4"),
        *("--router", "router2"),
        "--timing-allow-fail",
    ]
    tools.run(tools.NEXTPNR, arguments, directory, watch)
    copy.unlink()


def placement(directory: Path) -> Placement:
    """What `place` left in DIRECTORY."""
    report: dict[str, Any] = json.loads((directory / REPORT).read_text())
    used = {resource: entry["used"] for resource, entry in report["utilization"].items()}
    return Placement(used, fmax_mhz(report), critical_path(report))
