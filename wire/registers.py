"""The register bus: addresses and fields.

A node has one bus of 32-bit words with a 24-bit word address: `page << 16 | offset`. Page 0 holds the node's own
registers, pages 1..64 those of its ports, `CONGESTION_PAGE` a switch's congestion control, `LFT_PAGE` the linear
forwarding table, `MFT_PAGE + part` the multicast forwarding table's masks of 16 ports, `SL_TO_VL_PAGE + in_port - 1`
the SL-to-VL tables.
"""

from enum import IntEnum, IntFlag
from typing import Final

from .codes import LID_MULTICAST_MAX, LID_MULTICAST_MIN, VL15
from .congestion_control import CC_DATA_BYTES, CcAttribute
from .forwarding_tables import MULTICAST_FORWARDING_TABLE
from .pma import PMA_COUNTERS
from .port_tables import P_KEY_TABLE

__all__ = [
    "ADDRESS_BITS",
    "CONGESTION_PAGE",
    "COUNTER_WIDTHS",
    "DATA_BITS",
    "DETAIL_BITS",
    "HIGH_OF_COUNTER",
    "LEASE_SECOND_AT_RESET",
    "LFT_PAGE",
    "MFT_PAGE",
    "PORT_REGISTER_WIDTHS",
    "PORT_RESET_VALUES",
    "P_KEYS",
    "P_KEY_TURN",
    "SL_TO_VL_PAGE",
    "VL_ARBITRATION_HIGH",
    "VL_ARBITRATION_LOW",
    "VL_ARBITRATION_SPAN",
    "VL_XMIT_WAIT",
    "Counter",
    "CounterHigh",
    "Detail",
    "NodeRegister",
    "PacketCounter",
    "PartitionCheck",
    "PortRegister",
    "congestion_address",
    "lft_address",
    "mft_address",
    "node_address",
    "p_key_address",
    "place_of_address",
    "port_address",
    "sl_to_vl_address",
    "vl_arbitration_address",
    "vl_xmit_wait_address",
]

ADDRESS_BITS = 24
DATA_BITS = 32
CONGESTION_PAGE = 0x50
LFT_PAGE = 0x80
MFT_PAGE = 0x88
"""Of the first part; they are not read."""
SL_TO_VL_PAGE = 0xC0
VL_ARBITRATION_LOW = 0x80
VL_ARBITRATION_HIGH = 0xA0
"""Offsets in a port's page of the first entry of its lists, each of up to `VL_ARBITRATION_SPAN`; they are not read."""
VL_ARBITRATION_SPAN = 0x20
VL_XMIT_WAIT = 0x70
"""Offset in a port's page of the counter of ticks that VL 0 waited, 16 bits; data VL v's is v above it, VL15's 15."""
P_KEYS = 0xC0
"""Offset in a port's page of the first entry of its P_Key table, in a switch; they are not read."""
P_KEY_TURN: Final = 10
"""Cycles from the turn of one write to a switch's P_Key tables to that of the next, at least (pipeline.md, 3.6)."""


class NodeRegister(IntEnum):
    """Offsets in page 0."""

    NUM_PORTS = 0x00  # read only; an adapter has 1
    LINEAR_FDB_TOP = 0x01  # switch; at reset the size of the LFT less one
    LID = 0x02  # adapter; 0 at reset
    LMC = 0x03  # adapter; 0..7, 0 at reset
    LEASE_SECOND = 0x04  # cycles of one second of M_KeyLeasePeriod, 1..2^32 - 1
    LIFE_TIME = 0x05  # switch; exponent of its life time limit, 5 bits; 31 at reset, above 19 no limit
    MULTICAST_FDB_TOP = 0x06  # switch; the highest LID that the MFT is asked for, 16 bits; 0 at reset: any
    DEFAULT_MULTICAST_PRIMARY = 0x07  # switch; where it sends what the MFT does not know, 8 bits; 255 at reset: nowhere
    DEFAULT_MULTICAST_NOT_PRIMARY = 0x08  # switch; likewise, what came by that port


