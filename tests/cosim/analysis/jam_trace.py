"""The trace that the traffic jam has on paper: 73 cycles a packet to the switch, 292 from it."""

from dataclasses import dataclass

from cosim.scenario.scenario import Scenario
from cosim.scenario.scenario_file import load_scenario
from cosim.stimulus.bus_bring_up import bus_bring_up
from cosim.stimulus.flows import scenario_packets
from cosim.stimulus.packet import Packet
from cosim.topology.topology import Topology
from wire.packet import blocks_of_words
from wire.trace import Delimiter, Record, port_source
from wire.trace_layout import LAYOUTS, Deliver, RxData, RxFcp, Send, TxData

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
    assert [packet.pkt_len for packet in packets] == [WORDS] * 5
    assert blocks_of_words(WORDS) == BLOCKS
    a, s1, s2, b = (port_source(*end) for end in ((HOST_A, 1), (SWITCH, 1), (SWITCH, 2), (HOST_B, 1)))
    records = [RxFcp.record(60, port, op=1, fccl=room) for port, room in ((a, ROOM), (s1, 512), (s2, 512), (b, 512))]
    length = {"pkt_len": WORDS, "end_row": WORDS}
    received = {**length, "delimiter": Delimiter.EGP, "dlid": 2, "blocks": BLOCKS}
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
            Send.record(start + 1 + 73 * sequence, a, pkt_len=WORDS),
            TxData.record(last, a, first_cycle=first, **length),
            RxData.record(last + TO_SWITCH + 2, s1, **received),
            TxData.record(end, s2, first_cycle=relayed, **length),
            RxFcp.record(credit, a, fccl=limit),
            RxData.record(end + TO_HOST + 2, b, **received),
            Deliver.record(end + TO_HOST + 2 + WORDS + 4, b, pkt_len=WORDS, first_cycle=end + 9),
        ]
    return Jam(scenario, topology, start, packets, sorted(records))


def changed(record: Record, **values: int) -> Record:
    """The record with these fields changed."""
    layout = LAYOUTS[record.kind]
    return layout.record(*record[:2], **{field.name: field.read(record) for field in layout.fields} | values)
