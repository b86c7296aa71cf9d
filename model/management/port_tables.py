"""A port's tables: GUIDs, P_Keys, SL to VL, VL arbitration, and its LED (docs/management.md, section 4.1)."""

from wire.codes import P_KEY_DEFAULT
from wire.forwarding_tables import BLOCK_MODIFIER
from wire.parameters import NodeParameters, SwitchParameters, vl_arbitration_entries
from wire.port_tables import (
    GUID_INFO,
    P_KEY_TABLE,
    P_KEY_TABLE_MODIFIER,
    SL_TO_VL_MAPPING_TABLE,
    SL_TO_VL_MODIFIER,
    VL_ARBITRATION_MODIFIER,
    VL_ARBITRATION_TABLE,
    VLArbitrationBlock,
)
from wire.registers import (
    VL_ARBITRATION_HIGH,
    VL_ARBITRATION_LOW,
    p_key_address,
    sl_to_vl_address,
    vl_arbitration_address,
)
from wire.sma import LED_INFO, PORT_MODIFIER

from .agent_node import AgentNode
from .attribute import StoredBlock, set_step

__all__ = ["GuidInfo", "LedInfo", "PKeyTable", "SlToVlMappingTable", "VlArbitrationTable"]

_SLS_IN_WORD = 8
_ENTRIES_IN_WORD = 2
_REGISTER_MASK = 0xFFF
"""What a register holds of an entry: the VL and the weight."""


def _external_ports(parameters: NodeParameters) -> int | None:
    """Of a switch; None of an adapter."""
    return parameters.ports if isinstance(parameters, SwitchParameters) else None


class GuidInfo(StoredBlock):
    """GUIDs 0 to 7; GUID 0 is PortGUID."""

    def __init__(self, node: AgentNode, port_guid: int) -> None:
        super().__init__(node, GUID_INFO.pack([port_guid]))
        self._port_guid = port_guid

    def select(self, modifier: int, data: bytes) -> int | None:
        """Block 0."""
        return 0 if BLOCK_MODIFIER.from_int(modifier).block == 0 else None

    def kept(self, data: bytes) -> bytes:
        """All but GUID 0."""
        return GUID_INFO.pack([self._port_guid, *GUID_INFO.unpack(data)[1:]])


