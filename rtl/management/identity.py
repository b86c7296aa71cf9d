"""A node's identity and state, on wires to its agent (docs/management.md, section 8)."""

from typing import Final

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from wire.node_info import NODE_DESCRIPTION, NODE_INFO, node_description
from wire.parameters import NodeIdentity, NodeParameters, SwitchParameters
from wire.stimulus import KeyViolation

__all__ = ["KEYS", "IdentitySignature", "NodeStateSignature", "identity_values"]


_OF_ALL: Final = {
    "node_guid": NODE_INFO["node_guid"].width,
    "port_guid": NODE_INFO["port_guid"].width,
    "description": 8 * NODE_DESCRIPTION.size_bytes,
}
KEYS: Final = len(KeyViolation)
"""Keys of a packet that may be wrong, a bit each as in `KeyViolation`."""

_OF_ADAPTERS: Final = {name: NODE_INFO[name].width for name in ("node_type", "num_ports", "local_port_num")}


class IdentitySignature(wiring.Signature):
    """A node's identity, seen from its source. It does not change.

    Members:
        node_guid, port_guid: GUIDs of the node and of its port (a switch's port 0).
        description: NodeDescription, byte 0 in the highest bits.
        node_type, num_ports, local_port_num (adapter): NodeInfo's, of this port of it.
    """

    def __init__(self, *, is_switch: bool = False) -> None:
        super().__init__({name: Out(bits) for name, bits in (_OF_ALL if is_switch else _OF_ALL | _OF_ADAPTERS).items()})


class NodeStateSignature(wiring.Signature):
    """The node's state, seen from the node.

    Members:
        state_reported (switch): in the first cycle of a port's state that PortStateChange reports.
        active, host_sm (adapter): the port is Active; the host has a Subnet Manager.
        key_violation (adapter): the host has found a packet with these keys wrong, in this cycle.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        of_adapter = {"active": Out(1), "host_sm": Out(1), "key_violation": Out(KEYS)}
        super().__init__({"state_reported": Out(1)} if isinstance(parameters, SwitchParameters) else of_adapter)


def identity_values(identity: NodeIdentity) -> dict[str, int]:
    """What the members of an adapter's `IdentitySignature` are for this identity; a switch has some of them."""
    return {
        "node_guid": identity.node_guid,
        "port_guid": identity.port_guid,
        "description": int.from_bytes(node_description(identity.description), "big"),
        "node_type": identity.type,
        "num_ports": identity.ports,
        "local_port_num": identity.port,
    }