class PortRegister(IntEnum):
    """Offsets in a port's page, below those of `Counter`."""

    STATE = 0x00  # read: PortState; write: Down, Armed or Active (others ignored)
    WIDTH = 0x01  # link width code: 1 is 1X, 2 is 4X (reset); reads 1X on a link that is narrow
    NEIGHBOR_MTU = 0x02  # MTU code 1..5; at reset that of the node's MTU; larger than it is ignored
    OPERATIONAL_VLS = 0x03  # code 1..5 for 1, 2, 4, 8, 15 data VLs; at reset all the node has; more is ignored
    FCP_THRESHOLD = 0x04  # blocks, 12 bits; at reset the node's MTU in blocks
    FCP_PERIOD = 0x05  # cycles, 1..2^24 - 1
    FC_WATCHDOG = 0x06  # cycles, 1..2^24 - 1
    LINK_DOWN_TIMEOUT = 0x07  # cycles, 1..2^24 - 1
    TICK = 0x08  # PortSamplesControl.Tick, 8 bits: PortXmitWait ticks last TICK + 1 cycles
    LOCAL_PHY_ERRORS = 0x09  # 4 bits
    OVERRUN_ERRORS = 0x0A  # 4 bits
    PHYSICAL_STATE = 0x0B  # read: PortPhysicalState; write: Sleep, Polling or Disabled (others ignored)
    EXTENDED_LOW = 0x0C  # the lower half of the counter of 64 bits whose upper half is read or will be written; VLs
    VL_HIGH_LIMIT = 0x0D  # 8 bits, x 4096 bytes, 255 no limit; 0 at reset; not where there is one data VL
    HOQ_LIFE = 0x0E  # switch; exponent of the head of queue limit, 5 bits; 31 at reset, above 19 no limit
    VL_STALL_COUNT = 0x0F  # switch; 3 bits, 0 at reset: never stalls
    PARTITION = 0x10  # switch; of `PartitionCheck`, 0 at reset
    CONGESTION = 0x11  # switch; an element of SwitchPortCongestionSetting, 0 at reset
    FLOW_CTL_UPDATE_ERRORS = 0x12  # of each data VL 2 bits, VL 0's the highest; EXTENDED_LOW says which a write sets
    LINK_WIDTH_ENABLED = 0x13  # widths that the port offers: of `LinkWidth`'s 1X and 4X; both at reset; 255 is both
    LINK_DOWN_DEFAULT = 0x14  # Sleep or Polling (reset): PHYSICAL_STATE where the link was lost


class PartitionCheck(IntFlag):
    """What a switch's port checks, in PARTITION: P_Keys, and whether packets are raw."""

    INBOUND = 1
    OUTBOUND = 2
    RAW_INBOUND = 4
    RAW_OUTBOUND = 8


_MFT_PORTS: Final = MULTICAST_FORWARDING_TABLE.entry.width

LEASE_SECOND_AT_RESET: Final = 250_000_000
"""Cycles of 4 ns in a second."""

PORT_REGISTER_WIDTHS: Final[dict[PortRegister, int]] = {
    PortRegister.FCP_THRESHOLD: 12,
    PortRegister.FCP_PERIOD: 24,
    PortRegister.FC_WATCHDOG: 24,
    PortRegister.LINK_DOWN_TIMEOUT: 24,
    PortRegister.TICK: 8,
    PortRegister.LOCAL_PHY_ERRORS: 4,
    PortRegister.OVERRUN_ERRORS: 4,
    PortRegister.VL_HIGH_LIMIT: 8,
    PortRegister.HOQ_LIFE: 5,
    PortRegister.VL_STALL_COUNT: 3,
    PortRegister.PARTITION: len(PartitionCheck),
}
"""Bits of the port registers that hold a number, or bits of which each may be set."""

PORT_RESET_VALUES: Final[dict[PortRegister, int]] = {
    PortRegister.FCP_PERIOD: 48_488,
    PortRegister.FC_WATCHDOG: 400_000,
    PortRegister.LINK_DOWN_TIMEOUT: 2_500_000,  # 10 ms at 4 ns
    PortRegister.TICK: 0x1F,
    PortRegister.LOCAL_PHY_ERRORS: 15,
    PortRegister.OVERRUN_ERRORS: 15,
}
"""Values at reset of the port registers that have the same one in every node.

A VL's flow control packets may be 65,536 symbol times apart at most, and after 400,000 without a
good one the link goes to recovery (IBTA vol 1, 7.9.4).
"""


