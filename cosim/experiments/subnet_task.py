"""A fabric to be brought up by Ironband's own Subnet Manager, with nothing but its SMPs, as `ironband up` does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from cosim.hosts.manager_host import ACTIVATION_WAIT, first_controls, link_down_timeouts, manager_start
from cosim.stimulus.bus_bring_up import FCP_PERIOD_AT_RESET
from sm.lids import LidRange
from sm.settings import SubnetSettings
from wire.parameters import FabricParameters
from wire.stimulus import Control, Operation

__all__ = ["LinkFailure", "SubnetTask"]


@dataclass(frozen=True)
class LinkFailure:
    """A link that goes down for good.

    Attributes:
        link: its index in the fabric.
        cycle: the cycle in which the operation is given.
        timeout: cycles that its ports wait for it to come back (LINK_DOWN_TIMEOUT).
    """

    link: int
    cycle: int
    timeout: int


@dataclass(frozen=True)
class SubnetTask:
    """What is to be brought up, and how.

    Attributes:
        fabric: the fabric.
        widths: of each link.
        host: name of the adapter at which the Subnet Manager runs.
        engine: what simulates; beside all but `model` the golden model runs and is compared.
        rtl: the nodes that it simulates, by name, all without it; the others are the golden model.
        settings: what the Subnet Manager should make of the subnet.
        lids: of an earlier run, by PortGUID.
        failure: what goes wrong.
        seed: draws the cycle in which the Subnet Manager begins; without one it is the earliest.
    """

    fabric: FabricParameters
    widths: Sequence[int]
    host: str
    engine: str = "model"
    rtl: Collection[str] | None = None
    settings: SubnetSettings = field(default_factory=lambda: SubnetSettings(activation_wait=ACTIVATION_WAIT))
    lids: Mapping[int, LidRange] = field(default_factory=dict)
    failure: LinkFailure | None = None
    seed: int | None = None

    @property
    def rtl_nodes(self) -> list[str]:
        """Names of the nodes that are RTL."""
        if self.engine == "model":
            return []
        return [name for name in self.fabric.nodes if self.rtl is None or name in self.rtl]

    @property
    def start(self) -> int:
        """The cycle in which the Subnet Manager begins."""
        earliest = manager_start(self.widths)
        return earliest if self.seed is None else earliest + Random(self.seed).randrange(FCP_PERIOD_AT_RESET)

    @property
    def controls(self) -> list[Control]:
        """What no SMP can do, and what goes wrong."""
        controls = first_controls(self.fabric, self.widths, [self.host])
        if self.failure is None:
            return controls
        controls += link_down_timeouts(self.fabric, [self.failure.link], self.failure.timeout, controls[-1].cycle + 1)
        return [*controls, Control(self.failure.cycle, Operation.LINK_DOWN, self.failure.link)]
