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
    "grants_and_waits",
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

    def ticks(self, exponent: int, start: int, end: int) -> int:
        """How many there are from a cycle on and before another, counted at once."""
        if exponent > 19:
            return 0
        start, length = max(start, self.epoch), 256 << exponent
        return len(range(start + (self.epoch - start) % length, end, length))


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
        self.granted = -2
        self.written = 0
        self.begun = 0  # by the last write, or by the end of a stall
        self.discards = 0
        self.next_discards: int | None = None  # visible in the next cycle, after a grant
        self.is_stalled_next = False
        self.stall_ticks: int | None = None  # of the stall, so far


class _Reading:
    def __init__(self, load: Load) -> None:
        self.load = load
        ports = load.inputs - 1
        self.hoq_life = [_NO_LIMIT] * ports
        self.stall_count = [0] * ports
        self.slots = {(output, slot): _Slot() for output in range(ports) for slot in range(load.vls)}
        self.hoq_life_before = [_NO_LIMIT] * ports  # visible in the cycle before
        # Of the current cycle and those before it, the current one last: the slots that are expired, and stalled.
        self.expired: list[set[tuple[int, int]]] = [set()] * 4
        self.stalled: list[set[tuple[int, int]]] = [set()] * 4

    def limit(self, output: int, cycle: int) -> int:
        return min(self.hoq_life[output], self.load.life_times[cycle])

    def begin(self, cycle: int) -> None:
        """What a grant and writes make visible in a cycle; then what is expired and stalled in it."""
        self.hoq_life_before = list(self.hoq_life)
        for state in self.slots.values():
            if state.next_discards is not None:
                state.discards, state.next_discards = state.next_discards, None
            if state.is_stalled_next:
                state.stall_ticks, state.is_stalled_next = 0, False
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
                        state.written = state.begun = cycle
                        state.discards, state.stall_ticks = 0, None
        self.expired = [*self.expired[1:], {key for key in self.slots if self._is_expired(*key, cycle)}]
        self.stalled = [*self.stalled[1:], {key for key, state in self.slots.items() if state.stall_ticks is not None}]

    def _is_expired(self, output: int, slot: int, cycle: int) -> bool:
        state = self.slots[output, slot]
        if state.head_since is None:
            return False
        t0 = max(state.head_since, state.granted + 2, state.begun)
        exponent = self.limit(output, cycle)
        if exponent > 19 or cycle - t0 <= 3 * 256 << exponent:
            return False
        return self.load.ticks(exponent, t0, cycle) >= 4

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
        return packet.oversize or key in self.expired[-3] or key in self.stalled[-3]

    def granted_before(self, packet: Offered, g: int) -> Discard | None:
        """Of a packet granted in the cycle before; also what the grant changes, which the next cycle shows."""
        key = packet.output, packet.slot
        state = self.slots[key]
        load = self.load
        of_hoq_life = self.hoq_life_before[packet.output] <= load.life_times[g]
        reason = None
        if key in self.stalled[-4]:
            reason = Discard.STALLED
        elif key in self.expired[-4]:
            reason = Discard.HOQ_LIFE if of_hoq_life else Discard.LIFE_TIME
        state.granted = g
        if state.written != g + 1:
            state.next_discards = state.discards + 1 if reason == Discard.HOQ_LIFE else 0
            count, limit = self.stall_count[packet.output], self.hoq_life[packet.output]
            if state.next_discards == count > 0 and limit <= 19:
                state.next_discards, state.is_stalled_next = 0, True
        seen = g + 2
        is_over = (
            packet.input != load.inputs - 1
            and load.life_times[seen] <= 19
            and g + 1 >= packet.ended
            and (load.life_ticks[seen] - load.life_ticks[packet.ended - 1]) % 32 >= 4
        )
        if packet.oversize:
            return Discard.NEIGHBOR_MTU
        return Discard.LIFE_TIME if is_over else reason

    def end(self, cycle: int) -> None:
        """Stalls of which this is the last cycle."""
        for (output, slot), state in self.slots.items():
            if (output, slot) in self.stalled[-1] and state.stall_ticks is not None:
                state.stall_ticks += self.load.is_tick(self.limit(output, cycle), cycle)
                if state.stall_ticks == 32:
                    state.stall_ticks, state.discards, state.begun = None, 0, cycle + 1


def grants_of(load: Load) -> list[Grant]:
    return grants_and_waits(load)[0]


