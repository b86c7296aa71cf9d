"""The trace that the traffic jam has on paper: 73 cycles a packet to the switch, 292 from it."""

from dataclasses import dataclass

from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import load_scenario
from cosim.stimulus.bus_bring_up import bus_bring_up
from cosim.stimulus.flows import scenario_packets
from cosim.stimulus.packet import Packet
from cosim.topology.topology import Topology
from wire.packet import blocks_of_words
from wire.trace import Kind, Record, port_source

SWITCH, HOST_A, HOST_B = 0, 1, 2
WORDS = 72
BLOCKS = 5
ROOM = 15
TO_SWITCH, TO_HOST = 125, 3


@dataclass(frozen=True)
class Jam:
    """The scenario, its packets, and the records of the run."""

    scenario: Scenario
    topology: Topology
    start: int
    packets: list[Packet]
    records: list[Record]


def jam() -> Jam:
    """Five packets, room for three, and a credit home for each that left the switch."""
    scenario = load_scenario("jam")
    topology = scenario.topology
    start = bus_bring_up(topology).start
    packets = list(scenario_packets(scenario, topology, start, scenario.seed))
    assert [len(packet.words) for packet in packets] == [WORDS] * 5
    assert blocks_of_words(WORDS) == BLOCKS
    a, s1, s2, b = (port_source(*end) for end in ((HOST_A, 1), (SWITCH, 1), (SWITCH, 2), (HOST_B, 1)))
    records = [
        Record(60, port, Kind.RX_FCP, 1 << 8, room) for port, room in ((a, ROOM), (s1, 512), (s2, 512), (b, 512))
    ]
    length = WORDS | WORDS << 16
    sends = [start + 80 + 73 * place for place in range(3)]
    limit = ROOM
    free = 0
    for sequence in range(5):
        first = sends[sequence]
        last = first + WORDS
        relayed = max(first + TO_SWITCH + 7, free)
        relayed += -relayed % 4
        end = relayed + 4 * WORDS
        free = end + 4
        limit += BLOCKS
        credit = end + 8 + TO_SWITCH
        sends.append(credit + 4)
        records += [
            Record(start + 1 + 73 * sequence, a, Kind.SEND, 0, WORDS),
            Record(last, a, Kind.TX_DATA, 0, length, first),
            Record(last + TO_SWITCH + 2, s1, Kind.RX_DATA, 1 << 16, length, 2 << 16, BLOCKS),
            Record(end, s2, Kind.TX_DATA, 0, length, relayed),
            Record(credit, a, Kind.RX_FCP, 0, limit),
            Record(end + TO_HOST + 2, b, Kind.RX_DATA, 1 << 16, length, 2 << 16, BLOCKS),
            Record(end + TO_HOST + 2 + WORDS + 4, b, Kind.DELIVER, 0, WORDS, end + 9),
        ]
    return Jam(scenario, topology, start, packets, sorted(records))
