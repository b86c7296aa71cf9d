"""The calls between a design and a precompiled module of it: the Verilog that makes them and the C++ that answers.

A value of up to 32 bits crosses as an integer of 32, one of up to 64 as an integer of 64, a wider one as an array of
words of 32.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosim.simulators.netlist import Port, escaped

__all__ = ["CLOCK", "EDGE", "Interface", "caller", "glue", "shell"]

CLOCK = "clk"
EDGE = f"@(posedge {CLOCK})"
_INNER_CLOCK = Port(CLOCK, 1, False)
"""What a step gives besides: the clock inside the module, another value than before if the step evaluated it."""

_CALLED_MODULE = Path(__file__).with_name("called_module.h")


@dataclass(frozen=True)
class Interface:
    """The ports of a precompiled module.

    Attributes:
        ports: all of them.
        inputs: all inputs but the clock, which `step` takes.
        registered: outputs that depend on registers only, which `step` gives.
        read_at_once: inputs that outputs depend on in the same cycle, which `settle` takes.
        at_once: outputs that depend on these, which `settle` gives.
    """

    ports: Sequence[Port]
    inputs: Sequence[Port]
    registered: Sequence[Port]
    read_at_once: Sequence[Port]
    at_once: Sequence[Port]

    @classmethod
    def of(cls, ports: Sequence[Port], through: Mapping[str, frozenset[str]]) -> Interface:
        """The interface of a module with these ports; THROUGH as `Netlist.through` says."""
        inputs = [port for port in ports if port.is_input and port.name != CLOCK]
        outputs = [port for port in ports if not port.is_input]
        read = frozenset[str]().union(*through.values())
        return cls(
            ports,
            inputs,
            [port for port in outputs if not through[port.name]],
            [port for port in inputs if port.name in read],
            [port for port in outputs if through[port.name]],
        )


def shell(name: str, module: str, ports: Sequence[Port]) -> str:
    """Verilog of a precompiled module's top, around MODULE: the ports have names that are also names in C++."""
    declared = ",\n".join(f"  {_declaration(port, _plain(port))}" for port in ports)
    connected = ",\n".join(f"    .{escaped(port.name)}({_plain(port)})" for port in ports)
    return f"module {name} (\n{declared}\n);\n  {module} inner (\n{connected}\n  );\nendmodule\n"


def caller(module: str, precompiled: str, interface: Interface) -> str:
    """Verilog of the module that stands for a precompiled one in the design."""
    registered, at_once = interface.registered, interface.at_once
    by_step = [*registered, _INNER_CLOCK]
    given = [f"given_{_plain(port)}" for port in by_step]
    inputs = [escaped(port.name) for port in interface.inputs]
    lines = [
        f"module {module}({', '.join(escaped(port.name) for port in interface.ports)});",
        *(f"  {_declaration(port, escaped(port.name))};" for port in interface.ports),
        f'  import "DPI-C" function chandle {precompiled}_new();',
        _import(f"{precompiled}_start", [], registered),
        _import(f"{precompiled}_step", interface.inputs, by_step),
        f"  chandle self = {precompiled}_new();",
        *(f"  {_crossing(port)} given_{_plain(port)};" for port in by_step),
        *(f"  reg [{port.width - 1}:0] held_{_plain(port)};" for port in registered),
        *(f"  assign {escaped(port.name)} = held_{_plain(port)};" for port in registered),
        # A precompiled module around this rests by what it holds: Verilator must keep this if nothing reads it, too.
        "  reg stepped /* verilator public_flat_rd */ = 0;",
        "  initial begin",
        f"    {precompiled}_start({', '.join(['self', *given[:-1]])});",
        *(f"    held_{_plain(port)} = {_cut(port, 'given')};" for port in registered),
        "  end",
        f"  always {EDGE} begin",
        f"    {precompiled}_step({', '.join(['self', *inputs, *given])});",
        *(f"    held_{_plain(port)} <= {_cut(port, 'given')};" for port in registered),
        f"    stepped <= {_cut(_INNER_CLOCK, 'given')};",
        "  end",
    ]
    if at_once:
        read = [escaped(port.name) for port in interface.read_at_once]
        settled = [f"settled_{_plain(port)}" for port in at_once]
        lines += [
            # A step changes the outputs, too: Verilator settles behind it only if what a step gives is read.
            _import(f"{precompiled}_settle", [Port("stepped", 1, True), *interface.read_at_once], at_once),
            *(f"  {_crossing(port)} settled_{_plain(port)};" for port in at_once),
            *(f"  assign {escaped(port.name)} = {_cut(port, 'settled')};" for port in at_once),
            f"  always_comb {precompiled}_settle({', '.join(['self', 'stepped', *read, *settled])});",
        ]
    return "\n".join([*lines, "endmodule\n"])


