"""Which QoS level the paths of a subnet have, by the policy of its Subnet Manager."""

from __future__ import annotations

from sm.partitions import DEFAULT_PARTITION, P_KEY_BASE, Partitions, by_partition
from sm.qos_policy import PortGroup, QosLevel, QosPolicy, in_ranges
from sm.sa.view import SubnetView
from sm.subnet import End
from wire.layout import Record

__all__ = ["QosLevels"]


class QosLevels:
    """A policy, whose groups' ports have been looked for in a subnet."""

    def __init__(self, policy: QosPolicy, view: SubnetView) -> None:
        self._view = view
        self._default = policy.default
        self._partitions = (view.settings.partitions or Partitions(())).names
        self._described: dict[str, int] = {}
        """GUIDs by NodeDescription; of several nodes the lowest, as in OpenSM."""
        for guid in sorted(view.subnet.nodes):
            self._described.setdefault(view.subnet.nodes[guid].description, guid)
        self._rules = [(rule, self._ends(rule.sources), self._ends(rule.destinations)) for rule in policy.rules]

    def level(self, source: End, destination: End, query: Record, names: set[str]) -> QosLevel:
        """That of packets from a port to another, by what a query says of them."""
        for rule, sources, destinations in self._rules:
            if (
                (sources is None or source in sources)
                and (destinations is None or destination in destinations)
                and all(
                    not ranges or (name in names and in_ranges(query[name] & mask, ranges))
                    for name, mask, ranges in (
                        ("qos_class", -1, rule.qos_classes),
                        ("service_id", -1, rule.service_ids),
                        ("p_key", P_KEY_BASE, rule.p_keys),
                    )
                )
            ):
                return rule.level
        return self._default

    def _ends(self, groups: tuple[PortGroup, ...]) -> frozenset[End] | None:
        """The ports of any of these; None if there are none, which is any port."""
        if not groups:
            return None
        return frozenset(end for end in self._view.guids if any(self._is_in(group, end) for group in groups))

    def _is_in(self, group: PortGroup, end: End) -> bool:
        view = self._view
        node = view.subnet.nodes[end.guid]
        keys = {DEFAULT_PARTITION} if view.p_keys is None else by_partition(view.p_keys.get(end, ())).keys()
        return (
            node.type in group.node_types
            or in_ranges(view.guids[end], group.guids)
            or (group.has_own and end == view.found.origin)
            or any(
                self._described.get(name) == end.guid and (port <= node.ports if node.is_switch else port == end.port)
                for name, port in group.ports
            )
            or any(in_ranges(key, group.p_keys) for key in keys)
            or any(self._partitions.get(key) in group.partitions for key in keys)
        )
