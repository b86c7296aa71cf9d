"""The figures of the performance table: what each is, its unit, and what it must reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

__all__ = ["FIGURES", "Figure", "LoopKind", "Measured", "Reading", "Target"]

LoopKind = Literal["compiled", "python"]
"""What a machine can be fast at, each measured by a loop of its own (bench/calibration.py)."""


@dataclass(frozen=True)
class Target:
    """What a figure must reach: at least, at most, or between."""

    least: float | None = None
    most: float | None = None
    ports: int | None = None
    """It is stated for a switch of so many ports only."""

    def applies(self, ports: int) -> bool:
        """Whether it is stated for a switch of `ports` ports."""
        return self.ports is None or self.ports == ports

    def held(self, value: float) -> bool:
        """Whether a value reaches it."""
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def scaled(self, calibration: float) -> Target:
        """What a machine so many times as fast must reach, in three digits: most is a time, least is a speed."""
        return replace(
            self,
            least=None if self.least is None else _in_three_digits(self.least * calibration),
            most=None if self.most is None else _in_three_digits(self.most / calibration),
        )

    def __str__(self) -> str:
        least, most = (None if bound is None else f"{bound:,.10g}" for bound in (self.least, self.most))
        if least is None:
            return f"<= {most}"
        return f">= {least}" if most is None else f"{least} .. {most}"


def _in_three_digits(value: float) -> float:
    return float(f"{value:.3g}")


@dataclass(frozen=True)
class Figure:
    """A line of the table.

    Attributes:
        name: also its key in JSON.
        unit: of its value; "" for a ratio.
        text: what it is, in few words.
        digits: after the decimal point, for people.
        target: None if it is only there to be known.
        scaled_by: the loop that its target is scaled by; None if it is the same on every machine.
    """

    name: str
    unit: str
    text: str
    digits: int = 0
    target: Target | None = None
    scaled_by: LoopKind | None = None

    def shown(self, value: float) -> str:
        """A value of it, for people, without the unit."""
        return f"{value:,.{self.digits}f}"


@dataclass(frozen=True)
class Reading:
    """A measured value: the median of its repetitions, and the least and the most of them."""

    value: float
    least: float
    most: float

    @classmethod
    def once(cls, value: float) -> Reading:
        """Of something measured once, or that is the same each time."""
        return cls(value, value, value)

    @classmethod
    def of(cls, values: Iterable[float]) -> Reading:
        """Of all repetitions."""
        known = list(values)
        return cls(median(known), min(known), max(known))


@dataclass
class Measured:
    """What was measured.

    Attributes:
        readings: by figure.
        faults: what was wrong with deliveries, and where engines differ, in words.
    """

    readings: dict[str, Reading] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


_HEAD_OF_LINE = 0.618
"""Saturation throughput of FIFO inputs at 8 ports: Karol, Hluchyj, Morgan, "Input versus output queueing on a
space-division packet switch", IEEE Trans. Comm. 35 (1987), table I."""

_HEAD_OF_LINE_MARGIN = 0.03

FIGURES = {
    figure.name: figure
    for figure in (
        Figure("latency_cycles", "cycles", "idle switch, SDP in to SDP out", target=Target(most=8)),
        Figure("throughput_voq_256", "", "saturated, VOQ, 256 B payloads", 3, Target(least=0.95)),
        Figure("throughput_voq_2048", "", "saturated, VOQ, 2 KiB payloads", 3, Target(least=0.95)),
        Figure(
            "throughput_fifo_2048",
            "",
            "saturated, FIFO, 2 KiB payloads",
            3,
            Target(
                round(_HEAD_OF_LINE - _HEAD_OF_LINE_MARGIN, 3), round(_HEAD_OF_LINE + _HEAD_OF_LINE_MARGIN, 3), ports=8
            ),
        ),
        Figure("lost_packets", "packets", "lost, doubled, reordered or changed", target=Target(most=0)),
        Figure("cosim_cycles_per_s", "cycles/s", "RTL under cocotb, saturated with 2 KiB"),
        Figure("bare_cycles_per_s", "cycles/s", "the same in a bare C++ loop"),
        Figure("cosim_ratio", "", "cocotb / bare loop", 2, Target(least=0.7)),
        Figure("compare_ratio", "", "speed with / without comparison", 2, Target(least=0.5)),
        Figure("model_cycles_per_s", "cycles/s", "golden model alone"),
        Figure("amaranth_cycles_per_s", "cycles/s", "RTL in Amaranth's simulator"),
        Figure("model_over_amaranth", "", "golden model / Amaranth's simulator", 1, Target(least=20)),
        Figure(
            "model_block_hops_per_s",
            "/s",
            "golden model, 64-byte blocks x links",
            target=Target(least=1_500_000),
            scaled_by="compiled",
        ),
        Figure("build36_s", "s", "36-port switch, Verilog to executable", 1, Target(most=90), "compiled"),
        Figure(
            "cycles36_per_s",
            "cycles/s",
            "36 ports saturated, under cocotb",
            target=Target(least=3_000),
            scaled_by="compiled",
        ),
        Figure("bringup_smps", "", "SMPs to bring 1 switch, 2 hosts up", target=Target(most=40)),
        Figure("bringup_cycles", "cycles", "the same, from the first SMP on"),
        Figure("smp_turnaround_cycles", "cycles", "Get in to GetResp out, in a switch's agent"),
        Figure("routes_648_s", "s", "min-hop routes for 648 hosts", 2, Target(most=5), "python"),
        Figure("up_216_s", "s", "18 switches, 216 hosts up, golden model", 1, Target(most=60), "compiled"),
        Figure("build_tree_s", "s", "6 switches, 8 hosts, RTL to executable", 1, Target(most=120), "compiled"),
        Figure(
            "capture_packets_per_s",
            "/s",
            "packets of a capture read and measured",
            target=Target(least=200_000),
            scaled_by="python",
        ),
        Figure("rc_messages_per_s", "/s", "RC, ping-pong of 64 B, golden model"),
        Figure("rc_bytes_per_s", "B/s", "RC, WRITEs of 64 KiB, golden model"),
        Figure("rc_messages_rtl_per_s", "/s", "the ping-pong, RTL"),
        Figure("rc_bytes_rtl_per_s", "B/s", "the WRITEs, RTL"),
        Figure("door_messages_per_s", "/s", "the ping-pong, ibv_rc_pingpong, golden model"),
        Figure("peak_rss_mb", "MB", "peak memory of a long run", 1),
        Figure("peak_rss_growth", "", "memory of a run 4 times as long", 3, Target(most=1.05)),
    )
}
"""All figures, by name, in the order of the table."""
