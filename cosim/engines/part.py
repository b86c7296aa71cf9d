"""A part of a fabric: some of its nodes and the links among them, as a fabric of its own with open ports.

Nodes and links of the part are numbered anew, and its nodes named by their kinds, so identical parts are one design.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from wire.parameters import FabricParameters, SwitchParameters
from wire.stimulus import Control, Delivery, Operation, Post, injected_link, injection_target
from wire.trace import LINK_SOURCE, Record, link_of_source, link_source, port_of_source, port_source

__all__ = ["OpenEnd", "Part"]


@dataclass(frozen=True)
class OpenEnd:
    """A link that leads out of a part.

    Attributes:
        link: its index in the whole fabric.
        inward: its direction into the part: 0 from `a` to `b`, 1 back.
        flight: its flight time in cycles.
    """

    link: int
    inward: int
    flight: int


class Part:
    """Some nodes of a fabric; translates between the numbers of the whole and those of the part.

    Attributes:
        parameters: the part as a fabric.
        identities: of its nodes.
        ends: what is behind each of its open ports.
    """

    def __init__(self, whole: FabricParameters, names: Collection[str]) -> None:
        """The nodes of these names."""
        nodes = [(index, name) for index, name in enumerate(whole.nodes) if name in names]
        called = {
            name: f"{'switch' if isinstance(whole.nodes[name], SwitchParameters) else 'adapter'}_{place}"
            for place, (_index, name) in enumerate(nodes)
        }
        places = list(called)
        inside = {}
        leaving = []
        for index, link in enumerate(whole.links):
            if link.a in called and link.b in called:
                inside[index] = replace(link, a=called[link.a], b=called[link.b])
            elif link.a in called or link.b in called:
                inward = int(link.a in called)
                name, port = (link.a, link.a_port) if inward else (link.b, link.b_port)
                leaving.append((places.index(name), port, OpenEnd(index, inward, link.flight)))
        leaving.sort(key=lambda end: end[:2])
        self.ends = [end for _place, _port, end in leaving]
        self.identities = [whole.identity(name) for name in called]
        self.parameters = FabricParameters(
            {called[name]: whole.nodes[name] for name in called},
            tuple(inside.values()),
            open_ports=tuple((called[places[place]], port) for place, port, _end in leaving),
        )
        self._nodes = [index for index, _name in nodes]
        self._node_places = {index: place for place, index in enumerate(self._nodes)}
        self._links = [*inside, *(end.link for end in self.ends)]
        self._link_places = {index: place for place, index in enumerate(self._links)}

    def has_node(self, node: int) -> bool:
        """Whether the whole fabric's node of this index is in the part."""
        return node in self._node_places

    def has(self, source: int) -> bool:
        """Whether records of this source of the whole fabric's trace come from the part.

        Errors on links that lead out of it do not: they are injected where the part's rows are played.
        """
        if source & LINK_SOURCE:
            place = self._link_places.get(link_of_source(source)[0])
            return place is not None and place < len(self.parameters.links)
        return port_of_source(source)[0] in self._node_places

    # From the whole to the part.

    def control(self, control: Control) -> Control | None:
        """A control operation as the part knows it; None if it is not for it."""
        match control.operation:
            case Operation.LINK_DOWN | Operation.LINK_UP:
                place = self._link_places.get(control.target)
            case Operation.INJECT:
                link, direction = injected_link(control.target)
                place = self._link_places.get(link)
                if place is not None:
                    place = injection_target(place, direction) if place < len(self.parameters.links) else None
            case _:
                place = self._node_places.get(control.target)
        return None if place is None else control._replace(target=place)

    def post(self, post: Post) -> Post | None:
        """A packet as the part knows it; None if it is not for it."""
        place = self._node_places.get(post.node)
        return None if place is None else post._replace(node=place)

    # From the part to the whole.

    def record(self, record: Record) -> Record:
        """A record of the part in the whole fabric's trace."""
        source = record.source
        if source & LINK_SOURCE:
            place, direction = link_of_source(source)
            return record._replace(source=link_source(self._links[place], direction))
        place, port = port_of_source(source)
        return record._replace(source=port_source(self._nodes[place], port))

    def delivery(self, delivery: Delivery) -> Delivery:
        """A delivery of the part in the whole fabric."""
        return delivery._replace(node=self._nodes[delivery.node])
