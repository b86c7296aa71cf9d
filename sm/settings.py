"""What a Subnet Manager is to make of a subnet: LIDs, routing, MTU, VLs, timers, and when it looks again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from sm.congestion_options import CongestionOptions
from sm.lids import LidRange
from sm.partitions import Enforcement, Partitions
from sm.qos_options import QosOptions
from sm.qos_policy import QosPolicy
from sm.routing.min_hop import min_hop
from sm.routing.routes import Routes
from sm.subnet import Subnet
from wire.codes import MTU
from wire.node_info import NodeType

__all__ = ["GID_PREFIX_DEFAULT", "RoutingEngine", "SubnetSettings"]

GID_PREFIX_DEFAULT: Final = 0xFE80 << 48
"""The GID prefix of a subnet that no router is at (IBTA vol 1, 4.1.1)."""


class RoutingEngine(Protocol):
    """Finds forwarding tables."""

    def __call__(
        self, subnet: Subnet, lids: Mapping[int, LidRange], *, previous: Mapping[int, bytearray] | None
    ) -> Routes:
        """Paths to every LID, `lids` by PortGUID, that keep to the `previous` tables where they can."""


@dataclass(frozen=True)
class SubnetSettings:
    """Settings; timers are in cycles, or codes of 4.096 us times 2 to the code (IBTA vol 1, 14.2.5.6).

    The codes of HOQLife, LifeTimeValue and VLStallCount are OpenSM's defaults. SubnetTimeOut, which is also the time
    between two traps of a node, is much shorter than OpenSM's: 65 us rather than a second.
    """

    routing: RoutingEngine = min_hop
    lmc: int = 0
    """LMC of the ports of end nodes."""
    max_mtu: MTU = MTU.MTU_4096
    """No NeighborMTU is above this, nor above what both ends of the link can."""
    qos: QosOptions = field(default_factory=QosOptions)
    """VLs and VL arbitration of linked ports."""
    qos_by_type: Mapping[NodeType, QosOptions] = field(default_factory=dict)
    """What the ports of a type of nodes have in place of that."""
    qos_policy: QosPolicy | None = None
    """Which paths have which SL, MTU and rate; without one they have the SL of their partition."""
    partitions: Partitions | None = None
    """Who is a member of which; None leaves the P_Keys of end ports as they are, and no switch port checks any."""
    enforcement: Enforcement = Enforcement.BOTH
    """What switch ports that end ports are behind check, where there are partitions."""
    congestion_control: CongestionOptions | None = None
    """What switches and adapters are to hold; None leaves it as it is."""
    gid_prefix: int = GID_PREFIX_DEFAULT
    subnet_timeout: int = 4
    hoq_life: int = 0x12
    """Of switch ports to other switches."""
    leaf_hoq_life: int = 0x10
    """Of switch ports to end nodes."""
    switch_life_time: int = 0x12
    vl_stall_count: int = 7
    light_sweep_period: int | None = 1 << 21
    """Cycles from the end of a sweep to the next light one; None for no light sweeps."""
    priority: int = 0
    """Of several Subnet Managers that of the highest priority is the master, 0..15; of equal ones the lowest GUID."""
    sm_key: int = 1
    """What SMInfo tells other Subnet Managers: OpenSM deals only with those that have its own, which is 1."""
    polling_period: int | None = 1 << 21
    """Cycles from one look at the master to the next while another one is that; None for no such looks."""
    handover_wait: int = 1 << 16
    """Cycles to wait where a master has to hand over to a Subnet Manager that is still looking at the subnet."""
    polling_retries: int = 3
    """After so many looks in vain the master is taken for gone."""
    rmpp_timeout: int = 1 << 18
    """Cycles to wait for the acknowledgement of an answer's segments: a millisecond."""
    second: int = 250_000_000
    """Cycles in which a lease of one second ends."""
    trap_delay: int = 1 << 11
    """Cycles from a trap to the sweep it asks for: both ends of a link that fails report it."""
    attempts: int = 3
    """Heavy sweeps in a row, where something changes meanwhile or does not answer; also rounds of activation."""
    activation_wait: int = 3_000
    """Cycles to wait before another round of activation: about as long as an SMP and its answer take. A port becomes
    Active only when it has heard of its peer being Armed, which each shows the other at once (docs/pipeline.md, 5)."""
    flap_limit: int = 3
    """A link that is lost this often within `flap_period` cycles flaps: no path leads over it if there is another."""
    flap_period: int = 1 << 24

    def qos_of(self, node_type: NodeType) -> QosOptions:
        """What the linked ports of such nodes are to have."""
        return self.qos_by_type.get(node_type, self.qos)
