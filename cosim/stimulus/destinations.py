"""To which hosts the packets of a flow go: one after the other, and how often in the long run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle as repeated
from random import Random

from cosim.scenario.pattern import PERMUTATIONS, partners, turns
from cosim.scenario.scenario import Scenario
from cosim.scenario.tables import Flow

__all__ = ["destination_shares", "next_destination", "partners_of"]


def partners_of(scenario: Scenario, flow: Flow, seed: str) -> dict[str, str]:
    """To which host each host sends in a pattern that gives it one; empty in the others."""
    if flow.pattern not in PERMUTATIONS:
        return {}
    hosts = list(scenario.lids)
    return {hosts[host]: hosts[partner] for host, partner in enumerate(partners(flow.pattern, len(hosts), seed))}


def next_destination(
    scenario: Scenario, flow: Flow, source: str, partner: str | None, random: Random
) -> Callable[[], str]:
    """What says to which host a flow's next packet from `source` goes; `partner` is as partners_of says."""
    destinations = scenario.destinations_of(flow, source)
    if partner is not None:
        return lambda: partner
    if len(destinations) == 1:
        return lambda: destinations[0]
    if flow.pattern == "all_to_all":
        hosts = list(scenario.lids)
        return map(hosts.__getitem__, repeated(turns(hosts.index(source), len(hosts)))).__next__
    if flow.pattern == "hotspot" and source != (hot := _hot(scenario, flow)):
        others = [host for host in destinations if host != hot]
        return lambda: hot if random.random() < flow.hot_share else random.choice(others)
    return lambda: random.choice(destinations)


def destination_shares(scenario: Scenario, flow: Flow, seed: str) -> dict[tuple[str, str], float]:
    """Of the packets of each source the share that each destination gets in the long run, where it gets any."""
    chosen = partners_of(scenario, flow, seed)
    if chosen:
        return {(source, chosen[source]): 1.0 for source in scenario.sources_of(flow)}
    shares: dict[tuple[str, str], float] = {}
    for source in scenario.sources_of(flow):
        destinations = scenario.destinations_of(flow, source)
        each = dict.fromkeys(destinations, 1 / len(destinations))
        if flow.pattern == "hotspot" and source != (hot := _hot(scenario, flow)):
            each = dict.fromkeys(destinations, (1 - flow.hot_share) / (len(destinations) - 1)) | {hot: flow.hot_share}
        shares |= {(source, to): share for to, share in each.items() if share > 0}
    return shares


def _hot(scenario: Scenario, flow: Flow) -> str:
    """The host that gets more than the others."""
    return scenario.host_of(flow.hot) if flow.hot is not None else next(iter(scenario.lids))