def glue(precompiled: str, interface: Interface) -> str:
    """C++ of the functions that the caller calls, around the class that Verilator makes of its shell."""
    model = f"V{precompiled}"
    clock = _plain_name(CLOCK)
    clocks = f"model.rootp->{clock}, model.rootp->__Vtrigprevexpr___TOP__{clock}__0"
    by_step = [*interface.registered, _INNER_CLOCK]
    lines = [
        f'#include "{model}.h"',
        f'#include "{model}___024root.h"',
        _CALLED_MODULE.read_text(),
        f"using Called = CalledModule<{model}, {model}___024root>;",
        'extern "C" {',
        f"void* {precompiled}_new() {{ return new Called; }}",
        *_function(f"{precompiled}_start", [], [], "settle()", interface.registered),
        *_function(f"{precompiled}_step", [], interface.inputs, f"step({clocks})", by_step),
        *_function(f"{precompiled}_settle", ["std::uint32_t"], interface.read_at_once, "settle()", interface.at_once),
        "}\n",
    ]
    return "\n".join(lines)


def _function(
    name: str, ignored: Sequence[str], inputs: Sequence[Port], then: str, outputs: Sequence[Port]
) -> Iterator[str]:
    """A function that takes inputs, evaluates the module and gives outputs."""
    arguments = ["void* self", *ignored]
    arguments += [f"{_c_type(port)} {'const* ' if _is_array(port) else ''}{_plain(port)}" for port in inputs]
    arguments += [f"{_c_type(port)}* {_plain(port)}" for port in outputs]
    yield f"void {name}({', '.join(arguments)}) {{"
    yield "  Called& called = *static_cast<Called*>(self);"
    yield "  auto& model = called.model;"
    yield from (f"  called.take(model.{_plain(port)}, {_plain(port)});" for port in inputs)
    yield f"  called.{then};"
    yield from (_given(_plain(port), port) for port in outputs)
    yield "}"


def _given(name: str, port: Port) -> str:
    """A statement that gives an output to the argument of its name; the model holds an array as an object."""
    if not _is_array(port):
        return f"  *{name} = model.{name};"
    words = -(-port.width // 32)
    return f"  std::memcpy(&{name}[0], &model.{name}[0], {words} * sizeof(std::uint32_t));"


def _import(function: str, inputs: Iterable[Port], outputs: Iterable[Port]) -> str:
    arguments = ["input chandle self"]
    arguments += [f"input {_crossing(port)} {_plain(port)}" for port in inputs]
    arguments += [f"output {_crossing(port)} {_plain(port)}" for port in outputs]
    return f'  import "DPI-C" function void {function}({", ".join(arguments)});'


def _declaration(port: Port, name: str) -> str:
    return f"{'input' if port.is_input else 'output'} [{port.width - 1}:0] {name}"


def _plain(port: Port) -> str:
    return _plain_name(port.name)


def _plain_name(name: str) -> str:
    """A name in Verilog and C++, keyword in neither. Verilator would write two underscores differently."""
    return f"p_{re.sub('[^A-Za-z0-9]+', '_', name).strip('_')}"


def _is_array(port: Port) -> bool:
    return port.width > 64


def _crossing(port: Port) -> str:
    """The Verilog type of an argument."""
    if _is_array(port):
        return f"bit [{port.width - 1}:0]"
    return "int unsigned" if port.width <= 32 else "longint unsigned"


def _c_type(port: Port) -> str:
    return "std::uint64_t" if 32 < port.width <= 64 else "std::uint32_t"


def _cut(port: Port, prefix: str) -> str:
    """A value that crossed, in the port's own width."""
    return f"{prefix}_{_plain(port)}" + ("" if _is_array(port) else f"[{port.width - 1}:0]")
