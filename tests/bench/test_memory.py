"""Peak memory of a run."""

from pathlib import Path

import pytest

from bench.memory import memory
from bench.settings import Settings


@pytest.mark.deep
def test_a_longer_run_takes_no_more_memory(tmp_path: Path) -> None:
    readings = memory(Settings(ports=2, quick=True), ["peak_rss_mb", "peak_rss_growth"], tmp_path).readings
    assert readings["peak_rss_mb"].value > 0
    assert readings["peak_rss_growth"].value < 1.05
