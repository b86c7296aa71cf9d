"""A node's identity and state, on wires to its agent (docs/management.md, section 8)."""

from typing import Final

from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from rtl.management.told_events import WrongKey, WrongPKey
from wire.node_info import NODE_DESCRIPTION, NODE_INFO, node_description
from wire.parameters import NodeIdentity, NodeParameters, SwitchParameters

__all__ = ["IdentitySignature", "NodeStateSignature", "identity_values"]


_OF_ALL: Final = {
    "node_guid": NODE_INFO["node_guid"].width,
    "port_guid": NODE_INFO["port_guid"].width,
    "description": 8 * NODE_DESCRIPTION.size_bytes,
}
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
        wrong_p_key (switch): a packet is rejected; of several what came by the lowest port is told.
        key_violation (adapter): the host has found a packet with keys wrong, in this cycle.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        of_adapter = {"active": Out(1), "host_sm": Out(1), "key_violation": Out(WrongKey)}
        of_switch = {"state_reported": Out(1), "wrong_p_key": Out(WrongPKey)}
        super().__init__(of_switch if isinstance(parameters, SwitchParameters) else of_adapter)


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
