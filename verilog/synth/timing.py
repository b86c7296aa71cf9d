"""The clock that a placed and routed design reaches, and the path that decides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verilog.synth.names import readable

__all__ = ["CriticalPath", "Stage", "critical_path", "fmax_mhz"]

_ROUTING = "routing"
_SETUP = "setup"
_UNNAMED = "$nextpnr"
_END_PINS = {"CE": "clock enable", "LSR": "reset"}


@dataclass(frozen=True)
class Stage:
    """Consecutive cells at one signal of the design, and the wires from each to the next.

    Attributes:
        signal: the signal.
        cells: how many of them.
        arrival_ns: when the last wire's end is reached, from the clock edge on.
    """

    signal: str
    cells: int
    logic_ns: float
    routing_ns: float
    arrival_ns: float


@dataclass(frozen=True)
class CriticalPath:
    """The slowest path from register to register.

    Attributes:
        stages: from the register where it starts to the one where it ends.
    """

    stages: tuple[Stage, ...]

    @property
    def logic_ns(self) -> float:
        """Time in cells, registers included."""
        return sum(stage.logic_ns for stage in self.stages)

    @property
    def routing_ns(self) -> float:
        """Time on wires."""
        return sum(stage.routing_ns for stage in self.stages)

    @property
    def total_ns(self) -> float:
        """The shortest period of the clock."""
        return self.logic_ns + self.routing_ns


def fmax_mhz(report: dict[str, Any]) -> float:
    """The highest clock in nextpnr's report; a design here has one clock."""
    return float(min(clock["achieved"] for clock in report["fmax"].values()))


def critical_path(report: dict[str, Any]) -> CriticalPath:
    """The slowest path of nextpnr's report from a register to a register."""
    paths = [_path(path["path"]) for path in report["critical_paths"] if _inside(path)]
    return max(paths, key=lambda path: path.total_ns)


def _inside(path: dict[str, Any]) -> bool:
    """Neither end is a pin."""
    return "<async>" not in (path["from"], path["to"])


def _path(segments: list[dict[str, Any]]) -> CriticalPath:
    hops: list[tuple[str, float, float]] = []
    for segment in segments:
        if segment["type"] == _ROUTING:
            # The wire behind a cell: the name that is deeper in the hierarchy says more, the net's if both are.
            cell, logic, routing = hops.pop()
            signal = max(readable(segment["net"]), cell, key=lambda name: name.count("."))
            hops.append((signal, logic, routing + segment["delay"]))
        else:
            hops.append((_end(segment) if segment["type"] == _SETUP else _cell(segment), segment["delay"], 0.0))

    stages: list[Stage] = []
    arrival = 0.0
    for signal, logic, routing in hops:
        arrival += logic + routing
        if (stages and signal in (stages[-1].signal, "")) or signal.startswith(_UNNAMED):
            before = stages.pop()
            logic, routing = before.logic_ns + logic, before.routing_ns + routing
            stages.append(Stage(before.signal, before.cells + 1, logic, routing, arrival))
        else:
            stages.append(Stage(signal, 1, logic, routing, arrival))
    return CriticalPath(tuple(stages))


def _cell(segment: dict[str, Any]) -> str:
    return readable(segment["to"]["cell"])


def _end(segment: dict[str, Any]) -> str:
    """The register where a path ends, and which of its inputs if not the data."""
    pin = _END_PINS.get(segment["to"]["port"])
    return f"{_cell(segment)} ({pin})" if pin else _cell(segment)
