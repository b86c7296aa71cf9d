"""What docs/python-verbs.md shows is what happens."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs/python-verbs.py"


def blocks(kind: str) -> list[str]:
    text = (ROOT / "docs/python-verbs.md").read_text()
    return [block.removeprefix(f"{kind}\n") for block in text.split("```")[1::2] if block.startswith(f"{kind}\n")]


def test_the_example_is_the_file_and_prints_what_is_shown():
    run = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, cwd=ROOT)
    assert blocks("") == [f"$ .venv/bin/python docs/python-verbs.py\n{run.stdout}"]
    assert run.stderr == ""
    assert blocks("python") == [EXAMPLE.read_text()]
