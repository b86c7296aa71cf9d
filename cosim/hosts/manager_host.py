"""What a fabric needs to be brought up by Subnet Managers: the hosts that they run at, and what no SMP can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from cosim.hosts.mad_carrier import MadCarrier
from cosim.stimulus.bus_bring_up import write
from sm.events import Event, SweepEnded
from sm.lids import LidRange
from sm.mad_client import MadClient
from sm.settings import SubnetSettings
from sm.subnet_manager import SubnetManager
from verbs.congestion_control.agent import CongestionAgent
from wire.codes import LinkWidth, max_pkt_len, mtu_code
from wire.node_info import NodeType
from wire.packet import blocks_of_words
from wire.parameters import FabricParameters, SwitchParameters
from wire.registers import PORT_RESET_VALUES, PortRegister, port_address
from wire.smp import MAX_HOPS
from wire.stimulus import Control, Operation

__all__ = [
    "ACTIVATION_WAIT",
    "ManagerHost",
    "first_controls",
    "link_down_timeouts",
    "link_ends",
    "manager_start",
    "smp_timeout",
    "smp_window",
]

ACTIVATION_WAIT: Final = 3_000
"""Cycles to wait before ports are activated once more (SubnetSettings.activation_wait). A port waits for a flow control
packet of its peer as that is Armed, and both ends send one at once (docs/pipeline.md, 5)."""

_SMP_BLOCKS: Final = blocks_of_words(72)
"""Blocks of buffer that an SMP takes."""

_LINK_CYCLES: Final = 256
"""From one node having an SMP to the next one having it; it really takes up to 220."""

_ANSWER_CYCLES: Final = 4_096
"""At both ends of the path, for an agent that has other SMPs before it and for the host to look at the answer; it
really takes up to 2,600."""

_FIRST_WRITE: Final = 256
"""The cycle from which links are set to 1X: the flow control packets of reset have crossed."""

_AFTER_WRITES: Final = 256
"""Cycles from there to the Subnet Manager's beginning."""

_EARLIEST_START: Final = 1_000


class ManagerHost:
    """A host at which a Subnet Manager runs.

    Attributes:
        manager: the Subnet Manager.
        carrier: carries its MADs in a simulation.
        events: what it reported, and when.
    """

    def __init__(
        self,
        fabric: FabricParameters,
        host: str,
        start: int,
        *,
        settings: SubnetSettings,
        lids: Mapping[int, LidRange] | None = None,
        agent: CongestionAgent | None = None,
        ended: Callable[[SubnetManager], bool] = lambda manager: False,
        tell: Callable[[int, Event], None] = lambda cycle, event: None,
    ) -> None:
        """It begins in cycle `start`; `ended` says when the run is over, `tell` hears each event and its cycle.

        `agent` is that of the host's port.

        While a node's agent works on one SMP, its ports have room for a few more: so many are outstanding.
        """
        self.events: list[tuple[int, Event]] = []
        self._tell = tell
        mads = MadClient(window=smp_window(fabric), timeout=smp_timeout(fabric))
        self.manager = SubnetManager(mads, settings, lids=lids, listener=self._listen)
        self.carrier = MadCarrier(
            mads,
            list(fabric.nodes).index(host),
            fabric.nodes[host].vls,
            start=start,
            begin=self.manager.start,
            ended=lambda: ended(self.manager),
            sl_to_vl=settings.qos_of(NodeType.CA).sl_to_vl,
            agent=agent,
        )

    def _listen(self, cycle: int, event: Event) -> None:
        self.events.append((cycle, event))
        self._tell(cycle, event)

    @property
    def complete(self) -> bool:
        """Whether the Subnet Manager has made everything as it should be."""
        heavy = [event for _cycle, event in self.events if isinstance(event, SweepEnded) and event.heavy]
        return bool(heavy) and heavy[-1].complete


def smp_window(fabric: FabricParameters) -> int:
    """SMPs that may be in the fabric at once, and none is lost for want of room."""
    return 1 + min(node.vl15_blocks for node in fabric.nodes.values()) // _SMP_BLOCKS


def smp_timeout(fabric: FabricParameters) -> int:
    """Cycles after which an SMP is sent again, and in the end its node taken for silent.

    An answer from the far end of the fabric takes no longer even if at every link, there and back, it comes behind a
    packet of the largest MTU at 4X. A link of 1X may hold it up for longer: it is sent four times, and the answer to
    any of them counts until the last is given up.
    """
    switches = sum(isinstance(node, SwitchParameters) for node in fabric.nodes.values())
    links = min(switches + 1, MAX_HOPS)
    longest = max(max_pkt_len(mtu_code(node.mtu)) for node in fabric.nodes.values())
    flight = max((link.flight for link in fabric.links), default=0)
    return _ANSWER_CYCLES + 2 * links * (_LINK_CYCLES + longest + flight)


def first_controls(fabric: FabricParameters, widths: Sequence[int], hosts: Sequence[str]) -> list[Control]:
    """What no SMP can do: these hosts say that they have a Subnet Manager, and links of one lane become so.

    `widths` are those of the links.
    """
    nodes = list(fabric.nodes)
    says = [Control(cycle, Operation.HOST_SM, nodes.index(host), (1, 0, 0, 0)) for cycle, host in enumerate(hosts)]
    ends = [end for index in _narrow(widths) for end in link_ends(fabric, index)]
    return says + [
        write(cycle, node, port_address(port, PortRegister.WIDTH), LinkWidth.X1)
        for cycle, (node, port) in enumerate(ends, max(_FIRST_WRITE, len(says)))
    ]


def manager_start(widths: Sequence[int]) -> int:
    """The earliest cycle in which a Subnet Manager may begin."""
    return max(_EARLIEST_START, _FIRST_WRITE + 2 * len(_narrow(widths)) + _AFTER_WRITES)


def link_down_timeouts(fabric: FabricParameters, links: Iterable[int], timeout: int, cycle: int) -> list[Control]:
    """Writes of LINK_DOWN_TIMEOUT at both ends of links, one a cycle from `cycle` on; none if it is that at reset."""
    if timeout == PORT_RESET_VALUES[PortRegister.LINK_DOWN_TIMEOUT]:
        return []
    ends = [end for link in links for end in link_ends(fabric, link)]
    return [
        write(now, node, port_address(port, PortRegister.LINK_DOWN_TIMEOUT), timeout)
        for now, (node, port) in enumerate(ends, cycle)
    ]


def link_ends(fabric: FabricParameters, index: int) -> list[tuple[int, int]]:
    """Node index and port of both ends of a link."""
    nodes = list(fabric.nodes)
    link = fabric.links[index]
    return [(nodes.index(link.a), link.a_port), (nodes.index(link.b), link.b_port)]


def _narrow(widths: Sequence[int]) -> list[int]:
    return [index for index, width in enumerate(widths) if width == LinkWidth.X1]
