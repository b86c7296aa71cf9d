"""Programs that others wrote: where they are not there, or cannot run, tests say loudly that they have not been run."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest

_PROCESSORS = Path("/sys/devices/system/cpu")


def needs(*programs: str, package: str | None = None) -> pytest.MarkDecorator:
    """Programs without which there is nothing to test, and the Debian package that has them."""
    missing = [name for name in programs if shutil.which(name) is None]
    remedy = f" (apt-get install {package})" if package else ""
    reason = f"NOT TESTED with real programs, not there: {' '.join(missing)}{remedy}"
    return pytest.mark.skipif(bool(missing), reason=reason)


def needs_ucx_perftest() -> pytest.MarkDecorator:
    """ucx_perftest, which ends with a failed assertion of its own where the system does not tell of its processors."""
    if shutil.which("ucx_perftest") is not None and not _PROCESSORS.exists():
        return pytest.mark.skip(f"NOT TESTED with ucx_perftest, which does not start without {_PROCESSORS}")
    return needs("ucx_perftest")


def free_port() -> int:
    """A TCP port of nobody's."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