def grants_and_waits(load: Load) -> tuple[list[Grant], dict[tuple[int, int], set[int]]]:
    """And the cycles in which each (output, slot) waits (section 8.3), the ports being Active throughout."""
    size, vls, agent = load.inputs, load.vls, load.inputs - 1
    queues: dict[tuple[int, ...], list[int]] = {}
    for place, packet in enumerate(load.packets):
        key = (packet.input, packet.queue) if load.fifo else (packet.input, packet.output, packet.slot)
        queues.setdefault(key, []).append(place)
    first = dict.fromkeys(queues, 0)
    granted_before = dict.fromkeys(queues, -9)
    output_busy = [0] * size  # until it is available, which is in that cycle
    reads = [[(-9, -9)] * load.readers for _ in range(size)]  # x_0, and when the reader is free again
    vl_ptr, out_ptr, queue_ptr = [0] * size, [0] * size, [0] * size
    in_ptr = [[0] * vls for _ in range(size)]
    changes: dict[int, list[tuple[list[int], int, int]]] = {}  # of pointers, by the cycle in which they count
    left: list[tuple[tuple[int, ...], int]] = []  # queues that a packet has left, and when it was granted
    offers: dict[int, list[tuple[int, int, dict[int, tuple[int, ...]]]]] = {}  # of the cycle before, by input
    rooms = [[NO_ROOM] * vls for _ in range(agent)]
    rooms_at = {cycle: (output, slot, room) for cycle, output, slot, room in load.rooms}
    limits = _Reading(load)
    result: list[Grant] = []
    sending: dict[tuple[int, int], int] = {}  # of (output, slot), the last busy cycle of its last packet
    waits: dict[tuple[int, int], set[int]] = {}
    for g in range(load.epoch, load.cycles + 1):  # offers of the last cycle are accepted after it
        limits.begin(g)
        if g in rooms_at:
            output, slot, room = rooms_at[g]
            rooms[output][slot] = room
        for pointers, index, value in changes.pop(g, []):
            pointers[index] = value
        for key, cycle in left:
            first[key] += 1
            granted_before[key] = cycle
        left = []

        of_slots = {offer[:2] for offered in offers.values() for offer in offered}
        made_offer = {output for output, _ in of_slots}
        accepts = dict.fromkeys(offers, 1)
        for source, offered in offers.items():
            output, slot, candidates = min(offered, key=lambda offer: (offer[0] - out_ptr[source]) % size)
            number = min(candidates, key=lambda q: (q - queue_ptr[source]) % vls)
            key = candidates[number]
            place = queues[key][first[key]]
            packet = load.packets[place]
            left.append((key, g - 1))
            reason = None if output == agent else limits.granted_before(packet, g - 1)
            result.append(Grant(g - 1, output, source, place, reason))
            over = g + packet.n * (4 if output in load.narrow else 1)
            if reason is not None or (packet.bad and g >= packet.ended):
                over = g + 3
            output_busy[output] = over
            sending[output, slot] = g + 1 if over == g + 3 else over
            free = [r for r, (x_0, last) in enumerate(reads[source]) if x_0 < g - 1 and last <= g - 1]
            reads[source][free[0]] = (g, over)
            changes.setdefault(g + 1, []).append((out_ptr, source, (output + 1) % size))
            changes.setdefault(g + 1, []).append((queue_ptr, source, (number + 1) % vls))
            changes.setdefault(g + 2, []).append((in_ptr[output], slot, (source + 1) % size))
            # The VL order follows from what is visible two cycles before.
            changes.setdefault(g + 4, []).append((vl_ptr, output, (slot + 1) % vls))

        visible: set[tuple[int, int]] = set()
        heads: dict[tuple[int, int, int], dict[int, tuple[int, ...]]] = {}
        for key, queue in queues.items():
            if first[key] == len(queue):
                continue
            packet = load.packets[queue[first[key]]]
            before = granted_before[key]
            if g < (packet.joins + 1 if before < packet.joins - 1 else before + 5):
                continue
            visible.add((packet.output, packet.slot))
            readers = sum(not x_0 < g < last for x_0, last in reads[packet.input])
            if readers <= accepts.get(packet.input, 0):
                continue
            if packet.output == agent:
                pass
            elif limits.is_swallowed(packet):
                head = queue[first[key]]
                last = max(place for place in queue if load.packets[place].joins < g - 1 or place == head)
                if load.packets[last].ended > g:
                    continue
            elif (rooms[packet.output][packet.slot] - packet.need) % _MODULUS > _WINDOW:
                continue
            heads.setdefault((packet.input, packet.output, packet.slot), {})[packet.queue] = key
        limits.heads(g, visible)
        for at in visible - of_slots:
            if sending.get(at, -1) < g:
                waits.setdefault(at, set()).add(g)
        offers = {}
        for output in range(size):
            is_phase = output not in load.narrow or (g - load.epoch) % 4 == 0
            if output in made_offer or output_busy[output] > g or not is_phase:
                continue
            for slot in ((vl_ptr[output] + turn) % vls for turn in range(vls)):
                sources = [(in_ptr[output][slot] + turn) % size for turn in range(size)]
                source = next((i for i in sources if (i, output, slot) in heads), None)
                if source is not None:
                    offers.setdefault(source, []).append((output, slot, heads[source, output, slot]))
                    break
        limits.end(g)
    return result, waits
