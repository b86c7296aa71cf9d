"""A design ready to be simulated: its Verilog and what stands behind its ports."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rtl.fabric.fabric import Fabric
from rtl.fabric.ports import FabricPorts, dump_ports, load_ports
from toolchain.build_cache import cached
from toolchain.building import building
from verilog.emit import to_verilog
from verilog.nodes import KnownNodes
from wire.parameters import FabricParameters

__all__ = ["MODULE", "Design", "export", "fabric_design"]

MODULE = "fabric"
"""Name of the design's top module in Verilog."""

_CODE = ("rtl/**/*.py", "wire/**/*.py")
"""What decides the netlist of a fabric, as patterns of files of the checkout."""

_EMISSION = "verilog/*.py"
"""What makes Verilog of it."""

_VERILOG = "fabric.v"
_PORTS = "ports.json"
_KIND_SECONDS = 4.5
"""To elaborate and convert a kind of nodes, and what it adds to the fabric."""

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Design:
    """A fabric as Verilog.

    Attributes:
        ports: what stands behind the ports of its module `fabric`.
        verilog: the text.
    """

    ports: FabricPorts
    verilog: str


def export(make: Callable[[], Any], key: object, code: Iterable[str], kinds: int = 0) -> Design:
    """The design of a component with `FabricSignature` and an attribute `ports`, from the cache if nothing changed.

    Elaborating a large fabric takes longer than compiling it, so the result is kept for as long as neither the
    parameters nor the code that they go into change.

    Args:
        make: makes the component.
        key: the parameters, whose repr distinguishes them.
        code: patterns of the files of the checkout that decide the result, those that emit it aside.
        kinds: how many kinds of nodes it has.

    Raises:
        BuildDirectoryError: the build output cannot be written.
        FileNotFoundError: one of CODE is not there, so that a build of other code might be taken.
    """

    def fill(directory: Path) -> None:
        with building("Verilog", kinds + 1, _KIND_SECONDS * max(kinds, 1)) as built:
            component = make()
            nodes = KnownNodes(MODULE, identity, built)
            (directory / _VERILOG).write_text(to_verilog(component, MODULE, nodes=nodes))
            (directory / _PORTS).write_text(dump_ports(component.ports))

    digest = hashlib.sha256()
    for pattern in (*code, _EMISSION):
        files = sorted(_ROOT.glob(pattern))
        if not files:
            raise FileNotFoundError(f"{_ROOT / pattern}: expected the Python code that a design depends on")
        for file in files:
            digest.update(str(file.relative_to(_ROOT)).encode() + b"\0" + file.read_bytes())
    identity = {"code": digest.hexdigest(), "amaranth": metadata.version("amaranth")}
    directory = cached("design", {**identity, "parameters": repr(key)}, fill)
    return Design(load_ports((directory / _PORTS).read_text()), (directory / _VERILOG).read_text())


def fabric_design(
    parameters: FabricParameters,
    *,
    part: bool = False,
    taps: tuple[tuple[int, int], ...] = (),
    rows: bool = False,
) -> Design:
    """The fabric, or a part of one, as Verilog, exported once for each set of parameters; see `Fabric`.

    Raises:
        BuildDirectoryError: the build output cannot be written.
    """
    kinds = len({repr(node) for node in parameters.nodes.values()})
    return export(
        lambda: Fabric(parameters, part=part, taps=taps, rows=rows), (parameters, part, taps, rows), _CODE, kinds
    )
