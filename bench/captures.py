"""How fast captures are read and measured."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from pathlib import Path
from random import Random

from bench.figures import Measured, Reading
from bench.settings import Settings
from capture.reader import capture_reader
from capture.wire_packet import Direction, WirePacket
from capture.writer import capture_writer
from laboratory.buffer_size import BufferSize
from laboratory.congestion import Congestion
from laboratory.credit_trace import CreditTrace
from laboratory.flow_intervals import FlowIntervals
from laboratory.stretch import stretches
from laboratory.wait_tick import WaitTick
from wire.flow_control import CREDIT_MODULUS, FlowControlOp, FlowControlPacket
from wire.packet import build_ud_send

__all__ = ["captures"]

_PAYLOAD = 256
_BLOCKS = 5
_INTERVAL_NS = 300
_DISTINCT = 1_000
"""Packets are drawn once, and repeated."""


def captures(settings: Settings, asked: Collection[str], work_dir: Path) -> Measured:
    """`capture_packets_per_s`: read, and followed by all of the laboratory's measurements."""
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
            # Room for a packet more each time.
            fccl = 512 + number // 2 * _BLOCKS
            drawn.append(FlowControlPacket(FlowControlOp.NORMAL, 0, 0, fccl % CREDIT_MODULUS).encode())
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
        measurements = (
            CreditTrace(),
            FlowIntervals(),
            BufferSize(capture),
            WaitTick(capture),
            Congestion(),
        )
        for stretch in stretches(capture):
            for measurement in measurements:
                measurement.follow(stretch)
            packets += len(stretch)
    return packets
