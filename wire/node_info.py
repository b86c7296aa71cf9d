"""What a node is: NodeInfo and NodeDescription (IBTA vol 1, 14.2.5.2 and 14.2.5.3)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from .layout import Field, Layout
from .mad import BASE_VERSION, CLASS_VERSION
from .meaning import HEX, TEXT, Code

__all__ = [
    "DEVICE_ID",
    "NODE_DESCRIPTION",
    "NODE_INFO",
    "VENDOR_ID",
    "NodeType",
    "node_description",
    "node_description_text",
]


DEVICE_ID: Final = 0x1B00
"""NodeInfo.DeviceID of every node; NodeType distinguishes switch and adapter."""

VENDOR_ID: Final = 0
"""NodeInfo.VendorID: no IEEE company ID has been given to this design."""


class NodeType(IntEnum):
    """NodeInfo.NodeType; also the ProducerType of a node's notices."""

    CA = 1
    SWITCH = 2
    ROUTER = 3


NODE_INFO: Final = Layout(
    "NodeInfo",
    40,
    [
        Field("base_version", 0, 8, BASE_VERSION),
        Field("class_version", 8, 8, CLASS_VERSION),
        Field("node_type", 16, 8, meaning=Code(NodeType)),
        Field("num_ports", 24, 8),
        Field("system_image_guid", 32, 64, meaning=HEX),
        Field("node_guid", 96, 64, meaning=HEX),
        Field("port_guid", 160, 64, meaning=HEX),
        Field("partition_cap", 224, 16),
        Field("device_id", 240, 16, meaning=HEX),
        Field("revision", 256, 32, meaning=HEX),
        Field("local_port_num", 288, 8),
        Field("vendor_id", 296, 24, meaning=HEX),
    ],
)
"""40 bytes (IBTA vol 1, 14.2.5.3). ``num_ports`` does not count a switch's port 0; ``local_port_num`` is the port
that the request came in by; ``partition_cap`` counts P_Keys."""

NODE_DESCRIPTION: Final = Layout("NodeDescription", 64, [Field("node_string", 0, 512, meaning=TEXT)])
"""64 bytes of UTF-8 (IBTA vol 1, 14.2.5.2)."""


def node_description(text: str) -> bytes:
    """The 64 bytes of a NodeDescription, filled with zero bytes.

    Raises:
        ValueError: a text of more than 64 bytes in UTF-8.
    """
    data = text.encode()
    if len(data) > NODE_DESCRIPTION.size_bytes:
        raise ValueError(f"NodeDescription {text!r}: {len(data)} bytes, allowed up to {NODE_DESCRIPTION.size_bytes}")
    return data.ljust(NODE_DESCRIPTION.size_bytes, b"\0")


def node_description_text(data: bytes) -> str:
    """The text of a NodeDescription: what is before the first zero byte, bytes that are no UTF-8 replaced."""
    return data[: NODE_DESCRIPTION.size_bytes].split(b"\0")[0].decode(errors="replace")
