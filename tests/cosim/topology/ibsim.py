"""What Debian's ibsim takes a topology file for, as ibnetdiscover shows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

__all__ = ["NET_EXAMPLES", "discovered_by_ibsim", "needs_ibsim"]

NET_EXAMPLES = Path("/usr/share/doc/ibsim-utils/net-examples")
"""ibsim's own examples; container images may leave documentation out."""

_CLIENT = next(iter(Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")), None)
_PATIENCE_SECONDS = 20

needs_ibsim = pytest.mark.skipif(
    shutil.which("ibsim") is None or _CLIENT is None or shutil.which("ibnetdiscover") is None,
    reason="NOT TESTED against ibsim: apt-get install ibsim-utils infiniband-diags",
)


def discovered_by_ibsim(file: Path, scratch: Path, *options: str) -> str:
    """What ibnetdiscover, with OPTIONS, prints in ibsim with that file; SCRATCH is a folder of our own."""
    name = f"ironband-{os.getpid()}-{scratch.name}"
    environment = os.environ | {"IBSIM_SOCKNAME": name}
    with subprocess.Popen(
        ["ibsim", "-s", str(file)],
        cwd=scratch,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as ibsim:
        try:
            _wait_for(name, ibsim)
            return subprocess.run(
                ["ibnetdiscover", *options],
                cwd=scratch,
                env=environment | {"LD_PRELOAD": str(_CLIENT)},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=True,
                timeout=_PATIENCE_SECONDS,
            ).stdout
        finally:
            ibsim.kill()


def _wait_for(name: str, ibsim: subprocess.Popen[bytes]) -> None:
    """Until the server listens at its abstract address."""
    for _attempt in range(_PATIENCE_SECONDS * 100):
        if f"@{name}:ctl" in Path("/proc/net/unix").read_text():
            return
        assert ibsim.poll() is None, "ibsim does not take the file"
        time.sleep(0.01)
    pytest.fail("ibsim does not listen")
