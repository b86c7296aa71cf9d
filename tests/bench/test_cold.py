"""Builds that find nothing built before."""

import os
from pathlib import Path

import pytest

from bench.cold import cold_builds, environment
from toolchain.build_cache import build_root


def test_environment_is_as_before_when_a_build_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEFORE", "1")
    monkeypatch.delenv("ABSENT", raising=False)
    with environment({"BEFORE": "2", "ABSENT": "3"}):
        assert (os.environ["BEFORE"], os.environ["ABSENT"]) == ("2", "3")
    assert os.environ["BEFORE"] == "1"
    assert "ABSENT" not in os.environ


def test_a_cold_build_finds_an_empty_folder_that_goes_with_it(tmp_path: Path) -> None:
    usual = build_root()
    with cold_builds(tmp_path) as folder:
        assert build_root() == folder
        assert not any(folder.iterdir())
    assert not folder.exists()
    assert build_root() == usual
