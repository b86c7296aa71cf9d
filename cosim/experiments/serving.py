"""Serving a fabric to programs that others wrote, on any engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cosim.analysis.observer import Audience, Observer
from cosim.doors.door import Door
from cosim.experiments.perform import run_beside_model
from cosim.hosts.manager_host import first_controls, manager_start, smp_timeout
from cosim.scenario.limits import MAX_CYCLES
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.trace.compare import Comparison
from wire.parameters import FabricParameters
from wire.trace import Record

__all__ = ["ServeTask", "make_door", "serve_fabric"]

_CROWD: Final = 2
"""Several programs ask the same agents: an answer may take so many times what one Subnet Manager has to wait for."""


@dataclass(frozen=True)
class ServeTask:
    """What is to be served, and how.

    Attributes:
        fabric: the fabric.
        widths: of each link.
        engine: what simulates.
        rtl: the nodes that it simulates, by name, all without it; the others are the golden model.
        compared: whether the golden model runs beside RTL and is compared.
    """

    fabric: FabricParameters
    widths: Sequence[int]
    engine: str = "model"
    rtl: Collection[str] | None = None
    compared: bool = True


def make_door(
    task: ServeTask, directory: Path, host: str | None, ready: Callable[[], None], tell: Callable[[str], None]
) -> Door:
    """The door of a fabric, at a directory; see `cosim.doors.door.Door`."""
    return Door(
        task.fabric,
        directory,
        host=host,
        start=manager_start(task.widths),
        patience=_CROWD * smp_timeout(task.fabric),
        controls=first_controls(task.fabric, task.widths, ()),
        ready=ready,
        tell=tell,
    )


def serve_fabric(
    task: ServeTask, door: Door, work_dir: Path, observers: Sequence[Observer] = ()
) -> tuple[Comparison | None, int]:
    """Simulate until the door ends it, or RTL and golden model differ; what was compared, and how many cycles it took.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """

    def spec(actor: Actor | None) -> RunSpec:
        return RunSpec(task.fabric, door.controls(), (), MAX_CYCLES, actor)

    audience = Audience([_PortStates(door), *observers], iter(()))
    return run_beside_model(task.engine, spec, work_dir, audience, [door], rtl=task.rtl, compared=task.compared)


class _PortStates(Observer):
    """Shows the records of the trace to the door, which hears of its own ports' states."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def observe(self, record: Record) -> None:
        """Show one."""
        self._door.observe(record)
