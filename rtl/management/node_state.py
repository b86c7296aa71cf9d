"""What changes in a node without its agent, on wires to it."""

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from wire.parameters import NodeParameters, SwitchParameters

__all__ = ["NodeStateSignature"]


class NodeStateSignature(wiring.Signature):
    """The node's state, seen from the node.

    Members:
        state_reported (switch): in the first cycle of a port's state that PortStateChange tells of.
        active, host_sm (adapter): the port is Active; the host has a Subnet Manager.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        names = ("state_reported",) if isinstance(parameters, SwitchParameters) else ("active", "host_sm")
        super().__init__({name: Out(1) for name in names})
