"""What a kernel does between programs and their ports: agents, time-outs and retries, RMPP.

It knows no simulator and no socket. MADs come in (`send` from programs, `received` from the fabric) and go out
(`outbox`); what time it is, it is told.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

from doors.mads.agents import Agent, AgentTable, Owner, is_response, method_of
from doors.mads.user_mad import Address, Registration
from sm.rmpp import RmppReceiver, RmppSender, rmpp_mad
from wire.mad import MAD_BYTES, MAD_HEADER, RESPONSE_BIT, MadMethod, MadStatus, MgmtClass
from wire.rmpp import RMPP_END, RMPP_HEADER, RmppFlags, RmppStatus, RmppType, data_offset, has_rmpp, rmpp_flags

__all__ = ["MadLayer", "MadPort", "Moment", "Outgoing", "Send", "SendError", "transaction_id"]

_MS: Final = 1_000_000
_ACK_NS: Final = 2_000 * _MS
"""An acknowledgement is waited for so long at most."""

_RECEIVER_NS: Final = 40_000 * _MS
_COMPLETE_KEPT: Final = 64
"""Messages put together of which late segments are acknowledged once more."""

_FIRST_HIGH_TID: Final = 0x10000
"""Above those of the traps of agents, which are the traps' numbers."""

_TID: Final = slice(8, 16)
_LOW: Final = (1 << 32) - 1
_DIRECTION: Final = 0x8000


class Moment(NamedTuple):
    """A point in time.

    Attributes:
        time: nanoseconds of the time in which programs count.
        cycle: of the fabric.
    """

    time: int
    cycle: int


class SendError(Exception):
    """What a program may not send.

    Attributes:
        errno: the system's number for why not.
    """

    def __init__(self, number: int) -> None:
        super().__init__(errno.errorcode[number])
        self.errno = number


class Outgoing(NamedTuple):
    """A MAD for a port to send; `answered` says that one comes back for it, or an acknowledgement."""

    mad: bytes
    address: Address
    answered: bool


@dataclass(eq=False, slots=True)
class Send:
    """What an agent has sent and waits for an answer to, or for acknowledgements.

    Attributes:
        agent, address: who sent it, and where to.
        mad: the MAD, or the message.
        timeout: nanoseconds for each try.
        tries: how often it may still be sent.
        deadline: of the current try, in the time of programs.
        cycle: the fabric's, of what was last heard or sent of it.
        held: it is not in the fabric: another program has it, which may take its time, or it has to wait to go.
        rmpp: the segments, if it has several.
        expects: whether an answer is waited for.
    """

    agent: Agent
    address: Address
    mad: bytes
    timeout: int
    tries: int
    rmpp: RmppSender | None
    expects: bool
    deadline: int = 0
    cycle: int = 0
    held: bool = False

    def begin(self, now: Moment) -> None:
        """It goes now, and its time begins."""
        self.held = False
        self.cycle = now.cycle
        self.deadline = now.time + self.timeout


class MadLayer:
    """All ports, and what is common to them.

    Attributes:
        requests: what waits for an answer, by TransactionID.
        on_answer: called with each request that was answered, and its answer.
        on_timeout: called with what will have no answer.
    """

    def __init__(self) -> None:
        self.requests: dict[int, Send] = {}
        self.on_answer: Callable[[MadPort, Send, bytes], None] = lambda port, send, mad: None
        self.on_timeout: Callable[[MadPort, Send], None] = lambda port, send: None
        self.high_tids = count(_FIRST_HIGH_TID)


