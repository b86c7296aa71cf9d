"""The results of `ironband synth` as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from verilog.synth.device import DEVICES
from verilog.synth.synthesis import Synthesis

__all__ = ["synth_json"]


def synth_json(synthesis: Synthesis) -> dict[str, Any]:
    """Machine-readable, units in the keys."""
    area, placement = synthesis.area, synthesis.placement
    parameters, target = synthesis.options.parameters, synthesis.options.target
    device = DEVICES[target.device]
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
        "luts": area.luts,
        "luts_available": device.luts,
        "registers": area.registers,
        "registers_available": device.luts,
        "block_rams": area.block_rams,
        "block_rams_available": device.block_rams,
        "lut_rams": area.lut_rams,
        "lut_rams_available": device.lut_rams,
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
            "critical_path_ns": placement.path.total_ns,
            "critical_path_logic_ns": placement.path.logic_ns,
            "critical_path_routing_ns": placement.path.routing_ns,
            "critical_path": [asdict(stage) for stage in placement.path.stages],
        }
    return results
