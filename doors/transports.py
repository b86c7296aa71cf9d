"""The transports of the hosts of a fabric that is served: programs' queue pairs, and their packets in the fabric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from doors.mads.host_port import HostPort
from doors.mads.user_mad import Address
from doors.uverbs.adapter import UverbsAdapter
from doors.uverbs.operations import Operations
from verbs.adapter import Adapter
from verbs.congestion_control.traps import Trap
from verbs.hosts import VerbsHosts, VerbsPort
from verbs.port import Port
from wire.codes import MTU, SERVICE_LEVELS, mtu_bytes
from wire.crc import ICRC_BYTES, icrc
from wire.packet import WORD_BYTES, parse
from wire.parameters import FabricParameters
from wire.port_tables import GUID_INFO
from wire.sma import SmaAttribute
from wire.stimulus import Delivery, Post

__all__ = ["Timer", "Transports"]

_ALL_BITS: Final = 0xFF
_SOON_CYCLES: Final = 1_000
"""What a timer has left that the fabric is let run for."""


class Transports:
    """One adapter for each host at which a program has asked for one.

    Attributes:
        hosts: what carries their packets.
        operations: what they have done.
        on_trap: sends a trap of a port's.
    """

    def __init__(
        self,
        fabric: FabricParameters,
        ports: Mapping[str, Sequence[HostPort]],
        *,
        post: Callable[[Post], None],
        tell: Callable[[str], None],
    ) -> None:
        """PORTS are those of each host. POST takes packets."""
        self.hosts = VerbsHosts(self._post)
        self.on_trap: Callable[[HostPort, Trap], None] = lambda port, trap: None
        self._give = post
        self._alterations: dict[int, int] = {}
        self.operations = Operations(lambda: self.hosts.time)
        self._vls = [node.vls for node in fabric.nodes.values()]
        self._ports = ports
        self._tell = tell
        self._adapters: dict[str, UverbsAdapter] = {}
        self._hosts: dict[Adapter, str] = {}
        self._transport_ports: dict[HostPort, tuple[Port, list[int]]] = {}

    def adapter(self, host: str) -> UverbsAdapter:
        """The adapter of a host, which begins its work when it is first asked for."""
        if host not in self._adapters:
            ports = self._ports[host]
            for port in ports:
                self._transport_ports[port] = Port(0), []
                self.learn(port)
            adapter = Adapter([self._transport_ports[port][0] for port in ports])
            adapter.on_trap = lambda number, trap: self.on_trap(ports[number - 1], trap)
            self._adapters[host] = UverbsAdapter(adapter, ports, self.operations)
            self._hosts[adapter] = host
            for port in ports:
                sl_to_vl = self._transport_ports[port][1]
                self.hosts.add(VerbsPort(port.node, adapter, port.number, self._vls[port.node], sl_to_vl))
        return self._adapters[host]

    def learn(self, port: HostPort) -> None:
        """Takes from what a host knows of its port what its transport goes by."""
        if port not in self._transport_ports:
            return
        known, sl_to_vl = self._transport_ports[port]
        sl_to_vl[:] = map(port.vl, range(SERVICE_LEVELS))
        info = port.info
        guids = GUID_INFO.unpack(port.known[SmaAttribute.GUID_INFO])[: info.guid_cap]
        known.lid, known.lmc = info.lid, info.lmc
        known.mtu = mtu_bytes(MTU(info.neighbor_mtu))
        known.subnet_timeout = info.subnet_timeout
        known.gids[:] = [info.gid_prefix << 64 | guid if guid else 0 for guid in guids]
        known.p_keys[:] = port.p_keys
        if port.host in self._adapters:
            self._adapters[port.host].update(port)

    def alter(self, port: HostPort, byte: int) -> None:
        """Let the next packet with payload enough carry another byte there, and CRCs that fit."""
        self._alterations[port.node] = byte

    def _post(self, post: Post) -> None:
        byte = self._alterations.get(post.node)
        if byte is not None:
            altered = _altered(post.data, byte)
            if altered is not None:
                del self._alterations[post.node]
                post = post._replace(data=altered)
        self._give(post)

    def answer(self, port: HostPort, source: Address, request: bytes) -> bytes | None:
        """What a port's adapter answers to a MAD about its congestion control, if anything."""
        sgid = 0 if source.grh is None else int.from_bytes(source.grh[2], "big")
        adapter = self.adapter(port.host).adapter
        return adapter.answer(request, self.hosts.time, port.number, source.lid, sgid)

    def delivered(self, delivery: Delivery) -> None:
        """Takes a packet that no agent has taken."""
        self.hosts.delivered(delivery)

    def is_busy(self, cycle: int, bound: int) -> bool:
        """Whether something is on its way, or about to be; what is has arrived within BOUND cycles, or never will."""
        hosts = self.hosts
        if hosts.waits or (hosts.in_flight and cycle - hosts.active <= bound):
            return True
        wake = hosts.wake
        return wake is not None and wake - cycle <= _SOON_CYCLES

    def timer(self, cycle: int) -> Timer | None:
        """What ends first of all that queue pairs wait for, where nothing in flight can end it before."""
        waiting = self.hosts.waiting
        if waiting is None:
            return None
        adapter, pair, wake = waiting
        is_delay = pair.held_until is not None and pair.held_until == pair.wake
        return Timer(self._hosts[adapter], pair.number, wake, wake - cycle, pair.waits_for_receiver, is_delay)

    def end(self, timer: Timer) -> None:
        """Lets it end at once."""
        if not timer.is_for_receiver and not timer.is_delay:
            self._tell(f"{timer}: nothing in flight can answer it any more; its {timer.cycles:,} cycles pass at once")
        self.hosts.skip_to(timer.wake)


@dataclass(frozen=True)
class Timer:
    """Time that a queue pair lets pass.

    Attributes:
        host, number: which.
        wake: the fabric's cycle in which it ends, if nothing ends it before.
        cycles: what is left of it.
        is_for_receiver: for a receive request, that a program at the other end is to post, and not for an answer.
        is_delay: for its next packet's turn, by congestion control.
    """

    host: str
    number: int
    wake: int
    cycles: int
    is_for_receiver: bool
    is_delay: bool

    def __str__(self) -> str:
        return f"{self.host}: queue pair {self.number:#x}"


def _altered(data: bytes, byte: int) -> bytes | None:
    """A packet with all bits of a byte of its payload turned over; None if it has no such byte."""
    payload = parse(data).payload
    if byte >= len(payload):
        return None
    pad = -len(payload) % WORD_BYTES
    at = len(data) - ICRC_BYTES - pad - len(payload) + byte
    changed = data[:at] + bytes([data[at] ^ _ALL_BITS]) + data[at + 1 : -ICRC_BYTES]
    return changed + icrc(changed)
