"""Temporary directories: removed in the end, also those of processes that were killed, and no others."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from toolchain.temporary_directory import LOCK, temporary_directory

HOLDS_ONE = """
import time
from toolchain.temporary_directory import temporary_directory
with temporary_directory() as directory:
    (directory / "some" / "file").mkdir(parents=True)
    print(directory, flush=True)
    time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def temporary_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_directory_is_there_for_as_long_as_it_is_used(temporary_files):
    with temporary_directory() as directory:
        assert list(temporary_files.iterdir()) == [directory]
    assert not directory.exists()
    with pytest.raises(FileNotFoundError, match="file"), temporary_directory() as directory:
        (directory / "file").unlink()
    assert list(temporary_files.iterdir()) == []


def test_of_one_whose_making_is_interrupted_nothing_is_left(temporary_files, monkeypatch):
    mkdir = Path.mkdir

    def interrupted(path, mode=0o777):
        mkdir(path, mode)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), temporary_directory():
        pass
    assert list(temporary_files.iterdir()) == []


def test_that_of_a_process_that_was_killed_is_removed_by_the_next_and_that_of_a_living_one_is_not(temporary_files):
    process = subprocess.Popen([sys.executable, "-c", HOLDS_ONE], stdout=subprocess.PIPE, text=True)
    with process:
        try:
            directory = Path(process.stdout.readline().strip())
            with temporary_directory():
                assert (directory / "some" / "file").exists()
        finally:
            process.kill()
    assert directory.exists()
    with temporary_directory() as mine:
        assert list(temporary_files.iterdir()) == [mine]


def test_what_is_no_directory_with_a_lock_stays(temporary_files, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / LOCK).touch()
    (temporary_files / "ironband-link").symlink_to(elsewhere)
    (temporary_files / "ironband-run.log").touch()
    (temporary_files / "ironband-other").mkdir()
    (temporary_files / "ironband-linked").mkdir()
    (temporary_files / "ironband-linked" / LOCK).symlink_to(elsewhere / LOCK)
    before = set(temporary_files.iterdir())
    with temporary_directory() as mine:
        assert set(temporary_files.iterdir()) == before | {mine}
    assert (elsewhere / LOCK).exists()
