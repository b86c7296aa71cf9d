"""The MADs of programs in a simulation: packets of their hosts' adapters, and what these deliver is the programs'."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence

from doors.mads.agents import SMI_CLASSES
from doors.mads.host_port import ATTRIBUTES, HostPort
from doors.mads.mad_layer import MadLayer, MadPort, Moment, Outgoing, Send, transaction_id
from doors.mads.packets import described, flight_key, from_itself, is_for_adapter, mad_in, packet_of
from doors.mads.smp_window import SmpWindow
from doors.mads.user_mad import Address
from verbs.congestion_control.agent import is_cc_request
from verbs.congestion_control.traps import Trap
from wire.mad import MadMethod, mad_data
from wire.parameters import FabricParameters
from wire.port_info import PORT_INFO
from wire.sma import SmaAttribute
from wire.smp import initial_path, is_directed, unpack_smp
from wire.stimulus import Delivery

__all__ = ["Management"]


class Management:
    """The agents of all hosts' ports, and what of theirs is in the fabric.

    Attributes:
        sent: MADs that have left by a host's link, by host.
        time_outs: MADs that had no answer.
        on_lost: called with each MAD that has not arrived and never will, whose port sent it, and where to; but not
            with those that their port's agents wait for an answer to.
    """

    def __init__(
        self,
        fabric: FabricParameters,
        ports: Sequence[HostPort],
        layer: MadLayer,
        *,
        window: int,
        post: Callable[[HostPort, int, bytes], None],
        congestion_control: Callable[[HostPort, Address, bytes], bytes | None],
        tell: Callable[[str], None],
    ) -> None:
        """WINDOW is how many SMPs may be in the fabric at once; POST takes packets and their slots.

        CONGESTION_CONTROL answers requests of that class at a port: an adapter's driver does, not a program.
        """
        self.sent: Counter[str] = Counter()
        self.time_outs = 0
        self.on_lost: Callable[[HostPort, Address, bytes], None] = lambda port, address, mad: None
        self._post = post
        self._congestion_control = congestion_control
        self._tell = tell
        self._layer = layer
        self._window = SmpWindow(layer, window)
        self._flights: dict[bytes, tuple[int, HostPort, Address, bytes]] = {}
        self._stale: dict[tuple[HostPort, SmaAttribute], None] = {}
        self._loops: deque[tuple[HostPort, Address, bytes]] = deque()
        layer.on_answer = self._answered
        layer.on_timeout = self._timed_out
        self._vls = [node.vls for node in fabric.nodes.values()]
        self._port_at = {port.node: port for port in ports}
        self._port_of_mads = {port.mads: port for port in ports}
        self._far_ends = _far_ends(fabric)

    @property
    def is_complete(self) -> bool:
        """Whether all is known of all ports."""
        return all(port.complete for port in self._port_at.values())

    @property
    def silent(self) -> HostPort | None:
        """A port of which not all is known."""
        return next((port for port in self._port_at.values() if not port.complete), None)

    @property
    def is_carrying(self) -> bool:
        """Whether MADs are on their way in the fabric, or answers to them."""
        return bool(self._flights) or any(port.mads.waiting for port in self._port_at.values())

    @property
    def any_outgoing(self) -> bool:
        """Whether a port has a MAD to send."""
        return any(port.mads.outbox for port in self._port_at.values())

    @property
    def has_work(self) -> bool:
        """Whether there is something to do at once."""
        return bool(self._loops or self._stale) or self.any_outgoing

    @property
    def deadline(self) -> int | None:
        """When time is next up for something that was sent, in the time of programs."""
        deadlines = (port.mads.deadline for port in self._port_at.values())
        return min((one for one in deadlines if one is not None), default=None)

    def ask_again(self, port: HostPort | None = None, attributes: Sequence[SmaAttribute] = ATTRIBUTES) -> None:
        """Attributes of a port, or of all of them, may have changed."""
        for one in self._port_at.values() if port is None else (port,):
            for attribute in attributes:
                self._stale[one, attribute] = None

    def work(self, now: Moment, bound: int) -> None:
        """All that can be done at this point in time; what was sent has arrived within BOUND cycles, or never will."""
        while self._loops:
            self._arrive(*self._loops.popleft(), now)
        for port, attribute in self._stale:
            port.ask(attribute, now)
        self._stale.clear()
        for port in self._port_at.values():
            port.mads.expire(now, bound)
        for key, (over, port, address, mad) in list(self._flights.items()):
            if over <= now.cycle:
                del self._flights[key]
                self.on_lost(port, address, mad)

    def send(self, now: Moment, bound: int) -> None:
        """Post all that ports have to send."""
        over = now.cycle + bound
        for port in self._port_at.values():
            outbox, port.mads.outbox = port.mads.outbox, []
            for outgoing in outbox:
                if port.is_own(outgoing.address, outgoing.mad) or not self._window.keeps(port, outgoing):
                    self._send(port, outgoing, over)
        for port, outgoing in self._window.released(now):
            self._send(port, outgoing, over)

    def delivered(self, delivery: Delivery, now: Moment) -> bool:
        """Hands a packet to the port that it was delivered at; whether there is a MAD in it."""
        port = self._port_at.get(delivery.node)
        found = mad_in(port, delivery.data) if port is not None else None
        if port is None or found is None:
            return False
        address, mad = found
        self._flights.pop(flight_key(mad), None)
        self._arrive(port, address, mad, now)
        return True

    def trap(self, port: HostPort, trap: Trap) -> None:
        """Sends a trap of an adapter's congestion control; nothing waits for it, it comes again."""
        vl = port.vl(trap.sl)
        if vl >= self._vls[port.node] or not port.sends_data:
            return
        made = trap.packet(port.info.lid, vl)
        if not port.has_lid(trap.dlid):
            self.sent[port.host] += 1
            self._post(port, vl, made.data)
        elif (found := mad_in(port, made.data)) is not None:
            self._loops.append((port, *found))

    def _send(self, port: HostPort, outgoing: Outgoing, over: int) -> None:
        """Post a MAD, which has arrived by cycle OVER or never will."""
        is_own = port.is_own(outgoing.address, outgoing.mad)
        if is_own and not is_for_adapter(outgoing.mad):
            # A channel adapter brings what is for itself back to itself.
            self._loops.append((port, from_itself(port, outgoing.address), outgoing.mad))
            return
        made = packet_of(port, outgoing.address, outgoing.mad, self._vls[port.node])
        if made is None:
            if not outgoing.answered:
                self.on_lost(port, outgoing.address, outgoing.mad)
            return
        if not outgoing.answered:
            self._flights[flight_key(outgoing.mad)] = over, port, outgoing.address, outgoing.mad
        if not is_own:
            self.sent[port.host] += 1
        self._post(port, *made)

    def _arrive(self, port: HostPort, address: Address, mad: bytes, now: Moment) -> None:
        """A MAD has arrived at a port."""
        if is_cc_request(mad):
            answer = self._congestion_control(port, address, mad)
            if answer is not None:
                port.mads.outbox.append(Outgoing(answer, address, answered=False))
        elif port.mads.received(address, mad, now):
            request = self._layer.requests.get(transaction_id(mad))
            if request is not None:
                request.held = True

    def _answered(self, mads: MadPort, send: Send, answer: bytes) -> None:
        """A Set may have changed what is known of the port that it went to.

        The host there knows before the program that has set it: who hears that a port is Active finds it so.
        """
        if send.mad[1] not in SMI_CLASSES or send.mad[3] != MadMethod.SET:
            return
        smp = unpack_smp(answer)
        if smp.attribute_id not in ATTRIBUTES:
            return
        if is_directed(smp):
            end = self._end_of(self._port_of_mads[mads], initial_path(smp))
            reached = [end] if end is not None else []
        else:
            reached = [port for port in self._port_at.values() if port.has_lid(send.address.lid)]
        attribute = SmaAttribute(smp.attribute_id)
        is_port_info = attribute is SmaAttribute.PORT_INFO
        for port in reached:
            if is_port_info and not smp.status:
                port.m_key = PORT_INFO["m_key"].read(mad_data(unpack_smp(send.mad)))
            if len(reached) == 1 and not smp.status and (is_port_info or not smp.attribute_modifier):
                port.learn(attribute, mad_data(smp))
            self._stale[port, attribute] = None

    def _end_of(self, port: HostPort, path: tuple[int, ...]) -> HostPort | None:
        """The host's port at the end of a directed route."""
        node = port.node
        for out in path:
            far = self._far_ends.get((node, out))
            if far is None:
                return None
            node = far
        return self._port_at.get(node)

    def _timed_out(self, mads: MadPort, send: Send) -> None:
        self.time_outs += 1
        port = self._port_of_mads[mads]
        what = described(send)
        if not send.expects:
            self._tell(f"{port}: nobody acknowledges {what}")
        elif send.held:
            self._tell(f"{port}: no answer in time to {what}")
        else:
            self._tell(f"{port}: nothing can answer {what} any more")


def _far_ends(fabric: FabricParameters) -> Mapping[tuple[int, int], int]:
    """Index of the node that each linked port is linked with, by node index and what directed routes call the port."""
    nodes = {name: index for index, name in enumerate(fabric.nodes)}
    far = {}
    for link in fabric.links:
        for (near, port), other in (((link.a, link.a_port), link.b), ((link.b, link.b_port), link.a)):
            far[nodes[near], fabric.port_number(near, port)] = nodes[other]
    return far
