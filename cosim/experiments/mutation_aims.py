"""What each check of mutants asks most of, and which components it is for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Final

from cosim.stimulus.injection import has_long_stalls, has_many_outages, is_calm
from cosim.stimulus.random_addresses import has_own_addresses, has_vls_of_pairs
from cosim.stimulus.random_cc_traps import has_cc_traps
from cosim.stimulus.random_congestion import has_congestion_control, has_open_victims
from cosim.stimulus.random_counters import has_crowded_reads, has_crowds_at_stuck_links, has_whole_counters
from cosim.stimulus.random_expiries import has_long_deferrals, has_mass_expiries
from cosim.stimulus.random_groups import has_groups
from cosim.stimulus.random_links import has_many_changes
from cosim.stimulus.random_mads import has_mads, has_many_mads, mostly_about
from cosim.stimulus.random_overruns import has_bursts_anywhere, has_overrun_bursts
from cosim.stimulus.random_packets import (
    has_bursts_to_agent,
    has_mostly_multicast,
    has_shortest_packets,
    has_starved_copies,
    has_steps,
)
from cosim.stimulus.random_rare_settings import (
    has_calls_from_sleep,
    has_generous_limits,
    has_late_lists,
    has_late_stalls,
    has_late_timers,
    has_lone_weights,
    has_narrow_cables,
    has_read_backs,
)
from cosim.stimulus.random_settings import (
    has_limits,
    has_low_lists_alone,
    has_moving_p_keys,
    has_partitions,
    has_settled_arbitration,
    has_settled_limits,
)
from cosim.stimulus.random_traps import has_trap_sweeps, has_traps
from cosim.stimulus.rare_fields import has_long_leases, has_other_lids, has_rare_fields
from cosim.stimulus.rare_rows import (
    has_endless_packets,
    has_marked_link_packets,
    has_met_errors,
    has_rare_rows_at_adapters,
    has_swept_credits,
)
from wire.sma import SmaAttribute

__all__ = ["ADAPTER", "COUNT", "Aim", "aim_of", "seed_of"]

ADAPTER: Final = "adapter"
"""What a component's path begins with, if it is not of a switch but of an adapter."""

_SEEDS: Final = 1_009
_LATER_SEEDS: Final = 20_011
"""What the number of a check that asks most of one part is multiplied by, for the first seed that it may have; of those
behind the first, where some seeds are rare."""

_IDLE_LOAD: Final = 0.05
"""What is put in place of idle data is not damaged by packets then, and MADs meet none."""

_LOW_LOAD: Final = 0.3
_FULL_LOAD: Final = 1.0


def _is_for_tables(seed: int) -> bool:
    """Nothing keeps packets from being judged by P_Key tables, copies too, and traps tell of them."""
    judged = has_moving_p_keys(seed) and has_groups(seed) and has_traps(seed)
    return is_calm(seed) and judged and not has_many_mads(seed)


def _is_for_traps(seed: int) -> bool:
    """There is much to tell of copies."""
    return _is_for_tables(seed) and has_mostly_multicast(seed)


def _is_for_agents(seed: int) -> bool:
    """Agents are asked for all that there is, and tell all."""
    return has_many_mads(seed) and has_congestion_control(seed) and has_traps(seed) and mostly_about(seed) is None


def _is_for_sets(seed: int) -> bool:
    """Agents are told mostly what ports are to do."""
    return has_many_mads(seed) and mostly_about(seed) is SmaAttribute.PORT_INFO


def _is_for_counters(seed: int) -> bool:
    """Packets are as many as there can be, and nodes that are reset have partitions again."""
    return not is_calm(seed) and has_shortest_packets(seed) and has_partitions(seed) and not has_many_mads(seed)


def _is_for_limits(seed: int) -> bool:
    """Many packets wait for long, and VLs stall."""
    return is_calm(seed) and has_settled_limits(seed) and has_shortest_packets(seed) and not has_mads(seed)


def _is_for_stalls(seed: int) -> bool:
    """One head after the other waits for too long, until VLs stall that do so late."""
    return is_calm(seed) and has_settled_limits(seed) and has_long_stalls(seed) and not has_mads(seed)


def _is_for_copies(seed: int) -> bool:
    """Nothing keeps packets to groups off the links."""
    copies = has_groups(seed) and has_mostly_multicast(seed) and has_own_addresses(seed)
    return is_calm(seed) and copies and not has_partitions(seed) and not has_many_mads(seed)


