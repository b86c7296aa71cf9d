"""The files of an export and the directory that they are written to."""

from pathlib import Path

import pytest

from toolchain.atomic_files import OutputError
from verilog.export.package import write_files


def names(directory):
    return {path.name for path in directory.iterdir()}


@pytest.mark.parametrize("there", [False, True], ids=["new", "there before"])
def test_files_are_written_all_or_none(monkeypatch, tmp_path, there):
    """The disk is full at the second file."""
    monkeypatch.chdir(tmp_path)
    if there:
        Path("switch").mkdir()
    write = Path.write_text

    def full(path, text, encoding=None):
        if path.name == "two":
            raise OSError(28, "No space left on device")
        return write(path, text, encoding=encoding)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OutputError, match="directory switch: cannot be written: No space left on device"):
        write_files(Path("switch"), {"one": "1", "two": "2"})
    assert names(Path()) == ({"switch"} if there else set())
    if there:
        assert names(Path("switch")) == set()
