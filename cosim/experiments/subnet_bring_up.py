"""Bringing a fabric up by Ironband's own Subnet Manager, as `ironband up` does: with nothing but its SMPs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from cosim.engines import simulation
from cosim.engines.base import Run
from cosim.hosts.mad_carrier import Replay
from cosim.hosts.manager_host import ACTIVATION_WAIT, ManagerHost, first_controls, link_ends, manager_start
from cosim.scenario.tables import MAX_CYCLES
from cosim.stimulus.bus_bring_up import FCP_PERIOD_AT_RESET, write
from cosim.stimulus.run_spec import Actor, RunSpec
from cosim.trace.compare import Comparison, compare
from sm.events import Event
from sm.lids import LidRange
from sm.settings import SubnetSettings
from sm.subnet import End
from sm.subnet_manager import SubnetManager
from wire.parameters import FabricParameters
from wire.registers import PORT_RESET_VALUES, PortRegister, port_address
from wire.stimulus import Control, Operation, Post
from wire.trace import Record

__all__ = ["LinkFailure", "SubnetBringUp", "SubnetBringUpResult", "bring_up_subnet"]


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
class SubnetBringUp:
    """What is to be brought up, and how.

    Attributes:
        fabric: the fabric.
        widths: of each link.
        host: name of the adapter at which the Subnet Manager runs.
        engine: what simulates; beside all but `model` the golden model runs and is compared.
        rtl: the nodes that it simulates, by name, all without it; the others are the golden model.
        settings: what the Subnet Manager is told to make of the subnet.
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
        if self.failure.timeout != PORT_RESET_VALUES[PortRegister.LINK_DOWN_TIMEOUT]:
            ends = link_ends(self.fabric, self.failure.link)
            controls += [
                write(cycle, node, port_address(port, PortRegister.LINK_DOWN_TIMEOUT), self.failure.timeout)
                for cycle, (node, port) in enumerate(ends, controls[-1].cycle + 1)
            ]
        return [*controls, Control(self.failure.cycle, Operation.LINK_DOWN, self.failure.link)]


@dataclass(frozen=True)
class SubnetBringUpResult:
    """What came of it.

    Attributes:
        manager: the Subnet Manager, with all it knows.
        complete: whether it has made everything as it is to be.
        posts: the packets that it posted.
        events: what it told, and when.
        cycles: length of the run.
        records: events of the trace.
        comparison: with the golden model; None if the golden model is all there was.
    """

    manager: SubnetManager
    complete: bool
    posts: list[Post]
    events: list[tuple[int, Event]]
    cycles: int
    records: int
    comparison: Comparison | None


def bring_up_subnet(
    up: SubnetBringUp,
    work_dir: Path,
    *,
    tell: Callable[[int, Event], None] = lambda cycle, event: None,
    progress: Callable[[int], None] = lambda cycle: None,
) -> SubnetBringUpResult:
    """Let the Subnet Manager bring the fabric up, and go on until it has dealt with the failure, if there is one.

    RTL goes ahead; the same packets are posted in the golden model, and every event of both is compared.

    Args:
        up: what and how.
        work_dir: where engines may work.
        tell: called with each event that the Subnet Manager tells of, and its cycle.
        progress: called now and then with the cycle reached.

    Raises:
        LidError, TableError: more LIDs than there are, or than a switch has room for.
        What the engines raise (cosim.engines.simulation.run).
    """
    host = ManagerHost(
        up.fabric,
        up.host,
        up.start,
        settings=up.settings,
        lids=up.lids,
        ended=lambda manager: manager.resting and not _has_failed_link(up, manager),
        tell=tell,
    )
    records = 0

    def spec(actor: Actor) -> RunSpec:
        return RunSpec(up.fabric, up.controls, (), MAX_CYCLES, actor)

    def counted(run: Run) -> Iterator[Record]:
        nonlocal records
        for record in run:
            records += 1
            progress(record.cycle)
            yield record

    carrier = host.carrier
    comparison = None
    with simulation.run(up.engine, spec(carrier), work_dir / up.engine, rtl=up.rtl) as seen:
        if up.engine == "model":
            deque(counted(seen), maxlen=0)
        else:
            with simulation.run("model", spec(Replay(carrier)), work_dir / "model") as expected:
                comparison = compare(expected, counted(seen))
    return SubnetBringUpResult(
        host.manager, host.complete, carrier.posts, host.events, seen.cycles_done, records, comparison
    )


def _has_failed_link(up: SubnetBringUp, manager: SubnetManager) -> bool:
    """Whether the Subnet Manager still takes the link that fails for one that is there."""
    if up.failure is None:
        return False
    link = up.fabric.links[up.failure.link]
    return manager.subnet.link(End(up.fabric.identity(link.a).node_guid, link.a_port)) is not None
