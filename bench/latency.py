"""How long an idle switch keeps a packet: from SDP on the wires of an input to SDP on those of an output."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import median

from bench.figures import Measured, Reading
from bench.settings import Settings
from cosim.engines import simulation
from cosim.experiments.experiment import Experiment, scenario_experiment
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.packet import Packet, UdPackets
from wire.trace import Kind, Record
from wire.trace_layout import TxData

__all__ = ["latency"]

_SIZES = (256, 2048)
_GAP = 700
"""Cycles between packets: even the longest has left the switch, and its credits are back."""


def latency(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """`latency_cycles`: single packets from every port to the next, 4X on both sides.

    The median of all; a packet that meets a flow control packet at its output takes a few cycles more.
    """
    experiment = _lone_packets(settings)
    with simulation.run(settings.sim, experiment.spec(), work_dir) as run:
        found = sorted(_latencies(experiment, run))
    return Measured({"latency_cycles": Reading(median(found), found[0], found[-1])})


def _lone_packets(settings: Settings) -> Experiment:
    """A packet of each size from each port to the next, one at a time."""
    idle = scenario_experiment(uniform_load(settings.ports, cycles=1, seed=settings.seed))
    hosts = list(idle.topology.lids)
    followers = [*hosts[1:], hosts[0]]
    pairs = [(*pair, size) for pair in zip(hosts, followers, strict=True) for size in _SIZES]

    def packets() -> Iterator[Packet]:
        make = UdPackets(Random(settings.seed))
        for sequence, (source, destination, size) in enumerate(pairs):
            data = make.data(
                slid=idle.topology.lids[source],
                dlid=idle.topology.lids[destination],
                sl=0,
                vl=0,
                flow=0,
                sequence=sequence,
                size=size,
            )
            yield Packet(0, sequence, idle.start + sequence * _GAP, source, destination, 0, 0, data)

    end = idle.start + len(pairs) * _GAP
    return replace(idle, end=end, cycles=end, packets=packets)


def _latencies(experiment: Experiment, records: Iterable[Record]) -> Iterator[int]:
    """Of each packet: SDP out, which the switch's TX_DATA has, minus SDP in, a flight after the host's."""
    topology = experiment.topology
    flights = {
        topology.source(port): topology.flight(port) for port in topology.linked_ports() if port.node in topology.lids
    }
    arrived = 0
    for record in records:
        if record.kind == Kind.TX_DATA:
            if record.source in flights:
                arrived = TxData.first_cycle.read(record) + flights[record.source]
            else:
                yield TxData.first_cycle.read(record) - arrived
