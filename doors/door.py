"""The door in a simulation: what programs send becomes packets of their hosts' adapters, and what these deliver is
theirs.

Simulated time goes on while something is on its way in the fabric. While nothing is, it stands still, and the door
waits for programs without a cycle or processor time spent.
"""

from __future__ import annotations

import selectors
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Final

from cosim.stimulus.actors import Shared, drawn_until
from cosim.stimulus.late_controls import LateControls
from doors.clients import Clients
from doors.flows import LabFlow
from doors.mads.host_port import ATTRIBUTES, HostPort
from doors.mads.mad_layer import MadLayer, Moment
from doors.mads.management import Management
from doors.mads.own_manager import OwnManager
from doors.rdma_cm.address_plan import AddressPlan
from doors.rdma_cm.cm_hosts import CmHosts
from doors.sysfs import HostFiles
from doors.transports import Transports
from sm.settings import SubnetSettings
from toolchain.errors import UserError
from verbs.hosts import REACTION_CYCLES
from wire.codes import PortState
from wire.parameters import AdapterParameters, FabricParameters, adapter_port
from wire.sma import SmaAttribute
from wire.stimulus import Control, Delivery, Operation, Post, Taking
from wire.trace import Kind, Record, port_of_source
from wire.trace_layout import State

__all__ = ["NS_PER_CYCLE", "STEP_CYCLES", "Door", "NoAgent", "NotUp"]

STEP_CYCLES: Final = 1_000
"""How far the fabric runs before it is looked at what programs want: 4 us at SDR."""

_SETTLING_CYCLES: Final = 16 * STEP_CYCLES
"""The same while no program wants anything, and nothing but time is waited for."""

NS_PER_CYCLE: Final = 4
_LISTEN_SECONDS: Final = 0.0002
"""A program that has just sent something is likely to send more."""

_LISTEN_TIMES: Final = 64
"""But it does not keep the fabric from running."""

_MOST_READY: Final = 64
"""Packets that a host has ready for its adapter."""

_TRAFFIC: Final = 64
"""With traffic, a MAD may take so many times as long."""

_NOT_UP: Final = "the Subnet Manager could not bring the fabric up: `ironband up` says where it stopped"

_TRAILING_STEPS: Final = 3
"""Steps before time stands still: an engine shows what happened in a step when it has run some more."""


class NoAgent(UserError):
    """A host whose adapter says nothing of itself."""


class NotUp(UserError):
    """A fabric that could not be brought up."""


