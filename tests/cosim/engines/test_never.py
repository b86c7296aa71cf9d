"""Ways that no check can go are ways of the golden model."""

import pytest

from cosim.engines.decisions import outcomes
from cosim.engines.never import never, ways_of

LIMIT = """["link/packet_check.py header_rejection"]
"equal: n > largest" = "not so"
"""


def test_each_of_them_is_of_the_model_and_has_its_reason():
    assert never().keys() < set(outcomes())
    assert all(never().values())


def test_a_way_is_named_by_its_function_and_expression():
    ((outcome, reason),) = ways_of(LIMIT).items()
    assert (outcome.file, outcome.source, outcome.way) == ("link/packet_check.py", "n > largest", "equal")
    assert reason == "not so"


def test_an_expression_stands_for_all_of_its_places_or_with_a_number_for_one():
    function = '["crossing/matcher.py Matcher._first"]'
    both = ways_of(f'{function}\n"true: inputs" = "both"')
    (second,) = ways_of(f'{function}\n"true: inputs (2)" = "the second"')
    assert len(both) == 2
    assert second == max(both)


@pytest.mark.parametrize("wrong", ["equal: n < largest", "true: n >= largest", "equal: n > largest (2)"])
def test_what_the_model_does_not_have_is_refused(wrong):
    with pytest.raises(LookupError, match=r"the golden model has no link/packet_check\.py \S+ \w+: n"):
        ways_of(LIMIT.replace("equal: n > largest", wrong))
