"""An agent alone in Amaranth's simulator: packets in and out, the register bus, cycle by cycle."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from rtl.management.agent import Agent
from rtl.management.identity import identity_values
from tests.agent_steps import of_cc_request, of_request, of_trap
from tests.rtl.simulation import Simulation
from wire.codes import LID_PERMISSIVE
from wire.crc import ICRC_BYTES, icrc
from wire.headers import LRH
from wire.layout import Record
from wire.mad import MAD_HEADER, MadMethod, MgmtClass, mad_data
from wire.mad_packet import smp_packet
from wire.parameters import NodeIdentity, NodeParameters, SwitchParameters
from wire.registers import LEASE_SECOND_AT_RESET
from wire.smp import smp_request, unpack_smp

IDENTITY = NodeIdentity(0x001B_1234_5678_9ABC, 0x001B_1234_5678_9ABD, "a node of ours, ünïcode")
MAD_START = 28
FIRST_WORD = 5
"""Cycles from a grant to the packet's first word on the agent's wires."""
TO_STEP_0 = 4
"""Cycles from a packet's last word, z, to T."""
READ_LATENCY = 4


class Access(NamedTuple):
    """One of the agent's accesses to the bus, at the step of this number; `value` is None of a read."""

    step: int
    address: int
    value: int | None


@dataclass
class Work:
    """What became of a packet or a trap.

    Attributes:
        start: the cycle of step 0, if there was one; T of a packet.
        numbers: those of its steps.
        accesses: to the bus.
        offered: the cycle from which a packet was offered; None if there was none.
        outputs: those it was for. `slot`: its slot.
        data: its bytes.
        free: the first cycle in which the agent was available again.
    """

    start: int
    numbers: tuple[int, ...]
    accesses: list[Access] = field(default_factory=list)
    offered: int | None = None
    outputs: tuple[int, ...] = ()
    slot: int | None = None
    data: bytes = b""
    free: int = 0

    @property
    def smp(self) -> Record:
        return unpack_smp(self.data[MAD_START:-ICRC_BYTES])

    @property
    def attribute(self) -> bytes:
        return mad_data(self.smp)

    @property
    def status(self) -> int:
        return self.smp.status

    @property
    def writes(self) -> list[Access]:
        return [access for access in self.accesses if access.value is not None]

    @property
    def reads(self) -> list[tuple[int, int]]:
        return [access[:2] for access in self.accesses if access.value is None]

    @property
    def lrh(self) -> Record:
        return LRH.unpack(self.data)

    @property
    def steps(self) -> int | None:
        """Cycles from T to the offer or, if nothing was offered, to the agent being free."""
        return (self.free if self.offered is None else self.offered) - self.start

    @property
    def answered(self) -> bool:
        """It has had all steps of an answer or a trap, and no more."""
        return self.steps == len(self.numbers)


def packet_bytes(smp: Record, slid: int = LID_PERMISSIVE, dlid: int = LID_PERMISSIVE, sl: int = 0) -> bytes:
    """The packet of an SMP with a service level."""
    return changed(smp_packet(smp, slid=slid, dlid=dlid).data, {"sl": sl})


def changed(packet: bytes, lrh: Mapping[str, int] | None = None, /, **smp: int) -> bytes:
    """A packet with fields of its LRH and of its SMP changed, and the ICRC that belongs to it."""
    body = packet[:-ICRC_BYTES]
    for name, value in (lrh or {}).items():
        body = LRH[name].write(body, value)
    layout = unpack_smp(body[MAD_START:]).layout
    for name, value in smp.items():
        body = layout[name].write(body, value, MAD_START)
    return body + icrc(body)


@lru_cache(maxsize=16)
def _simulated(parameters: NodeParameters) -> tuple[Agent, Simulation]:
    agent = Agent(parameters)
    return agent, Simulation(agent)


