"""The register bus of a node, and its form behind the node's address decoder."""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from wire.registers import ADDRESS_BITS, DATA_BITS

__all__ = ["BusSignature", "PortAccess"]


BusSignature = wiring.Signature(
    {
        "addr": Out(ADDRESS_BITS),
        "wdata": Out(DATA_BITS),
        "write": Out(1),
        "read": Out(1),
        "rdata": In(DATA_BITS),
        "rvalid": In(1),
    }
)
"""The register bus, from its master (docs/pipeline.md, section 10).

`write` or `read` is given for one cycle c. The node registers the bus once (c+1); a register
written is visible at c+2. `rdata` and `rvalid` follow at c+4, with the value visible at c+2.

Members:
    addr: word address, `page << 16 | offset` (`wire.registers`).
"""


PortAccess = data.StructLayout({"select": 1, "write": 1, "read": 1, "offset": 16, "wdata": DATA_BITS})
"""The bus as a port sees it at the node's registered stage (c+1 for an access given at c).

`write` and `read` count only where `select`, the decoded port page, is high.
"""
