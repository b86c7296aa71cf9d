"""Random loads of a switch's crossing, and sections 4, 7 and 7.2 of docs/pipeline.md read cycle by cycle.

What the reading does not have: VL15, VL arbitration, flow control packets, credits that are spent.
"""

import random
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from wire.trace import Discard

__all__ = [
    "HOQ_LIFE",
    "LIFE_TIME",
    "STALL_COUNT",
    "Grant",
    "Load",
    "Offered",
    "Write",
    "grants_of",
    "random_load",
]

HOQ_LIFE, STALL_COUNT, LIFE_TIME = range(3)
NO_ROOM = 0
_WINDOW, _MODULUS = 2048, 4096
_NO_LIMIT = 31


class Offered(NamedTuple):
    """A packet: when it joins and from which cycle on a grant may count on its end, and where it goes."""

    joins: int
    ended: int
    input: int
    queue: int
    output: int
    slot: int
    n: int
    need: int
    oversize: bool
    bad: bool


class Write(NamedTuple):
    """A register's, with the cycle in which it is visible. LIFE_TIME has no output."""

    visible: int
    register: int
    output: int
    value: int


class Grant(NamedTuple):
    """Of the packet at a place in the load; what it is discarded for, if it is."""

    cycle: int
    output: int
    input: int
    place: int
    discard: Discard | None


@dataclass
class Load:
    """The last input and the last output are the agent's.

    Attributes:
        epoch: the node's cycle 0.
        narrow: outputs of 1X.
        rooms: (cycle, output, slot, room), what CL - TBS is from then on.
    """

    epoch: int
    inputs: int
    vls: int
    readers: int
    fifo: bool
    narrow: set[int]
    cycles: int
    packets: list[Offered] = field(default_factory=list)
    rooms: list[tuple[int, int, int, int]] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)

    @cached_property
    def life_times(self) -> list[int]:
        """LIFE_TIME as visible in each cycle."""
        values = [_NO_LIMIT] * (self.cycles + 4)
        for write in self.writes:
            if write.register == LIFE_TIME:
                values[write.visible :] = [write.value] * (len(values) - write.visible)
        return values

    @cached_property
    def life_ticks(self) -> list[int]:
        """L of each cycle, not yet modulo 32."""
        ticks = (self.is_tick(value, cycle) for cycle, value in enumerate(self.life_times))
        return list(accumulate(ticks, initial=0))

    def is_tick(self, exponent: int, cycle: int) -> bool:
        cycle -= self.epoch
        return cycle >= 0 and exponent <= 19 and cycle % (256 << exponent) == 0


def random_load(seed: int, fifo: bool) -> Load:
    rng = random.Random(seed)
    inputs, vls = rng.choice([2, 3, 4]), rng.choice([1, 2])
    load = Load(
        epoch=rng.choice([0, 1, 7, 300]),
        inputs=inputs,
        vls=vls,
        readers=1 if fifo else rng.choice([1, 2]),
        fifo=fifo,
        narrow={output for output in range(inputs - 1) if rng.random() < 0.2},
        cycles=16_000,
    )
    busy = rng.choice([60, 200, 900])
    for source in range(inputs):
        cycle = load.epoch
        while cycle < load.cycles - 200:
            cycle += rng.choice([1, 3, rng.randrange(1, busy), rng.randrange(1, 4 * busy)])
            output, slot = rng.randrange(inputs), rng.randrange(vls)
            ended = cycle + rng.choice([1, 1, 5, 60, 500])
            queue = rng.randrange(vls) if fifo else slot
            n = rng.choice([5, 6, 12, 12, 300])
            is_port = output < inputs - 1
            oversize, bad = is_port and rng.random() < 0.05, rng.random() < 0.1
            load.packets.append(
                Offered(cycle, ended, source, queue, output, slot, n, rng.randrange(1, 9), oversize, bad)
            )
            cycle = ended
    share = rng.choice([0.3, 0.6, 0.95])
    cycle = load.epoch
    while cycle < load.cycles:
        room = NO_ROOM if rng.random() < share else rng.choice([4, 30])
        load.rooms.append((cycle, rng.randrange(inputs - 1), rng.randrange(vls), room))
        cycle += rng.choice([100, 1500])
    load.writes = _random_writes(rng, load)
    return load


