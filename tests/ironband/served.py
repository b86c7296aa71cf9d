"""Running `ironband serve` with the programs that Debian has, or saying loudly that they are not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from ironband.serve_directory import program_path
from tests.ironband.command import COMMAND

__all__ = [
    "TELL",
    "TWO_SWITCHES",
    "beside",
    "large_fat_tree",
    "managed",
    "needs_programs",
    "scripted",
    "served",
    "wait_for",
]

TELL: Final = f'{sys.executable} -c "import sys; from ironband import main; sys.exit(main())" tell'

WAIT_UNTIL: Final = """wait_until() {
    for _ in $(seq 3000); do eval "$1" && return; sleep 0.1; done
    echo "never came: $1"
    return 1
}
"""
"""A shell's function: what is waited for comes some time, also on a machine that has much else to do."""

PACKAGES = {"opensm": "opensm", "ibnetdiscover": "infiniband-diags"}

TWO_SWITCHES: Final = """
Switch 8 "SW1"
[1] "H1"[1]
[2] "H2"[1]
[7] "SW2"[7]
[8] "SW2"[8]

Switch 8 "SW2"
[1] "H1"[2]
[2] "H4"[1]
[7] "SW1"[7]
[8] "SW1"[8]

Hca 2 "H1"
[1] "SW1"[1]
[2] "SW2"[1]

Hca 1 "H2"
[1] "SW1"[2]

Hca 1 "H4"
[1] "SW2"[2]
"""
"""H1 has a port at either switch."""


def large_fat_tree() -> str:
    """12 leaves and 6 spines of 36 ports, three cables between each two, 18 hosts a leaf."""
    cables = [(spine, leaf, cable) for spine in range(6) for leaf in range(12) for cable in range(3)]
    ends: dict[str, list[str]] = {}
    for spine, leaf, cable in cables:
        up, down = 19 + 3 * spine + cable, 1 + 3 * leaf + cable
        ends.setdefault(f'Switch 36 "S{spine}"', []).append(f'[{down}] "L{leaf}"[{up}]')
        ends.setdefault(f'Switch 36 "L{leaf}"', []).append(f'[{up}] "S{spine}"[{down}]')
    for leaf, host in product(range(12), range(18)):
        ends[f'Switch 36 "L{leaf}"'].append(f'[{host + 1}] "H{leaf}_{host}"[1]')
        ends[f'Hca 1 "H{leaf}_{host}"'] = [f'[1] "L{leaf}"[{host + 1}]']
    lines = [line for node, its_ends in ends.items() for line in (node, *its_ends)]
    return "\n".join(lines) + "\n"


_MISSING = [package for program, package in PACKAGES.items() if shutil.which(program, path=program_path()) is None]

needs_programs = pytest.mark.skipif(
    bool(_MISSING), reason=f"NOT TESTED with real programs: apt-get install {' '.join(_MISSING)}"
)


@contextmanager
def beside(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program beside the body of the `with` block; it is killed if it still runs at the end, whatever the cause."""
    process = subprocess.Popen(command, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until something holds, which it does some time, also on a machine that has much else to do."""
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def served(
    *arguments: str, cwd: Path, timeout: float = 1200, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `ironband serve` says and how it ends, where nobody but programs brings the fabric up."""
    return managed("--bring-up", "none", *arguments, cwd=cwd, timeout=timeout, environment=environment)


def managed(
    *arguments: str, cwd: Path, timeout: float = 1200, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The same, where our own Subnet Manager does."""
    return subprocess.run(
        [*COMMAND, "serve", *arguments],
        cwd=cwd,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )


def scripted(cwd: Path, options: list[str], topology: str, lines: dict[str, str]) -> dict[str, str]:
    """Serve a topology to shell commands, one after the other; what each says, by its name, and all of it as "all".

    They may `wait_until CONDITION`.
    """
    script = "\n".join(
        f"{{ {line}\n}} > {name}.out 2>&1 || echo status $? >> {name}.out" for name, line in lines.items()
    )
    (cwd / "script").write_text(f"{WAIT_UNTIL}{script}\n")
    ended = served(*options, topology, "--", "sh", "script", cwd=cwd)
    assert ended.returncode == 0, ended.stderr
    said = {name: (cwd / f"{name}.out").read_text() for name in lines}
    return said | {"all": ended.stdout + ended.stderr}