class Counter(IntEnum):
    """Port counters (IBTA vol 1, 16.1.3.5): offsets in a port's page. They stop at all ones."""

    SYMBOL_ERROR = 0x20
    LINK_ERROR_RECOVERY = 0x21
    LINK_DOWNED = 0x22
    RCV_ERRORS = 0x23
    RCV_REMOTE_PHYSICAL_ERRORS = 0x24
    RCV_SWITCH_RELAY_ERRORS = 0x25
    XMIT_DISCARDS = 0x26
    XMIT_CONSTRAINT_ERRORS = 0x27
    RCV_CONSTRAINT_ERRORS = 0x28
    LOCAL_LINK_INTEGRITY_ERRORS = 0x29
    EXCESSIVE_BUFFER_OVERRUN_ERRORS = 0x2A
    VL15_DROPPED = 0x2B
    XMIT_DATA = 0x2C
    RCV_DATA = 0x2D
    XMIT_PKTS = 0x2E
    RCV_PKTS = 0x2F
    XMIT_WAIT = 0x30


COUNTER_WIDTHS: Final = {counter: PMA_COUNTERS[counter - Counter.SYMBOL_ERROR].width for counter in Counter}
"""Width of each counter's register in bits. The one at index i of `PMA_COUNTERS` is at SYMBOL_ERROR + i."""


class Detail(IntEnum):
    """Counters that split others up (IBTA vol 1, 16.1.4.1, 16.1.4.2 and 14.2.5.6): offsets in a port's page."""

    LOCAL_PHYSICAL_ERRORS = 0x50
    MALFORMED_PACKET_ERRORS = 0x51
    BUFFER_OVERRUN_ERRORS = 0x52
    DLID_MAPPING_ERRORS = 0x53
    VL_MAPPING_ERRORS = 0x54
    LOOPING_ERRORS = 0x55
    INACTIVE_DISCARDS = 0x56
    NEIGHBOR_MTU_DISCARDS = 0x57
    LIFE_TIME_DISCARDS = 0x58
    HOQ_LIFE_DISCARDS = 0x59
    P_KEY_VIOLATIONS = 0x5A  # switch; PortInfo has it, no attribute of performance management


DETAIL_BITS: Final = 16
"""Width of each of those counters."""


class PacketCounter(IntEnum):
    """Counters that split XMIT_PKTS and RCV_PKTS up (IBTA vol 1, 16.1.4.11): offsets in a port's page, of 64 bits."""

    UNICAST_XMIT_PKTS = 0x60
    UNICAST_RCV_PKTS = 0x61
    MULTICAST_XMIT_PKTS = 0x62
    MULTICAST_RCV_PKTS = 0x63


class CounterHigh(IntEnum):
    """Upper halves of the port counters of 64 bits: offsets in a port's page (docs/management.md, section 6)."""

    XMIT_DATA_HIGH = 0x3C
    RCV_DATA_HIGH = 0x3D
    XMIT_PKTS_HIGH = 0x3E
    RCV_PKTS_HIGH = 0x3F
    UNICAST_XMIT_PKTS_HIGH = 0x64
    UNICAST_RCV_PKTS_HIGH = 0x65
    MULTICAST_XMIT_PKTS_HIGH = 0x66
    MULTICAST_RCV_PKTS_HIGH = 0x67


HIGH_OF_COUNTER: Final[dict[Counter | PacketCounter, CounterHigh]] = {
    Counter.XMIT_DATA: CounterHigh.XMIT_DATA_HIGH,
    Counter.RCV_DATA: CounterHigh.RCV_DATA_HIGH,
    Counter.XMIT_PKTS: CounterHigh.XMIT_PKTS_HIGH,
    Counter.RCV_PKTS: CounterHigh.RCV_PKTS_HIGH,
    PacketCounter.UNICAST_XMIT_PKTS: CounterHigh.UNICAST_XMIT_PKTS_HIGH,
    PacketCounter.UNICAST_RCV_PKTS: CounterHigh.UNICAST_RCV_PKTS_HIGH,
    PacketCounter.MULTICAST_XMIT_PKTS: CounterHigh.MULTICAST_XMIT_PKTS_HIGH,
    PacketCounter.MULTICAST_RCV_PKTS: CounterHigh.MULTICAST_RCV_PKTS_HIGH,
}
"""The counters that have 64 bits, as PortCountersExtended has them. Their own registers, of 32, stop at all ones."""


