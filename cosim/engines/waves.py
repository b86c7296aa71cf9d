"""Which engines record waves, and into which files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cosim.engines.base import WavesUnsupported

__all__ = ["check_waves"]

_SUFFIXES: Final = {"verilator": ".fst", "icarus": ".fst", "amaranth": ".vcd"}


def check_waves(engine: str, waves: Path) -> None:
    """Raise WavesUnsupported unless an engine can record waves into a file."""
    if engine not in _SUFFIXES:
        raise WavesUnsupported(f"waves {waves}: the {engine} has no wires to record")
    if waves.suffix != _SUFFIXES[engine]:
        raise WavesUnsupported(f"waves {waves}: {engine} writes {_SUFFIXES[engine]} files")
