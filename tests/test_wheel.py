"""A wheel has all that is in the rooms, what is no Python too: Verilog, scenarios, C, the page."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILT = shutil.ignore_patterns("__pycache__", "*.so", "*.pyc")


@pytest.mark.slow
def test_a_wheel_has_every_file_of_the_rooms(tmp_path):
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]["include"]
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for room in found:
        shutil.copytree(ROOT / room.rstrip("*"), tmp_path / room.rstrip("*"), ignore=BUILT)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*/*") if path.is_file()}
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--no-build-isolation", "-w", "wheels", "."], cwd=tmp_path, check=True)
    (wheel,) = (tmp_path / "wheels").iterdir()
    assert "ironband/page/assets/view.js" in files
    assert files - set(zipfile.ZipFile(wheel).namelist()) == set()