def node_address(register: NodeRegister) -> int:
    """Bus address of a node's own register."""
    return int(register)


def port_address(port: int, register: PortRegister | Counter | PacketCounter | CounterHigh | Detail) -> int:
    """Bus address of a register of port 1..64."""
    if not 1 <= port <= 64:
        raise ValueError(f"port {port}: expected 1..64")
    return port << 16 | int(register)


def p_key_address(port: int, entry: int) -> int:
    """Bus address of an entry of a switch port's P_Key table, 16 bits."""
    if not (1 <= port <= 64 and 0 <= entry < P_KEY_TABLE.count):
        raise ValueError(f"port {port}, entry {entry}: expected 1..64, 0..{P_KEY_TABLE.count - 1}")
    return port << 16 | P_KEYS + entry


def place_of_address(address: int) -> tuple[int, int]:
    """Page and offset of a bus address; the page of a port's register is the port."""
    return address >> 16, address & 0xFFFF


def congestion_address(attribute: CcAttribute, word: int) -> int:
    """Bus address of a word of a congestion control attribute of a switch: bytes 32 + 4 word of its MAD."""
    if not 0 <= word < CC_DATA_BYTES // 4:
        raise ValueError(f"word {word}: expected 0..{CC_DATA_BYTES // 4 - 1}")
    return CONGESTION_PAGE << 16 | attribute << 6 | word


def lft_address(lid: int) -> int:
    """Bus address of the LFT entry of a unicast LID; the entry is an output port in 8 bits."""
    if not 0 <= lid <= 0xFFFF:
        raise ValueError(f"LID {lid}: expected 0..65535")
    return LFT_PAGE << 16 | lid


def mft_address(mlid: int, part: int) -> int:
    """Bus address of a part of the MFT entry of a multicast LID: a mask of ports 16 part .. 16 part + 15."""
    if not (LID_MULTICAST_MIN <= mlid <= LID_MULTICAST_MAX and 0 <= part <= 64 // _MFT_PORTS):
        raise ValueError(f"MLID {mlid:#06x}, part {part}: expected 0xc000..0xfffe, 0..{64 // _MFT_PORTS}")
    return MFT_PAGE + part << 16 | mlid - LID_MULTICAST_MIN


def sl_to_vl_address(in_port: int, out_port: int, sl: int) -> int:
    """Bus address of the SL-to-VL entry of (in, out, SL); the entry is a VL in 4 bits.

    At reset SL s maps to data VL s modulo the node's data VLs.
    """
    if not (1 <= in_port <= 64 and 1 <= out_port <= 64 and 0 <= sl <= 15):
        raise ValueError(f"in {in_port}, out {out_port}, SL {sl}: expected ports 1..64, SL 0..15")
    return (SL_TO_VL_PAGE + in_port - 1) << 16 | out_port << 4 | sl


def vl_arbitration_address(port: int, list_offset: int, entry: int) -> int:
    """Bus address of an entry of a port's list, VL_ARBITRATION_LOW or _HIGH; VL << 8 | weight in 12 bits."""
    if not (1 <= port <= 64 and 0 <= entry < VL_ARBITRATION_SPAN):
        raise ValueError(f"port {port}, entry {entry}: expected 1..64, 0..{VL_ARBITRATION_SPAN - 1}")
    return port << 16 | list_offset + entry


def vl_xmit_wait_address(port: int, vl: int) -> int:
    """Bus address of the counter of the ticks that a VL of a port waited: a data VL of the node's, or VL15."""
    if not (1 <= port <= 64 and 0 <= vl <= VL15):
        raise ValueError(f"port {port}, VL {vl}: expected 1..64, 0..{VL15}")
    return port << 16 | VL_XMIT_WAIT + vl
