"""A part of a fabric is a fabric of its own, and what it reports is in the names of the whole."""

import pytest

from cosim.engines.part import OpenEnd, Part
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.stimulus import Control, Delivery, Operation, Post, injection_target
from wire.trace import Kind, Record, link_source, port_source

SWITCH = SwitchParameters(ports=4)
WHOLE = FabricParameters(
    {"h0": AdapterParameters(), "s0": SWITCH, "s1": SWITCH, "h1": AdapterParameters()},
    (
        LinkParameters("h0", 1, "s0", 4, flight=7),
        LinkParameters("s0", 2, "s1", 2, flight=3),
        LinkParameters("s0", 1, "s1", 1),
        LinkParameters("s1", 3, "h1", 1, flight=5),
    ),
)

"""Links 1 and 2 are between the switches."""


@pytest.fixture
def spines() -> Part:
    return Part(WHOLE, ["s1", "s0"])


@pytest.fixture
def edge() -> Part:
    return Part(WHOLE, {"h1", "s1"})


def test_links_between_its_nodes_are_inside_and_others_lead_out(spines: Part) -> None:
    assert spines.parameters.nodes == {"switch_0": SWITCH, "switch_1": SWITCH}
    assert spines.parameters.links == (
        LinkParameters("switch_0", 2, "switch_1", 2, flight=3),
        LinkParameters("switch_0", 1, "switch_1", 1),
    )
    assert spines.parameters.open_ports == (("switch_0", 4), ("switch_1", 3))
    assert spines.ends == [OpenEnd(link=0, inward=0, flight=7), OpenEnd(link=3, inward=1, flight=5)]


def test_like_parts_are_alike_but_for_who_they_are() -> None:
    parts = [Part(WHOLE, ["h0"]), Part(WHOLE, ["h1"])]
    assert parts[0].parameters == parts[1].parameters
    assert [part.identities[0].description for part in parts] == ["h0", "h1"]


def test_control_operations_find_what_they_are_for(edge: Part) -> None:
    def target(operation: Operation, whole: int) -> int | None:
        given = edge.control(Control(5, operation, whole, (1, 2, 3, 4)))
        assert given is None or given == Control(5, operation, given.target, (1, 2, 3, 4))
        return given and given.target

    assert [target(Operation.BUS_WRITE, node) for node in range(4)] == [None, None, 0, 1]
    assert [target(Operation.HOST_SM, node) for node in (0, 3)] == [None, 1]
    # Its one link inside is the first; links that lead out follow in the order of its ports.
    assert [target(Operation.LINK_DOWN, link) for link in range(4)] == [None, 2, 1, 0]
    # An error on a link that leads out is in the rows that are played.
    assert [
        target(Operation.INJECT, injection_target(link, direction)) for link in range(4) for direction in (0, 1)
    ] == [None] * 6 + [0, 1]


def test_packets_go_to_its_adapters(edge: Part) -> None:
    assert edge.post(Post(3, 0, 1, b"1234")) is None
    assert edge.post(Post(3, 3, 1, b"1234")) == Post(3, 1, 1, b"1234")


def test_its_events_are_events_of_the_whole(edge: Part) -> None:
    assert edge.record(Record(9, port_source(0, 2), Kind.STATE, 3)) == Record(9, port_source(2, 2), Kind.STATE, 3)
    assert edge.record(Record(9, link_source(0, 1), Kind.INJECT, 3)) == Record(9, link_source(3, 1), Kind.INJECT, 3)
    assert edge.delivery(Delivery(4, 1, 0, (7,))) == Delivery(4, 3, 0, (7,))


def test_errors_on_links_that_lead_out_are_events_of_the_rest(edge: Part) -> None:
    assert [edge.has(port_source(node, 1)) for node in range(4)] == [False, False, True, True]
    assert [edge.has(link_source(link, 0)) for link in range(4)] == [False, False, False, True]
