"""What checks reach of the golden model's decisions adds up in a file."""

import json

import pytest

from cosim.engines.decisions import outcomes
from cosim.engines.never import never
from cosim.experiments.check_coverage import Coverage, add_to_file, check_file, not_reached, refuted
from cosim.experiments.check_experiment import CheckOptions
from toolchain.errors import UserError


def options(seed: int, *, errors: bool = False) -> CheckOptions:
    return CheckOptions(ports=2, cycles=12_000, seed=seed, errors=errors, sim="model")


def test_each_check_adds_what_those_before_did_not_reach(tmp_path):
    file = tmp_path / "coverage.json"
    first = add_to_file(file, options(1))
    again = add_to_file(file, options(1))
    more = add_to_file(file, options(2, errors=True))
    assert first.decisions.new == first.decisions.reached == again.decisions.reached > 500
    assert again.decisions.new == again.limits.new == again.counters.new == 0
    assert 10 < first.counters.new == first.counters.reached == again.counters.reached
    assert more.counters.reached == first.counters.reached + more.counters.new > first.counters.reached
    assert more.decisions.reached == first.decisions.reached + more.decisions.new > first.decisions.reached
    assert more.checks == (options(1).command, options(1).command, options(2, errors=True).command)
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def test_the_file_names_what_was_not_reached(tmp_path):
    file = tmp_path / "coverage.json"
    coverage = add_to_file(file, options(1))
    found = json.loads(file.read_text())
    assert len(found["decisions_not_reached"]) == coverage.decisions.all - coverage.decisions.reached
    assert len(found["limits_not_reached"]) == coverage.limits.all - coverage.limits.reached
    assert len(found["counters_not_reached"]) == coverage.counters.all - coverage.counters.reached
    assert "adapter SYMBOL_ERROR" in found["counters_not_reached"]
    assert "adapter XMIT_PKTS" in found["counters_reached"]
    assert any("true: lrh & _LVER" in one for one in found["decisions_not_reached"])


def test_what_no_check_can_reach_is_not_missed_and_has_its_reason():
    missed = Coverage()
    assert missed.decisions.all + missed.limits.all == len(list(not_reached(()))) == len(outcomes()) - len(never())
    assert all(never().values())


def test_who_reaches_what_was_said_to_be_never_is_told_so():
    one, reason = next(iter(never().items()))
    other = next(not_reached(()))
    assert refuted([one, other]) == (f"{one}, said to be never: {reason}",)
    assert Coverage(frozenset([one, other])).refuted == refuted([one])


def test_a_file_that_cannot_be_written_is_refused_before_the_run(tmp_path):
    with pytest.raises(UserError, match=r"nowhere/coverage\.json: cannot be written"):
        check_file(tmp_path / "nowhere/coverage.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"model": "of old", "checks": [], "reached": []}'])
def test_a_file_of_something_else_is_refused_and_kept(tmp_path, text):
    file = tmp_path / "coverage.json"
    file.write_text(text)
    with pytest.raises(UserError, match=r"coverage\.json: .*expected a (new )?file"):
        check_file(file)
    assert file.read_text() == text
