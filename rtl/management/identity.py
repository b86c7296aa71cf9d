"""What tells a node from its like, on wires (docs/management.md, section 7)."""

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from wire.node_info import NODE_DESCRIPTION, NODE_INFO, node_description
from wire.parameters import NodeIdentity

__all__ = ["IdentitySignature", "identity_values"]


class IdentitySignature(wiring.Signature):
    """A node's identity, seen from where it comes. It does not change.

    Members:
        node_guid, port_guid: GUIDs of the node and of its port (a switch's port 0).
        description: NodeDescription, byte 0 in the highest bits.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "node_guid": Out(NODE_INFO["node_guid"].width),
                "port_guid": Out(NODE_INFO["port_guid"].width),
                "description": Out(8 * NODE_DESCRIPTION.size_bytes),
            }
        )


def identity_values(identity: NodeIdentity) -> dict[str, int]:
    """What the members of `IdentitySignature` are for this identity."""
    return {
        "node_guid": identity.node_guid,
        "port_guid": identity.port_guid,
        "description": int.from_bytes(node_description(identity.description), "big"),
    }
