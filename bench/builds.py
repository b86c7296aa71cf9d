"""What has to be built before anything is measured, so that no build is within what is timed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Literal

from bench.management import FABRIC, MANAGEMENT_FIGURES
from bench.messages import DOOR, RTL_MESSAGES, star
from bench.settings import Settings
from cosim.engines import compiled_model, simulation
from cosim.scenario.uniform_load import uniform_load
from cosim.simulators import verilation
from verilog import emit

__all__ = ["builds"]

_VOQ = frozenset(
    (
        "latency_cycles",
        "throughput_voq_256",
        "throughput_voq_2048",
        "lost_packets",
        "cosim_cycles_per_s",
        "bare_cycles_per_s",
        "cosim_ratio",
        "compare_ratio",
        "peak_rss_mb",
        "peak_rss_growth",
    )
)
"""Figures that need the RTL with VOQ; `_FIFO`: with FIFO; `_MODEL`: that need the golden model."""

_FIFO = frozenset(("throughput_fifo_2048", "lost_packets"))
_MODEL = frozenset(
    (
        "compare_ratio",
        "model_cycles_per_s",
        "model_over_amaranth",
        "model_block_hops_per_s",
        "peak_rss_mb",
        "peak_rss_growth",
        "bringup_smps",
        "bringup_cycles",
        "up_216_s",
        "rc_messages_per_s",
        "rc_bytes_per_s",
        DOOR,
    )
)


def builds(settings: Settings, wanted: Collection[str]) -> list[Callable[[], object]]:
    """Calls that build what the figures need, but those timed, if it is not in the cache.

    They can be made at the same time: what they have in common is built once.
    """
    needs: list[tuple[Literal["voq", "fifo"], frozenset[str]]] = [("voq", _VOQ), ("fifo", _FIFO)]
    calls: list[Callable[[], object]] = [
        partial(simulation.build, settings.sim, uniform_load(settings.ports, cycles=1, queueing=queueing).fabric)
        for queueing, figures in needs
        if figures & set(wanted)
    ]
    if set(MANAGEMENT_FIGURES) & set(wanted):
        calls.append(partial(simulation.build, settings.sim, FABRIC))
    if set(RTL_MESSAGES) & set(wanted):
        calls.append(partial(simulation.build, "verilator", star().fabric))
    if calls and settings.sim == "verilator":
        # Both fabrics need these, some time later.
        calls += [verilation.library, emit.start_yosys]
    if _MODEL & set(wanted):
        calls.append(compiled_model.build)
    return calls
