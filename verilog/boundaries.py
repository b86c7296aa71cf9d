"""Amaranth to RTLIL with every component converted by itself, so that identical components give identical text.

Amaranth converts a design as one flat netlist: a constant or a shared net of the parent shows up inside the
submodule, and ports depend on who uses them. Two instances of one component then differ in text although they
are the same hardware. Here each component becomes a module with exactly the ports of its signature (and the
clocks it uses), and its parent refers to that.

A component that reaches past its signature, for example one that reads a signal of its parent directly, is
converted as a part of its parent, as Amaranth would. So is one with more outputs than an instance can have, such as
the trace of a switch of 64 ports.

Conversion costs several times what elaboration does, so a component is converted only if no identical one was, and its
text is kept in the build cache: after a change of the design, what did not change is not converted again.
Identical means that conversion would read the same: everything that can be reached from the elaborated fragment and its
ports (see `fingerprint`). A component needs no care for that, and cannot be taken for another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Format, Fragment, Instance, Module, Signal, Value, ValueCastable
from amaranth.hdl._ir import Design, PortDirection
from amaranth.lib import wiring

from toolchain.build_cache import cached
from toolchain.garbage import no_garbage_collection
from verilog.fingerprint import fingerprint

__all__ = ["CLOCKS", "convert_alone", "convert_apart", "signature_ports"]

_CODE = Path(__file__).read_text()
_TEXT = "component.il"
_TOP_ATTRIBUTE = "attribute \\top 1\n"
_MOST_FIELDS = 16
"""Parts of a signal of a structured shape that get nets of their own, for waves; a signal with more gets none.

They say nothing new, and in a wide switch, with arrays of structures between all ports, they are most of the text.
"""

_MOST_OUTPUT_BITS = (1 << 16) - 1
"""Of an instance, in Amaranth."""

CLOCKS = ("clk", "rst")
"""Ports of a module for the clock domain that it uses, besides those of its signature."""

_Ports = dict[str, tuple[Any, Any]]


@dataclass(frozen=True)
class _Module:
    """A component that was converted: its module's name and RTLIL text, and what its fingerprint knows by id."""

    name: str
    text: str
    known_by_id: tuple[object, ...]


_Modules = dict[bytes, _Module]
"""Modules by fingerprint, submodules before those that have them."""


def convert_apart(elaboratable: Any, name: str, ports: _Ports | None = None, platform: Any = None) -> str:
    """RTLIL text of a design, the top module first; modules below it are named by their path, dots between.

    Of identical components the first has a module, of which the others are instances.

    Args:
        elaboratable: the design.
        name: name of the top module.
        ports: (signal, direction) by name; by default those of the elaboratable's signature.
        platform: for what is elaborated.

    Raises:
        TypeError: PORTS is missing and the elaboratable has no signature.
    """
    if ports is None:
        if not isinstance(getattr(elaboratable, "signature", None), wiring.Signature):
            raise TypeError(f"{type(elaboratable).__name__} has no signature, so its ports must be given")
        ports = signature_ports(elaboratable)
        if ports is None:
            raise TypeError(f"the signature of {type(elaboratable).__name__} has a member that is no whole signal")
    modules: _Modules = {}
    with no_garbage_collection():
        design = _prepared(elaboratable, name, ports, platform)
        _convert_below(design, design.fragment, name, modules)
        whole = _text(Design(design.fragment, design.ports, hierarchy=(name,)))
    return "\n".join([whole, *_texts(modules)])


def convert_alone(component: Any, name: str) -> tuple[str, tuple[str, ...]] | None:
    """A component as `convert_apart` converts it below another: RTLIL text, its module NAME first, and its ports.

    None if it has to stay a part of its parent. Its ports are those of its signature and those of CLOCKS that it uses.
    """
    # Asked first: to elaborate a wide component takes long.
    ports = _instance_ports(component)
    if ports is None:
        return None
    around = Module()
    around.submodules[name] = component
    modules: _Modules = {}
    with no_garbage_collection():
        design = _prepared(around, "", ports, None)
        inside, _name, _source = design.fragment.subfragments[0]
        converted = _convert(design, inside, name, modules)
    return None if converted is None else ("\n".join(_texts(modules)), tuple(converted[1]))


def _prepared(elaboratable: Any, name: str, ports: _Ports, platform: Any) -> Any:
    """An elaborated design of which every component can be converted."""
    design = Fragment.get(elaboratable, platform).prepare(ports, hierarchy=(name,))
    for signal in design.signal_lca:
        if _fields(signal._format) > _MOST_FIELDS:
            signal._format = Format("{}", signal)
    return design