def _is_for_waiting_copies(seed: int) -> bool:
    """Besides, hosts stall for so long that copies wait at several outputs, on several VLs."""
    copies = has_groups(seed) and has_mostly_multicast(seed) and has_long_stalls(seed)
    return is_calm(seed) and copies and not has_many_mads(seed)


def _is_for_judged_copies(seed: int) -> bool:
    """Besides, ports check the P_Keys of what leaves by them: some copies of a packet are rejected, others wait."""
    return _is_for_waiting_copies(seed) and has_partitions(seed) and has_traps(seed)


def _is_for_links(seed: int) -> bool:
    """Links have errors, and nothing but that is long."""
    return not is_calm(seed) and not has_many_mads(seed)


def _is_full(seed: int) -> bool:
    """Nothing keeps data off the links."""
    return is_calm(seed) and not has_mads(seed) and not has_moving_p_keys(seed)


def _is_for_data(seed: int) -> bool:
    """Of VLs that are in no high list, these are not asked."""
    return _is_full(seed) and has_low_lists_alone(seed)


def _is_for_marking(seed: int) -> bool:
    """Packets are marked, and high lists are asked too."""
    lists = has_settled_arbitration(seed) and not has_low_lists_alone(seed)
    return _is_full(seed) and has_congestion_control(seed) and lists


def _is_for_crowds(seed: int) -> bool:
    """Counters are read so often that what is counted waits, links are stuck, and agents find errors too."""
    return not is_calm(seed) and has_crowded_reads(seed) and has_many_mads(seed) and not has_shortest_packets(seed)


def _is_for_marking_beside_copies(seed: int) -> bool:
    """Besides, copies wait for credits too."""
    return _is_for_marking(seed) and has_groups(seed)


def _is_for_halves(seed: int) -> bool:
    """Counters of 64 bits are near their end."""
    return has_whole_counters(seed) and not has_many_mads(seed)


def _is_for_late_lists(seed: int) -> bool:
    """What a high list has left comes to its end."""
    return _is_full(seed) and has_late_lists(seed) and not has_partitions(seed) and not has_long_stalls(seed)


def _is_for_late_stalls(seed: int) -> bool:
    """Hosts stall until a VL does that waits for three heads in a row, or four."""
    return _is_full(seed) and has_late_stalls(seed) and has_long_stalls(seed)


def _is_for_narrow_cables(seed: int) -> bool:
    """Packets go from ports and to ports that have fewer lanes than their cables."""
    return _is_full(seed) and has_narrow_cables(seed)


def _is_for_read_backs(seed: int) -> bool:
    """The bus is not needed by agents."""
    return has_read_backs(seed) and not has_many_mads(seed)


def _is_for_rare_fields(seed: int) -> bool:
    """Most of them are in Sets of PortInfo."""
    return has_rare_fields(seed) and _is_for_sets(seed)


def _is_for_trap_sweeps(seed: int) -> bool:
    """There are wrong P_Keys to tell of, too."""
    return has_trap_sweeps(seed) and has_partitions(seed)


def _is_for_many_changes(seed: int) -> bool:
    """Somebody is told of them."""
    return has_many_changes(seed) and not is_calm(seed) and has_traps(seed)


def _is_for_mass_expiries(seed: int) -> bool:
    """Many packets are taken that have outlived their time."""
    return has_mass_expiries(seed) and has_shortest_packets(seed) and _is_full(seed)


def _is_for_bursts_to_agent(seed: int) -> bool:
    """Nothing keeps them off the links, and the agent has a LID."""
    return has_bursts_to_agent(seed) and has_congestion_control(seed) and is_calm(seed) and not has_mads(seed)


def _is_for_steps(seed: int) -> bool:
    """It is marked by what waits, and all hosts draw alike."""
    marked = has_congestion_control(seed) and not has_mads(seed)
    return (
        has_steps(seed) and is_calm(seed) and marked and not has_shortest_packets(seed) and not has_own_addresses(seed)
    )


def _is_for_vls_of_pairs(seed: int) -> bool:
    """Copies of several VLs wait."""
    copies = has_groups(seed) and has_mostly_multicast(seed) and not has_many_mads(seed)
    return has_vls_of_pairs(seed) and has_own_addresses(seed) and is_calm(seed) and copies


