"""What management costs."""

from pathlib import Path

from bench.management import MANAGEMENT_FIGURES, management
from tests.bench.machines import ON_THE_MODEL


def test_a_small_fabric_comes_up_by_few_smps_and_an_agent_answers_in_its_time(tmp_path: Path) -> None:
    found = management(ON_THE_MODEL, MANAGEMENT_FIGURES, tmp_path)
    assert found.faults == []
    assert found.readings["bringup_smps"].value <= 40
    assert found.readings["bringup_cycles"].value > 0
    # docs/management.md, section 2: T = z + 4, 73 steps (4.3), then an offer, and SEND in the cycle after it is taken.
    assert found.readings["smp_turnaround_cycles"].value == 4 + 73 + 1