def _random_writes(rng: random.Random, load: Load) -> list[Write]:
    """Most are near a tick, some follow one another without a gap."""
    values = {HOQ_LIFE: [0, 0, 0, 1, 31], STALL_COUNT: [0, 1, 1, 2, 7], LIFE_TIME: [0, 1, 2, 19, 31, 31]}
    seldom = rng.choice([2, 8, 16])
    writes = []
    cycle = load.epoch + 2
    while cycle < load.cycles:
        register = rng.randrange(3)
        writes.append(Write(cycle, register, rng.randrange(load.inputs - 1), rng.choice(values[register])))
        if rng.random() < 0.6:
            cycle += rng.choice([1, 2, 3])
        else:
            cycle += 256 * rng.randrange(1, 1 + seldom)
            cycle += -(cycle - load.epoch) % 256 + rng.randrange(8)
    return writes


class _Slot:
    """What section 7.2 keeps of an output's data slot."""

    def __init__(self) -> None:
        self.head_since: int | None = None  # in every cycle from it on there has been a visible head
        self.granted = -1
        self.begun = 0  # by the last write, or by the end of a stall
        self.discards = 0
        self.stall_ticks: int | None = None  # of the stall, so far


class _Reading:
    def __init__(self, load: Load) -> None:
        self.load = load
        ports = load.inputs - 1
        self.hoq_life = [_NO_LIMIT] * ports
        self.stall_count = [0] * ports
        self.slots = {(output, slot): _Slot() for output in range(ports) for slot in range(load.vls)}
        # Of the last three cycles: the slots that are expired, and stalled.
        self.expired: list[set[tuple[int, int]]] = [set()] * 3
        self.stalled: list[set[tuple[int, int]]] = [set()] * 3

    def limit(self, output: int, cycle: int) -> int:
        return min(self.hoq_life[output], self.load.life_times[cycle])

    def begin(self, cycle: int) -> None:
        """Writes that are visible in a cycle; then what is expired and stalled in it."""
        for write in self.load.writes:
            if write.visible == cycle:
                if write.register == LIFE_TIME:
                    if self.load.life_times[cycle] == (self.load.life_times[cycle - 1] if cycle else 31):
                        continue
                else:
                    held = self.hoq_life if write.register == HOQ_LIFE else self.stall_count
                    if held[write.output] == write.value:
                        continue
                    held[write.output] = write.value
                for (output, _), state in self.slots.items():
                    if write.register == LIFE_TIME or output == write.output:
                        state.begun, state.discards, state.stall_ticks = cycle, 0, None
        self.expired = [*self.expired[1:], {key for key in self.slots if self._is_expired(*key, cycle)}]
        self.stalled = [*self.stalled[1:], {key for key, state in self.slots.items() if state.stall_ticks is not None}]

    def _is_expired(self, output: int, slot: int, cycle: int) -> bool:
        state = self.slots[output, slot]
        if state.head_since is None:
            return False
        t0 = max(state.head_since, state.granted + 1, state.begun)
        exponent = self.limit(output, cycle)
        if exponent > 19 or cycle - t0 <= 3 * 256 << exponent:
            return False
        return sum(self.load.is_tick(exponent, c) for c in range(t0, cycle)) >= 4

    def heads(self, cycle: int, visible: set[tuple[int, int]]) -> None:
        """The slots with a visible head in a cycle."""
        for key, state in self.slots.items():
            if key not in visible:
                state.head_since = None
            elif state.head_since is None:
                state.head_since = cycle

    def is_swallowed(self, packet: Offered) -> bool:
        """By what was visible two cycles before."""
        key = packet.output, packet.slot
        return packet.oversize or key in self.expired[0] or key in self.stalled[0]

    def granted(self, packet: Offered, cycle: int) -> Discard | None:
        """Also what the grant changes, which the next cycle shows."""
        key = packet.output, packet.slot
        state = self.slots[key]
        load = self.load
        of_hoq_life = self.hoq_life[packet.output] <= load.life_times[cycle]
        reason = None
        if key in self.stalled[0]:
            reason = Discard.STALLED
        elif key in self.expired[0]:
            reason = Discard.HOQ_LIFE if of_hoq_life else Discard.LIFE_TIME
        state.granted = cycle
        if reason == Discard.HOQ_LIFE:
            state.discards += 1
            if state.discards == self.stall_count[packet.output] and self.hoq_life[packet.output] <= 19:
                state.stall_ticks = 0
        else:
            state.discards = 0
        seen = cycle + 2
        is_over = (
            packet.input != load.inputs - 1
            and load.life_times[seen] <= 19
            and cycle + 1 >= packet.ended
            and (load.life_ticks[seen] - load.life_ticks[packet.ended - 1]) % 32 >= 4
        )
        if packet.oversize:
            return Discard.NEIGHBOR_MTU
        return Discard.LIFE_TIME if is_over else reason

    def end(self, cycle: int) -> None:
        """Stalls of which this is the last cycle."""
        for (output, slot), state in self.slots.items():
            if (output, slot) in self.stalled[2] and state.stall_ticks is not None:
                state.stall_ticks += self.load.is_tick(self.limit(output, cycle), cycle)
                if state.stall_ticks == 32:
                    state.stall_ticks, state.discards, state.begun = None, 0, cycle + 1


