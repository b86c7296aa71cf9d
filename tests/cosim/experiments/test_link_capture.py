"""Which directions of links a capture is of."""

import pytest

from cosim.experiments.link_capture import NoSuchLink, directions_at, link_capture
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters

FABRIC = FabricParameters(
    {"S": SwitchParameters(ports=4), "A": AdapterParameters(), "B.1": AdapterParameters(), "B.2": AdapterParameters()},
    (LinkParameters("S", 1, "A", 1), LinkParameters("B.2", 1, "S", 3)),
)


@pytest.mark.parametrize(
    ("places", "directions"),
    [
        ([], [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (["A"], [(0, 0), (0, 1)]),
        (["A:out"], [(0, 1)]),
        (["A:in"], [(0, 0)]),
        (["S[1]:out"], [(0, 0)]),
        (["B[2]:out", "A:in"], [(1, 0), (0, 0)]),
        (["S[3]", "B[2]", "S[3]:in"], [(1, 0), (1, 1)]),
    ],
)
def test_a_port_names_the_directions_of_its_link(places: list[str], directions: list[tuple[int, int]]) -> None:
    assert directions_at(FABRIC, places) == directions


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("C", "C: no such node; there are S, A, B[1], B[2]"),
        ("S", "S: is a switch, expected S[PORT]"),
        ("S[5]", "S[5]: expected port 1..4"),
        ("S[2]:in", "S[2]: has no link"),
        ("B", "B: has no link"),
        ("A:up", "'A:up': expected NODE or NODE[PORT]"),
    ],
)
def test_where_there_is_no_link_none_is_captured(place: str, message: str) -> None:
    with pytest.raises(NoSuchLink) as caught, link_capture(FABRIC, "a.pcapng", [place]):
        pass
    assert str(caught.value) == message


def test_without_a_file_nobody_looks() -> None:
    with link_capture(FABRIC, None) as taps:
        assert taps.directions == ()
