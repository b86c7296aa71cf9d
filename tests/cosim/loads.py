"""Random loads on a fabric that other tests build, too."""

from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import load_scenario
from cosim.scenario.tables import ANY_HOST, Flow

__all__ = ["jam_under_load"]


def jam_under_load(cycles: int, size: tuple[int, int], rate: float) -> Scenario:
    """The switch and the two hosts of the traffic jam, both of which send packets of random sizes at random times."""
    flow = {"from": ANY_HOST, "to": ANY_HOST, "size": size, "rate": rate, "arrivals": "random"}
    return load_scenario("jam").model_copy(update={"cycles": cycles, "flows": (Flow.model_validate(flow),)})
