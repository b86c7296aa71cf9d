"""How much is measured: sizes of the fabric, lengths of runs, repetitions."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOT_QUICK", "WIDTHS", "Settings"]

NOT_QUICK = (
    "build36_s",
    "cycles36_per_s",
    "up_216_s",
    "build_tree_s",
    "rc_messages_rtl_per_s",
    "rc_bytes_rtl_per_s",
    "door_messages_per_s",
)
"""Figures that --quick leaves out: a build alone may take longer than a minute."""

WIDTHS = (4, 8, 16, 36, 64)
"""Ports of the switches that --growth measures."""


@dataclass(frozen=True)
class Settings:
    """What a benchmark is asked for.

    Attributes:
        ports: of the switch, except where a figure has its own number.
        seed: of all traffic.
        quick: shorter runs, fewer repetitions, and no builds to measure.
        sim: the engine on which latency and throughput are measured.
    """

    ports: int = 8
    seed: int = 1
    quick: bool = False
    sim: str = "verilator"

    @property
    def repetitions(self) -> int:
        """Of each measurement of the RTL's speed."""
        return 2 if self.quick else 3

    @property
    def short_repetitions(self) -> int:
        """Of a measurement shorter than a second."""
        return 2 if self.quick else 5

    @property
    def compared_repetitions(self) -> int:
        """Of the run that is compared with the model, in the first turns."""
        return 1 if self.quick else 2

    @property
    def speed_cycles(self) -> int:
        """Of each run of the RTL whose speed is measured: many, for the start of cocotb to be a small part."""
        return 50_000 if self.quick else 200_000

    @property
    def model_cycles(self) -> int:
        """Of each run of the golden model alone whose speed is measured."""
        return 300_000

    @property
    def amaranth_cycles(self) -> int:
        """At most of the run on Amaranth's simulator; in a quick benchmark too few for traffic to begin."""
        return 60 if self.quick else self.speed_cycles

    @property
    def amaranth_seconds(self) -> float:
        """Of that run, once traffic has begun."""
        return 10.0

    @property
    def warm_up_cycles(self) -> int:
        """Of a saturated run, not measured: buffers fill, which takes longer the less is left over."""
        return 20_000 if self.quick else 150_000

    @property
    def captured_packets(self) -> int:
        """Of the capture that is read."""
        return 50_000 if self.quick else 200_000

    @property
    def messages(self) -> dict[str, tuple[int, int]]:
        """By engine, rounds of the ping-pong and WRITEs of the stream."""
        return (
            {"model": (200, 20), "verilator": (20, 2)}
            if self.quick
            else {"model": (2_000, 200), "verilator": (100, 10)}
        )

    @property
    def memory_cycles(self) -> int:
        """Of the shorter of the runs whose memory is measured."""
        return 15_000 if self.quick else 100_000

    @property
    def wide_cycles(self) -> int:
        """Of the run of a wide switch."""
        return 20_000
