"""What answers requests of class 0x21 at hosts where nothing else runs: their adapters' drivers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cosim.hosts.verbs_carrier import VerbsCarrier
from verbs.adapter import Adapter
from verbs.congestion_control.agent import CongestionAgent
from verbs.hosts import VerbsPort
from verbs.port import Port
from wire.parameters import AdapterParameters, FabricParameters

__all__ = ["AdapterAgents"]


class AdapterAgents:
    """An adapter at each host's port, without queue pairs.

    Attributes:
        carrier: carries them.
    """

    def __init__(self, fabric: FabricParameters, sl_to_vl: Sequence[int], *, goes_on: Callable[[int], bool]) -> None:
        """`sl_to_vl` is the VL of each SL, modulo a node's data VLs; `goes_on` is asked as a carrier's CONSUME is."""
        self.carrier = VerbsCarrier(consume=goes_on)
        self._adapters: dict[str, Adapter] = {}
        for index, (name, node) in enumerate(fabric.nodes.items()):
            if isinstance(node, AdapterParameters):
                # Its answers come from the LIDs that it was asked by: it need not know its own.
                adapter = self._adapters[name] = Adapter([Port(0)])
                vls = [vl % node.vls for vl in sl_to_vl]
                self.carrier.hosts.add(VerbsPort(index, adapter, 1, node.vls, vls))

    def agent(self, node: str) -> CongestionAgent:
        """That of a node's port."""
        return self._adapters[node].congestion_control[0].agent
