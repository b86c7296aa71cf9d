"""The golden model as an engine: what it does not do."""

from pathlib import Path

import pytest

from cosim.engines.base import WavesUnsupported
from cosim.engines.simulation import run
from tests.cosim.engines.echo_engines import random_spec


def test_model_has_no_waves(tmp_path: Path) -> None:
    with (
        pytest.raises(WavesUnsupported, match="the model has no wires to record"),
        run("model", random_spec(1), tmp_path, waves=tmp_path / "w.fst") as records,
    ):
        list(records)