def _is_for_open_victims(seed: int) -> bool:
    """Copies lack credits, too."""
    marked = has_congestion_control(seed) and not has_mads(seed) and not has_cc_traps(seed)
    return has_open_victims(seed) and has_groups(seed) and is_calm(seed) and marked


def _is_for_resets(seed: int) -> bool:
    """Nodes are reset all the time, while hosts have something to send."""
    return not is_calm(seed) and has_many_outages(seed) and not has_many_mads(seed)


def _is_full_of_least(seed: int) -> bool:
    """Nothing keeps the shortest packets off the links for long."""
    return _is_full(seed) and has_shortest_packets(seed) and not has_partitions(seed) and not has_long_stalls(seed)


def _is_for_generous_limits(seed: int) -> bool:
    """High lists serve all VLs until their limit is spent."""
    return has_generous_limits(seed) and _is_full_of_least(seed)


def _is_for_lone_weights(seed: int) -> bool:
    """A VL's only entry has its turn again and again."""
    return has_lone_weights(seed) and _is_full_of_least(seed)


def _is_for_overrun_bursts(seed: int) -> bool:
    """Buffers fill, and nothing cuts off what is put in place of idle data."""
    return has_overrun_bursts(seed) and _is_full(seed) and not has_partitions(seed)


def _is_for_endless_packets(seed: int) -> bool:
    """Nothing else comes on links that are idle."""
    return has_endless_packets(seed) and is_calm(seed) and not has_many_mads(seed)


def _is_for_met_errors(seed: int) -> bool:
    """Agents find no others."""
    return has_met_errors(seed) and is_calm(seed) and not has_mads(seed)


def _is_for_swept_credits(seed: int) -> bool:
    """Packets are there for which credits are few."""
    return has_swept_credits(seed) and _is_full(seed) and not has_partitions(seed) and not has_long_stalls(seed)


def _is_for_long_leases(seed: int) -> bool:
    """Sets of PortInfo begin them, and no reset ends them."""
    return has_long_leases(seed) and _is_for_sets(seed) and is_calm(seed) and not has_rare_fields(seed)


def _is_for_late_timers(seed: int) -> bool:
    """VL 0 of no link has anything to send."""
    return has_late_timers(seed) and not has_own_addresses(seed)


def _is_for_crowds_at_stuck_links(seed: int) -> bool:
    """There are errors, and counters are read."""
    crowded = has_crowds_at_stuck_links(seed) and has_crowded_reads(seed)
    return crowded and not is_calm(seed) and not has_late_timers(seed)


def _is_for_starved_copies(seed: int) -> bool:
    """Nothing else keeps packets waiting, and those with credits are marked."""
    marked = has_starved_copies(seed) and _is_full(seed) and has_groups(seed) and has_congestion_control(seed)
    kept = has_partitions(seed) or has_limits(seed) or has_steps(seed) or has_late_timers(seed) or has_cc_traps(seed)
    return marked and not kept and not has_mostly_multicast(seed) and not has_shortest_packets(seed)


def _is_for_calls_from_sleep(seed: int) -> bool:
    """Nothing else is told meanwhile."""
    return has_calls_from_sleep(seed) and is_calm(seed) and not has_mads(seed)


def _is_for_other_lids(seed: int) -> bool:
    """Hosts ask their agents by LIDs that these have for some time."""
    return has_other_lids(seed) and has_many_mads(seed) and is_calm(seed) and mostly_about(seed) is None


def _is_for_long_deferrals(seed: int) -> bool:
    """Heads wait at the port whose link is lost, and have no other limits."""
    return has_long_deferrals(seed) and _is_full(seed) and not has_limits(seed) and not has_late_stalls(seed)


def _is_for_bursts_anywhere(seed: int) -> bool:
    """Buffers fill, and nothing cuts off what is put in place of idle data."""
    return has_bursts_anywhere(seed) and _is_full(seed) and not has_partitions(seed)


def _is_for_marked_link_packets(seed: int) -> bool:
    """Nothing else damages flow control packets."""
    return has_marked_link_packets(seed) and is_calm(seed)


def _at_adapters(fits: Callable[[int], bool]) -> Callable[[int], bool]:
    """The same, where rare rows go to adapters."""
    return lambda seed: has_rare_rows_at_adapters(seed) and fits(seed)


@dataclass(frozen=True)
class Aim:
    """A check that asks most of one part.

    Attributes:
        fits: whether a seed does that.
        load: if not one of `_LOADS`.
        times: its cycles are so many times as many.
        of: what the names of components have in them that go through it.
    """

    fits: Callable[[int], bool]
    load: float | None = None
    times: int = 5
    of: tuple[str, ...] = ("",)


