"""What a saturated switch delivers."""

from pathlib import Path

import pytest

from bench.throughput import LOST, throughput
from cosim.engines import simulation
from tests.bench.machines import ON_THE_MODEL

FIGURE = "throughput_voq_256"


def test_saturated_switch_delivers_most_of_what_its_links_carry_and_all_arrives(tmp_path: Path) -> None:
    found = throughput(FIGURE, ON_THE_MODEL, [FIGURE], tmp_path)
    share = found.readings[FIGURE]
    assert 0.9 < share.value <= 1
    assert share.least <= share.value <= share.most
    assert (found.readings[LOST].value, found.faults) == (0, [])


def test_packet_that_does_not_arrive_is_counted_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulation.run

    def losing(engine, spec, work_dir, *, on_delivery):
        arrived = 0

        def lose_the_hundredth(delivery):
            nonlocal arrived
            arrived += 1
            if arrived != 100:
                on_delivery(delivery)

        return run(engine, spec, work_dir, on_delivery=lose_the_hundredth)

    monkeypatch.setattr(simulation, "run", losing)
    assert throughput(FIGURE, ON_THE_MODEL, [FIGURE], tmp_path).readings[LOST].value == 1
