"""Which engines there are."""

from pathlib import Path

import pytest

from cosim.engines.base import ENGINES, UnknownEngine
from cosim.engines.simulation import run
from tests.cosim.engines.echo_engines import random_spec


def test_unknown_engine_is_refused(tmp_path: Path) -> None:
    assert ENGINES == ("verilator", "icarus", "amaranth", "model")
    with pytest.raises(UnknownEngine, match="engine 'vcs': expected one of verilator, icarus, amaranth, model"):
        run("vcs", random_spec(1), tmp_path)