_TABLES: Final = Aim(_is_for_tables)
_AGENTS: Final = Aim(_is_for_agents, _IDLE_LOAD)
_SETS: Final = Aim(_is_for_sets, _IDLE_LOAD)
_COUNTERS: Final = Aim(_is_for_counters)
_COPIES: Final = Aim(_is_for_copies, _FULL_LOAD)
_LINKS: Final = Aim(_is_for_links, _IDLE_LOAD)
_DATA: Final = Aim(_is_for_data, _FULL_LOAD)
_MARKING: Final = Aim(_is_for_marking, _FULL_LOAD)
_LIMITS: Final = Aim(_is_for_limits, _FULL_LOAD)

_LONG: Final = 25
_FIRST: Final[dict[int, Aim]] = {
    **dict.fromkeys((2, 10), _TABLES),
    4: replace(_AGENTS, load=None),
    12: replace(_SETS, load=None),
    **dict.fromkeys((5, 13), _COUNTERS),
    **dict.fromkeys((6, 14), _COPIES),
    **dict.fromkeys((7, 15), _LINKS),
    8: _DATA,
    9: _LIMITS,
    16: _MARKING,
    **dict.fromkeys((17, 20), replace(_AGENTS, times=_LONG, of=("agent", "vl_arbiter.turn"))),
    18: replace(_SETS, times=_LONG, of=("agent",)),
    19: Aim(_is_for_traps, times=_LONG, of=("agent", "inspection")),
    21: replace(_MARKING, times=_LONG, of=("vl_arbiter", "flow_control", "congestion")),
    22: replace(_LIMITS, times=_LONG, of=("head_of_queue",)),
}
"""Of the first checks, by number. Two are without errors; nineteen ask most of one part: P_Keys are in each place of
a table, agents take hundreds of MADs, in some mostly what sets a port, counters have more to count than elsewhere,
copies to groups fill the links, what is sent in place of idle data comes whole, and where data fills the links counts
of blocks reach their upper bits, VLs stall until that is over, high lists reach their limits and packets are marked.
Six of these are long, and of components that have little to do in the others alone: agents take hundreds of cycles for
a MAD, entries of VL arbitration last for hundreds of packets, and a stall for thousands of cycles."""

_FIRST_COUNT: Final = 22
_OF_DATA: Final = ("input", "arrivals", "matcher", "crossbar", "output")
_ROUND: Final = (
    replace(_TABLES, of=("input", "p_key", "arrivals")),
    Aim(_is_for_traps, of=("input", "agent")),
    replace(_AGENTS, of=("agent", "bus", "registers", "congestion", "port_decoder", "vl_arbiter.turn")),
    replace(_SETS, of=("agent", "bus", "registers", "port_state", "port_decoder")),
    replace(_COUNTERS, of=("port_",)),
    Aim(_is_for_crowds, of=("port_",)),
    Aim(_is_for_halves, of=("counters",)),
    replace(_COPIES, of=_OF_DATA),
    replace(_LINKS, of=("port_",)),
    replace(_DATA, of=(*_OF_DATA, "flow_control", "transmitter")),
    replace(_MARKING, fits=_is_for_marking_beside_copies, of=("congestion", "marking", *_OF_DATA)),
    Aim(_is_for_waiting_copies, _FULL_LOAD, of=_OF_DATA),
    Aim(_is_for_stalls, _FULL_LOAD, of=("life_time", "xmit_wait", *_OF_DATA)),
    Aim(_is_for_resets),
    Aim(_is_for_judged_copies, _FULL_LOAD, of=("input",)),
)
"""What those behind the first ask most of, in turn, each time with another seed: of components that have to do with it.
Besides, counters are read as often as may be while links are stuck, or are near the end of their 64 bits, hosts stall
for long, so that copies wait, or one head after the other does for too long, and nodes are reset all the time."""