def _texts(modules: _Modules) -> list[str]:
    return [module.text for module in reversed(modules.values())]


def _fields(shown: Any) -> int:
    """How many parts a signal has that is shown in this format."""
    parts = getattr(shown, "_fields", ())
    return sum(1 + _fields(part) for part in (parts.values() if isinstance(parts, dict) else parts))


def _convert_below(design: Any, fragment: Any, path: str, modules: _Modules) -> None:
    """Convert the components below FRAGMENT that MODULES lacks, and put an instance in the place of each."""
    kinds = {PortDirection.Input: "i", PortDirection.Output: "o"}
    for index, (subfragment, given_name, source) in enumerate(fragment.subfragments):
        if type(subfragment) is not Fragment:
            continue
        name = design.fragments[subfragment].name[-1]
        if (converted := _convert(design, subfragment, f"{path}.{name}", modules)) is not None:
            module, ports = converted
            connections = [(kinds[direction], port, signal) for port, (signal, direction) in ports.items()]
            fragment.subfragments[index] = (Instance(module, *connections), given_name or name, source)


def _convert(design: Any, fragment: Any, path: str, modules: _Modules) -> tuple[str, _Ports] | None:
    """Convert a component and those below it that MODULES lacks: the name of its module and its ports.

    None if it has to stay a part of its parent.
    """
    # Asked first: what crosses the boundary is known of the whole design as it was.
    ports = _boundary_ports(design, fragment)
    _convert_below(design, fragment, path, modules)
    if ports is None:
        return None
    digest, known_by_id = fingerprint(fragment, ports)
    if digest not in modules:

        def converted() -> str:
            alone = Design(fragment, [(port, *rest) for port, rest in ports.items()], hierarchy=(path,))
            return _text(alone).replace(_TOP_ATTRIBUTE, "")

        text = converted() if known_by_id else _kept(digest, path, converted)
        modules[digest] = _Module(path, text, known_by_id)
    return modules[digest].name, ports


def _kept(digest: bytes, path: str, convert: Callable[[], str]) -> str:
    """Text of the component with this fingerprint, as module PATH; from the build cache if it was converted before."""

    def fill(folder: Path) -> None:
        (folder / _TEXT).write_text(convert())

    key = {"fingerprint": digest.hex(), "path": path, "amaranth": metadata.version("amaranth"), "code": _CODE}
    return (cached("component", key, fill) / _TEXT).read_text()


def _text(design: Any) -> str:
    text: str = rtlil.convert_fragment(design, emit_src=False)[0]
    return text


def _boundary_ports(design: Any, fragment: Any) -> _Ports | None:
    """The ports that make FRAGMENT a module of its own, or None if it has to stay a part of its parent."""
    information = design.fragments[fragment]
    component = next((origin for origin in fragment.origins or () if isinstance(origin, wiring.Component)), None)
    ports = None if component is None else _instance_ports(component)
    if ports is None or information.used_io_ports:
        return None
    members = {id(signal) for signal, _direction in ports.values()}
    clocks = {}
    for domain in fragment.domains.values():
        for suffix, signal in zip(CLOCKS, (domain.clk, domain.rst), strict=True):
            if signal is not None:
                clocks[id(signal)] = suffix if domain.name == "sync" else f"{domain.name}_{suffix}"
    for signal in filter(len, information.used_signals):
        if id(signal) in members or design.fragments[design.signal_lca[signal]].depth >= information.depth:
            continue  # What is outside does not see it, or by the signature.
        port = clocks.get(id(signal))
        if port is None or port in ports:
            return None
        ports[port] = (signal, PortDirection.Input)
    return ports


def _instance_ports(component: Any) -> _Ports | None:
    """Ports for a component's signature; None if they are not those of an instance."""
    ports = signature_ports(component)
    if ports is None:
        return None
    outputs = sum(len(port) for port, direction in ports.values() if direction == PortDirection.Output)
    return ports if outputs <= _MOST_OUTPUT_BITS else None


def signature_ports(component: Any) -> _Ports | None:
    """Ports (signal, direction) by name for a component's signature.

    None if a member is a part of a signal, or used twice. What has no bits is no port: Verilog has no such.
    """
    ports: _Ports = {}
    seen: set[int] = set()
    for path, member, value in component.signature.flatten(component):
        signal = Value.cast(value) if isinstance(value, ValueCastable) else value
        if not isinstance(signal, Signal) or id(signal) in seen:
            return None
        seen.add(id(signal))
        direction = PortDirection.Input if member.flow == wiring.In else PortDirection.Output
        if len(signal):
            ports["__".join(map(str, path))] = (signal, direction)
    return ports
