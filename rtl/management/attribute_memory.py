"""The attributes as they are kept: in words as on the wire, one after the other in one memory."""

from collections.abc import Iterable
from typing import Final

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from rtl.crossing.buffer import NO_COLLISION
from rtl.management.place import WORD_BITS
from rtl.management.port_info_fields import PortKind, at_reset
from rtl.restoration import restored_write_port, word_of
from wire.codes import P_KEY_DEFAULT
from wire.forwarding_tables import LFT_NO_ROUTE, LINEAR_FORWARDING_TABLE, MULTICAST_FORWARDING_TABLE
from wire.node_info import DEVICE_ID, NODE_INFO, VENDOR_ID, NodeType
from wire.packet import WORD_BYTES
from wire.parameters import NodeParameters, SwitchParameters
from wire.port_info import PORT_INFO
from wire.port_tables import P_KEY_TABLE, SL_TO_VL_MAPPING_TABLE
from wire.sma import SmaAttribute
from wire.smp import SMP_DATA_BYTES
from wire.switch_info import SWITCH_INFO
from wire.time_limits import NO_LIMIT

__all__ = ["BLOCK_WORDS", "SL_TO_VL_WORDS", "AttributeMap", "AttributeMemory"]

BLOCK_WORDS: Final = SMP_DATA_BYTES // WORD_BYTES
"""Words of an SMP's data, in which most attributes are kept."""

SL_TO_VL_WORDS: Final = SL_TO_VL_MAPPING_TABLE.size_bytes // WORD_BYTES

_PARTITION_CAP: Final = P_KEY_TABLE.count
_REVISION: Final = 1


def _block(attribute: bytes) -> list[int]:
    padded = attribute.ljust(SMP_DATA_BYTES, b"\0")
    return [int.from_bytes(padded[at : at + WORD_BYTES], "big") for at in range(0, SMP_DATA_BYTES, WORD_BYTES)]


class AttributeMap:
    """Where each attribute begins, and what it is at reset.

    The short attributes come before long ones: a read of 16 words stays in the memory. Ports 1..P of a switch follow
    its port 0; an adapter has everything once.

    Attributes:
        base: first word of an attribute, in ports' order, or of its block 0. There are two Notices in a switch, the
            second about the CC_Key.
        init: every word at reset. `address_bits`: of a word's address.
        lft_blocks, mft_blocks, mft_positions: a switch's blocks of 64 LIDs, of 32 multicast LIDs, and of 16 ports.
    """

    def __init__(self, parameters: NodeParameters) -> None:
        is_switch = isinstance(parameters, SwitchParameters)
        ports = parameters.ports if isinstance(parameters, SwitchParameters) else 1
        tables = ports + 1 if is_switch else 1
        self.base: dict[SmaAttribute, int] = {}
        self.init: list[int] = []

        of_kind = {"node_type": NodeType.SWITCH, "num_ports": ports} if is_switch else {}
        node_info = NODE_INFO.pack(
            **of_kind,
            partition_cap=_PARTITION_CAP,
            device_id=DEVICE_ID,
            revision=_REVISION,
            vendor_id=VENDOR_ID,
        )
        sl_to_vl = SL_TO_VL_MAPPING_TABLE.pack(sl % parameters.vls for sl in range(SL_TO_VL_MAPPING_TABLE.count))
        p_keys = P_KEY_TABLE.pack([P_KEY_DEFAULT])
        self._place(SmaAttribute.LED_INFO, [0] * tables)
        self._place(SmaAttribute.SL_TO_VL_MAPPING_TABLE, _block(sl_to_vl)[:SL_TO_VL_WORDS] * tables * tables)
        self._place(SmaAttribute.NOTICE, _block(b"") * (2 if is_switch else 1))
        self._place(SmaAttribute.NODE_INFO, _block(node_info))
        self._place(SmaAttribute.GUID_INFO, _block(b""))
        if is_switch:
            self._place(SmaAttribute.PORT_INFO, self._port_info(PortKind.BASE, parameters))
            self.init += self._port_info(PortKind.EXTERNAL, parameters) * ports
        else:
            self._place(SmaAttribute.PORT_INFO, self._port_info(PortKind.ADAPTER, parameters))
        self._place(SmaAttribute.P_KEY_TABLE, _block(p_keys) * tables)
        self._place(SmaAttribute.VL_ARBITRATION_TABLE, 2 * _block(b"") * tables)
        if isinstance(parameters, SwitchParameters):
            self._place_switch(parameters)
        self.address_bits = int(bits_for(len(self.init) - 1))

    def _place_switch(self, parameters: SwitchParameters) -> None:
        self.lft_blocks = -(-parameters.lft_size // LINEAR_FORWARDING_TABLE.count)
        self.mft_blocks = parameters.mft_size // MULTICAST_FORWARDING_TABLE.count
        self.mft_positions = -(-(parameters.ports + 1) // MULTICAST_FORWARDING_TABLE.entry.width)
        switch_info = SWITCH_INFO.pack(
            linear_fdb_cap=parameters.lft_size,
            multicast_fdb_cap=parameters.mft_size,
            linear_fdb_top=parameters.lft_size - 1,
            default_multicast_primary_port=LFT_NO_ROUTE,
            default_multicast_not_primary_port=LFT_NO_ROUTE,
            life_time_value=NO_LIMIT,
            partition_enforcement_cap=_PARTITION_CAP,
            inbound_enforcement_cap=1,
            outbound_enforcement_cap=1,
            filter_raw_inbound_cap=1,
            filter_raw_outbound_cap=1,
        )
        lft = LINEAR_FORWARDING_TABLE.pack([LFT_NO_ROUTE] * LINEAR_FORWARDING_TABLE.count)
        self._place(SmaAttribute.SWITCH_INFO, _block(switch_info))
        self._place(SmaAttribute.LINEAR_FORWARDING_TABLE, _block(lft) * self.lft_blocks)
        self._place(SmaAttribute.MULTICAST_FORWARDING_TABLE, _block(b"") * (self.mft_blocks * self.mft_positions))

    def _place(self, attribute: SmaAttribute, words: Iterable[int]) -> None:
        self.base[attribute] = len(self.init)
        self.init += words

    @staticmethod
    def _port_info(kind: PortKind, parameters: NodeParameters) -> list[int]:
        return _block(PORT_INFO.pack(at_reset(kind, parameters)))


class AttributeMemory(wiring.Component):
    """The words of an `AttributeMap`.

    Members:
        address: read in every cycle without a write; in the next it is `word`.
        write: seen by reads of the next cycle.
    """

    def __init__(self, attributes: AttributeMap) -> None:
        self._init = attributes.init
        write = data.StructLayout({"valid": 1, "address": attributes.address_bits, "word": WORD_BITS})
        super().__init__({"address": In(attributes.address_bits), "word": Out(WORD_BITS), "write": In(write)})

    def elaborate(self, platform: object) -> Module:
        """One block RAM. It never has to read what it is just writing."""
        m = Module()
        m.submodules.memory = memory = Memory(
            shape=WORD_BITS, depth=len(self._init), init=self._init, attrs=NO_COLLISION
        )
        writer = restored_write_port(m, memory, lambda address: word_of(self._init, WORD_BITS, address))
        reader = memory.read_port()
        m.d.comb += [
            writer.en.eq(self.write.valid),
            writer.addr.eq(self.write.address),
            writer.data.eq(self.write.word),
            reader.en.eq(~self.write.valid),
            reader.addr.eq(self.address),
            self.word.eq(reader.data),
        ]
        return m
