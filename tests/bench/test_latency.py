"""How long an idle switch keeps a packet."""

from pathlib import Path

from bench.latency import latency
from tests.bench.machines import ON_THE_MODEL


def test_lone_packets_take_the_same_time_through_every_port(tmp_path: Path) -> None:
    (found,) = latency(ON_THE_MODEL, ["latency_cycles"], tmp_path).readings.values()
    assert found.least == found.most == found.value
    assert 1 < found.value <= 8
