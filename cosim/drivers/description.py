"""What a test inside the simulator has to know of the fabric it runs on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rtl.fabric.ports import FabricPorts, dump_ports, load_ports
from wire.parameters import AdapterParameters, FabricParameters, node_text
from wire.stimulus import Control

__all__ = ["Description"]

_FILE = "fabric.json"


@dataclass(frozen=True)
class Description:
    """A fabric's names, and what stands behind its ports; left in the directory that the simulation runs in.

    Attributes:
        nodes: names as people call them, by index.
        vls: data VLs of each node, by name.
        adapters: names of those.
        ports: what stands behind the fabric's ports.
        lids: of hosts, by name, those at open ports among them.
        bring_up: what takes all links to Active, from cycle 0 on.
        up: the cycle in which they are.
    """

    nodes: tuple[str, ...]
    vls: dict[str, int]
    adapters: tuple[str, ...]
    ports: FabricPorts
    lids: dict[str, int]
    bring_up: tuple[Control, ...]
    up: int

    @classmethod
    def of(
        cls,
        parameters: FabricParameters,
        ports: FabricPorts,
        lids: Mapping[str, int],
        bring_up: Sequence[Control],
        up: int,
    ) -> Description:
        """Of a fabric with these parameters and ports."""
        nodes = {node_text(name): node for name, node in parameters.nodes.items()}
        vls = {name: node.vls for name, node in nodes.items()}
        adapters = tuple(name for name, node in nodes.items() if isinstance(node, AdapterParameters))
        called = {node_text(name): lid for name, lid in lids.items()}
        return cls(tuple(nodes), vls, adapters, ports, called, tuple(bring_up), up)

    def write(self, run_dir: Path) -> None:
        """Leave it where the simulation will run."""
        values = vars(self) | {"ports": dump_ports(self.ports)}
        (run_dir / _FILE).write_text(json.dumps(values))

    @classmethod
    def read(cls) -> Description:
        """From the simulation's directory, which is the current one."""
        loaded = json.loads(Path(_FILE).read_text())
        return cls(
            tuple(loaded["nodes"]),
            loaded["vls"],
            tuple(loaded["adapters"]),
            load_ports(loaded["ports"]),
            loaded["lids"],
            tuple(
                Control(cycle, operation, target, tuple(args)) for cycle, operation, target, args in loaded["bring_up"]
            ),
            loaded["up"],
        )
