"""The fabrics of the cocotb regressions, small so that every simulator is quick."""

from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters

__all__ = ["OPEN", "STAR"]

_SWITCH = SwitchParameters(ports=3, vls=2, mtu=256, buffer_blocks=16, lft_size=16)
_ADAPTER = AdapterParameters(vls=2, mtu=256, receive_blocks=16, send_blocks=16)

STAR = FabricParameters(
    {"sw0": _SWITCH, "h0": _ADAPTER, "h1": _ADAPTER, "h2": _ADAPTER},
    tuple(LinkParameters(f"h{number}", 1, "sw0", number + 1, flight=3) for number in range(3)),
)
"""Three hosts at one switch, host i at port i + 1; link i is host i's, direction 0 towards the switch."""

OPEN = FabricParameters(
    {"sw0": _SWITCH, "h1": _ADAPTER}, (LinkParameters("h1", 1, "sw0", 2),), open_ports=(("sw0", 1),)
)
"""One host at port 2 of a switch, whose port 1 is driven symbol by symbol."""