class Door:
    """An actor (`cosim.stimulus.run_spec.Actor`) that carries MADs and queue pairs of programs.

    Attributes:
        reach: the cycle up to which posts and controls are known.
        posted: what is posted.
        selector: whose files are watched while it waits, beside those of the programs.
        ports: of each host, its ports.
        clients: the programs.
        flows: traffic that is posted, too, by the names of its hosts.
        before_step: called with the first and the last cycle of what the fabric is about to run.
        first_controls: given before its start.
        now: the current point in time.
        management: their MADs.
        transports: their queue pairs.
    """

    def __init__(
        self,
        fabric: FabricParameters,
        directory: Path,
        *,
        machine: Sequence[str] = (),
        start: int,
        patience: int,
        window: int,
        controls: Sequence[Control],
        settings: SubnetSettings | None = None,
        ready: Callable[[], None],
        tell: Callable[[str], None],
        addresses: Mapping[IPv4Address, str] | None = None,
    ) -> None:
        """Serves programs at DIRECTORY/socket from cycle START on, when READY is called; TELL takes lines for people.

        MACHINE, of one adapter or several, is that of programs that do not say which; it is the first host otherwise.
        CONTROLS are given before START.
        PATIENCE: the cycles within which what is sent into the fabric has an answer, or will have none. WINDOW: how
        many SMPs may be in the fabric at once. With SETTINGS, a Subnet Manager of our own brings the fabric up first,
        at that host, and stays.
        ADDRESSES has the ports' IP addresses, as `doors.rdma_cm.address_file` reads them; without, their LIDs say.
        """
        self.reach = 0
        self.posted: Shared[Post] = Shared()
        self.selector = selectors.DefaultSelector()
        self.now = Moment(0, 0)
        self.flows: dict[tuple[str, str], LabFlow] = {}
        self.before_step: Callable[[int, int], None] = lambda first, last: None
        self._start = start
        self._patience = patience
        self.first_controls = controls
        self._ready = ready
        self._tell = tell
        self._queue = self.posted.queue()
        self._ready_at: Counter[int] = Counter()
        self._settled = 0
        self._deferring: set[int] = set()
        self._wall = 0
        self._ended = False
        self._is_ready = False

        self._step: list[Post] = []

        layer = MadLayer()
        self.ports: dict[str, list[HostPort]] = {name: [] for name in machine}
        for index, (name, node) in enumerate(fabric.nodes.items()):
            if isinstance(node, AdapterParameters):
                adapter = adapter_port(name)[0]
                port = HostPort(layer, adapter, index, fabric.identity(name).port)
                self.ports.setdefault(adapter, []).append(port)
        (first, *_others) = next(iter(self.ports.values()))
        self._controls = LateControls(controls, host=first.node, known=start)
        self._vls = [node.vls for node in fabric.nodes.values()]
        self._port_at = {port.node: port for ports in self.ports.values() for port in ports}
        self.transports = Transports(fabric, self.ports, post=self._post, tell=self._tell)
        self.management = Management(
            fabric,
            [*self._port_at.values()],
            layer,
            window=window,
            post=self._post_mad,
            congestion_control=self.transports.answer,
            tell=tell,
        )
        self.transports.on_trap = self.management.trap
        self._manager: OwnManager | None = None
        if settings is not None:
            names = list(fabric.nodes)
            linked = {names.index(name) for link in fabric.links for name in (link.a, link.b)}
            at = min(next(iter(self.ports.values())), key=lambda port: port.node not in linked)
            self._manager = OwnManager(at, window=window, settings=settings, swept=self.management.ask_again, tell=tell)
        plan = AddressPlan(self.ports, addresses)
        machines = dict(self.ports)
        if len(machine) > 1:
            machines = {",".join(machine): [port for name in machine for port in self.ports[name]], **machines}
        self._files: dict[HostPort, list[tuple[Sequence[HostPort], HostFiles]]] = {
            port: [] for port in self._port_at.values()
        }
        for name, ports in machines.items():
            files = HostFiles(directory / "hosts" / name, ports, plan)
            for port in ports:
                self._files[port].append((ports, files))
        self._communication = CmHosts(self.ports, plan, lambda: self.now)
        self.management.on_lost = self._communication.lost
        (directory / "hosts" / "default").symlink_to(next(iter(machines)))
        self.clients = Clients(
            directory / "socket",
            self.selector,
            machines,
            tell,
            self._set_manager,
            self.transports.adapter,
            self._communication,
        )

    def close(self) -> None:
        """End all connections."""
        self.clients.close()
        self.selector.close()

    def end(self) -> None:
        """Let the run end."""
        self._ended = True

    def control(self, operation: Operation, target: int, args: tuple[int, int, int, int] = (0, 0, 0, 0)) -> None:
        """Give a control operation as soon as possible."""
        self._controls.want(operation, target, args)

    def reset(self, node: int) -> None:
        """Reset a node as soon as possible. None of its ports waits for its link any more."""
        self.control(Operation.RESET, node)
        self._deferring = {source for source in self._deferring if port_of_source(source)[0] != node}

    def settle(self, cycles: int) -> None:
        """Let the fabric run for so long at least."""
        self._settled = max(self._settled, self.now.cycle + cycles)

    # As an actor.

    def until(self, finished: int) -> int:
        """How far the fabric may run, see `cosim.stimulus.run_spec.Actor`; waits for programs."""
        self._pass_time(finished)
        if finished < self._start:
            return self._go(self._start)
        if not self._wall:
            self._begin()
        self.transports.hosts.pass_time(finished)
        while True:
            self._work()
            if self._ended:
                self.reach = finished
                return finished
            if self._must_run():
                break
            self._wait()
        self.management.send(self.now, self._bound)
        if self.transports.is_busy(finished, self._bound):
            return self._go(finished + REACTION_CYCLES - 1)
        if self.management.is_carrying or self.flows or self._settled < finished + _SETTLING_CYCLES:
            return self._go(finished + STEP_CYCLES)
        return self._go(finished + _SETTLING_CYCLES)

    def posts_until(self, cycle: int) -> list[Post]:
        """Packets for CYCLE or before that were not given yet."""
        return drawn_until(self._queue, cycle)

    def controls(self) -> Iterator[Control]:
        """The control operations of one run, see `cosim.stimulus.late_controls.LateControls.draw`."""
        return self._controls.draw()

    def delivered(self, delivery: Delivery) -> None:
        """Hands a packet to the port that it was delivered at."""
        if not self.management.delivered(delivery, self.now):
            self.transports.delivered(delivery)

    def taken(self, taking: Taking) -> None:
        """There is room for another packet of a host."""
        self._ready_at[taking.node] -= 1
        self.transports.hosts.taken(taking)

    def observe(self, record: Record) -> None:
        """A port's state has changed, of which the host there hears.

        A port that waits for its link to come back (ActiveDefer) waits for nothing but time: it goes on.
        """
        if record.kind == Kind.STATE:
            if State.state.read(record) == PortState.ACTIVE_DEFER:
                self._deferring.add(record.source)
            else:
                self._deferring.discard(record.source)
            self.settle(self._patience)
            port = self._port_at.get(port_of_source(record.source)[0])
            if port is not None and self._wall:
                self.management.ask_again(port, (SmaAttribute.PORT_INFO,))

    # Time.

    def _pass_time(self, finished: int) -> None:
        """The fabric has run: programs' time goes on with it while MADs were on their way, else with the clock."""
        cycles = finished - self.now.cycle
        wall = time.monotonic_ns()
        passed = cycles * NS_PER_CYCLE if self._is_carrying else wall - self._wall if self._wall else 0
        if self._wall:
            self._wall = wall
        self.now = self.clients.now = Moment(self.now.time + passed, finished)
        if self._manager is not None:
            self._manager.now = self.now

    @property
    def _bound(self) -> int:
        """Cycles within which a MAD has arrived, and its answer too, or never will."""
        return self._patience * (_TRAFFIC if self.flows else 1)

    @property
    def _is_carrying(self) -> bool:
        """Whether something of programs is on its way, or something that they wait for."""
        return self.management.is_carrying or self.transports.is_busy(self.now.cycle, self._bound)

    def _must_run(self) -> bool:
        is_managing = self._manager is not None and self._manager.wake is not None
        management = self.management
        if self._controls.has_wanted or self.flows or management.has_work or management.is_carrying or is_managing:
            self.settle(_TRAILING_STEPS * STEP_CYCLES)
        if self._settled > self.now.cycle or self._deferring:
            return True
        # Of packets it hears at once.
        return self.transports.is_busy(self.now.cycle, self._bound)

    def _wait(self) -> None:
        """Wait for programs, or for time to be up for one.

        Raises:
            NoAgent, NotUp: there is no use in waiting.
        """
        if not self._is_ready:
            silent = self.management.silent
            raise NotUp(_NOT_UP) if silent is None else NoAgent(f"{silent}: its agent does not answer its own host")
        timer = self.transports.timer(self.now.cycle)
        if timer is not None and not timer.is_for_receiver:
            self.transports.end(timer)
            return
        # A program may post what is waited for: it gets its time.
        given = None if timer is None else self.now.time + timer.cycles * NS_PER_CYCLE
        own = None if self._manager is None else self._manager.deadline
        deadlines = (self.management.deadline, self.clients.deadline, self._communication.deadline, given, own)
        due = min((one for one in deadlines if one is not None), default=None)
        self._look(None if due is None else max(0.0, (due - self.now.time) / 1e9))
        if timer is not None and given is not None and self.now.time >= given:
            self.transports.end(timer)

    def _go(self, reach: int) -> int:
        """Let the fabric run to a cycle."""
        if reach > self._start:
            self.before_step(self.now.cycle + 1, reach)
            for node, wrong in self.transports.hosts.wrong_keys():
                self.control(Operation.KEY_VIOLATION, node, wrong.args())
            reach = self._controls.give(self.now.cycle, reach)
            self._post_flows(reach)
            for post in sorted(self._step, key=lambda post: post.cycle):
                self.posted.append(post)
            self._step.clear()
        self.reach = reach
        return reach

    def _post_flows(self, reach: int) -> None:
        """Post the packets of all flows that are ready in a step. A host that is held up makes no more."""
        for flow in self.flows.values():
            source = flow.source
            room = _MOST_READY - self._ready_at[source.node]
            for post in flow.posts(self.now.cycle + 1, reach, self._vls[source.node], room):
                self._post(post)

    # Work.

    def _begin(self) -> None:
        """Ask all ports what they are."""
        self._wall = time.monotonic_ns()
        for port in self._port_at.values():
            port.on_change = self._changed
            for attribute in ATTRIBUTES:
                port.ask(attribute, self.now)
        if self._manager is not None:
            self._say_manager(self._manager.port, True)
            self._manager.start()

    def _work(self) -> None:
        """All that can be done at this point in time."""
        if self._is_ready:
            self._look(0)
            for _more in range(_LISTEN_TIMES):
                if not self.management.any_outgoing or not self._look(_LISTEN_SECONDS):
                    break
        if self._manager is not None:
            self._manager.work()
        self.management.work(self.now, self._bound)
        self._communication.poll()
        self.clients.expire()
        self.transports.hosts.pass_time(self.now.cycle)
        if not self._is_ready and self.management.is_complete and self._is_up:
            self._is_ready = True
            self._ready()

    def _look(self, seconds: float | None) -> bool:
        """Serve programs; whether there was something to do."""
        found = self.selector.select(seconds)
        # What programs ask for begins now, however long they asked for nothing.
        self._pass_time(self.now.cycle)
        for key, events in found:
            key.data(events)
        return bool(found)

    @property
    def _is_up(self) -> bool:
        """Whether our own Subnet Manager has done its work, if there is one, and hosts know of it.

        Raises:
            NotUp: it can do no more, and something is not as it should be.
        """
        manager = self._manager
        if manager is None:
            return True
        if manager.complete is None or manager.wake is not None or self.management.has_work:
            return False
        if self.management.is_carrying:
            return False
        if not manager.complete:
            raise NotUp(_NOT_UP)
        return True

    def _post_mad(self, port: HostPort, slot: int, data: bytes) -> None:
        self._post(Post(self.now.cycle + 1, port.node, slot, data))

    def _post(self, post: Post) -> None:
        self._ready_at[post.node] += 1
        self._step.append(post)

    # What happens.

    def _changed(self, port: HostPort) -> None:
        self.transports.learn(port)
        self._communication.changed(port)
        for ports, files in self._files[port]:
            if all(one.complete for one in ports):
                files.update()

    def _set_manager(self, port: HostPort, has_one: bool) -> None:
        """A host's port has a Subnet Manager from now on, or no more.

        At its own port ours leaves the fabric to it: there is one QP0. At any other port SMInfo tells them of each
        other, and who is the master they find out as the standard says.
        """
        manager = self._manager
        if has_one and manager is not None and manager.port is port:
            self._manager = None
            manager.retire()
            self._tell(f"{port}: another Subnet Manager; Ironband's own retires")
        self._say_manager(port, has_one)

    def _say_manager(self, port: HostPort, has_one: bool) -> None:
        """Its PortInfo is to say whether there is a Subnet Manager."""
        self.control(Operation.HOST_SM, port.node, (int(has_one), 0, 0, 0))
        self.management.ask_again(port, (SmaAttribute.PORT_INFO,))
