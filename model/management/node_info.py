"""NodeInfo: what a node is (docs/management.md, section 4.1)."""

from collections.abc import Generator
from typing import Final

from wire.node_info import DEVICE_ID, NODE_INFO, VENDOR_ID, NodeType
from wire.parameters import NodeIdentity, NodeParameters, SwitchParameters
from wire.port_tables import P_KEY_TABLE

from .attribute import Attribute, Request
from .steps import ANSWER

__all__ = ["NodeInfo"]

_REVISION: Final = 1


class NodeInfo(Attribute):
    """What the node is, and by which port the SMP came in."""

    def __init__(self, parameters: NodeParameters, identity: NodeIdentity) -> None:
        self._port = None if isinstance(parameters, SwitchParameters) else identity.port
        self._info = NODE_INFO.record(
            node_type=NodeType.SWITCH if isinstance(parameters, SwitchParameters) else identity.type,
            num_ports=parameters.ports if isinstance(parameters, SwitchParameters) else identity.ports,
            system_image_guid=identity.node_guid,
            node_guid=identity.node_guid,
            port_guid=identity.port_guid,
            partition_cap=P_KEY_TABLE.count,
            device_id=DEVICE_ID,
            revision=_REVISION,
            vendor_id=VENDOR_ID,
        )

    def answer(self, request: Request) -> Generator[int, None, bytes]:
        """LocalPortNum of an adapter's port is its own, also for its host."""
        yield ANSWER
        return self._info.replace(local_port_num=request.arrival if self._port is None else self._port).pack()
