"""CRCs of captured packets are checked bit by bit as the standard has them, and every wrong bit is seen."""

import zlib
from pathlib import Path
from random import Random

import pytest

from capture.chunk import Chunk
from capture.crc_check import Crc, Crcs, check_crcs
from capture.fields import Fields
from capture.reader import capture_reader
from capture.wire_packet import WirePacket
from capture.writer import capture_writer
from tests.capture.foreign import INFINIBAND, pcap
from tests.capture.samples import DIRECTIONS, damaged, good_packets
from wire.codes import LNH
from wire.crc import icrc_masked
from wire.headers import LRH
from wire.trace import Delimiter


def shift_register(data: bytes) -> int:
    """The CRC-16 of links, one bit at a time."""
    register = 0xFFFF
    for byte in data:
        for bit in range(8):
            feedback = register & 1 ^ byte >> bit & 1
            register = register >> 1 ^ (0xD008 if feedback else 0)
    return register ^ 0xFFFF


def expected(packet: WirePacket) -> tuple[Crc, Crc]:
    """By other means than those of the check."""
    data = packet.data
    if packet.ending is Delimiter.CUT:
        return Crc.ABSENT, Crc.ABSENT
    link = int.from_bytes(data[-2:], "little") ^ shift_register(data[:-2])
    first = {0: Crc.RIGHT, 0xFFFF: Crc.INVERTED}.get(link, Crc.WRONG)
    if packet.is_link or LRH["lnh"].read(data) < LNH.IBA_LOCAL:
        return first, Crc.ABSENT
    try:
        right = zlib.crc32(icrc_masked(data[:-6])) == int.from_bytes(data[-6:-2], "little")
    except ValueError:
        return first, Crc.ABSENT
    return first, Crc.RIGHT if right else Crc.WRONG


def checked(place: Path) -> tuple[Chunk, Crcs]:
    with capture_reader(str(place)) as capture:
        (chunk,) = capture.chunks()
    return chunk, check_crcs(chunk, Fields(chunk))


@pytest.mark.parametrize("seed", range(3))
def test_each_crc_is_right_wrong_or_inverted(seed, tmp_path):
    random = Random(seed)
    given = good_packets(seed, 150)
    given += [damaged(packet, number % 4, random) for number, packet in enumerate(given)]
    with capture_writer(str(tmp_path / "any.erf"), DIRECTIONS) as capture:
        for packet in given:
            capture.write(packet)
    _, crcs = checked(tmp_path / "any.erf")
    found = [(Crc(link), Crc(icrc)) for link, icrc in zip(crcs.link.tolist(), crcs.icrc.tolist(), strict=True)]
    assert found == [expected(packet) for packet in given]
    assert {Crc.RIGHT, Crc.WRONG, Crc.INVERTED, Crc.ABSENT} == {link for link, _ in found}


def test_a_hosts_capture_may_lack_the_vcrc(tmp_path):
    whole = next(p.data for p in good_packets(1, 20) if not p.is_link and LRH["lnh"].read(p.data) == LNH.IBA_LOCAL)
    place = tmp_path / "host.pcap"
    place.write_bytes(pcap(INFINIBAND, [(0, 0, None, whole[:-2]), (0, 0, len(whole), whole[:-9]), (0, 1, None, whole)]))
    _, crcs = checked(place)
    assert crcs.link.tolist() == [Crc.ABSENT, Crc.ABSENT, Crc.RIGHT]
    assert crcs.icrc.tolist() == [Crc.RIGHT, Crc.ABSENT, Crc.RIGHT]
