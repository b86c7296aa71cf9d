"""The test bench that goes with an exported switch: Verilog-2005, to be run without Python."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

from verilog.export.interface import TraceSlots, interface
from verilog.export.switch_name import PARTNER, TEST_BENCH
from wire.codes import PortState
from wire.forwarding_tables import LFT_NO_ROUTE
from wire.node_info import NODE_INFO
from wire.parameters import SwitchParameters
from wire.registers import Counter, NodeRegister, PortRegister, lft_address, node_address
from wire.smp import SMP_DATA_BYTES

__all__ = ["link_partner", "test_bench"]

_PER_PORT = {"data": 32, "k": 4, "valid": 1}


def test_bench(parameters: SwitchParameters, slots: TraceSlots) -> str:
    """Verilog of the test bench of a switch with these parameters, module `ironband_switch_tb`."""
    switch = {
        "PORTS": str(parameters.ports),
        "VLS": str(parameters.vls),
        "MTU": str(parameters.mtu),
        "LFT_SIZE": str(parameters.lft_size),
    }
    registers = {
        **{register.name: f"24'h{node_address(register):06x}" for register in (NodeRegister.NUM_PORTS, _TOP)},
        "LFT": f"24'h{lft_address(0):06x}",
        "NO_ROUTE": str(LFT_NO_ROUTE),
        **{register.name: f"16'h{register:04x}" for register in (PortRegister.STATE, *_COUNTERS)},
    }
    states = {state.name: str(int(state)) for state in (PortState.INITIALIZE, PortState.ARMED, PortState.ACTIVE)}
    names = {"num_ports": "NUM_PORTS_FIELD"}
    highest = 8 * SMP_DATA_BYTES - 1
    fields = {names.get(name, name.upper()): str(highest - NODE_INFO[name].offset_bits) for name in _NODE_INFO}
    return (
        _resource(f"{TEST_BENCH}.v")
        .replace("{PARAMETERS}", _constants(switch))
        .replace("{REGISTERS}", _constants(registers))
        .replace("{STATES}", _constants(states))
        .replace("{NODE_INFO}", _constants(fields))
        .replace("{CONNECTIONS}", _connections(parameters, slots))
    )


_TOP = NodeRegister.LINEAR_FDB_TOP
_NODE_INFO = ("node_type", "num_ports", "node_guid", "port_guid", "local_port_num")
_COUNTERS = (Counter.RCV_PKTS, Counter.XMIT_PKTS, Counter.RCV_ERRORS)


def link_partner() -> str:
    """Verilog of the other end of a link, module `ironband_link_partner`."""
    return _resource(f"{PARTNER}.v")


def _resource(name: str) -> str:
    return resources.files("verilog.export").joinpath(name).read_text(encoding="utf-8")


def _constants(values: Mapping[str, str]) -> str:
    return "\n".join(f"  localparam {name} = {value};" for name, value in values.items())


def _connections(parameters: SwitchParameters, slots: TraceSlots) -> str:
    """Each port of the switch to the bench's net of that name, those of a link to their part of one for all links."""
    lines = []
    for port in interface(parameters, slots):
        side, _, rest = port.name.partition("_")
        number, _, member = rest.partition("_")
        if side in ("rx", "tx"):
            width = _PER_PORT[member]
            part = f"[{(int(number) - 1) * width} +: {width}]" if width > 1 else f"[{int(number) - 1}]"
            lines.append(f"    .{port.name}({side}_{member}{part})")
        else:
            lines.append(f"    .{port.name}({'' if side == 'trace' else port.name})")
    return ",\n".join(lines)
