"""An experiment: a fabric brought up, traffic, errors, and the counters read at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from struct import iter_unpack
from typing import TYPE_CHECKING, TypeAlias

from cosim.scenario.congestion import Congestion
from cosim.scenario.scenario import Scenario
from cosim.stimulus.bus_bring_up import BUS_READ_CYCLES, BringUp, Settings, bus_bring_up, read_counters
from cosim.stimulus.flows import scenario_packets
from cosim.stimulus.injection import scenario_controls
from cosim.stimulus.packet import Packet
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.topology.topology import Port, Topology
from wire.congestion_control import CcAttribute
from wire.parameters import AdapterParameters
from wire.registers import NodeRegister, PortRegister, congestion_address
from wire.stimulus import Control
from wire.time_limits import NO_LIMIT
from wire.trace import AGENT_PORT

if TYPE_CHECKING:
    from cosim.hosts.manager_host import ManagerHost
    from cosim.hosts.message_hosts import MessageHosts
    from cosim.hosts.packet_sources import PacketSources
    from cosim.stimulus.message_events import MessageListener
    from sm.events import Event

__all__ = ["Experiment", "ManagerListener", "chosen_settings", "experiment_from", "scenario_experiment"]

ManagerListener: TypeAlias = "Callable[[str, int, Event], None]"
"""Takes the host of a Subnet Manager, a cycle, and what happened there."""


@dataclass(frozen=True)
class Experiment:
    """What acts on a fabric. The callables make the same stimulus anew at each call.

    Attributes:
        topology: the fabric and how it is configured; its LIDs and tables are those at `start`.
        start: the cycle from which traffic may start.
        end: the cycle in which the reading of the counters begins.
        cycles: length of the run.
        packets: the packets posted, by cycle.
        controls: the operations from reset on, by cycle, one a cycle.
        managers: the hosts at which Subnet Managers run, made anew at each call.
        messages: the hosts that have messages to send or to get, likewise; None if there are none.
        sources: the hosts that post the packets as congestion control lets them, likewise; None where there is none.
    """

    topology: Topology
    start: int
    end: int
    cycles: int
    packets: Callable[[], Iterator[Packet]]
    controls: Callable[[], Iterator[Control]]
    managers: Callable[[ManagerListener], list[ManagerHost]] = lambda listener: []
    messages: Callable[[MessageListener], MessageHosts | None] = lambda listener: None
    sources: Callable[[MessageListener], PacketSources] | None = None

    def spec(
        self,
        packets: Iterable[Packet] | None = None,
        controls: Iterable[Control] | None = None,
        actor: Actor | None = None,
    ) -> RunSpec:
        """The stimulus for one run of an engine, made anew unless given; `actor` is what hosts do besides."""
        posts = (packet.post(self.topology) for packet in (self.packets() if packets is None else packets))
        return RunSpec(
            self.topology.fabric, self.controls() if controls is None else controls, posts, self.cycles, actor
        )


def scenario_experiment(scenario: Scenario) -> Experiment:
    """The experiment of a scenario."""
    topology = scenario.topology
    return experiment_from(scenario, topology, bus_bring_up(topology, chosen_settings(scenario, topology)))


def chosen_settings(scenario: Scenario, topology: Topology) -> Settings:
    """The registers that a scenario sets, by port."""
    settings: dict[Port, dict[int, int] | dict[PortRegister, int]] = {}
    for name, switch in scenario.switches.items():
        registers = _congestion_words(scenario.congestion, name, topology)
        if switch.life_time != NO_LIMIT:
            registers[NodeRegister.LIFE_TIME] = switch.life_time
        settings[Port(name, AGENT_PORT)] = registers
    for port in topology.linked_ports():
        chosen = [table for table in scenario.ports if table.at == "*" or scenario.port_of(table.at) == port]
        settings[port] = {register: value for table in chosen for register, value in table.registers.items()}
    return settings


def _congestion_words(congestion: Congestion | None, switch: str, topology: Topology) -> dict[int, int]:
    """The words of a switch's SwitchCongestionSetting, by address, but those that are 0: Control_Map first."""
    if congestion is None or (congestion.switches is not None and switch not in congestion.switches):
        return {}
    far_ends = {port.number: topology.far_end(port) for port in topology.linked_ports() if port.node == switch}
    at_hosts = sum(
        1 << number
        for number, far in far_ends.items()
        if far is not None and isinstance(topology.fabric.nodes[far.node], AdapterParameters)
    )
    words, attribute = iter_unpack(">I", congestion.switch_setting(at_hosts)), CcAttribute.SWITCH_CONGESTION_SETTING
    return {congestion_address(attribute, place): word for place, (word,) in enumerate(words) if word}


def experiment_from(scenario: Scenario, topology: Topology, up: BringUp) -> Experiment:
    """A scenario's experiment, once it is known what brings the fabric up."""
    end = up.start + scenario.cycles
    reads = read_counters(topology, end)

    def controls() -> Iterator[Control]:
        between = (one for one in scenario_controls(scenario, topology, up.start) if one.cycle < end)
        return chain(up.controls, between, reads)

    def messages(listener: MessageListener) -> MessageHosts | None:
        if not scenario.message_flows:
            return None
        from cosim.hosts.message_hosts import MessageHosts

        return MessageHosts(scenario, topology, up.start, listener)

    def sources(congestion: Congestion, listener: MessageListener) -> PacketSources:
        from cosim.hosts.packet_sources import PacketSources

        return PacketSources(scenario, congestion, topology, up.start, listener)

    congestion = scenario.congestion
    return Experiment(
        topology,
        up.start,
        end,
        reads[-1].cycle + BUS_READ_CYCLES + 2,
        lambda: scenario_packets(scenario, topology, up.start, scenario.seed),
        controls,
        messages=messages,
        sources=partial(sources, congestion) if congestion is not None and scenario.packet_flows else None,
    )
