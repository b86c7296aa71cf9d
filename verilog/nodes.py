"""The nodes of a fabric, each kind of which is elaborated and converted once and kept in the build cache."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from amaranth.hdl import ClockSignal, Instance, Value
from amaranth.lib import wiring

from toolchain.build_cache import cached
from verilog.boundaries import CLOCKS, convert_alone, signature_ports

__all__ = ["KnownNodes"]

_NAME = "node"
_OWN_NAME = re.compile(rf"^(?P<before>module |\s*cell )\\{_NAME}(?=[.\s])", re.M)
_TEXT = "node.il"
_PORTS = "ports.json"


class KnownNodes:
    """A platform, in Amaranth's sense, on which a node is an instance of a module that is kept.

    A fabric has few kinds of nodes, and fabrics share them; to elaborate one takes as long as to convert it.

    Attributes:
        texts: RTLIL of the nodes that were instantiated, each kind once.
    """

    def __init__(self, name: str, code: Mapping[str, object], known: Callable[[], None] = lambda: None) -> None:
        """Nodes of the fabric that is module NAME; CODE is what a node depends on besides its parameters.

        KNOWN is called when a kind of nodes is.
        """
        self.texts: list[str] = []
        self._name = name
        self._code = code
        self._known = known
        self._modules: dict[str, tuple[str, tuple[str, ...]]] = {}

    def node(self, name: str, node: wiring.Component, parameters: object, reset: Value) -> wiring.Component | Instance:
        """What stands for the node of this name: an instance, with this reset; the node itself if it cannot be one."""
        kind = repr(parameters)
        if kind not in self._modules:
            folder = cached("node", {**self._code, "parameters": kind}, lambda folder: _convert(node, folder))
            self._known()
            ports = json.loads((folder / _PORTS).read_text())
            if ports is None:
                return node
            module = f"{self._name}.{name}"
            self.texts.append(_OWN_NAME.sub(rf"\g<before>\\{module}", (folder / _TEXT).read_text()))
            self._modules[kind] = module, tuple(ports)
        return _instance(node, reset, *self._modules[kind])


def _convert(node: wiring.Component, folder: Path) -> None:
    text, ports = convert_alone(node, _NAME) or ("", None)
    (folder / _TEXT).write_text(text)
    (folder / _PORTS).write_text(json.dumps(ports))


def _instance(node: wiring.Component, reset: Value, module: str, ports: tuple[str, ...]) -> Instance:
    """An instance of a module, connected to the signals of a node that it stands for."""
    signals: dict[str, tuple[Any, Any]] = signature_ports(node) or {}
    clocks = dict(zip(CLOCKS, (ClockSignal(), reset), strict=True))
    connections = [
        ("i", port, clocks[port]) if port in clocks else (signals[port][1].name[0].lower(), port, signals[port][0])
        for port in ports
    ]
    return Instance(module, *connections)
