"""Files for the user are written whole or not at all, and nothing is left of them, whenever an interrupt comes."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain.atomic_files import OutputError, atomic_file, output_file, write_atomically


def written(path: Path) -> None:
    write_atomically(path, "new")


@pytest.mark.parametrize("use", [output_file, written])
def test_of_a_file_whose_making_is_interrupted_nothing_is_left(
    use: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "results.json"
    target.write_text("old")
    touch = Path.touch

    def interrupted(path: Path, *, exist_ok: bool) -> None:
        touch(path, exist_ok=exist_ok)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Path, "touch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        use(target)
    assert [(path, path.read_text()) for path in tmp_path.iterdir()] == [(target, "old")]


def test_what_is_written_replaces_the_file_at_the_end_and_may_be_read_by_whom_the_mask_lets(tmp_path: Path) -> None:
    target, like = tmp_path / "results.json", tmp_path / "other"
    like.touch()
    target.write_text("old")
    with atomic_file(target) as temporary:
        temporary.write_text("new")
        assert (target.read_text(), temporary.parent) == ("old", tmp_path)
    assert target.read_text() == "new"
    assert target.stat().st_mode == like.stat().st_mode
    assert sorted(tmp_path.iterdir()) == [like, target]


def test_a_name_that_is_too_long_for_the_file_s_place_is_said_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written: File name too long"):
        output_file(tmp_path / ("n" * 250 + ".json"))
    assert list(tmp_path.iterdir()) == []
