"""The attributes that a node's agent has (docs/management.md, section 4.1)."""

from wire.node_info import node_description
from wire.parameters import NodeIdentity, NodeParameters, SwitchParameters
from wire.sma import VENDOR_DIAG, SmaAttribute

from .agent_node import AgentNode
from .attribute import Attribute, Constant
from .forwarding_tables import LinearForwardingTable, MulticastForwardingTable
from .node_info import NodeInfo
from .port_info import PortInfo
from .port_tables import GuidInfo, LedInfo, PKeyTable, SlToVlMappingTable, VlArbitrationTable
from .switch_info import SwitchInfo

__all__ = ["Attributes"]


class Attributes:
    """The attributes of a node, and by name those that the agent itself looks at.

    Attributes:
        by_code: by AttributeID.
        port_info: PortInfo.
        sl_to_vl: SLtoVLMappingTable.
        switch_info: SwitchInfo; None in an adapter.
    """

    def __init__(self, node: AgentNode, parameters: NodeParameters, identity: NodeIdentity) -> None:
        self.port_info = PortInfo(node, parameters, identity.port)
        self.sl_to_vl = SlToVlMappingTable(node, parameters)
        self.switch_info: SwitchInfo | None = None
        self.by_code: dict[int, Attribute] = {
            SmaAttribute.NODE_DESCRIPTION: Constant(node_description(identity.description)),
            SmaAttribute.NODE_INFO: NodeInfo(parameters, identity),
            SmaAttribute.GUID_INFO: GuidInfo(node, identity.port_guid),
            SmaAttribute.PORT_INFO: self.port_info,
            SmaAttribute.P_KEY_TABLE: PKeyTable(node, parameters),
            SmaAttribute.SL_TO_VL_MAPPING_TABLE: self.sl_to_vl,
            SmaAttribute.VL_ARBITRATION_TABLE: VlArbitrationTable(node, parameters),
            SmaAttribute.VENDOR_DIAG: Constant(VENDOR_DIAG.pack()),
            SmaAttribute.LED_INFO: LedInfo(node, parameters, identity.port),
        }
        if isinstance(parameters, SwitchParameters):
            self.switch_info = switch_info = SwitchInfo(node, parameters)
            self.by_code[SmaAttribute.SWITCH_INFO] = switch_info
            self.by_code[SmaAttribute.LINEAR_FORWARDING_TABLE] = LinearForwardingTable(node, parameters)
            self.by_code[SmaAttribute.MULTICAST_FORWARDING_TABLE] = MulticastForwardingTable(node, parameters)
