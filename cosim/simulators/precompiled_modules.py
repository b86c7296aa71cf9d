"""Modules of which a design has several instances, compiled once each instead of once for every instance, and modules
that rest most of the time.

Verilator makes one C++ program of a design, in which each of 36 identical ports has code of its own: it takes long to
compile, and does not fit a processor's caches when it runs. Here such a module is verilated by itself. In the design
a module of the same name and ports stands in its place, which calls it:

- at a clock edge `step`, with all inputs as they were before the edge; it gives the outputs that depend on registers
  only;
- when a step was made, or an input changed that outputs depend on in the same cycle, `settle`, with these inputs; it
  gives these outputs.

A call that could change nothing does not evaluate the module (`called_module.h`).

Which outputs depend on which inputs is read from the netlist, and as that has no loops, such a module settles once a
cycle; one whose calls would make a loop is left in the design. Inside it a cycle is one change of the clock instead of
two: every edge counts.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from cosim.simulators.module_calls import CLOCK, EDGE, Interface, caller, glue, shell
from cosim.simulators.netlist import Netlist

__all__ = ["WORTH_CHARACTERS", "PrecompiledModule", "split"]

_EITHER_EDGE = f"@(edge {CLOCK})"
WORTH_CHARACTERS = 60_000
"""Verilog of a module and all below it from which on compiling it apart is worth its calls."""


RESTING = frozenset(("agent",))
"""Names of instances that do nothing most of the time: called, they are not evaluated then. One of them is enough."""


@dataclass(frozen=True)
class PrecompiledModule:
    """A module to be compiled by itself.

    Attributes:
        name: of its top and of its C++ functions, the same for the same text.
        verilog: its modules. Those that are precompiled themselves are the ones that call.
        glue: C++ of the functions.
    """

    name: str
    verilog: str
    glue: str


def split(verilog: str) -> tuple[str, list[PrecompiledModule]]:
    """A design in Yosys's Verilog without the precompiled modules, and these; they may call others.

    Verilog of other forms than Yosys writes is left as it is.
    """
    netlist = Netlist(verilog)
    if not netlist.is_understood:
        return verilog, []
    precompiled: dict[str, PrecompiledModule] = {}
    # Several tops may have a module below them: a flattened one leaves those that it had as tops.
    rest = dict.fromkeys(text for top in netlist.tops() for text in _without_precompiled(netlist, top, precompiled))
    if not precompiled:
        return verilog, []
    return "\n".join(rest), sorted(set(precompiled.values()), key=lambda module: module.name)


def _without_precompiled(netlist: Netlist, top: str, precompiled: dict[str, PrecompiledModule]) -> Iterator[str]:
    """Text of TOP and the modules below, of precompiled ones the callers. PRECOMPILED, by module, is added to."""
    chosen = _chosen(netlist, top)
    for name in netlist.tree(top, chosen):
        if name not in chosen:
            yield netlist.modules[name].text
            continue
        if name not in precompiled:
            precompiled[name] = _precompiled(netlist, name, precompiled)
        yield caller(name, precompiled[name].name, _interface(netlist, name))


def _chosen(netlist: Netlist, top: str) -> frozenset[str]:
    """Modules with several instances below TOP, or that rest, and not below one another, that are worth it.

    As one call gives all of a module's outputs, there may be a loop where there is none in the design.
    """
    looping: set[str] = set()
    while True:
        chosen = _worth(netlist, top, looping)
        found = netlist.looping(top, chosen)
        if not found:
            return chosen
        # Without the smallest there may be no other.
        looping.add(min(found, key=lambda name: (_weight(netlist, name), name)))


def _worth(netlist: Netlist, top: str, without: Collection[str]) -> frozenset[str]:
    chosen: set[str] = set()
    counts = Counter({top: 1})
    tree = netlist.tree(top)
    resting = {one.module for name in tree for one in netlist.modules[name].instances if one.name in RESTING}
    for name in reversed(tree):
        is_called_for = counts[name] > 1 or name in resting
        is_worth = is_called_for and _weight(netlist, name) >= WORTH_CHARACTERS and name not in without
        if is_worth and _is_synchronous(netlist, name):
            chosen.add(name)
            continue
        for child in netlist.children(name):
            counts[child.name] += counts[name]
    return frozenset(chosen)


def _weight(netlist: Netlist, name: str) -> int:
    return len(netlist.modules[name].text) + sum(_weight(netlist, child.name) for child in netlist.children(name))


def _is_synchronous(netlist: Netlist, name: str) -> bool:
    """Whether all registers of a module and below have one clock, the module's input of that name, and one edge."""
    inputs = {port.name for port in netlist.modules[name].ports if port.is_input}
    edges = {edge for below in netlist.tree(name) for edge in netlist.modules[below].edges}
    return netlist.is_whole(name) and CLOCK in inputs and netlist.clocks(name) <= {CLOCK} and edges <= {EDGE}


def _interface(netlist: Netlist, name: str) -> Interface:
    return Interface.of(netlist.modules[name].ports, netlist.through(name))


def _precompiled(netlist: Netlist, name: str, precompiled: dict[str, PrecompiledModule]) -> PrecompiledModule:
    """A module, precompiled. Nothing in it says in which design it was found, so that designs can share it."""
    text = "\n".join(_without_precompiled(netlist, name, precompiled))
    numbers = {module: f"m{place}" for place, module in enumerate(netlist.tree(name, _chosen(netlist, name)))}
    module_name = re.compile(rf"^(?P<before>module |  )(?P<name>{'|'.join(numbers)})(?P<after>\(| \S+ +\()", re.M)
    text = module_name.sub(lambda found: f"{found['before']}{numbers[found['name']]}{found['after']}", text)
    text = text.replace(EDGE, _EITHER_EDGE)
    interface = _interface(netlist, name)
    # Programs that call it are other ones if it answers in another way.
    definition = f"{interface} {text} {glue('module', interface)}"
    unique = f"module_{hashlib.sha256(definition.encode()).hexdigest()[:16]}"
    return PrecompiledModule(
        unique, f"{text}\n{shell(unique, numbers[name], interface.ports)}", glue(unique, interface)
    )
