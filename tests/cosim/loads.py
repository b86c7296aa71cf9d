"""Random loads on fabrics that other tests build, too."""

from cosim.experiments.check_experiment import CheckOptions
from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import load_scenario
from cosim.scenario.tables import ANY_HOST, Flow

__all__ = ["HOSTS_ALIKE", "jam_under_load"]

HOSTS_ALIKE = CheckOptions(ports=3, vls=2, seed=1_972)
"""Its hosts H1 and H3 are built alike, and so compiled once; H2 has one VL, and the switch two readers.

Another seed has to be found for this whenever a check draws something more: `test_loads.py` says when.
"""


def jam_under_load(cycles: int, size: tuple[int, int], rate: float) -> Scenario:
    """The switch and the two hosts of the traffic jam, both of which send packets of random sizes at random times."""
    flow = {"from": ANY_HOST, "to": ANY_HOST, "size": size, "rate": rate, "arrivals": "random"}
    return load_scenario("jam").model_copy(update={"cycles": cycles, "flows": (Flow.model_validate(flow),)})
