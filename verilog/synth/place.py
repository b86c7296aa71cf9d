"""Place and route a netlist with nextpnr."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilog import tools
from verilog.synth.device import DEVICES
from verilog.synth.floorplan import fix_block_rams
from verilog.synth.refine import refine
from verilog.synth.timing import CriticalPath, critical_path, fmax_mhz

__all__ = ["REFINING", "REPORT", "Placement", "Target", "place", "placement"]

REPORT = "report.json"
"""nextpnr's account of what it did, if it came to its end."""

REFINING = "refining"
"""A line of what is watched, between nextpnr's."""

_PLACED, _REFINED = "placed.json", "refined.json"

_ROUND = re.compile(r"^Info: +iter=\d+ .*\boverused=(\d+)")
_HOPELESS_ROUNDS = 15
"""So many without one that leaves fewer wires in conflict than any before."""

_ESTIMATE = re.compile(r"^Info: Max frequency for clock .*: ([\d.]+) MHz", re.M)
_USED = re.compile(r"^Info: \s+(\w+): +(\d+)/ *\d+ +\d+%$", re.M)


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
    """A design as placed and, if there were wires enough, routed.

    Attributes:
        used: of each resource, by nextpnr's names.
        fmax_mhz: the clock; before it is routed nextpnr's estimate, from where cells lie.
        path: what decides it, None if it is not routed.
        conflicts: the fewest wires that routing left to two nets, None if it was not asked for.
    """

    used: dict[str, int]
    fmax_mhz: float
    path: CriticalPath | None
    conflicts: int | None = 0

    @property
    def is_routed(self) -> bool:
        """The clock is that of wires as they are."""
        return self.path is not None


class _Hopeless(Exception):
    """Routing will not come to an end."""


class _Rounds:
    """Looks at the router's rounds in nextpnr's log."""

    def __init__(self) -> None:
        self._fewest: int | None = None
        self._without = 0

    def look(self, line: str) -> None:
        """Raise _Hopeless where rounds lead nowhere."""
        found = _ROUND.match(line)
        if found is None:
            return
        conflicts = int(found[1])
        self._without += 1
        if self._fewest is None or conflicts < self._fewest:
            self._fewest, self._without = conflicts, 0
        if self._without >= _HOPELESS_ROUNDS:
            raise _Hopeless


def place(netlist: Path, target: Target, directory: Path, watch: tools.Watch, *, route: bool = True) -> None:
    """Place and, if asked for, route NETLIST; `placement` finds in DIRECTORY what became of it.

    Routing ends where it is hopeless: nextpnr's router goes on for ever if there are not wires enough.

    Without it, what is late is moved, and nextpnr asked again. Of a placed design that it has read it takes carry
    chains for slower than they are: what it says then is at most too slow, but wires would be chosen by it too.

    Raises:
        ToolMissing: nextpnr is not installed.
        ToolFailed: it ended with an error.
    """
    device = DEVICES[target.device]
    design = json.loads(netlist.read_text())
    fix_block_rams(design["modules"], device)
    options = [
        device.option,
        *("--package", device.package),
        *("--speed", target.speed),
        *("--freq", f"{target.freq_mhz:g}"),
        *("--seed", str(target.seed)),
        *("--report", REPORT),
        # Late paths pull their cells together more than by default. The default router takes many times as long where a
        # design is dense.
        *("--placer", "heap"),
        *("--placer-heap-timingweight", "30"),
        *("--placer-heap-critexp", "4"),
        *("--router", "router2"),
        "--timing-allow-fail",
    ]
    rounds = _Rounds()

    def look(line: str) -> None:
        watch(line)
        rounds.look(line)

    def run(*arguments: str) -> None:
        (directory / f"{tools.NEXTPNR}.log").unlink(missing_ok=True)
        tools.run(tools.NEXTPNR, [*options, *arguments], directory, look)

    # The tool is shown the directory, not the machine.
    copy, placed, refined = (directory / name for name in (netlist.name, _PLACED, _REFINED))
    try:
        copy.write_text(json.dumps(design))
        if route:
            with suppress(_Hopeless):
                run("--json", copy.name)
        else:
            run("--json", copy.name, "--write", placed.name, "--no-route")
            watch(REFINING)
            refine(placed, refined, period=1000 / target.freq_mhz, speed=target.speed)
            run("--json", refined.name, "--no-pack", "--no-route")
    finally:
        for file in (copy, placed, refined):
            file.unlink(missing_ok=True)


def placement(directory: Path) -> Placement:
    """What `place` left in DIRECTORY."""
    log = (directory / f"{tools.NEXTPNR}.log").read_text(errors="replace")
    file = directory / REPORT
    report: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not report.get("critical_paths"):
        conflicts = [int(found[1]) for found in map(_ROUND.match, log.splitlines()) if found]
        used = {resource: int(count) for resource, count in _USED.findall(log)}
        return Placement(used, float(_ESTIMATE.findall(log)[-1]), None, min(conflicts, default=None))
    used = {resource: entry["used"] for resource, entry in report["utilization"].items()}
    return Placement(used, fmax_mhz(report), critical_path(report))
