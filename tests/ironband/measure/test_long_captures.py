"""Captures of ten million packets are measured in as much memory as short ones."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from capture.erf_record import erf_record
from capture.wire_packet import WirePacket
from tests.laboratory.captures import flow_control, rdma_write

PACE, SHARED = 2_076, 4_152
ALONE = 100
BLOCKS = 33
KEPT = 64


TOLD = """
import sys
from pathlib import Path
from ironband import main
status = main(sys.argv[2:])
(peak,) = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
Path(sys.argv[1]).write_text(peak)
sys.exit(status)
"""
"""The peak of its own memory: what is told when a process ends begins with that of the process that started it."""


def record(packet: WirePacket) -> np.ndarray:
    return np.frombuffer(erf_record(packet, KEPT), np.uint8)


def long_capture(rounds: int):
    """In stretches: host A sends alone, then A and B wait for their credits, and a switch tells A of room."""
    alone = [record(rdma_write(0, number * PACE)) for number in range(ALONE)]
    yield np.concatenate(alone).tobytes()
    began = ALONE * PACE
    parts = [
        (record(rdma_write(0, 0)), 0),
        (record(flow_control(2, 0, 0, BLOCKS)), 50),
        (record(rdma_write(1, 0, slid=2)), SHARED // 2),
    ]
    width = sum(len(part) for part, _ in parts)
    for first in range(0, rounds, 50_000):
        number = np.arange(first, min(first + 50_000, rounds))
        rows = np.empty((len(number), width), np.uint8)
        at = 0
        for part, offset_ns in parts:
            rows[:, at : at + len(part)] = part
            time_ns = began + number * SHARED + offset_ns
            stamp = (time_ns // 10**9 << 32) + (time_ns % 10**9 << 32) // 10**9 + 1
            rows[:, at : at + 8] = stamp.astype("<u8").view(np.uint8).reshape(-1, 8)
            at += len(part)
        yield rows.tobytes()


def measured(tmp_path: Path, what: str, rounds: int) -> tuple[dict, int]:
    """The results, and the most memory that the process had, in KiB."""
    results, peak = tmp_path / f"{what}.json", tmp_path / "peak"
    options = ["--from", "-", "--out", str(tmp_path), "--json", str(results)]
    options += ["--xmit-wait", str(rounds * 16)] if what == "tick" else []
    with subprocess.Popen(
        [sys.executable, "-c", TOLD, str(peak), "measure", what, *options], stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        for stretch in long_capture(rounds):
            process.stdin.write(stretch)
        process.stdin.close()
        assert process.wait() == 0
    return json.loads(results.read_text()), int(peak.read_text())


@pytest.mark.deep
@pytest.mark.parametrize("what", ["credits", "intervals", "buffer", "tick", "congestion"])
def test_memory_does_not_grow_with_a_capture(tmp_path, what):
    _short, little = measured(tmp_path, what, 300_000)
    found, much = measured(tmp_path, what, 3_400_000)
    print(what, little, much)
    assert much < 1.1 * little
    if what == "intervals":
        assert found["flows"][0]["packets"] == 3_400_000 + ALONE
        assert {flow["usual_ns"] // 4 * 4 for flow in found["flows"]} == {SHARED}
