"""Run a command that may be silent for long, and say every few seconds that it goes on.

python3 scripts/waiting.py WHAT COMMAND...

Run before the environment exists, so only the standard library is used.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

SILENT_SECONDS = 8.0


def run(what: str, command: Sequence[str], environment: Mapping[str, str] | None = None, quiet: bool = False) -> int:
    """Run a command; its exit status. QUIET: what it says on standard output is dropped."""
    begun = time.monotonic()
    print(f"ironband set-up: {what}", flush=True)
    output = subprocess.DEVNULL if quiet else None
    with subprocess.Popen(command, env=None if environment is None else dict(environment), stdout=output) as process:
        while True:
            try:
                return process.wait(SILENT_SECONDS)
            except subprocess.TimeoutExpired:
                print(f"ironband set-up: {what}, {time.monotonic() - begun:.0f} s so far", flush=True)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
