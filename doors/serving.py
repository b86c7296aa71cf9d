"""Serving a fabric to programs that others wrote, on any engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from cosim.analysis.observer import Audience, Observer
from cosim.engines.base import NO_TAPS, Taps
from cosim.experiments.perform import run_beside_model
from cosim.hosts.manager_host import first_controls, link_down_timeouts, manager_start, smp_timeout, smp_window
from cosim.scenario.limits import MAX_CYCLES
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.trace.compare import Comparison
from doors.door import Door
from doors.lab import Lab
from doors.watch import Watch
from sm.settings import SubnetSettings
from wire.parameters import FabricParameters
from wire.registers import PORT_RESET_VALUES, PortRegister
from wire.trace import Kind, Record

__all__ = ["ServeTask", "make_door", "make_lab", "serve_fabric"]

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
        link_down_timeout: cycles that ports wait for a link to come back.
        seed: draws traffic and errors.
        settings: of our own Subnet Manager, which brings the fabric up and looks after it; without, another will.
        addresses: the ports' IP addresses, as `doors.rdma_cm.address_file` reads them; without, their LIDs say.
    """

    fabric: FabricParameters
    widths: Sequence[int]
    engine: str = "model"
    rtl: Collection[str] | None = None
    compared: bool = True
    link_down_timeout: int = PORT_RESET_VALUES[PortRegister.LINK_DOWN_TIMEOUT]
    seed: int = 0
    settings: SubnetSettings | None = None
    addresses: Mapping[IPv4Address, str] | None = None


def make_door(
    task: ServeTask, directory: Path, machine: Sequence[str], ready: Callable[[], None], tell: Callable[[str], None]
) -> Door:
    """The door of a fabric, at a directory; see `doors.door.Door`."""
    controls = first_controls(task.fabric, task.widths, ())
    first = controls[-1].cycle + 1 if controls else 0
    controls += link_down_timeouts(task.fabric, range(len(task.fabric.links)), task.link_down_timeout, first)
    start = max(manager_start(task.widths), controls[-1].cycle + 1 if controls else 0)
    return Door(
        task.fabric,
        directory,
        machine=machine,
        start=start,
        patience=_CROWD * smp_timeout(task.fabric),
        window=smp_window(task.fabric),
        controls=controls,
        settings=task.settings,
        ready=ready,
        tell=tell,
        addresses=task.addresses,
    )


def make_lab(task: ServeTask, door: Door) -> Lab:
    """Hands in the fabric behind a door."""
    return Lab(task.fabric, door, task.seed)


def serve_fabric(
    task: ServeTask, door: Door, lab: Lab, work_dir: Path, taps: Taps = NO_TAPS, watch: Watch | None = None
) -> tuple[Comparison | None, int]:
    """Simulate until the door ends it, or RTL and golden model differ; what was compared, and how many cycles it took.

    WATCH sees it.

    Raises:
        What the engines raise (cosim.engines.simulation.run).
    """

    def spec(actor: Actor | None) -> RunSpec:
        return RunSpec(task.fabric, door.controls(), (), MAX_CYCLES, actor)

    looking = [_Looking(door.observe, Kind.STATE), _Looking(lab.observe, Kind.BUS_READ)]
    audience = Audience([*looking, *([] if watch is None else [watch])], iter(()))
    return run_beside_model(
        task.engine, spec, work_dir, audience, [door], rtl=task.rtl, taps=taps, compared=task.compared
    )


class _Looking(Observer):
    """Shows records of one kind to somebody."""

    def __init__(self, look: Callable[[Record], None], kind: Kind) -> None:
        self.kinds = (kind,)
        self._look = look

    def observe(self, record: Record) -> None:
        """Show one."""
        self._look(record)