def grants_of(load: Load) -> list[Grant]:
    size, vls, agent = load.inputs, load.vls, load.inputs - 1
    queues: dict[tuple[int, ...], list[int]] = {}
    for place, packet in enumerate(load.packets):
        key = (packet.input, packet.queue) if load.fifo else (packet.input, packet.output, packet.slot)
        queues.setdefault(key, []).append(place)
    first = dict.fromkeys(queues, 0)
    granted_before = dict.fromkeys(queues, -9)
    output_free = [0] * size
    reader_free = [[0] * load.readers for _ in range(size)]
    vl_ptr, out_ptr, queue_ptr = [0] * size, [0] * size, [0] * size
    in_ptr = [[0] * vls for _ in range(size)]
    rooms = [[NO_ROOM] * vls for _ in range(agent)]
    rooms_at = {cycle: (output, slot, room) for cycle, output, slot, room in load.rooms}
    limits = _Reading(load)
    result: list[Grant] = []
    for g in range(load.epoch, load.cycles):
        limits.begin(g)
        if g in rooms_at:
            output, slot, room = rooms_at[g]
            rooms[output][slot] = room
        visible: set[tuple[int, int]] = set()
        heads: dict[tuple[int, int, int], dict[int, tuple[int, ...]]] = {}
        for key, queue in queues.items():
            if first[key] == len(queue):
                continue
            packet = load.packets[queue[first[key]]]
            before = granted_before[key]
            if g < (packet.joins + 1 if before < packet.joins else before + 3):
                continue
            visible.add((packet.output, packet.slot))
            if min(reader_free[packet.input]) > g:
                continue
            if packet.output == agent:
                pass
            elif limits.is_swallowed(packet):
                last = max(place for place in queue if load.packets[place].joins < g)
                if load.packets[last].ended > g:
                    continue
            elif (rooms[packet.output][packet.slot] - packet.need) % _MODULUS > _WINDOW:
                continue
            heads.setdefault((packet.input, packet.output, packet.slot), {})[packet.queue] = key
        limits.heads(g, visible)
        offers: dict[int, list[tuple[int, int]]] = {}
        for output in range(size):
            if output_free[output] > g or (output in load.narrow and (g - load.epoch) % 4 != 0):
                continue
            for slot in ((vl_ptr[output] + turn) % vls for turn in range(vls)):
                sources = [(in_ptr[output][slot] + turn) % size for turn in range(size)]
                source = next((i for i in sources if (i, output, slot) in heads), None)
                if source is not None:
                    offers.setdefault(source, []).append((output, slot))
                    break
        for source, offered in offers.items():
            output, slot = min(offered, key=lambda offer: (offer[0] - out_ptr[source]) % size)
            candidates = heads[source, output, slot]
            number = min(candidates, key=lambda q: (q - queue_ptr[source]) % vls)
            key = candidates[number]
            place = queues[key][first[key]]
            packet = load.packets[place]
            first[key] += 1
            granted_before[key] = g
            reason = None if output == agent else limits.granted(packet, g)
            result.append(Grant(g, output, source, place, reason))
            over = g + 1 + packet.n * (4 if output in load.narrow else 1)
            if reason is not None or (packet.bad and g + 1 >= packet.ended):
                over = g + 3
            output_free[output] = over
            reader = min(r for r in range(load.readers) if reader_free[source][r] <= g)
            reader_free[source][reader] = over
            in_ptr[output][slot], out_ptr[source] = (source + 1) % size, (output + 1) % size
            vl_ptr[output] = (slot + 1) % vls
            queue_ptr[source] = (number + 1) % vls
        limits.end(g)
    return result