class PKeyTable(StoredBlock):
    """32 P_Keys of each port of a switch, port 0 included; of an adapter's port."""

    def __init__(self, node: AgentNode, parameters: NodeParameters) -> None:
        super().__init__(node, P_KEY_TABLE.pack([P_KEY_DEFAULT]))
        self._ports = _external_ports(parameters)
        if self._ports is not None:
            self.set_words = frozenset(range(P_KEY_TABLE.count // _ENTRIES_IN_WORD))

    def select(self, modifier: int, data: bytes) -> int | None:
        """Block 0 of a port, which an adapter ignores."""
        fields = P_KEY_TABLE_MODIFIER.from_int(modifier)
        if fields.block:
            return None
        if self._ports is None:
            return 0
        return fields.port if fields.port <= self._ports else None

    def writes(self, which: int, data: bytes) -> list[tuple[int, int, int]]:
        """The tables of external ports are those that the data path looks at."""
        if self._ports is None or which == 0:
            return []
        return [
            (set_step(entry // _ENTRIES_IN_WORD, entry % _ENTRIES_IN_WORD), p_key_address(which, entry), p_key)
            for entry, p_key in enumerate(P_KEY_TABLE.unpack(data))
        ]


class SlToVlMappingTable(StoredBlock):
    """The VL of each SL, between an input and an output of a switch; one table of an adapter."""

    set_words = frozenset(range(SL_TO_VL_MAPPING_TABLE.count // _SLS_IN_WORD))

    def __init__(self, node: AgentNode, parameters: NodeParameters) -> None:
        mapping = [sl % parameters.vls for sl in range(SL_TO_VL_MAPPING_TABLE.count)]
        super().__init__(node, SL_TO_VL_MAPPING_TABLE.pack(mapping))
        self._ports = _external_ports(parameters)

    def select(self, modifier: int, data: bytes) -> int | None:
        """Two ports, 0 included; an adapter ignores the modifier."""
        if self._ports is None:
            return 0
        fields = SL_TO_VL_MODIFIER.from_int(modifier)
        if modifier != SL_TO_VL_MODIFIER.to_int(fields) or max(fields.input_port, fields.output_port) > self._ports:
            return None
        return modifier

    def vl_of_gmp(self, output_port: int, sl: int) -> int:
        """The VL on which the agent sends by a port, as stored; an adapter ignores the port."""
        which = 0 if self._ports is None else SL_TO_VL_MODIFIER.to_int(input_port=0, output_port=output_port)
        return SL_TO_VL_MAPPING_TABLE.unpack(self.block(which))[sl]

    def writes(self, which: int, data: bytes) -> list[tuple[int, int, int]]:
        """The tables between external ports are those that the data path looks at."""
        ports = SL_TO_VL_MODIFIER.from_int(which)
        if self._ports is None or ports.input_port == 0 or ports.output_port == 0:
            return []
        return [
            (
                set_step(sl // _SLS_IN_WORD, sl % _SLS_IN_WORD),
                sl_to_vl_address(ports.input_port, ports.output_port, sl),
                vl,
            )
            for sl, vl in enumerate(SL_TO_VL_MAPPING_TABLE.unpack(data))
        ]


class VlArbitrationTable(StoredBlock):
    """32 entries of each of the two priorities, of each external port or an adapter's."""

    def __init__(self, node: AgentNode, parameters: NodeParameters) -> None:
        super().__init__(node, VL_ARBITRATION_TABLE.pack())
        self._ports = _external_ports(parameters)
        self._entries = vl_arbitration_entries(parameters.vls)
        self.set_words = frozenset(range(self._entries // _ENTRIES_IN_WORD))

    def select(self, modifier: int, data: bytes) -> int | None:
        """The first half of a list, and a port, which an adapter ignores."""
        fields = VL_ARBITRATION_MODIFIER.from_int(modifier)
        if fields.block not in (VLArbitrationBlock.LOW_0_31, VLArbitrationBlock.HIGH_0_31):
            return None
        if self._ports is None:
            return VL_ARBITRATION_MODIFIER.to_int(block=fields.block)
        return modifier if 1 <= fields.port <= self._ports else None

    def writes(self, which: int, data: bytes) -> list[tuple[int, int, int]]:
        """The entries that the port's output has."""
        fields = VL_ARBITRATION_MODIFIER.from_int(which)
        port = 1 if self._ports is None else fields.port
        offset = VL_ARBITRATION_HIGH if fields.block == VLArbitrationBlock.HIGH_0_31 else VL_ARBITRATION_LOW
        return [
            (
                set_step(place // _ENTRIES_IN_WORD, place % _ENTRIES_IN_WORD),
                vl_arbitration_address(port, offset, place),
                entry & _REGISTER_MASK,
            )
            for place, entry in enumerate(VL_ARBITRATION_TABLE.unpack(data)[: self._entries])
        ]


class LedInfo(StoredBlock):
    """The LED of each external port, or of an adapter's."""

    def __init__(self, node: AgentNode, parameters: NodeParameters, own_port: int) -> None:
        super().__init__(node, LED_INFO.pack())
        self._ports = _external_ports(parameters)
        self._own_port = own_port

    def select(self, modifier: int, data: bytes) -> int | None:
        """A port; an adapter's is its own, or 0."""
        port = PORT_MODIFIER.from_int(modifier).port
        if self._ports is None:
            return self._own_port if port in (0, self._own_port) else None
        return port if 1 <= port <= self._ports else None

    def kept(self, data: bytes) -> bytes:
        """The mask."""
        return LED_INFO.unpack(data).pack()
