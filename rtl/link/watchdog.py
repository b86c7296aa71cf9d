"""The flow control watchdog of a port (IBTA vol 1, 7.9.4; docs/pipeline.md, section 6.1)."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.link.timer import Timer
from rtl.registers.port_registers import DurationSignature
from wire.codes import PortState
from wire.registers import PortRegister

__all__ = ["Watchdog"]


class Watchdog(wiring.Component):
    """Watches that every operational VL receives flow control packets in Armed and Active.

    Args:
        vls: data VLs.

    Members:
        state, operational: the port's state, and the mask of its operational data VLs.
        good: mask of the VL of a good link packet in this cycle.
        limit: FC_WATCHDOG; a write restarts all VLs.
        expired: mask of VLs that have been without one for too long; LinkErrorRecovery moves in the
            next cycle.
    """

    def __init__(self, vls: int) -> None:
        self._vls = vls
        super().__init__(
            {
                "state": In(PortState),
                "operational": In(vls),
                "good": In(vls),
                "limit": In(DurationSignature(PortRegister.FC_WATCHDOG)),
                "expired": Out(vls),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build a timer for each VL."""
        m = Module()
        watching = (self.state == PortState.ARMED) | (self.state == PortState.ACTIVE)
        for vl in range(self._vls):
            m.submodules[f"vl_{vl}"] = timer = Timer(len(self.limit.length))
            m.d.comb += [
                timer.length.eq(self.limit.length),
                timer.run.eq(watching & self.operational[vl]),
                timer.restart.eq(~timer.run | self.good[vl] | self.limit.written),
                self.expired[vl].eq(timer.last & ~self.good[vl]),
            ]
        return m
