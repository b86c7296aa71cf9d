"""A star of adapters around one switch, brought up and driven."""

import random
import struct
from collections.abc import Callable, Collection, Iterable

import pytest

from model.fabric import Fabric
from wire.codes import LID_PERMISSIVE, QP_SMI, VL15, PortState
from wire.layout import Record as Header
from wire.mad_packet import smp_packet
from wire.packet import build_ud_send
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.registers import Counter, NodeRegister, PortRegister, lft_address, node_address, port_address
from wire.stimulus import Control, Delivery, Injection, Operation, Post
from wire.trace import Kind, Record, port_source

READY = 1000
"""Cycle by which a star is up."""


def ud_words(slid: int, dlid: int, payload: int = 64, sl: int = 0, vl: int = 0, seed: int = 0) -> tuple[int, ...]:
    """A UD packet LRH..ICRC in words; 7 words with an empty payload."""
    data = build_ud_send(
        slid=slid,
        dlid=dlid,
        dest_qp=QP_SMI if vl == VL15 else 5,
        src_qp=QP_SMI if vl == VL15 else 6,
        q_key=0,
        payload=random.Random(seed).randbytes(payload),
        sl=sl,
        vl=vl,
    ).data
    return struct.unpack(f">{len(data) // 4}I", data)


class Star:
    """Adapters 1..P with LIDs 1..P at the ports of switch 0; link i-1 is adapter i's, 0 towards it."""

    words = staticmethod(ud_words)

    def __init__(
        self,
        ports: int = 2,
        *,
        flight: int = 1,
        bring_up: bool = True,
        adapter: dict[str, int] | None = None,
        **switch: object,
    ) -> None:
        self.ports = ports
        vls = switch.get("vls", 1)
        nodes = {"sw": SwitchParameters(ports=ports, **switch)}
        for i in range(1, ports + 1):
            nodes[f"ca{i}"] = AdapterParameters(**{"vls": vls, **(adapter or {})})
        links = tuple(LinkParameters("sw", i, f"ca{i}", 1, flight) for i in range(1, ports + 1))
        self.parameters = FabricParameters(nodes, links)
        self.flight = flight
        self.controls: list[Control] = []
        self.posts: list[Post] = []
        self.delivered: list[Delivery] = []
        self.records: list[Record] = []
        self.fabric: Fabric | None = None
        self.kinds: Collection[int] | None = None
        self._next = 2
        for i in range(1, ports + 1):
            self.write(0, lft_address(i), i)
            self.write(i, node_address(NodeRegister.LID), i)
        if bring_up:
            self.bring_up()

    def bring_up(self, after: int = 0) -> None:
        """It takes 1000 cycles."""
        for state, cycle in ((PortState.ARMED, after + 300), (PortState.ACTIVE, after + 700)):
            for i in range(1, self.ports + 1):
                for node, port in ((0, i), (i, 1)):
                    self.write(node, port_address(port, PortRegister.STATE), state, cycle)
                    cycle += 1

    def _give(self, cycle: int | None, operation: Operation, target: int, *args: int) -> int:
        cycle = self._next if cycle is None else cycle
        self._next = max(self._next, cycle + 1)
        self.controls.append(Control(cycle, operation, target, (*args, 0, 0, 0, 0)[:4]))
        return cycle

    def write(self, node: int, address: int, value: int, cycle: int | None = None) -> int:
        return self._give(cycle, Operation.BUS_WRITE, node, address, value)

    def write_port(
        self, node: int, port: int, register: PortRegister | Counter, value: int, cycle: int | None = None
    ) -> int:
        return self.write(node, port_address(port, register), value, cycle)

    def read(self, node: int, address: int, cycle: int) -> None:
        self._give(cycle, Operation.BUS_READ, node, address)

    def read_port(self, node: int, port: int, register: PortRegister | Counter, cycle: int) -> None:
        self._give(cycle, Operation.BUS_READ, node, port_address(port, register))

    def inject(self, cycle: int, link: int, direction: int, injection: Injection) -> None:
        self._give(cycle, Operation.INJECT, link << 1 | direction, *injection.args())

    def link(self, cycle: int, link: int, up: bool) -> None:
        self._give(cycle, Operation.LINK_UP if up else Operation.LINK_DOWN, link)

    def stall(self, cycle: int, node: int, mask: int) -> None:
        self._give(cycle, Operation.RECV_STALL, node, mask)

    def post(self, cycle: int, source: int, target: int, slot: int = 0, **packet: int) -> None:
        self.posts.append(Post.of_words(cycle, source, slot, ud_words(source, target, **packet)))

    def smp(
        self, cycle: int, source: int, smp: Header, *, slid: int = LID_PERMISSIVE, dlid: int = LID_PERMISSIVE
    ) -> None:
        """An SMP from an adapter's host; without LIDs, of a directed route only."""
        slot = self.parameters.nodes[f"ca{source}"].vls
        self.posts.append(Post(cycle, source, slot, smp_packet(smp, slid, dlid).data))

    def host_sm(self, cycle: int, node: int, value: bool) -> None:
        self._give(cycle, Operation.HOST_SM, node, value)

    def run(self, until: int) -> "Star":
        if self.fabric is None:
            controls = sorted(self.controls, key=lambda control: control.cycle)
            posts: Iterable[Post] = sorted(self.posts, key=lambda post: post.cycle)
            self.fabric = Fabric(self.parameters, controls, posts, self.delivered.append, self.kinds)
        self.records += self.fabric.run(until)
        return self

    def of(self, kind: Kind, node: int | None = None, port: int = 1, since: int = READY) -> list[Record]:
        """Records of a kind, from a port of a node if one is given."""
        return [
            record
            for record in self.records
            if record.kind == kind
            and record.cycle >= since
            and (node is None or record.source == port_source(node, port))
        ]

    def states(self, node: int, port: int = 1, since: int = 0) -> list[tuple[int, int]]:
        """(cycle, state) of each change of a port's state."""
        return [(record.cycle, record.a) for record in self.of(Kind.STATE, node, port, since)]

    def values(self) -> list[int]:
        """What the bus read."""
        return [record.b for record in self.of(Kind.BUS_READ, since=0)]


@pytest.fixture
def star() -> Callable[..., Star]:
    return Star


@pytest.fixture
def ready() -> int:
    return READY
