"""What a port is at the moment, as everything in and around it may see (docs/pipeline.md, sections 5 and 10)."""

from wire.codes import LINK_WIDTHS, PortPhysicalState, PortState, max_pkt_len, mtu_code

from ..kernel import Kernel
from .counters import Counters
from .partition import Partition

__all__ = ["PortStatus"]


class PortStatus:
    """The status of one port, each as visible in the current cycle. It decides nothing.

    Attributes:
        kernel: the calendar.
        source: of this port's records.
        index: of its input and its output in the crossing.
        vls: its data VLs.
        state: PortState.
        physical_state: Sleep, Polling or Disabled: as written, or as it became where the link was lost.
        link_down_default: Sleep or Polling, which it becomes then.
        link_width_enabled: mask of the widths that it offers while it polls.
        link_up: there is a cable, and it is up.
        operational: number of operational data VLs.
        mtu_cap, neighbor_mtu: codes.
        largest, largest_out: largest PktLen for them.
        counters: the port's.
        partition: what it checks; None in an adapter.
    """

    def __init__(self, kernel: Kernel, source: int, index: int, vls: int, mtu: int, epoch: int = 0) -> None:
        self.kernel = kernel
        self.source = source
        self.index = index
        self.vls = vls
        self.state = PortState.DOWN
        self.physical_state = PortPhysicalState.POLLING
        self.link_down_default = PortPhysicalState.POLLING
        self.link_width_enabled = LINK_WIDTHS
        self.link_up = False
        self.operational = vls
        self.mtu_cap: int = mtu_code(mtu)
        self.neighbor_mtu: int = self.mtu_cap
        self.largest = self.largest_out = max_pkt_len(self.mtu_cap)
        self.counters = Counters(kernel, vls, epoch)
        self.partition: Partition | None = None
