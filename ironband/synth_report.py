"""What `ironband synth` says: tables, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from verilog.synth.area import PINS
from verilog.synth.device import DEVICES
from verilog.synth.place import Placement
from verilog.synth.synthesis import Synthesis

__all__ = ["describe", "synth_json"]


def describe(synthesis: Synthesis) -> Iterator[str]:
    """The lines: resources, components, memories, clock, critical path."""
    yield from _resources(synthesis)
    yield ""
    yield from _parts(synthesis)
    yield ""
    yield from _memories(synthesis)
    if synthesis.placement is not None:
        yield ""
        yield from _clock(synthesis, synthesis.placement)
    if not synthesis.fits:
        yield ""
        yield f"does not fit: {synthesis.too_much}"


def _resources(synthesis: Synthesis) -> Iterator[str]:
    device = synthesis.options.target.device
    area, room = synthesis.area, DEVICES[device].room
    used = synthesis.placement.used if synthesis.placement is not None else {}
    yield f"{device:<18}{'used':>8}{'available':>11}"
    for name, count, available in (
        ("LUTs", used.get("TRELLIS_COMB", area.luts), room.luts),
        ("registers", used.get("TRELLIS_FF", area.registers), room.registers),
        ("block RAM, 18 Kbit", used.get("DP16KD", area.block_rams), room.block_rams),
        ("LUT RAM, 64 bit", used.get("TRELLIS_RAMW", area.lut_rams), room.lut_rams),
    ):
        yield f"{name:<18}{count:>8,}{available:>11,}{count / available:>7.0%}"


def _parts(synthesis: Synthesis) -> Iterator[str]:
    yield f"{'component':<18}{'':>8}{'LUTs':>11}{'each':>8}{'registers':>11}{'block RAM':>11}{'LUT RAM':>9}"
    for part in synthesis.parts:
        area = part.area
        times = f"x{part.instances}" if part.instances > 1 else ""
        each = f"{area.luts // part.instances:,}" if part.instances > 1 else ""
        note = "  in place of pins, none of the switch's" if part.name == PINS else ""
        counts = f"{area.luts:>11,}{each:>8}{area.registers:>11,}{area.block_rams:>11,}{area.lut_rams:>9,}"
        yield f"{part.name:<18}{times:>8}{counts}{note}"


def _memories(synthesis: Synthesis) -> Iterator[str]:
    width = max(len(memory.name) for memory in synthesis.memories) + 2
    yield f"{'memory':<{width}}{'':>5}{'words':>8}{'bits':>6}  in"
    for memory in synthesis.memories:
        count = memory.block_rams or memory.lut_rams
        each = f", {count // memory.instances} each" if count else ""
        times = f"x{memory.instances}" if memory.instances > 1 else ""
        yield f"{memory.name:<{width}}{times:>5}{memory.depth:>8,}{memory.width:>6}  {memory.mapped_to}{each}"


def _clock(synthesis: Synthesis, placement: Placement) -> Iterator[str]:
    path, target = placement.path, synthesis.options.target.freq_mhz
    verdict = "reached" if placement.fmax_mhz >= target else "NOT reached"
    if path is None:
        yield f"clock {placement.fmax_mhz:.1f} MHz, estimated of cells as placed; {target:g} MHz {verdict}"
        if placement.conflicts is not None:
            yield f"NOT routed: at best {placement.conflicts:,} wires were left to two nets"
        return
    yield f"clock {placement.fmax_mhz:.1f} MHz; {target:g} MHz {verdict}"
    yield f"critical path {path.total_ns:.2f} ns: logic {path.logic_ns:.2f} ns, wires {path.routing_ns:.2f} ns"
    yield f"{'ns':>8}{'logic':>8}{'wires':>8}  cells  at"
    for stage in path.stages:
        times = f"{stage.logic_ns:>8.2f}{stage.routing_ns:>8.2f}"
        yield f"{stage.arrival_ns:>8.2f}{times}{stage.cells:>7}  {stage.signal}"


def synth_json(synthesis: Synthesis) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    area, placement = synthesis.area, synthesis.placement
    parameters, target = synthesis.options.parameters, synthesis.options.target
    room = asdict(DEVICES[target.device].room)
    results: dict[str, Any] = {
        "command": "synth",
        "held": synthesis.held,
        "fits": synthesis.fits,
        "too_much": synthesis.too_much or None,
        "ports": parameters.ports,
        "vls": parameters.vls,
        "mtu_bytes": parameters.mtu,
        "buffer_blocks": parameters.buffer_blocks,
        "queueing": parameters.queueing,
        "readers": parameters.readers,
        "device": target.device,
        "speed_grade": int(target.speed),
        "seed": target.seed,
        "target_mhz": target.freq_mhz,
        **{
            key: value
            for name, count in asdict(area).items()
            for key, value in ((name, count), (f"{name}_available", room[name]))
        },
        "components": [{"name": p.name, "instances": p.instances, **asdict(p.area)} for p in synthesis.parts],
        "memories": [
            {
                "name": memory.name,
                "instances": memory.instances,
                "words": memory.depth,
                "width_bits": memory.width,
                "mapped_to": memory.mapped_to,
                "block_rams": memory.block_rams,
                "lut_rams": memory.lut_rams,
            }
            for memory in synthesis.memories
        ],
    }
    if placement is not None:
        results |= {
            "placed_luts": placement.used["TRELLIS_COMB"],
            "fmax_mhz": placement.fmax_mhz,
            "routed": placement.is_routed,
            "wires_in_conflict": placement.conflicts,
        }
        if placement.path is not None:
            results |= {
                "critical_path_ns": placement.path.total_ns,
                "critical_path_logic_ns": placement.path.logic_ns,
                "critical_path_routing_ns": placement.path.routing_ns,
                "critical_path": [asdict(stage) for stage in placement.path.stages],
            }
    return results
