"""What a head needs of its output to be eligible (docs/pipeline.md, section 7)."""

from amaranth.hdl import Value
from amaranth.lib import data

from wire.flow_control import CREDIT_MODULUS, CREDIT_WINDOW

__all__ = ["data_eligible", "send_facts_layout"]

_CREDIT_BITS = (CREDIT_MODULUS - 1).bit_length()


def send_facts_layout(vls: int) -> data.StructLayout:
    """What a head must know of its output, as visible.

    `blocked`: its port is in ActiveDefer. `swallow`: mask of data VLs on which packets leave without
    credits, to be swallowed. `credit`: blocks that the other end has room for, modulo 4096, by VL.
    """
    return data.StructLayout({"blocked": 1, "swallow": vls, "credit": data.ArrayLayout(_CREDIT_BITS, vls)})


def data_eligible(swallow: Value, credit: Value, need: Value, oversize: Value) -> Value:
    """A visible data head of `need` blocks may go to an output that is not blocked."""
    left = (credit - need)[:_CREDIT_BITS]
    return swallow | oversize | (left <= CREDIT_WINDOW)
