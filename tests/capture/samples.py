"""Packets of a link for captures: good ones of all kinds, and some that are marked, damaged or cut."""

from random import Random

from capture.wire_packet import Direction, WirePacket
from cosim.scenario.scenario_file import load_scenario
from cosim.stimulus.random_packets import RandomTraffic, random_packets
from wire.codes import VL15
from wire.crc import invert_vcrc, lpcrc, vcrc
from wire.flow_control import FLOW_CONTROL
from wire.mad import MadMethod
from wire.mad_packet import gmp_packet, smp_packet
from wire.opcodes import Opcode, PayloadRule, extended_headers, payload_rule
from wire.packet import build
from wire.pma import PmaAttribute, perf_request
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.trace import Delimiter

__all__ = ["DIRECTIONS", "FORMATS", "damaged", "good_packets"]

FORMATS = (".erf", ".pcap", ".pcapng")
BEYOND_WIRESHARK = {
    Opcode.RD_RDMA_READ_REQUEST,
    Opcode.RD_ATOMIC_ACKNOWLEDGE,
    Opcode.RD_CMP_SWAP,
    Opcode.RD_FETCH_ADD,
}
"""Wireshark 4.0 takes these for malformed, whatever is in them."""

DIRECTIONS = [Direction("S[1] -> H2[1]", 10_000_000_000), Direction("H2[1] -> S[1]", 2_500_000_000)]


NAMES = {
    "XRCETH": "xrceth",
    "RDETH": "rdeth",
    "DETH": "deth",
    "RETH": "reth",
    "AtomicETH": "atomic_eth",
    "AETH": "aeth",
    "AtomicAckETH": "atomic_ack_eth",
    "ImmDt": "imm_dt",
    "IETH": "ieth",
}


def good_packets(seed: int, count: int) -> list[WirePacket]:
    """Packets of both directions, in the order of their times, the first at once: a third of them flow control."""
    random = Random(seed)
    topology = load_scenario("incast").topology
    traffic = RandomTraffic(seed, start=0, end=1_000_000_000, load=0.9, strays=False)
    # What random traffic has on VL15 are no MADs.
    drawn = (packet.data for packet in random_packets(topology, traffic) if packet.final_vl != VL15)
    data = (body + vcrc(body) for body in drawn)
    special = [*(one_of(opcode, random) for opcode in Opcode if opcode not in BEYOND_WIRESHARK), *mads()]
    packets, time_ns = [], 0
    for number in range(count):
        is_link = random.random() < 1 / 3
        if is_link:
            body = flow_control(random)
        elif special and number % 2:
            body = special.pop(random.randrange(len(special)))
        else:
            body = next(data)
        packets.append(WirePacket(random.randrange(len(DIRECTIONS)), time_ns, is_link, body))
        time_ns += random.choice((4, 576, 2_072, random.randrange(1, 1 << 40)))
    return packets


def flow_control(random: Random) -> bytes:
    fields = FLOW_CONTROL.pack(
        op=random.randrange(2), fctbs=random.randrange(4096), vl=random.randrange(15), fccl=random.randrange(4096)
    )
    return fields + lpcrc(fields)


def one_of(opcode: Opcode, random: Random) -> bytes:
    """A packet with all headers that its opcode calls for."""
    headers = {
        NAMES[layout.name]: {
            field.name: random.randrange(field.max + 1) for field in layout.fields if not field.name.startswith("resv")
        }
        for layout in extended_headers(opcode)
    }
    size = 0 if payload_rule(opcode) is PayloadRule.NONE else 256
    return build(
        lrh={"dlid": random.randrange(1, 0xC000), "slid": random.randrange(1, 0xC000), "vl": 1, "sl": 3},
        bth={"opcode": opcode, "dest_qp": random.randrange(2, 1 << 24), "psn": random.randrange(1 << 24)},
        payload=random.randbytes(size),
        **headers,
    ).wire


def mads() -> list[bytes]:
    smps = [
        smp_request(MadMethod.GET, attribute, transaction_id=7, path=(1, 2))
        for attribute in (SmaAttribute.NODE_INFO, SmaAttribute.PORT_INFO, SmaAttribute.SWITCH_INFO)
    ]
    perf = perf_request(MadMethod.GET, PmaAttribute.PORT_COUNTERS, b"\0\x01", transaction_id=8)
    return [*(smp_packet(smp).wire for smp in smps), gmp_packet(perf, 5, 1, sl=3, vl=2).wire]


def damaged(packet: WirePacket, how: int, random: Random) -> WirePacket:
    """The packet marked bad by its sender (0), with a wrong bit (1), both (2), or cut (3)."""
    data = packet.data
    if how in (0, 2):
        data = data[:-2] + invert_vcrc(data[-2:])
    if how in (1, 2):
        place = random.randrange(len(data))
        data = data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]
    if how == 3:
        # What came in its place came in a row: four bytes, the first row has three.
        data = data[: 3 + 4 * random.randrange((len(data) + 1) // 4)]
    ending = (Delimiter.EBP, Delimiter.EGP, Delimiter.EBP, Delimiter.CUT)[how]
    return packet._replace(data=data, ending=ending)
