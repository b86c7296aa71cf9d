"""Set-up says what it waits for, and every few seconds that it goes on."""

import subprocess
import sys
from pathlib import Path

WAITING = Path(__file__).parents[2] / "scripts" / "waiting.py"


def test_a_command_that_takes_long_is_told_again_and_again() -> None:
    """Shorter silences than in use."""
    script = "import waiting; waiting.SILENT_SECONDS = 0.2; print(waiting.run('sleep', ['sleep', '0.5']))"
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=WAITING.parent, capture_output=True, text=True, check=True
    )
    first, *repeated, status = ended.stdout.splitlines()
    assert first == "ironband set-up: sleep"
    assert repeated[:2] == ["ironband set-up: sleep, 0 s so far"] * 2
    assert status == "0"


def test_the_status_of_a_command_is_kept() -> None:
    command = [sys.executable, WAITING, "nothing", sys.executable, "-c", "raise SystemExit(3)"]
    assert subprocess.run(command, capture_output=True).returncode == 3
