"""What commands are given to work on: a scenario where one is wanted, and a topology."""

from __future__ import annotations

from pathlib import Path

import click

from toolchain.errors import UserError

__all__ = ["scenario_asked", "topology_asked"]


def scenario_asked(name_or_path: str) -> str:
    """What is to be a scenario's name or path.

    Raises:
        click.UsageError: it is a topology's.
    """
    from cosim.scenario.find_scenario import packaged_scenarios

    path, known = Path(name_or_path), packaged_scenarios()
    if name_or_path not in known:
        from cosim.topology.topology_file import packaged_topologies

        if _is(path, packaged_topologies(), ".net"):
            raise click.UsageError(
                f"{name_or_path}: is a topology, which `ironband up` and `ironband serve` take: expected a scenario's"
                f" file, or one of {', '.join(known)}"
            )
    return name_or_path


def topology_asked(name_or_path: str) -> Path:
    """The topology file at a path, or the packaged one of that name.

    Raises:
        UserError: it is a scenario, or there is neither.
    """
    from cosim.scenario.find_scenario import packaged_scenarios
    from cosim.topology.topology_file import find_topology, packaged_topologies

    known = packaged_topologies()
    if name_or_path not in known and _is(Path(name_or_path), packaged_scenarios(), ".toml"):
        raise UserError(
            f"{name_or_path}: is a scenario, which `ironband run` takes: expected a topology's file, or one of"
            f" {', '.join(known)}"
        )
    return find_topology(name_or_path)


def _is(path: Path, packaged: dict[str, Path], suffix: str) -> bool:
    """Whether a path is a file of a kind, by its suffix, or the name of a packaged one."""
    try:
        return path.suffix == suffix if path.is_file() else str(path) in packaged
    except OSError:
        return False
