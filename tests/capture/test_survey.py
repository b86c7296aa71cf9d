"""What is in a capture, before it is played."""

from pathlib import Path

import pytest

from capture.records import CaptureError
from capture.survey import Credits, survey
from capture.wire_packet import Direction, WirePacket
from capture.writer import capture_writer
from tests.capture.foreign import INFINIBAND, pcap
from wire.crc import lpcrc, vcrc
from wire.flow_control import FLOW_CONTROL
from wire.packet import build_ud_send
from wire.trace import Delimiter

WAYS = [Direction("H[1] -> S[2]", 2_500_000_000), Direction("S[2] -> H[1]"), Direction("X")]


def data(slid: int = 1, dlid: int = 2, vl: int = 0, payload: int = 256) -> bytes:
    body = build_ud_send(slid=slid, dlid=dlid, vl=vl, dest_qp=5, src_qp=6, q_key=7, payload=bytes(payload)).data
    return body + vcrc(body)


def credits(fctbs: int, fccl: int, *, op: int = 0, vl: int = 0) -> bytes:
    body = FLOW_CONTROL.pack(op=op, fctbs=fctbs, vl=vl, fccl=fccl)
    return body + lpcrc(body)


def written(path: Path, *packets: WirePacket) -> str:
    with capture_writer(str(path), WAYS) as writer:
        for packet in packets:
            writer.write(packet)
    return str(path)


def test_directions_are_told_apart_by_what_they_have(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.pcapng",
        WirePacket(0, 100, False, data(slid=3, dlid=4, vl=2)),
        WirePacket(1, 90, True, credits(7, 9)),
        WirePacket(0, 200, False, data(slid=5, dlid=0xC001, payload=16)),
        WirePacket(0, 300, False, data(slid=6, dlid=8, vl=9), Delimiter.EBP),
    )
    found = survey(path)
    assert (found.packets, found.first_ns, found.last_ns, found.damage) == (4, 90, 300, None)
    there, back = found.directions
    assert (there.name, there.bits_per_s, there.data_packets, there.link_packets) == (*WAYS[0][:2], 3, 0)
    assert (there.slids, there.dlids, there.vls, there.longest) == ({3, 5}, {4}, 3, 72)
    assert (back.name, back.link_packets, back.credits) == (WAYS[1].name, 1, {0: Credits(7, 9)})
    assert found.back(0) is back
    assert found.back(1) is there


def test_what_was_sent_before_is_told_by_the_first_good_flow_control_packet_of_each_vl(tmp_path: Path) -> None:
    lpcrc_wrong = credits(77, 88)[:-1] + b"\x00"
    path = written(
        tmp_path / "a.pcapng",
        WirePacket(0, 1, False, data()),
        WirePacket(0, 2, False, data(vl=1)),
        WirePacket(0, 3, True, lpcrc_wrong),
        WirePacket(0, 4, False, data()),
        WirePacket(0, 5, True, credits(3, 600)),
        WirePacket(0, 6, True, credits(1404, 3206, vl=1)),
        WirePacket(0, 7, True, credits(50, 700)),
        WirePacket(1, 8, True, credits(5, 6, op=1)),
    )
    there, back = survey(path).directions
    assert there.credits == {0: Credits(3, 600), 1: Credits(1404, 3206)}
    # The link begins with it, whatever it says.
    assert back.credits == {0: Credits(0, 6)}


def test_a_damaged_capture_is_looked_at_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    whole = pcap(INFINIBAND, [(1, 0, None, data()), (2, 0, None, data())])
    path.write_bytes(whole[:-5])
    found = survey(str(path))
    assert (found.packets, found.directions[0].data_packets) == (1, 1)
    assert "after 1 packets" in str(found.damage)
    path.write_bytes(whole[:60])
    with pytest.raises(CaptureError, match="after 0 packets"):
        survey(str(path))
    path.write_bytes(pcap(INFINIBAND, []))
    with pytest.raises(CaptureError, match=r"a\.pcap: there is no packet in it"):
        survey(str(path))