_RARE: Final = (
    Aim(_is_for_late_lists, _FULL_LOAD, times=15, of=("vl_arbiter",)),
    Aim(_is_for_late_stalls, _FULL_LOAD, of=("output", "head_of_queue")),
    Aim(_is_for_narrow_cables, _FULL_LOAD, of=("port_", *_OF_DATA)),
    Aim(_is_for_mass_expiries, _FULL_LOAD, times=_LONG, of=("store.buffer", "life_time", "reader")),
    Aim(_is_for_bursts_to_agent, _FULL_LOAD, of=("input", "agent_store")),
    Aim(_is_for_steps, _LOW_LOAD, times=_LONG, of=("arrivals", "congestion")),
    Aim(_is_for_vls_of_pairs, _FULL_LOAD, of=("input", "crossbar")),
    Aim(_is_for_open_victims, _FULL_LOAD, of=("input", "congestion", "marking")),
    Aim(_is_for_rare_fields, _IDLE_LOAD, of=("agent",)),
    Aim(_is_for_trap_sweeps, _IDLE_LOAD, of=("agent",)),
    Aim(_is_for_many_changes, _IDLE_LOAD, of=("agent", "port_state")),
    Aim(_is_for_read_backs, of=("port_", "route", "registers", "flow_control", "watchdog")),
)
"""Of what no other has, or seldom, in turn behind all of those."""

_RAREST: Final = (
    Aim(_is_for_generous_limits, _FULL_LOAD, times=15, of=("vl_arbiter",)),
    Aim(_is_for_lone_weights, _FULL_LOAD, times=15, of=("vl_arbiter",)),
    Aim(_is_for_overrun_bursts, _FULL_LOAD, of=("port_",)),
    Aim(_is_for_endless_packets, _IDLE_LOAD, of=("packet_check", "receiver", "counters")),
    Aim(_is_for_met_errors, _IDLE_LOAD, of=("agent", "port_")),
    Aim(_is_for_swept_credits, _LOW_LOAD, times=_LONG, of=("input", "output", "flow_control")),
    Aim(_is_for_long_leases, _IDLE_LOAD, times=15, of=("agent",)),
    Aim(_is_for_late_timers, times=15, of=("watchdog", "flow_control")),
    Aim(_is_for_crowds_at_stuck_links, _FULL_LOAD, of=("counters",)),
)
"""Of what these have not either."""

_STARVED_COPIES: Final = Aim(_is_for_starved_copies, _FULL_LOAD, of=("store.queues", "congestion", "marking"))

_RARE_AT_LINKS: Final = (
    Aim(_is_for_calls_from_sleep, _IDLE_LOAD, of=("port_",)),
    Aim(_is_for_bursts_anywhere, _FULL_LOAD, of=("port_",)),
    Aim(_is_for_long_deferrals, _FULL_LOAD, of=("output", "head_of_queue", "port_state", "life_time")),
)
"""Of what ports have in none of these: links are lost just as these are told of it, or for long; VL15 has no room."""

_OF_ADAPTERS: Final = (
    Aim(
        _is_for_other_lids,
        _IDLE_LOAD,
        of=(f"{ADAPTER}.agent", f"{ADAPTER}.registers", f"{ADAPTER}.input", f"{ADAPTER}.matcher"),
    ),
    Aim(_at_adapters(_is_for_endless_packets), _IDLE_LOAD, of=(f"{ADAPTER}.port_",)),
    Aim(_at_adapters(_is_for_met_errors), _IDLE_LOAD, of=(f"{ADAPTER}.agent", f"{ADAPTER}.port_")),
    Aim(_at_adapters(_is_for_swept_credits), _LOW_LOAD, of=(f"{ADAPTER}.port_", f"{ADAPTER}.output")),
    Aim(_at_adapters(_is_for_marked_link_packets), _IDLE_LOAD, of=(f"{ADAPTER}.port_",)),
)
"""Of what adapters have not in all of these, as there it is for switches."""

_LATER: Final = (
    *_ROUND * 6,
    *_RARE * 4,
    *_RAREST * 4,
    *(_STARVED_COPIES,) * 3,
    *_RARE_AT_LINKS * 3,
    *_OF_ADAPTERS * 3,
)
"""Behind the first."""

COUNT: Final = _FIRST_COUNT + len(_LATER)
"""Of checks."""


def aim_of(number: int) -> Aim | None:
    """What a check asks most of, if anything."""
    return _FIRST.get(number) if number <= _FIRST_COUNT else _LATER[number - _FIRST_COUNT - 1]


@cache
def seed_of(number: int) -> int:
    """The first that fits what the check asks most of: some are one of thousands. Else its number."""
    if (aim := aim_of(number)) is None:
        return number
    first = number * (_SEEDS if number <= _FIRST_COUNT else _LATER_SEEDS)
    return next(filter(aim.fits, count(first)))
