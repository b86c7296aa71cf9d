"""How fast captures are read."""

from pathlib import Path

from bench.captures import captures
from tests.bench.machines import ON_THE_MODEL


def test_every_packet_of_the_capture_is_read(tmp_path: Path) -> None:
    found = captures(ON_THE_MODEL, ["capture_packets_per_s"], tmp_path)
    assert found.faults == []
    assert found.readings["capture_packets_per_s"].least > 0
