"""A fabric of switches and adapters: the golden model's public interface."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from wire.parameters import FabricParameters, SwitchParameters
from wire.stimulus import Control, Delivery, Injection, Operation, Post
from wire.trace import Kind, Record, link_source, port_source

from .adapter.adapter import Adapter
from .kernel import CONTROL, DECIDE, UPDATE, Kernel
from .link.link import Cable
from .link.wire_log import WireLog
from .management.register_bus import Bus
from .switch import Switch

__all__ = ["Fabric", "Posts", "WireLog"]

_ANSWER_LATENCY = 2
"""Cycles from what a bus read shows to its record."""

Posts = Iterable[Post] | Mapping[tuple[int, int], Iterable[Post]]
"""Packets to post: in order of their cycles, or by (node, slot), each in order of its cycles."""


class Fabric:
    """A fabric under simulation.

    Memory does not grow with the length of a run: controls and posts are consumed as they are
    needed. A stream of a mapping is asked for a packet when the one before it has left. A delivery is
    reported when the packet's last word is read, three cycles before the cycle of the delivery.

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
        posts: Posts = (),
        on_deliver: Callable[[Delivery], None] | None = None,
    ) -> None:
        self.kernel = kernel = Kernel()
        self._names = list(parameters.nodes)
        self.nodes: list[Switch | Adapter] = [
            Switch(kernel, node, index, parameters.identity(name))
            if isinstance(node, SwitchParameters)
            else Adapter(kernel, node, index, parameters.identity(name), on_deliver)
            for index, (name, node) in enumerate(parameters.nodes.items())
        ]
        self._cables: list[Cable] = []
        for index, link in enumerate(parameters.links):
            cable = Cable(kernel, link.flight)
            cable.connect(
                self.nodes[self._names.index(link.a)].ports[link.a_port - 1],
                self.nodes[self._names.index(link.b)].ports[link.b_port - 1],
                (link_source(index, 0), link_source(index, 1)),
            )
            self._cables.append(cable)
        self._controls = iter(controls)
        self._next_control(0)
        self._pending: dict[tuple[int, int], deque[Post]] = {}
        self._post(posts)

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
                self._bus(target).write(args[0], args[1])
            case Operation.BUS_READ:
                self._bus(target).read(args[0], partial(self._bus_answer, target, args[0]))
            case Operation.INJECT:
                self._cable(target >> 1).directions[target & 1].injector.inject(Injection.of(args))
            case Operation.LINK_DOWN:
                self._cable(target).set_up(False)
            case Operation.LINK_UP:
                self._cable(target).set_up(True)
            case Operation.RECV_STALL:
                host = self._adapter(target).host
                self.kernel.at(control.cycle + 1, DECIDE, host.stall, args[0])
            case Operation.HOST_SM:
                agent = self._adapter(target).agent
                self.kernel.at(control.cycle + 1, UPDATE, agent.host_sm, args[0] != 0)
            case _:
                raise ValueError(f"control operation {control.operation}: expected 1..{max(Operation)}")
        self._next_control(control.cycle + 1)

    def _bus(self, node: int) -> Bus:
        """A node's bus, on which the test bus has an access in the current cycle."""
        if not 0 <= node < len(self.nodes):
            raise ValueError(f"control for node {node}: expected 0..{len(self.nodes) - 1}")
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
        adapter = self.nodes[node] if 0 <= node < len(self.nodes) else None
        if not isinstance(adapter, Adapter):
            adapters = [index for index, other in enumerate(self.nodes) if isinstance(other, Adapter)]
            raise ValueError(f"node {node} is no adapter: expected one of {adapters}")
        return adapter

    # Packets.

    def _post(self, posts: Posts) -> None:
        if isinstance(posts, Mapping):
            for (node, slot), stream in posts.items():
                self._adapter(node).post(slot, self._checked(node, slot, iter(stream)))
        elif isinstance(posts, Sequence):
            for post in posts:
                self._pending.setdefault((post.node, post.slot), deque()).append(post)
            for (node, slot), queue in self._pending.items():
                self._adapter(node).post(slot, self._checked(node, slot, iter(queue)))
        else:
            self._posts = iter(posts)
            self._next_post(next(self._posts, None))

    def _next_post(self, post: Post | None) -> None:
        if post is not None:
            self.kernel.at(post.cycle, CONTROL, self._posted, post)

    def _posted(self, post: Post) -> None:
        """Hand over all packets posted in the current cycle, and look for the next."""
        now = self.kernel.now
        following: Post | None = post
        while following is not None and following.cycle == now:
            key = following.node, following.slot
            self._pending.setdefault(key, deque()).append(following)
            self._adapter(following.node).post(following.slot, self._drain(key))
            following = next(self._posts, None)
        if following is not None and following.cycle < now:
            raise ValueError(f"post in cycle {following.cycle}: expected {now} or later")
        self._next_post(following)

    def _drain(self, key: tuple[int, int]) -> Iterator[Post]:
        queue = self._pending[key]
        while queue:
            yield queue.popleft()

    @staticmethod
    def _checked(node: int, slot: int, stream: Iterator[Post]) -> Iterator[Post]:
        last = 0
        for post in stream:
            if (post.node, post.slot) != (node, slot) or post.cycle < last:
                raise ValueError(
                    f"post for node {post.node} slot {post.slot} in cycle {post.cycle}: "
                    f"expected node {node} slot {slot}, cycle {last} or later"
                )
            last = post.cycle
            yield post
