"""A fabric of switches and adapters: the golden model's public interface."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

from wire.codes import LINK_WIDTHS, LinkWidth
from wire.parameters import FabricParameters, SwitchParameters, reset_cycles
from wire.stimulus import Control, Delivery, Injection, Operation, Play, Post, WrongKey
from wire.trace import Kind, Record, link_source, port_of_source, port_source

from .adapter import Adapter
from .kernel import CONTROL, DECIDE, END, UPDATE, Kernel
from .link.link import Direction
from .link.port import LinkPort
from .link.row_sums import RowSums
from .link.wire_log import WireLog
from .link.wire_tap import WireTap
from .management.register_bus import Bus
from .parts import parts_of
from .switch import Switch

__all__ = ["Fabric", "WireLog", "WireTap"]

_ANSWER_LATENCY = 2
"""Cycles from what a bus read shows to its record."""


class Cable:
    """A link between two ports: both its directions are up, or down, as the control operations and the ports say.

    It is narrow if its ends had 1X in common, and not 4X, when it last was down.

    Attributes:
        directions: from a to b, and back.
    """

    def __init__(self, kernel: Kernel, link: int, flight: int, a: LinkPort, b: LinkPort) -> None:
        """`link` is its number in the fabric."""
        self._kernel = kernel
        self._up = True
        self._held_down = False  # by the control operations
        self._common = LINK_WIDTHS  # widths that both ports offered in the cycle before
        self._narrow = False
        self._ends = [a, b]
        there = Direction(kernel, flight, link_source(link, 0), b.receiver, self._offers_changed)
        back = Direction(kernel, flight, link_source(link, 1), a.receiver, self._offers_changed)
        self.directions = there, back
        a.connect(there, back, self._narrow)
        b.connect(back, there, self._narrow)

    def replace_end(self, former: LinkPort, port: LinkPort) -> None:
        """Another port is at one of its ends from the next cycle on, when the link is down."""
        end = next(place for place, one in enumerate(self._ends) if one is former)
        self._ends[end] = port
        out, into = self.directions[end], self.directions[1 - end]
        into.received_by(port.receiver)
        port.connect(out, into, self._narrow)

    def ends_at(self, port: LinkPort) -> bool:
        """Whether this port is at one of its ends."""
        return any(end is port for end in self._ends)

    def set_up(self, up: bool) -> None:
        """LINK_DOWN or LINK_UP given in the current cycle."""
        now = self._kernel.now
        self._kernel.at(now + 1, CONTROL, self._hold, not up)
        self._kernel.at(now + 1, UPDATE, self._change)

    def _hold(self, down: bool) -> None:
        self._held_down = down

    def _offers_changed(self) -> None:
        """An end offers other widths, visible in the current cycle."""
        now = self._kernel.now
        self._kernel.at(now + 1, CONTROL, self._look_at_ends)
        self._kernel.at(now + 1, UPDATE, self._change)

    def _look_at_ends(self, _: None) -> None:
        """The ends, and the link, still show what was visible in the cycle before."""
        a, b = self._ends
        self._common = a.offers() & b.offers()
        if self._up or not self._common:
            return
        narrow = not self._common & LinkWidth.X4
        if narrow != self._narrow:
            self._narrow = narrow
            for end in self._ends:
                end.narrowness_changed(narrow)

    def _change(self, _: None) -> None:
        up = self._common != 0 and not self._held_down
        if up == self._up:
            return
        self._up = up
        if not up:
            self._kernel.at(self._kernel.now + 1, CONTROL, self._look_at_ends)
        for direction in self.directions:
            direction.link_changed(up)
        for end in self._ends:
            end.link_changed(up)


class Fabric:
    """A fabric under simulation.

    Memory does not grow with the length of a run: controls and posts, each in order of their cycles, are consumed
    as they are needed. A delivery is reported when the packet's last word is read, three cycles before the cycle of
    the delivery. The trace has records of these KINDS alone, of all without it.

    Attributes:
        kernel: the calendar.
        nodes: in the order of the parameters.

    Raises:
        ValueError: a control or post out of order, or for a node, link or slot that does not exist.
    """

    def __init__(
        self,
        parameters: FabricParameters,
        controls: Iterable[Control] = (),
        posts: Iterable[Post] = (),
        on_deliver: Callable[[Delivery], None] | None = None,
        kinds: Collection[int] | None = None,
    ) -> None:
        self.kernel = kernel = Kernel(kinds)
        self._parameters = parameters
        self._names = list(parameters.nodes)
        self._on_deliver = on_deliver
        self.nodes = [self._node(index, 0) for index in range(len(self._names))]
        # What outlives a node that is reset: when it comes back, and what its host says.
        self._epochs = [0] * len(self.nodes)
        self._stalled = [0] * len(self.nodes)
        self._host_sm = [False] * len(self.nodes)
        ports = {name: node.ports for name, node in zip(parameters.nodes, self.nodes, strict=True)}
        self._cables = [
            Cable(kernel, index, link.flight, ports[link.a][link.a_port - 1], ports[link.b][link.b_port - 1])
            for index, link in enumerate(parameters.links)
        ]
        self._controls = iter(controls)
        self._next_control(0)
        self._sums: list[tuple[int, RowSums]] = []
        self._pending: dict[tuple[int, int], deque[Post]] = {}
        self._posts = iter(posts)
        self._next_post(next(self._posts, None))

    def _node(self, index: int, epoch: int) -> Switch | Adapter:
        """A node as at power-up, its cycle 0 being this one."""
        name = self._names[index]
        node, identity = self._parameters.nodes[name], self._parameters.identity(name)
        if isinstance(node, SwitchParameters):
            return Switch(self.kernel, node, index, identity, epoch)
        return Adapter(self.kernel, node, index, identity, self._on_deliver, epoch)

    def run(self, until: int) -> Iterator[Record]:
        """Simulate the remaining cycles below `until`, yielding their records in order."""
        return self.kernel.run(until)

    def post(self, post: Post) -> None:
        """Post a packet for the current cycle or a later one, behind those posted here for its slot before."""
        key = post.node, post.slot
        self._pending.setdefault(key, deque()).append(post)
        self._adapter(post.node).post(post.slot, self._drain(key))

    def keep_logs(self, link: int, direction: int) -> tuple[WireLog, WireLog]:
        """Keep what enters a link in a direction, and what is driven towards it in the other, from cycle 0 on.

        Call it before `run`, once for a link.
        """
        directions = self._cable(link).directions
        return directions[direction].keep_log(entering=True), directions[1 - direction].keep_log(entering=False)

    def tap(self, link: int, direction: int) -> WireTap:
        """Keep the packets that enter a link in a direction from cycle 0 on. Call it before `run`."""
        return self._cable(link).directions[direction].tap()

    def sum_rows(self, period: int) -> None:
        """Have ROWS records of all directions of links from cycle 0 on, each of so many cycles; to be called before."""
        self._sums = [
            (link_source(link, way), direction.sum_rows())
            for link, cable in enumerate(self._cables)
            for way, direction in enumerate(cable.directions)
        ]
        self.kernel.at(period - 1, END, self._period_ends, period)

    def _period_ends(self, period: int) -> None:
        now = self.kernel.now
        for source, sums in self._sums:
            self.kernel.record((now, source, Kind.ROWS, *sums.words(now + 1), 0, 0))
        self.kernel.at(now + period, END, self._period_ends, period)

    def play(self, since: Mapping[tuple[int, int], int], plays: Iterable[Play]) -> None:
        """Put packets on directions of links, in the order of their cycles, in place of those of the ports there.

        Call it before `run`. SINCE says of each (link, direction) from which cycle on its port's own packets, which
        begin then or later, are not on the link; taps see these, and not those that are.
        """
        for (link, direction), cycle in since.items():
            self._cable(link).directions[direction].played_from = cycle
        self._plays = iter(plays)
        self._next_play()

    def _next_play(self) -> None:
        play = next(self._plays, None)
        if play is not None:
            self.kernel.at(max(self.kernel.now, play.packet.cycle), DECIDE, self._play, play)

    def _play(self, play: Play) -> None:
        self._cable(play.link).directions[play.direction].play(play.packet)
        self._next_play()

    # Control operations.

    def _next_control(self, earliest: int) -> None:
        control = next(self._controls, None)
        if control is None:
            return
        if control.cycle < earliest:
            raise ValueError(f"control in cycle {control.cycle}: expected {earliest} or later")
        self.kernel.at(control.cycle, CONTROL, self._control, control)

    def _control(self, control: Control) -> None:
        args, target = control.args, control.target
        match control.operation:
            case Operation.BUS_WRITE:
                if self._is_reachable(target):
                    self._bus(target).write(args[0], args[1])
            case Operation.BUS_READ:
                if self._is_reachable(target):
                    self._bus(target).read(args[0], partial(self._bus_answer, target, args[0]))
            case Operation.INJECT:
                self._cable(target >> 1).directions[target & 1].injector.inject(Injection.of(args))
            case Operation.LINK_DOWN:
                self._cable(target).set_up(False)
            case Operation.LINK_UP:
                self._cable(target).set_up(True)
            case Operation.RECV_STALL:
                self._adapter(target)
                self.kernel.at(control.cycle + 1, DECIDE, self._stall, (target, args[0]))
            case Operation.HOST_SM:
                self._adapter(target)
                self.kernel.at(control.cycle + 1, UPDATE, self._set_host_sm, (target, args[0] != 0))
            case Operation.KEY_VIOLATION:
                adapter = self._adapter(target)
                if self._is_reachable(target):
                    adapter.agent.key_violation(WrongKey.of(args))
            case Operation.RESET:
                self._reset(target)
            case _:
                raise ValueError(f"control operation {control.operation}: expected 1..{max(Operation)}")
        self._next_control(control.cycle + 1)

    def _check_node(self, node: int) -> None:
        if not 0 <= node < len(self.nodes):
            raise ValueError(f"control for node {node}: expected 0..{len(self.nodes) - 1}")

    def _stall(self, stall: tuple[int, int]) -> None:
        node, mask = stall
        self._stalled[node] = mask
        self._adapter(node).host.stall(mask)

    def _set_host_sm(self, said: tuple[int, bool]) -> None:
        node, value = said
        self._host_sm[node] = value
        self._adapter(node).agent.host_sm(value)

    # RESET (section 2.2).

    def _reset(self, node: int) -> None:
        """RESET given in the current cycle."""
        self._check_node(node)
        now = self.kernel.now
        self._epochs[node] = now + reset_cycles(self._parameters.nodes[self._names[node]]) + 1
        self.kernel.at(now + 1, UPDATE, self._fall_silent, node)
        self.kernel.at(now + 1, END, self._replace, node)

    def _fall_silent(self, node: int) -> None:
        for port in self.nodes[node].ports:
            port.begin_reset()

    def _replace(self, index: int) -> None:
        """What the node would do from the next cycle on it does not: there is a new one, which waits."""
        former = self.nodes[index]
        outside = [self, *(direction for cable in self._cables for direction in cable.directions)]
        self.kernel.forget(parts_of(former, outside), partial(_is_of_node, index))
        node = self._node(index, self._epochs[index])
        for before, port in zip(former.ports, node.ports, strict=True):
            for cable in self._cables:
                if cable.ends_at(before):
                    cable.replace_end(before, port)
        if isinstance(node, Adapter):
            assert isinstance(former, Adapter)
            node.host.stalls(self._stalled[index])
            node.agent.host_sm(self._host_sm[index])
            node.post_left(former)
        self.nodes[index] = node
        self.kernel.at(self._epochs[index], UPDATE, self._begin_life, (index, node))

    def _begin_life(self, waiting: tuple[int, Switch | Adapter]) -> None:
        index, node = waiting
        if self.nodes[index] is node:  # it may have been reset again
            for port in node.ports:
                port.begin_life()

    def _is_reachable(self, node: int) -> bool:
        """The test bus reaches a node unless that is being reset."""
        self._check_node(node)
        return self.kernel.now >= self._epochs[node]

    def _bus(self, node: int) -> Bus:
        """A node's bus, on which the test bus has an access in the current cycle."""
        self.nodes[node].agent.held()
        return self.nodes[node].bus

    def _bus_answer(self, node: int, address: int, value: int) -> None:
        """BUS_READ is in the trace two cycles after what was read was visible."""
        answered = self.kernel.now + _ANSWER_LATENCY
        self.kernel.record((answered, port_source(node, 0), Kind.BUS_READ, address, value, 0, 0, 0))

    def _cable(self, link: int) -> Cable:
        if not 0 <= link < len(self._cables):
            raise ValueError(f"control for link {link}: expected 0..{len(self._cables) - 1}")
        return self._cables[link]

    def _adapter(self, node: int) -> Adapter:
        if not (0 <= node < len(self.nodes) and isinstance(adapter := self.nodes[node], Adapter)):
            raise ValueError(
                f"node {node} is no adapter: expected one of "
                f"{[index for index, other in enumerate(self.nodes) if isinstance(other, Adapter)]}"
            )
        return adapter

    # Packets.

    def _next_post(self, post: Post | None) -> None:
        if post is not None:
            self.kernel.at(post.cycle, CONTROL, self._posted, post)

    def _posted(self, post: Post) -> None:
        """Hand over all packets posted in the current cycle, and look for the next."""
        now = self.kernel.now
        following: Post | None = post
        while following is not None and following.cycle == now:
            self.post(following)
            following = next(self._posts, None)
        if following is not None and following.cycle < now:
            raise ValueError(f"post in cycle {following.cycle}: expected {now} or later")
        self._next_post(following)

    def _drain(self, key: tuple[int, int]) -> Iterator[Post]:
        queue = self._pending[key]
        while queue:
            yield queue.popleft()


def _is_of_node(node: int, record: Record) -> bool:
    """Whether a record of a cycle ahead is a node's. Links have none of those."""
    return port_of_source(record.source)[0] == node
