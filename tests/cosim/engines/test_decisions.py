"""The watched model is the plain one, and says which ways its decisions went."""

import pytest

import model.fabric
from cosim.engines import decisions
from cosim.engines.base import NO_TAPS
from cosim.engines.decisions import Outcome
from cosim.engines.model import ModelRun
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.run_spec import Stimulus
from wire.row_crc import PERIOD
from wire.trace import Record


def trace(fabric: type[model.fabric.Fabric], options: CheckOptions) -> list[Record]:
    spec = check_experiment(options).spec()
    return list(ModelRun(spec, Stimulus(spec), None, NO_TAPS, rows=PERIOD, model=fabric).records(spec.cycles))


def ways(source: str, among: frozenset[Outcome] | tuple[Outcome, ...]) -> set[str]:
    """The outcomes of an expression of the header's checks (docs/pipeline.md, section 3.3)."""
    return {one.way for one in among if one.file == "link/packet_check.py" and one.source == source}


@pytest.mark.parametrize("seed", [1, 2])
def test_the_watched_model_gives_the_trace_of_the_plain_one(seed):
    options = CheckOptions(ports=3, cycles=12_000, seed=seed, sim="model")
    assert trace(decisions.fabric_class(), options) == trace(model.fabric.Fabric, options)


def test_a_decision_goes_two_ways_and_a_limit_has_three_sides():
    assert ways("lrh & _LVER", decisions.outcomes()) == {"true", "false"}
    assert ways("n > largest", decisions.outcomes()) == {"true", "false", "less", "equal", "greater"}
    assert ways("LID_MULTICAST_MIN <= lrh & _DLID", decisions.outcomes()) == {"less", "equal", "greater"}


def test_every_decision_has_a_place_of_its_own_in_the_sources():
    places = {outcome.place for outcome in decisions.outcomes()}
    assert len(places) == len(decisions.outcomes()) > 2_000


def test_only_what_happens_is_reached():
    decisions.watch_anew()
    assert not decisions.reached()
    trace(decisions.fabric_class(), CheckOptions(ports=2, cycles=12_000, errors=False, sim="model"))
    reached = decisions.reached()
    assert ways("lrh & _LVER", reached) == {"false"}
    assert "greater" not in ways("n > largest", reached)
    assert {"less", "equal"} & ways("n > largest", reached)
