"""The fabrics of the regressions, small so that every simulator is quick, and of the same nodes, compiled once.

Icarus takes for a cycle of three hosts more than twice what it takes for one of two.
"""

from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, NodeIdentity, SwitchParameters

__all__ = ["OPEN", "PAIR", "STAR"]

_SWITCH = SwitchParameters(ports=3, vls=2, mtu=256, buffer_blocks=16, lft_size=16)
_ADAPTER = AdapterParameters(vls=2, mtu=256, receive_blocks=16, send_blocks=16)

_LINKS = tuple(LinkParameters(f"h{number}", 1, "sw0", number + 1, flight=3) for number in range(3))

STAR = FabricParameters({"sw0": _SWITCH, "h0": _ADAPTER, "h1": _ADAPTER, "h2": _ADAPTER}, _LINKS)
"""Three hosts at one switch, host i at port i + 1; link i is host i's, direction 0 towards the switch."""

PAIR = FabricParameters(
    {"sw0": _SWITCH, "h0": _ADAPTER, "h1": _ADAPTER},
    _LINKS[:2],
    {"h1": NodeIdentity(0xB00, 0xB02, "the adapter at the other end, Zürich", ports=3, port=2)},
)
"""Two of these hosts; nothing is at port 3. Host h1 is at the second port of an adapter with three."""

OPEN = FabricParameters(
    {"sw0": _SWITCH, "h1": _ADAPTER}, (LinkParameters("h1", 1, "sw0", 2),), open_ports=(("sw0", 1),)
)
"""One host at port 2 of a switch, whose port 1 is driven symbol by symbol."""
