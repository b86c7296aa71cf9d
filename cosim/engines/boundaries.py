"""Amaranth to RTLIL with every component converted by itself, so that like components give like text.

Amaranth converts a design as one flat netlist: a constant or a shared net of the parent shows up inside the
submodule, and ports depend on who uses them. Two instances of one component then differ in text although they
are the same hardware. Here each component becomes a module with exactly the ports of its signature (and the
clocks it uses), and its parent refers to that.

A component that reaches past its signature, for example one that reads a signal of its parent directly, is
converted as a part of its parent, as Amaranth would.
"""

from __future__ import annotations

from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Fragment, Instance, Signal, Value, ValueCastable
from amaranth.hdl._ir import Design, PortDirection
from amaranth.lib import wiring

__all__ = ["convert_apart"]

_TOP_ATTRIBUTE = "attribute \\top 1\n"
_Ports = dict[str, tuple[Any, Any]]


def convert_apart(elaboratable: Any, name: str, ports: _Ports | None = None) -> str:
    """RTLIL text of a design, the top module first; modules below it are named by their path, dots between.

    Args:
        elaboratable: the design.
        name: name of the top module.
        ports: (signal, direction) by name; by default those of the elaboratable's signature.

    Raises:
        TypeError: PORTS is missing and the elaboratable has no signature.
    """
    if ports is None:
        if not isinstance(getattr(elaboratable, "signature", None), wiring.Signature):
            raise TypeError(f"{type(elaboratable).__name__} has no signature, so its ports must be given")
        ports = _signature_ports(elaboratable)
        if ports is None:
            raise TypeError(f"the signature of {type(elaboratable).__name__} has a member that is no whole signal")
    design = Fragment.get(elaboratable, None).prepare(ports, hierarchy=(name,))
    texts: list[str] = []
    top = _convert_below(design, design.fragment, name, texts)
    assert top is design.fragment
    whole = Design(design.fragment, design.ports, hierarchy=(name,))
    return "\n".join([_text(whole), *reversed(texts)])


def _convert_below(design: Any, fragment: Any, path: str, texts: list[str]) -> Any:
    """Convert the components below FRAGMENT into TEXTS, and put an instance in the place of each."""
    for index, (subfragment, given_name, source) in enumerate(fragment.subfragments):
        if type(subfragment) is not Fragment:
            continue
        name = design.fragments[subfragment].name[-1]
        below = f"{path}.{name}"
        # Asked first: what crosses the boundary is known of the whole design as it was.
        ports = _boundary_ports(design, subfragment)
        _convert_below(design, subfragment, below, texts)
        if ports is None:
            continue
        alone = Design(subfragment, [(port, *rest) for port, rest in ports.items()], hierarchy=(below,))
        texts.append(_text(alone).replace(_TOP_ATTRIBUTE, ""))
        kinds = {PortDirection.Input: "i", PortDirection.Output: "o"}
        connections = [(kinds[direction], port, signal) for port, (signal, direction) in ports.items()]
        fragment.subfragments[index] = (Instance(below, *connections), given_name or name, source)
    return fragment


def _text(design: Any) -> str:
    text: str = rtlil.convert_fragment(design, emit_src=False)[0]
    return text


def _boundary_ports(design: Any, fragment: Any) -> _Ports | None:
    """The ports that make FRAGMENT a module of its own, or None if it has to stay a part of its parent."""
    information = design.fragments[fragment]
    component = next((origin for origin in fragment.origins or () if isinstance(origin, wiring.Component)), None)
    ports = None if component is None else _signature_ports(component)
    if ports is None or information.used_io_ports:
        return None
    members = {id(signal) for signal, _direction in ports.values()}
    clocks = {}
    for domain in fragment.domains.values():
        for suffix, signal in (("clk", domain.clk), ("rst", domain.rst)):
            if signal is not None:
                clocks[id(signal)] = suffix if domain.name == "sync" else f"{domain.name}_{suffix}"
    for signal in information.used_signals:
        if id(signal) in members or not _seen_outside(design, fragment, signal):
            continue
        port = clocks.get(id(signal))
        if port is None or port in ports:
            return None
        ports[port] = (signal, PortDirection.Input)
    return ports


def _seen_outside(design: Any, fragment: Any, signal: Any) -> bool:
    """Whether SIGNAL is used by anything that is not inside FRAGMENT."""
    topmost = design.signal_lca[signal]
    return bool(design.fragments[topmost].depth < design.fragments[fragment].depth)


def _signature_ports(component: Any) -> _Ports | None:
    """Ports by name for a component's signature; None if a member is a part of a signal, or used twice."""
    ports: _Ports = {}
    seen: set[int] = set()
    for path, member, value in component.signature.flatten(component):
        signal = Value.cast(value) if isinstance(value, ValueCastable) else value
        if not isinstance(signal, Signal) or id(signal) in seen:
            return None
        seen.add(id(signal))
        direction = PortDirection.Input if member.flow == wiring.In else PortDirection.Output
        ports["__".join(map(str, path))] = (signal, direction)
    return ports
