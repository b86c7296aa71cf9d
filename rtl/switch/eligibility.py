"""What a head needs of its output to be eligible (docs/pipeline.md, section 7)."""

from amaranth.hdl import Cat, Const, Value
from amaranth.lib import data

from rtl.widths import CREDIT_BITS
from wire.flow_control import CREDIT_WINDOW

__all__ = ["data_eligible", "send_facts_layout"]


def send_facts_layout(vls: int) -> data.StructLayout:
    """What a head must know of its output to go in the next cycle, as visible the cycle before.

    `blocked`: its port is in ActiveDefer. `swallow`: mask of data VLs on which packets leave without
    credits, to be swallowed. `credit`: blocks that the other end has room for, modulo 4096, by VL.
    """
    return data.StructLayout({"blocked": 1, "swallow": vls, "credit": data.ArrayLayout(CREDIT_BITS, vls)})


def data_eligible(swallow: Value, credit: Value, need: Value, oversize: Value) -> Value:
    """A visible data head of `need` blocks may go to an output that is not blocked.

    What is left of the credit has to be at most half of its range: it is not negative, or it is that half.
    """
    left = (credit - need)[:CREDIT_BITS]
    at_window = credit == Cat(need, Const(CREDIT_WINDOW >> len(need), CREDIT_BITS - len(need)))
    return swallow | oversize | ~left[-1] | at_window
