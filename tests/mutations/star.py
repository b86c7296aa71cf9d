"""A switch `S` with hosts `H1`, `H2`, ... at ports 1, 2, ..., whose LIDs are the ports' numbers; what acts on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from random import Random
from typing import Final

from cosim.stimulus.injection import one_a_cycle
from cosim.stimulus.packet import ud_packet
from cosim.stimulus.run_spec import RunSpec
from wire.codes import LNH, P_KEY_DEFAULT, VL15, PortState
from wire.crc import ICRC_BYTES
from wire.headers import LRH
from wire.mad import MadMethod
from wire.mad_packet import smp_packet
from wire.packet import Packet
from wire.parameters import AdapterParameters, FabricParameters, LinkParameters, SwitchParameters
from wire.registers import NodeRegister, PortRegister, lft_address, node_address, port_address
from wire.sma import SmaAttribute
from wire.smp import smp_request
from wire.stimulus import Control, Injection, Operation, Post, WrongKey

__all__ = ["ACTIVE_AT", "ARMED_AT", "PAIR", "SMALL", "START", "SWITCH", "TRIO", "Star"]

SWITCH = 0
ARMED_AT = 40
ACTIVE_AT = 70
START = 86
"""From here on every port is Active and has the credits of its neighbour."""


@dataclass
class Star:
    """A switch and its hosts, brought up, and what else acts on them.

    Attributes:
        switch, host: what they are built with.
        lids: LIDs that have a route, if more than there are ports; those beyond lead to port 2.
        top: LinearFDBTop, if it is not the number of ports.
        activate: bring the ports from Armed to Active.
    """

    switch: SwitchParameters
    host: AdapterParameters
    lids: int = 0
    top: int = 0
    activate: bool = True
    _controls: list[Control] = field(default_factory=list)
    _posts: list[Post] = field(default_factory=list)
    _sequence: int = 0

    def __post_init__(self) -> None:
        """Bring the star up."""
        ports = self.ports
        self.write(0, SWITCH, node_address(NodeRegister.LINEAR_FDB_TOP), self.top or len(ports))
        for lid in range(1, max(self.lids, len(ports)) + 1):
            self.write(0, SWITCH, lft_address(lid), lid if lid in ports else 2)
        for port in ports:
            self.write(0, port, node_address(NodeRegister.LID), port)
        self.set_state(ARMED_AT, PortState.ARMED)
        if self.activate:
            self.set_state(ACTIVE_AT, PortState.ACTIVE)

    @property
    def ports(self) -> range:
        """Ports of the switch; also the hosts' node indices and LIDs."""
        return range(1, self.switch.ports + 1)

    def write(self, cycle: int, node: int, address: int, value: int) -> None:
        """A bus write."""
        self._controls.append(Control(cycle, Operation.BUS_WRITE, node, (address, value, 0, 0)))

    def read(self, cycle: int, node: int, address: int) -> None:
        """A bus read."""
        self._controls.append(Control(cycle, Operation.BUS_READ, node, (address, 0, 0, 0)))

    def set_register(self, cycle: int, port: int, register: PortRegister, value: int) -> None:
        """A write to both ends of a port's link, in neighbouring cycles."""
        self.write(cycle, SWITCH, port_address(port, register), value)
        self.write(cycle, port, port_address(1, register), value)

    def set_state(self, cycle: int, state: PortState) -> None:
        """A new state for every port."""
        for port in self.ports:
            self.set_register(cycle, port, PortRegister.STATE, state)

    def stall(self, cycle: int, host: int) -> None:
        """The host takes no packets."""
        every_slot = (1 << self.host.vls + 1) - 1
        self._controls.append(Control(cycle, Operation.RECV_STALL, host, (every_slot, 0, 0, 0)))

    def resume(self, cycle: int, host: int) -> None:
        """The host takes packets again."""
        self._controls.append(Control(cycle, Operation.RECV_STALL, host))

    def inject(self, cycle: int, host: int, injection: Injection) -> None:
        """An error on a host's link, towards the switch."""
        self._controls.append(Control(cycle, Operation.INJECT, (host - 1) << 1, injection.args()))

    def link(self, cycle: int, host: int, *, up: bool) -> None:
        """A host's link goes down or comes up."""
        self._controls.append(Control(cycle, Operation.LINK_UP if up else Operation.LINK_DOWN, host - 1))

    def reset(self, cycle: int, node: int) -> None:
        """A node is reset."""
        self._controls.append(Control(cycle, Operation.RESET, node))

    def wrong_key(self, cycle: int, host: int, wrong: WrongKey) -> None:
        """The host finds a packet with a wrong key."""
        self._controls.append(Control(cycle, Operation.KEY_VIOLATION, host, wrong.args()))

    def post(
        self,
        cycle: int,
        source: int,
        dlid: int,
        size: int,
        *,
        vl: int = 0,
        icrc_error: int = 0,
        p_key: int = P_KEY_DEFAULT,
        grh: bool = False,
        raw: bool = False,
    ) -> None:
        """A packet of `size` payload bytes on the SL of the VL's number, with bits of its ICRC flipped; its LNH may say
        that it is a raw one."""
        self._sequence += 1
        packet = ud_packet(
            Random(self._sequence),
            slid=source,
            dlid=dlid,
            sl=vl,
            vl=vl,
            flow=source,
            sequence=self._sequence,
            size=size,
            p_key=p_key,
            grh=grh,
        )
        if raw:
            packet = LRH.pack(**{**LRH.unpack(packet), "lnh": LNH.RAW}) + packet[LRH.size_bytes :]
        self._post(cycle, source, vl, packet, icrc_error)

    def _post(self, cycle: int, source: int, vl: int, packet: bytes, icrc_error: int) -> None:
        slot = self.host.vls if vl == VL15 else vl
        icrc = int.from_bytes(packet[-ICRC_BYTES:], "big") ^ icrc_error
        self._posts.append(Post(cycle, source, slot, packet[:-ICRC_BYTES] + icrc.to_bytes(ICRC_BYTES, "big")))

    def ask(self, cycle: int, source: int, path: Sequence[int]) -> None:
        """A Get(NodeInfo) by directed route."""
        self._sequence += 1
        request = smp_request(MadMethod.GET, SmaAttribute.NODE_INFO, transaction_id=self._sequence, path=path)
        self.send(cycle, source, smp_packet(request))

    def send(self, cycle: int, source: int, packet: Packet, *, icrc_error: int = 0) -> None:
        """A packet that is made already, with bits of its ICRC flipped."""
        self._post(cycle, source, packet.lrh.vl, packet.data, icrc_error)

    def spec(self, cycles: int) -> RunSpec:
        """All of it, for a run of so many cycles."""
        by_cycle = attrgetter("cycle")
        links = tuple(LinkParameters(f"H{port}", 1, "S", port) for port in self.ports)
        nodes = {"S": self.switch, **{f"H{port}": self.host for port in self.ports}}
        controls = list(one_a_cycle(iter(sorted(self._controls, key=by_cycle))))
        return RunSpec(FabricParameters(nodes, links), controls, sorted(self._posts, key=by_cycle), cycles)


PAIR: Final = SwitchParameters(ports=2, vls=1, mtu=256, buffer_blocks=12, readers=1, lft_size=16)
TRIO: Final = SwitchParameters(ports=3, vls=2, mtu=256, buffer_blocks=24, readers=1, lft_size=16)
SMALL: Final = AdapterParameters(vls=1, mtu=256, receive_blocks=6, send_blocks=48)
