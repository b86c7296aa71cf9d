"""Drivers for cocotb tests, to be imported where cocotb runs: an exported switch, and fabrics (docs/library.md)."""

from cosim.drivers import (
    AdapterDriver,
    ControlDriver,
    ExportedSwitch,
    FabricDriver,
    LinkPartner,
    RowDriver,
    RowFrame,
    RowMonitor,
    TraceMonitor,
)
from wire.codes import PortState
from wire.packet import Packet, build_ud_send, parse
from wire.registers import Counter
from wire.symbols import Row, frame_data_packet, frame_link_packet
from wire.trace import Kind

__all__ = [
    "AdapterDriver",
    "ControlDriver",
    "Counter",
    "ExportedSwitch",
    "FabricDriver",
    "Kind",
    "LinkPartner",
    "Packet",
    "PortState",
    "Row",
    "RowDriver",
    "RowFrame",
    "RowMonitor",
    "TraceMonitor",
    "build_ud_send",
    "frame_data_packet",
    "frame_link_packet",
    "parse",
]
