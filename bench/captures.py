"""How fast captures are read."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path
from random import Random

from bench.figures import Measured, Reading
from bench.settings import Settings
from capture.fields import Fields
from capture.reader import capture_reader
from capture.wire_packet import Direction, WirePacket
from capture.writer import capture_writer
from wire.flow_control import CREDIT_MODULUS, FlowControlOp, FlowControlPacket
from wire.packet import build_ud_send

__all__ = ["captures"]

_PAYLOAD = 256
_INTERVAL_NS = 300
_DISTINCT = 1_000
"""Packets are drawn once, and repeated."""

_LRH = ("vl", "sl", "dlid", "slid", "pkt_len")
_BTH = ("opcode", "dest_qp", "psn")
_FLOW_CONTROL = ("op", "fctbs", "vl", "fccl")


def captures(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """`capture_packets_per_s`: from the file to the header fields of each packet; every other one is flow control."""
    place = str(work_dir / "link.pcapng")
    with capture_writer(place, [Direction("S[1] -> H[1]"), Direction("H[1] -> S[1]")]) as capture:
        for packet in _packets(settings):
            capture.write(packet)
    rates = []
    for _repetition in range(settings.short_repetitions):
        started = time.perf_counter()
        packets = _read(place)
        rates.append(packets / (time.perf_counter() - started))
    found = Measured({"capture_packets_per_s": Reading.of(rates)})
    if packets != settings.captured_packets:
        found.faults.append(f"capture: {packets} packets read of {settings.captured_packets}")
    return found


def _packets(settings: Settings) -> Iterator[WirePacket]:
    random = Random(f"{settings.seed}/capture")
    drawn = []
    for number in range(_DISTINCT):
        if number % 2:
            fctbs, fccl = random.randrange(CREDIT_MODULUS), random.randrange(CREDIT_MODULUS)
            drawn.append(FlowControlPacket(FlowControlOp.NORMAL, fctbs, 0, fccl).encode())
        else:
            payload = random.randbytes(_PAYLOAD)
            sent = build_ud_send(slid=1, dlid=2, dest_qp=16, src_qp=16, q_key=1, psn=number, payload=payload)
            drawn.append(sent.wire)
    for number in range(settings.captured_packets):
        is_link = number % 2
        yield WirePacket(is_link, number * _INTERVAL_NS, bool(is_link), drawn[number % _DISTINCT])


def _read(place: str) -> int:
    packets = 0
    with capture_reader(place) as capture:
        for chunk in capture.chunks():
            fields = Fields(chunk)
            for read, names in ((fields.lrh, _LRH), (fields.bth, _BTH), (fields.flow_control, _FLOW_CONTROL)):
                for name in names:
                    read(name)
            packets += len(chunk)
    return packets
