"""Drivers for cocotb tests: packets, registers, errors and rows of a fabric, as cocotb users know them."""

from cosim.drivers.adapter import AdapterDriver
from cosim.drivers.control import ControlDriver
from cosim.drivers.exported_switch import ExportedSwitch
from cosim.drivers.fabric import FabricDriver
from cosim.drivers.link_partner import LinkPartner
from cosim.drivers.monitor import TraceMonitor
from cosim.drivers.row import RowDriver, RowFrame, RowMonitor

__all__ = [
    "AdapterDriver",
    "ControlDriver",
    "ExportedSwitch",
    "FabricDriver",
    "LinkPartner",
    "RowDriver",
    "RowFrame",
    "RowMonitor",
    "TraceMonitor",
]
