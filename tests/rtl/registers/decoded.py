"""What sees the register bus as port 1 of a node, with the decoder before it."""

from typing import Any

from amaranth.hdl import Module

from rtl.registers.port_access import PortDecoder

__all__ = ["behind_decoder", "give"]


def behind_decoder(part: Any, vls: int, mtu: int = 256, *, is_port: bool = False) -> tuple[Module, PortDecoder]:
    """A design of both. What is no whole port sees an access a cycle after it is given, as it does in a port."""
    design = Module()
    design.submodules.decoder = decoder = PortDecoder(1, vls, mtu)
    design.submodules.part = part
    design.d["comb" if is_port else "sync"] += part.reg.eq(decoder.reg[0])
    return design, decoder


def give(ctx: Any, decoder: PortDecoder, access: dict[str, int] | None) -> None:
    """An access, or none, on the bus in this cycle."""
    ctx.set(decoder.given, {"page": 1, **access} if access else {})