class MadPort:
    """The agents of one port, what they wait for, and what the port is to send.

    Attributes:
        agents: those that are registered.
        outbox: what is to be sent; whoever sends it empties it.
    """

    def __init__(self, layer: MadLayer) -> None:
        self.agents = AgentTable()
        self.outbox: list[Outgoing] = []
        self._layer = layer
        self._sends: dict[tuple[bool, int], Send] = {}
        self._receivers: OrderedDict[tuple[int, int, int], RmppReceiver] = OrderedDict()

    # What programs do.

    def register(self, owner: Owner, registration: Registration) -> Agent:
        """A new agent.

        Raises:
            RegistrationError: there can be none of this kind.
        """
        agent = Agent(owner, registration, next(self._layer.high_tids) & _LOW)
        self.agents.add(agent)
        return agent

    def unregister(self, agent: Agent) -> int:
        """An agent less. What it waits for is given up, which is how many."""
        self.agents.remove(agent)
        given_up = [key for key, send in self._sends.items() if send.agent is agent]
        for key in given_up:
            self._drop(key)
        return len(given_up)

    def send(self, agent: Agent, address: Address, mad: bytes, timeout_ms: int, retries: int, now: Moment) -> None:
        """Sends a MAD, or a message of any length of an agent with RMPP.

        Raises:
            SendError: it is too short or too long, or its TransactionID is in use.
        """
        in_segments = agent.has_rmpp and bool(rmpp_flags(mad) & RmppFlags.ACTIVE)
        shortest = data_offset(mad[1]) if has_rmpp(mad[1]) else MAD_HEADER.size_bytes
        if len(mad) < shortest or (len(mad) > MAD_BYTES and not in_segments):
            raise SendError(errno.EINVAL)
        answers = is_response(mad)
        if not answers:
            mad = mad[:8] + agent.high_tid.to_bytes(4, "big") + mad[12:]
        key = answers, transaction_id(mad)
        expects = not answers and timeout_ms > 0
        waits = in_segments or expects
        if key in self._sends and (waits or not answers):
            raise SendError(errno.EINVAL)
        sender = RmppSender(mad) if in_segments else None
        send = Send(agent, address, mad, timeout_ms * _MS, 1 + retries, sender, expects)
        if waits:
            self._sends[key] = send
            if not answers:
                self._layer.requests[key[1]] = send
        self._try(send, now)

    # What the fabric brings, and time.

    def received(self, address: Address, mad: bytes, now: Moment) -> bool:
        """Takes a MAD; whether a program has got it that may answer it."""
        answers = is_response(mad)
        is_control = rmpp_flags(mad) & RmppFlags.ACTIVE and RMPP_HEADER["rmpp_type"].read(mad) != RmppType.DATA
        if is_control and (not answers, transaction_id(mad)) in self._sends:
            # It is about what was sent in segments: an acknowledgement of an answer looks like a request.
            self._acknowledged(mad, now)
            return False
        agent = self.agents.of_response(transaction_id(mad)) if answers else self.agents.of_request(mad)
        if is_control and (agent is None or agent.has_rmpp):
            return False
        if agent is None:
            if not answers and method_of(mad) in (MadMethod.GET, MadMethod.SET):
                self.outbox.append(Outgoing(_unsupported(mad), address, answered=False))
            return False
        if answers and mad[3] & RESPONSE_BIT and (False, transaction_id(mad)) not in self._sends:
            return False
        in_segments = agent.has_rmpp and bool(rmpp_flags(mad) & RmppFlags.ACTIVE)
        message = self._segment(agent, address, mad, now) if in_segments else mad
        if message is None:
            return False
        if answers:
            send = self._drop((False, transaction_id(mad)))
            if send is not None:
                self._layer.on_answer(self, send, message)
        agent.owner.arrived(agent, address, message)
        return not answers

    def expire(self, now: Moment, patience: int) -> None:
        """Lets time pass: what is overdue is sent again, or given up.

        Overdue is what had its time, and also what nothing in the fabric can answer: nothing was heard of it for
        `patience` cycles, and no program has it.
        """
        for key, send in list(self._sends.items()):
            silent = not send.held and now.cycle >= send.cycle + patience
            if not silent and now.time < send.deadline:
                continue
            if send.tries > 0:
                self._try(send, now)
            elif self._drop(key) is not None:
                self._layer.on_timeout(self, send)
                if send.expects:
                    send.agent.owner.unanswered(send.agent, send.address, send.mad)
        for place, receiver in list(self._receivers.items()):
            if receiver.deadline <= now.time:
                del self._receivers[place]

    @property
    def deadline(self) -> int | None:
        """When time is next up for something."""
        return min((send.deadline for send in self._sends.values()), default=None)

    @property
    def waiting(self) -> int:
        """How much is waited for that no program has."""
        return sum(not send.held for send in self._sends.values())

    # Inside.

    def _try(self, send: Send, now: Moment) -> None:
        send.tries -= 1
        send.begin(now)
        if send.rmpp is not None:
            if not 0 < send.timeout <= _ACK_NS:
                send.deadline = now.time + _ACK_NS
            self._out(send, send.rmpp.again() if not send.rmpp.finished else [])
        else:
            self._out(send, [send.mad.ljust(MAD_BYTES, b"\0")])

    def _out(self, send: Send, mads: list[bytes]) -> None:
        answered = send.expects or send.rmpp is not None
        self.outbox += [Outgoing(mad, send.address, answered) for mad in mads]

    def _drop(self, key: tuple[bool, int]) -> Send | None:
        send = self._sends.pop(key, None)
        if send is not None and not key[0]:
            self._layer.requests.pop(key[1], None)
        return send

    def _segment(self, agent: Agent, address: Address, mad: bytes, now: Moment) -> bytes | None:
        """Takes a segment, and acknowledges; the message, when this completes it."""
        place = agent.high_tid, transaction_id(mad), address.lid
        receiver = self._receivers.get(place)
        if receiver is None:
            if RMPP_HEADER["segment_number"].read(mad) != 1:
                return None
            receiver = self._receivers[place] = RmppReceiver(now.time + _RECEIVER_NS)
            while len(self._receivers) > _COMPLETE_KEPT and next(iter(self._receivers.values())).message is not None:
                self._receivers.popitem(last=False)
        request = self._sends.get((False, transaction_id(mad)))
        if request is not None:
            request.cycle = now.cycle
            request.held = False
        was_complete = receiver.message is not None
        acknowledgement = receiver.receive(mad)
        if acknowledgement is not None:
            self.outbox.append(Outgoing(acknowledgement, address, answered=False))
        if was_complete or receiver.message is None:
            return None
        # The receiver stays for late segments, the message, which may be megabytes, does not.
        message, receiver.message = receiver.message, b""
        return message

    def _acknowledged(self, mad: bytes, now: Moment) -> None:
        """An acknowledgement, or the end that the other side puts to it."""
        header = RMPP_HEADER.unpack(mad)
        key = not mad[3] & RESPONSE_BIT, transaction_id(mad)
        send = self._sends[key]
        if send.rmpp is None:
            return
        if header.rmpp_type != RmppType.ACK:
            self._drop(key)
            return
        before = send.rmpp.acknowledged
        status = send.rmpp.acknowledge(header.segment_number, header.payload_length)
        if status is not RmppStatus.NORMAL:
            self._drop(key)
            head = send.mad[: max(RMPP_END, data_offset(mad[1]))]
            stop = rmpp_mad(head, RmppType.ABORT, RmppFlags.ACTIVE, 0, 0, status=status)
            self.outbox.append(Outgoing(stop, send.address, answered=False))
            return
        send.cycle = now.cycle
        if send.rmpp.acknowledged > before:
            send.deadline = now.time + (send.timeout or _ACK_NS)
        if not send.rmpp.finished:
            self._out(send, send.rmpp.due())
        elif not send.expects:
            self._drop(key)


def transaction_id(mad: bytes) -> int:
    """MADHeader.TransactionID."""
    return int.from_bytes(mad[_TID], "big")


def _unsupported(mad: bytes) -> bytes:
    """The answer to a request that no agent takes."""
    status = int(MadStatus.METHOD_ATTRIBUTE_NOT_SUPPORTED)
    if mad[1] == MgmtClass.SUBN_DIRECTED_ROUTE:
        status |= _DIRECTION
    return mad[:3] + bytes([MadMethod.GET_RESP]) + status.to_bytes(2, "big") + mad[6:]
