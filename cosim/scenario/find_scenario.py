"""Where scenarios are: files, and those that come with Ironband."""

from __future__ import annotations

from pathlib import Path

from toolchain.errors import UserError
from toolchain.packaged import find_file, packaged_files

__all__ = ["ScenarioError", "find_scenario", "packaged_scenarios"]

_PACKAGED = Path(__file__).with_name("packaged")


class ScenarioError(UserError, ValueError):
    """A scenario that cannot run; the text is one line: file, place in it, value, what was allowed."""


def packaged_scenarios() -> dict[str, Path]:
    """Scenarios that come with Ironband, by name."""
    return packaged_files(_PACKAGED, ".toml")


def find_scenario(name_or_path: str) -> Path:
    """The file at a path, or of the packaged scenario of that name.

    Raises:
        ScenarioError: there is neither.
    """
    return find_file("scenario", name_or_path, packaged_scenarios(), ".toml", ScenarioError)
