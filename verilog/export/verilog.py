"""The Verilog of a switch, to be read, simulated and synthesized without Python."""

from __future__ import annotations

from collections.abc import Callable

from rtl.switch.switch import Switch
from verilog.emit import merged_rtlil, rtlil_to_verilog
from verilog.export.interface import TraceSlots, interface
from verilog.export.names import give_plain_names
from verilog.export.prune import prune
from verilog.export.rtlil import parse
from verilog.export.tidy import tidy

__all__ = ["TOP", "switch_verilog"]

TOP = "ironband_switch"


def switch_verilog(switch: Switch, slots: TraceSlots = (), progress: Callable[[str], None] = lambda stage: None) -> str:
    """All modules of a switch, the top `ironband_switch` first, with the ports of `verilog.export.interface`.

    It is the netlist that simulations run, with plain names; with no SLOTS, which are the switch's own or none,
    without the trace outputs and what only they need. PROGRESS gets what is done next.
    """
    progress("elaborating")
    merged = merged_rtlil(switch, TOP)
    progress("naming")
    modules = parse(merged)
    ports = {f"\\{port.before}": f"\\{port.name}" for port in interface(switch.parameters, slots)}
    top = modules[f"\\{TOP}"]
    for wire in top.wires.values():
        if wire.name not in ports:
            wire.direction = ""
    prune(modules, top.name)
    give_plain_names(modules, ports)
    top.order_ports(list(ports.values()))
    progress("writing Verilog")
    verilog = rtlil_to_verilog("\n".join(map(str, modules.values())))
    progress("tidying up")
    return tidy(verilog)
