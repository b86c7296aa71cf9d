"""A fabric that is brought up and then stepped by a caller, who sends packets at hosts and takes what they get."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cosim.analysis.event_log import EventLog
from cosim.experiments.fabric_bring_up import BringUpMethod, FabricBringUp
from cosim.experiments.link_control import CounterReader, LinkControl
from cosim.experiments.stepped_run import SteppedRun, SteppedTask
from cosim.hosts.packet_carrier import PacketCarrier
from cosim.topology.topology import Port, Topology, port_named
from toolchain.errors import UserError
from wire.codes import SERVICE_LEVELS, max_pkt_len, mtu_code
from wire.packet import WORD_BYTES, build_ud_send
from wire.parameters import AdapterParameters, node_text
from wire.stimulus import Delivery

__all__ = ["PacketError", "PacketRun", "PacketTask"]

_DEST_QP: Final = 0x10
_SRC_QP: Final = 0x100
_Q_KEY: Final = 0x1234_5678
_PSNS: Final = 1 << 24
_SMALLEST_WORDS: Final = 5


class PacketError(UserError):
    """A packet that cannot be sent, or has not come."""


@dataclass(frozen=True)
class PacketTask:
    """What is to be run, and how.

    Attributes:
        stepped: the fabric and what simulates it; control operations that bring it up are added.
        widths: of each link.
        bring_up: what brings the fabric up.
        seed: draws errors.
    """

    stepped: SteppedTask
    widths: Sequence[int]
    bring_up: BringUpMethod = "sm"
    seed: int = 0


class PacketRun:
    """The fabric, brought up. Hosts are called as people call them: `H1`, or `H1[2]` for a port of several.

    Attributes:
        topology: the fabric as it is configured.
        links: hands on the cables.
        events: what happens.
    """

    def __init__(self, task: PacketTask) -> None:
        """Brings the fabric up.

        Raises:
            NotBroughtUp: the Subnet Manager says what is wrong.
            RunOver: RTL and golden model differ.
            What the engines raise (cosim.engines.simulation.run).
        """
        fabric = self._fabric = task.stepped.fabric
        self._psn = 0
        self.events = EventLog(fabric)
        reader = CounterReader(fabric)
        up = FabricBringUp(fabric, task.widths, task.bring_up)
        observers = [*task.stepped.observers, self.events, reader]
        self._run = SteppedRun(replace(task.stepped, controls=up.controls, observers=observers))
        self.links = LinkControl(fabric, self._run, reader, task.seed)
        nodes = enumerate(fabric.nodes.values())
        slots = {index: range(node.vls) for index, node in nodes if isinstance(node, AdapterParameters)}
        self._carrier = PacketCarrier(slots, consume=self._run.stand_still)
        self._run.begin([self._carrier, *up.carriers])
        try:
            up.finish(self._run)
        except BaseException:
            self._run.end()
            raise
        self.topology: Topology = up.topology

    def close(self) -> None:
        """Ends the run.

        Raises:
            What the engines raise.
        """
        self._run.end()

    @property
    def now(self) -> int:
        """The cycle below which all is over in the fabric."""
        return self._run.now

    @property
    def difference(self) -> str:
        """Where RTL and golden model differed, in lines, once the run is over; nothing if they did not."""
        return self._run.difference

    @property
    def records_compared(self) -> int:
        """Events that were the same in RTL and golden model, once the run is over."""
        return self._run.comparison.records if self._run.comparison is not None else 0

    def step(self, most: int) -> None:
        """Lets a little time pass, not more than so many cycles.

        Raises:
            RunOver: RTL and golden model differ.
            What the engines raise.
        """
        self.links.draw()
        self._run.step(most)

    def send(self, source: str, destination: str, payload: bytes, sl: int = 0) -> bytes:
        """Has a host send a UD SEND Only packet to another; its bytes LRH..ICRC. PSNs count the packets of the run.

        Raises:
            PacketError: no such host, or SL, one that management gave no LID, or more than their links' MTU.
        """
        near, far = self.lid(source), self.lid(destination)
        if not 0 <= sl < SERVICE_LEVELS:
            raise PacketError(f"SL {sl}: allowed 0..{SERVICE_LEVELS - 1}")
        place = Port(self._host(source), 1)
        mtu = min(self.topology.mtu(place), self.topology.mtu(Port(self._host(destination), 1)))
        if len(payload) > mtu:
            raise PacketError(f"payload of {len(payload):,} bytes from {source} to {destination}: allowed 0..{mtu:,}")
        vl = self.topology.vl(place, sl)
        data = build_ud_send(
            slid=near,
            dlid=far,
            vl=vl,
            sl=sl,
            dest_qp=_DEST_QP,
            src_qp=_SRC_QP,
            q_key=_Q_KEY,
            psn=self._psn,
            payload=payload,
        ).data
        self._psn = (self._psn + 1) % _PSNS
        self._carrier.post(self.topology.index[place.node], vl, data)
        return data

    def send_packet(self, source: str, data: bytes, vl: int = 0) -> None:
        """Has a host send a packet as it is, LRH..ICRC, on a VL.

        Raises:
            PacketError: no such host or VL, no whole words, or a length that no packet of this host has.
        """
        name = self._host(source)
        node = self._fabric.nodes[name]
        if not 0 <= vl < node.vls:
            raise PacketError(f"VL {vl} of {source}: allowed 0..{node.vls - 1}")
        smallest, largest = _SMALLEST_WORDS * WORD_BYTES, max_pkt_len(mtu_code(node.mtu)) * WORD_BYTES
        if len(data) % WORD_BYTES or not smallest <= len(data) <= largest:
            raise PacketError(
                f"packet of {len(data):,} bytes at {source}: expected a multiple of {WORD_BYTES} in "
                f"{smallest}..{largest:,}, LRH to ICRC"
            )
        self._carrier.post(self.topology.index[name], vl, data)

    def arrived(self, host: str) -> deque[Delivery]:
        """What a host has got and nobody has taken, oldest first; take it out.

        Raises:
            PacketError: no such host.
        """
        return self._carrier.arrived[self.topology.index[self._host(host)]]

    def lid(self, host: str) -> int:
        """The LID that management gave a host.

        Raises:
            PacketError: no such host, or it has none.
        """
        name = self._host(host)
        if name not in self.topology.lids:
            raise PacketError(f"host {host}: has no LID, as it has no link")
        return self.topology.lids[name]

    def host_of_lid(self, lid: int) -> str | None:
        """The host that has a LID, by its name; None if there is none."""
        return next((node_text(name) for name, one in self.topology.lids.items() if one == lid), None)

    def _host(self, text: str) -> str:
        """The node that people call so."""
        try:
            name = port_named(self._fabric, text).node
        except ValueError as error:
            raise PacketError(str(error)) from None
        if not isinstance(self._fabric.nodes[name], AdapterParameters):
            nodes = self._fabric.nodes.items()
            hosts = [node_text(name) for name, node in nodes if isinstance(node, AdapterParameters)]
            raise PacketError(f"{text}: is no host; there are {', '.join(hosts)}")
        return name
