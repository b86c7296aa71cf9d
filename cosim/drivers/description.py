"""What a test inside the simulator has to know of the fabric it runs on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from rtl.fabric.ports import FabricPorts, dump_ports, load_ports
from wire.parameters import AdapterParameters, FabricParameters

__all__ = ["Description"]

_FILE = "fabric.json"


@dataclass(frozen=True)
class Description:
    """A fabric's names, and what stands behind its ports; left in the directory that the simulation runs in.

    Attributes:
        nodes: names, by index.
        vls: data VLs of each adapter, by name.
        ports: what stands behind the fabric's ports.
    """

    nodes: tuple[str, ...]
    vls: dict[str, int]
    ports: FabricPorts

    @classmethod
    def of(cls, parameters: FabricParameters, ports: FabricPorts) -> Description:
        """Of a fabric with these parameters and ports."""
        vls = {name: node.vls for name, node in parameters.nodes.items() if isinstance(node, AdapterParameters)}
        return cls(tuple(parameters.nodes), vls, ports)

    def write(self, run_dir: Path) -> None:
        """Leave it where the simulation will run."""
        text = json.dumps({"nodes": self.nodes, "vls": self.vls, "ports": dump_ports(self.ports)})
        (run_dir / _FILE).write_text(text)

    @classmethod
    def read(cls) -> Description:
        """From the simulation's directory, which is the current one."""
        loaded = json.loads(Path(_FILE).read_text())
        return cls(tuple(loaded["nodes"]), loaded["vls"], load_ports(loaded["ports"]))
