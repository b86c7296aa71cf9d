"""Results of the tools, and a small component, for several tests."""

import json
from pathlib import Path

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.trace import TraceSignature
from verilog.synth.area import mapped_memories, parts
from verilog.synth.place import Placement, Target
from verilog.synth.synthesis import Synthesis, SynthesisOptions
from verilog.synth.timing import critical_path
from wire.parameters import SwitchParameters

REPORT = json.loads(Path(__file__).with_name("synth_report.json").read_text())
"""nextpnr's report on a switch of 2 ports, without places and what is unused."""


def module(cells, memories=None):
    return {
        "attributes": {},
        "cells": {name: {"type": kind} for name, kind in cells.items()},
        "memories": memories or {},
    }


MAPPED = {
    "top": module(
        {
            "pins_in_TRELLIS_FF_Q": "TRELLIS_FF",
            "design.port_0": "port",
            "design.port_1": "port",
            "design.bus.take_LUT4_Z": "LUT4",
        }
    ),
    "port": module(
        {
            "store.rows_0.0.0": "DP16KD",
            "store.rows_0.0.1": "DP16KD",
            "store.links.0.0": "TRELLIS_DPR16X4",
            "sum_CCU2C_S0": "CCU2C",
            "sum_TRELLIS_FF_Q": "TRELLIS_FF",
            "ready_LUT4_Z": "LUT4",
        }
    ),
    "LUT4": {"attributes": {"blackbox": "1"}, "cells": {}},
}


BEFORE = {
    "top": module({"design.port_0": "port", "design.port_1": "port"}),
    "port": module(
        {},
        {
            "store.rows_0": {"size": 1024, "width": 36},
            "store.links": {"size": 16, "width": 4},
            "store.few": {"size": 2, "width": 8},
        },
    ),
}


class Delayed(wiring.Component):
    """Three bits, a cycle later, and a trace."""

    def __init__(self):
        super().__init__({"taken": In(3), "given": Out(3), "trace": Out(TraceSignature(1))})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.given.eq(self.taken)
        return m


def synthesis(fmax, target=62.5, too_much="", conflicts=0, until="routing"):
    path = critical_path(REPORT) if conflicts == 0 else None
    placement = None if too_much else Placement({"TRELLIS_COMB": 7_000}, fmax, path, conflicts)
    options = SynthesisOptions(SwitchParameters(), Target(freq_mhz=target), until)
    return Synthesis(options, parts(MAPPED), mapped_memories(BEFORE, MAPPED), too_much, placement)