class Bench:
    """One agent.

    Attributes:
        registers: what the bus reads, by address; the agent's writes change it, the tests may.
        holds: says of a cycle whether the test bus has an access in it.
        take_after: cycles that an offered packet waits before it is taken.
        at: what else happens at the beginning of a cycle.
    """

    def __init__(self, parameters: NodeParameters, identity: NodeIdentity = IDENTITY) -> None:
        self.agent, self._simulation = _simulated(parameters)
        self.parameters = parameters
        self.slot = parameters.vls
        self.is_switch = isinstance(parameters, SwitchParameters)
        self.identity = identity
        self.registers: dict[int, int] = {}
        self.holds: Callable[[int], bool] = lambda cycle: False
        self.take_after = 0
        self.at: dict[int, Callable[[], None]] = {}
        self.now = 0
        self.lease_second = LEASE_SECOND_AT_RESET
        # Looked up once: this is asked for in every cycle.
        self._bus, self._offer, self._available = self.agent.bus, self.agent.stream, self.agent.taking.available
        self._writes, self._reads, self._offered = self._bus.write, self._bus.read, self._offer.valid
        self._ctx: Any = None
        self._ticks: Any = None
        self._inputs: dict[int, int] = {}
        self._answers: dict[int, int] = {}
        self._work: Work | None = None
        self._step = 0
        self._stream_from: int | None = None
        self._words: list[int] = []
        self._length = 0
        self._held: set[int] = set()

    def run(self, script: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
        """Let a script act on the agent from reset on."""

        async def drive(ctx: Any) -> None:
            self._ctx = ctx
            self._ticks = aiter(ctx.tick())
            values = identity_values(self.identity)
            for name in self.agent.identity.signature.members:
                ctx.set(getattr(self.agent.identity, name), values[name])
            ctx.set(self.agent.lease_second, self.lease_second)
            await script(self)
            await self._ticks.aclose()

        self._simulation.run(drive)

    def drive(self, **inputs: int) -> None:
        """Set inputs of the agent, by their names in it or in its parts, in this cycle and after it."""
        for name, value in inputs.items():
            parts = (self.agent, self.agent.taking, self.agent.node_state)
            wire = next(getattr(part, name) for part in parts if name in part.signature.members)
            self._put(wire, value)

    def _put(self, wire: Any, value: int) -> None:
        """Every change costs time, and is one only if it changes something."""
        if self._inputs.get(id(wire), 0) != value:
            self._inputs[id(wire)] = value
            self._ctx.set(wire, value)

    def access_congestion(self, **access: int) -> None:
        """What the page of congestion control sees of the bus, in this cycle and after it."""
        self._ctx.set(self.agent.congestion, access)

    @property
    def available(self) -> bool:
        return bool(self._ctx.get(self._available))

    async def cycle(self) -> None:
        """The rest of this cycle: the bus and the stream."""
        ctx, bus, now = self._ctx, self._bus, self.now
        if now in self.at:
            self.at[now]()
        held = self.holds(now)
        self._put(self.agent.hold, held)
        read = self._answers.pop(now, None)
        self._put(bus.rvalid, read is not None)
        self._put(bus.rdata, read or 0)
        writes, reads = ctx.get(self._writes), ctx.get(self._reads)
        assert not (held and (writes or reads)), "the agent does not stand still"
        if writes or reads:
            assert self._work is not None
            step = now - self._work.start - sum(self._work.start <= cycle < now for cycle in self._held)
            address, value = ctx.get(bus.addr), ctx.get(bus.wdata)
            self._work.accesses.append(Access(self._work.numbers[step], address, value if writes else None))
            if writes:
                self.registers[address] = value
            else:
                self._answers[now + READ_LATENCY] = self.registers.get(address, 0)
        if held:
            self._held.add(now)
        self._stream()
        await anext(self._ticks)
        self.now += 1

    def _stream(self) -> None:
        ctx, stream, now = self._ctx, self._offer, self.now
        offered = ctx.get(self._offered)
        if not offered:
            self._stream_from = None
        self._put(self.agent.accepted, offered and self.take_after == now - (self._stream_from or now))
        taken = self._stream_from is not None and now > self._stream_from + self.take_after
        self._put(stream.ready, taken)
        if not offered:
            return
        assert self._work is not None
        if self._stream_from is None:
            self._length = ctx.get(stream.length)
            assert self._length in (72, 82)
            self._stream_from = now
            self._work.offered = now
            mask = ctx.get(self.agent.to_output)
            self._work.slot = ctx.get(self.agent.slot)
            self._work.outputs = tuple(bit for bit in range(len(self.agent.to_output)) if mask >> bit & 1)
            self._words = []
        elif taken:
            self._words.append(ctx.get(stream.data))
            if len(self._words) == self._length:
                self._work.data = b"".join(word.to_bytes(4, "big") for word in self._words)
                self._stream_from = None

    async def idle(self, cycles: int) -> None:
        for _ in range(cycles):
            await self.cycle()

    async def until(self, cycle: int) -> None:
        await self.idle(cycle - self.now)

    async def until_available(self) -> None:
        for _ in range(4000):
            if self.available:
                return
            await self.cycle()
        raise AssertionError("the agent does not come back")

    async def send(
        self,
        data: bytes,
        arrival: int = 1,
        *,
        slot: int | None = None,
        good: bool = True,
        words: int | None = None,
        scrapped: bool = False,
        cycles: int | None = None,
    ) -> Work:
        """Grant the agent a packet as soon as it is available, and see what becomes of it.

        `good`: it is not flagged bad; `words`: so many come before an early end; `scrapped`: none does.
        `cycles`: so many from T on, else until the agent is available again.
        """
        await self.until_available()
        await self.cycle()
        self.drive(taken=1)
        wires = self.agent.words
        numbers = self._numbers(data)
        all_words = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]
        come = all_words[: len(all_words) if words is None else words]
        if scrapped:
            await self.idle(FIRST_WORD - 2)  # in cycle x_0 + 3
            self.drive(taken=0, ended=1, good=0)
            self._work = Work(self.now + TO_STEP_0, numbers)
            await self.cycle()
        else:
            await self.idle(FIRST_WORD - 1)
            self.drive(taken=0)
            for index, word in enumerate(come):
                last = index == len(come) - 1
                self._put(wires.valid, 1)
                self._put(wires.data, word)
                self._put(wires.first, index == 0)
                self._put(wires.last, last)
                self._put(wires.slot, self.slot if slot is None else slot)
                self.drive(arrival=arrival, ended=last, good=last and good and words is None)
                if last:
                    self._work = Work(self.now + TO_STEP_0, numbers)
                await self.cycle()
        self._put(wires.valid, 0)
        self.drive(ended=0, good=0)
        return await self.finish(cycles)

    def _numbers(self, data: bytes) -> tuple[int, ...]:
        """Those of the steps of a packet's work, if it is answered."""
        if len(data) == 4 * 82:
            data = data[:8] + data[48:]
        mad = MAD_HEADER.unpack(data.ljust(MAD_START + MAD_HEADER.size_bytes, b"\0"), MAD_START)
        if mad.mgmt_class == MgmtClass.CONGESTION_CONTROL and self.is_switch:
            return of_cc_request(mad.method, mad.attribute_id)
        pma = mad.mgmt_class == MgmtClass.PERF
        all_ports = pma and data[MAD_START + 65 : MAD_START + 66] == b"\xff"
        laps = self.parameters.ports if all_ports and isinstance(self.parameters, SwitchParameters) else 1
        vls = self.parameters.vls
        return of_request(mad.method, mad.attribute_id, pma=pma, is_switch=self.is_switch, laps=laps, vls=vls)

    async def finish(self, cycles: int | None = None) -> Work:
        """Go on until the agent is available again, or to so many cycles after step 0."""
        work = self._work
        assert work is not None
        if cycles is None:
            await self.until_available()
        else:
            await self.until(work.start + cycles)
        work.free = self.now
        self._work = None
        return work

    async def trap(self, start: int) -> Work:
        """Wait for a trap whose step 0 is in cycle `start`."""
        self._work = Work(start, of_trap())
        await self.until(start)
        return await self.finish()

    async def smp(
        self,
        smp: Record,
        arrival: int = 1,
        slid: int = LID_PERMISSIVE,
        dlid: int = LID_PERMISSIVE,
        cycles: int | None = None,
    ) -> Work:
        """Send an SMP."""
        return await self.send(packet_bytes(smp, slid, dlid), arrival, cycles=cycles)

    async def get(self, attribute: int, modifier: int = 0, m_key: int = 0, arrival: int = 1) -> Work:
        """Send a Get."""
        return await self.smp(request(MadMethod.GET, attribute, modifier, m_key=m_key), arrival)

    async def set(self, attribute: int, data: bytes, modifier: int = 0, m_key: int = 0, arrival: int = 1) -> Work:
        """Send a Set."""
        return await self.smp(request(MadMethod.SET, attribute, modifier, data, m_key), arrival)


def request(
    method: MadMethod, attribute: int, modifier: int = 0, data: bytes = b"", m_key: int = 0, **fields: int
) -> Record:
    """A directed-route SMP that has come to its last node, over one hop."""
    smp = smp_request(method, attribute, modifier, data, transaction_id=0x0123_4567_89AB_CDEF, m_key=m_key, path=[1])
    return smp.replace(**{"hop_pointer": 1, **fields})
