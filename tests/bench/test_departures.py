"""What hosts have sent, and whether it has arrived."""

import pytest

from bench.departures import Departures
from cosim.experiments.experiment import scenario_experiment
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.packet import Packet
from wire.trace import Kind, Record, port_source

EXPERIMENT = scenario_experiment(uniform_load(2, cycles=1))
HOST = next(iter(EXPERIMENT.topology.lids))


def packet(sequence: int) -> Packet:
    return Packet(0, sequence, 0, HOST, None, 0, 0, b"")


def leaves(departures: Departures, kind: Kind = Kind.TX_DATA) -> None:
    """The host sends what it has been offered first."""
    departures.observe(Record(cycle=1, source=port_source(EXPERIMENT.topology.index[HOST], 1), kind=kind))


@pytest.fixture
def departures() -> Departures:
    found = Departures(EXPERIMENT.topology, EXPERIMENT.end)
    for sequence in range(2):
        found.offer(packet(sequence))
    return found


def test_a_packet_is_under_way_from_when_it_is_sent_to_when_it_arrives(departures: Departures) -> None:
    assert departures.under_way == 0
    leaves(departures)
    leaves(departures)
    assert departures.under_way == 2
    departures.delivered(packet(1), 50)
    assert departures.under_way == 1
    departures.lost(packet(0))
    assert departures.under_way == 0


def test_a_packet_may_arrive_before_it_is_told_that_it_was_sent(departures: Departures) -> None:
    departures.delivered(packet(0), 50)
    leaves(departures)
    assert departures.under_way == 0
    leaves(departures)
    assert departures.under_way == 1


def test_only_data_packets_of_hosts_are_followed(departures: Departures) -> None:
    leaves(departures, Kind.TX_FCP)
    assert departures.under_way == 0
