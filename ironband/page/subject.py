"""What is shown on a page: a run of a scenario, one that was kept, a fabric that is served, or one at rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cosim.scenario.find_scenario import packaged_scenarios
from cosim.scenario.limits import SDR_CYCLE_NS
from cosim.topology.topology_file import find_topology, packaged_topologies, read_topology
from toolchain.errors import UserError

if TYPE_CHECKING:
    from ironband.page.run_view import RunView

__all__ = ["EVENTS_FILE", "FABRIC_FILE", "Kind", "SubjectError", "kind_of", "read_subject"]

EVENTS_FILE = "events.npz"
"""In the directory of a run."""

FABRIC_FILE = "fabric.json"
"""In that of a server, when its fabric can be used."""

Kind = Literal["scenario", "kept", "served", "topology"]


class SubjectError(UserError):
    """What is to be shown is nothing that can be; the text is one line."""


def kind_of(what: str) -> Kind:
    """What a name or a path is of.

    Raises:
        SubjectError: nothing that can be shown.
    """
    path = Path(what)
    try:
        is_file, is_directory = path.is_file(), path.is_dir()
    except OSError as error:
        raise SubjectError(f"{what!r}: {error.strerror}") from None
    if is_file:
        return {".toml": "scenario", ".npz": "kept"}.get(path.suffix, "topology")  # type: ignore[return-value]
    if what in packaged_scenarios():
        return "scenario"
    if what in packaged_topologies():
        return "topology"
    if is_directory and (path / EVENTS_FILE).is_file():
        return "kept"
    if is_directory and (path / FABRIC_FILE).is_file():
        return "served"
    if is_directory:
        expected = "expected the directory of `ironband run --keep`, or of `ironband serve` when it is up"
        raise SubjectError(f"{what}: holds no {EVENTS_FILE}: {expected}")
    known = ", ".join((*packaged_scenarios(), *packaged_topologies()))
    raise SubjectError(f"{what}: no such run or topology: expected a file, the directory of a run, or one of {known}")


def read_subject(kind: Kind, path: Path, sim: str, by: Literal["smp", "bus"]) -> RunView:
    """Read it; a scenario is run.

    Raises:
        UserError: it cannot be read, or not be run.
    """
    from ironband.page.run_view import RunView

    if kind == "kept":
        from cosim.analysis.event_table import load_events

        return RunView(*load_events(path / EVENTS_FILE if path.is_dir() else path))
    if kind == "scenario":
        from cosim.scenario.scenario_file import load_scenario
        from ironband.page.recording import record
        from ironband.progress import text_console

        head, table = record(load_scenario(str(path)), by, sim, text_console(None))
        return RunView(head, table.columns())
    from cosim.analysis.event_table import EventTable
    from cosim.topology.subnet_fabric import fabric_of
    from ironband.page.fabric_map import fabric_head

    made = fabric_of(read_topology(find_topology(str(path))))
    head = fabric_head(made.fabric, made.widths) | {
        "title": path.stem,
        "symbol_time_ns": SDR_CYCLE_NS,
        "start": 0,
        "flows": [],
    }
    return RunView(head, EventTable([]).columns())
