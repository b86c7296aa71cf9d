"""Captures for measurements, and their stretches cut anywhere."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

import numpy as np

from capture.reader import CaptureReader, capture_reader
from capture.wire_packet import Direction, WirePacket
from capture.writer import capture_writer
from laboratory.stretch import Stretch, stretches
from wire.flow_control import FlowControlOp, FlowControlPacket
from wire.opcodes import Opcode
from wire.packet import build

__all__ = ["LINKS", "cut_up", "flow_control", "follow", "rdma_write", "write"]

LINKS = [
    Direction("A[1] -> S[1]", 10_000_000_000),
    Direction("S[1] -> A[1]", 10_000_000_000),
    Direction("B[1] -> S[2]", 10_000_000_000),
]


def rdma_write(
    direction: int, time_ns: int, *, slid: int = 1, dlid: int = 3, vl: int = 0, size: int = 2048, **bth: int
) -> WirePacket:
    """A packet in the middle of a message; fields of the BTH may be given."""
    head = {"opcode": Opcode.UC_RDMA_WRITE_MIDDLE, "p_key": 0xFFFF, "dest_qp": 0x100, **bth}
    packet = build(lrh={"slid": slid, "dlid": dlid, "vl": vl}, bth=head, payload=bytes(size))
    return WirePacket(direction, time_ns, False, packet.wire)


def flow_control(
    direction: int, time_ns: int, fctbs: int, fccl: int, vl: int = 0, op: FlowControlOp = FlowControlOp.NORMAL
) -> WirePacket:
    packet = FlowControlPacket(op, fctbs % 4096, vl, fccl % 4096)
    return WirePacket(direction, time_ns, True, packet.encode())


def write(place: Path, packets: Iterable[WirePacket], directions: Sequence[Direction] = LINKS) -> str:
    with capture_writer(str(place), directions) as writer:
        for packet in packets:
            writer.write(packet)
    return str(place)


def cut_up(capture: CaptureReader, random: Random) -> Iterator[Stretch]:
    """All of it in stretches of random lengths."""
    for stretch in stretches(capture):
        at = 0
        while at < len(stretch):
            end = at + random.choice((1, 2, 3, 17, 1000))
            yield stretch.where(np.arange(at, min(end, len(stretch))))
            at = end


def follow(place: str, make, random: Random | None = None):
    """What MAKE makes of the capture's reader, when it has followed all of it; cut anywhere with RANDOM."""
    with capture_reader(place) as capture:
        follower = make(capture)
        for stretch in stretches(capture) if random is None else cut_up(capture, random):
            follower.follow(stretch)
        return follower
