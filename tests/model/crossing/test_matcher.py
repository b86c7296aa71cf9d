"""Queues and matching against a reading of sections 4 and 7 that makes every pass in every cycle."""

import random
from dataclasses import dataclass, field
from functools import partial

import pytest

from model.crossing.buffer import Buffer
from model.crossing.matcher import Matcher
from model.crossing.output import SWALLOWED, FlowFlags, Gate, Output
from model.crossing.queues import FifoInput, VoqInput
from model.kernel import NEVER, UPDATE, Kernel
from model.packet import DataTransmission, Packet
from tests.campaigns import first_of

WINDOW, MODULUS = 2048, 4096


@dataclass
class Load:
    """Packets (join cycle, input, output, slot, queue, n, need) and credits (cycle, output, slot, room).

    Attributes:
        oversize: packets that are, by place.
        ended: the first cycle in which a grant may count on a packet's having ended, by place.
    """

    inputs: int
    vls: int
    readers: int
    fifo: bool
    narrow: set[int]
    packets: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    credits: list[tuple[int, int, int, int | None]] = field(default_factory=list)
    oversize: set[int] = field(default_factory=set)
    ended: list[int] = field(default_factory=list)
    cycles: int = 3000


def random_load(seed: int, fifo: bool) -> Load:
    rng = random.Random(seed)
    inputs, vls = rng.choice([2, 3, 5]), rng.choice([1, 2, 4])
    readers = 1 if fifo else rng.choice([1, 2])
    narrow = {output for output in range(inputs) if rng.random() < 0.2}
    load = Load(inputs, vls, readers, fifo, narrow)
    for source in range(inputs):
        cycle = 0
        for _ in range(60):
            cycle += rng.choice([1, 2, 8, 40])
            place = len(load.packets)
            output, slot = rng.randrange(inputs), rng.randrange(vls + 1)
            queue = vls if slot == vls else rng.randrange(vls)
            n = rng.randrange(5, 12)
            load.packets.append((cycle, source, output, slot, queue if fifo else slot, n, rng.randrange(1, 9)))
            if slot < vls and rng.random() < 0.1:
                load.oversize.add(place)
            # An input receives one packet at a time.
            load.ended.append(cycle + rng.choice([1, 1, 5, 60]))
            cycle = load.ended[-1]
    for cycle in range(0, load.cycles, 9):
        slot = rng.randrange(vls + 1)
        room = rng.choice([0, 4, 30, WINDOW, WINDOW + 5, SWALLOWED] if slot < vls else [None, SWALLOWED])
        load.credits.append((cycle, rng.randrange(inputs), slot, room))
    return load


def grants_by_passes(load: Load) -> list[tuple[int, int, int, int]]:
    """(cycle, output, input, place of the packet in the load), straight from the contract."""
    size, vls = load.inputs, load.vls
    queues: dict[tuple[int, ...], list[int]] = {}
    for place, (_, source, output, slot, queue, _, _) in enumerate(load.packets):
        key = (source, queue) if load.fifo else (source, output, slot)
        queues.setdefault(key, []).append(place)
    granted: dict[int, int] = {}
    output_busy = [0] * size  # until the last read, which is in that cycle
    reads = [[(-1, -1)] * load.readers for _ in range(size)]  # first and last
    vl_ptr, out_ptr, queue_ptr = [0] * size, [0] * size, [0] * size
    in_ptr = [[0] * (vls + 1) for _ in range(size)]
    changes: dict[int, list[tuple[list[int], int, int]]] = {}  # of pointers, by the cycle in which they count
    room: list[list[int | None]] = [[*[0] * vls, None] for _ in range(size)]
    credits = {cycle: (output, slot, value) for cycle, output, slot, value in load.credits}
    offers: dict[int, list[tuple[int, int, dict[int, int]]]] = {}  # of the cycle before, by input
    result = []
    for g in range(load.cycles + 1):  # offers of the last cycle are accepted after it
        if g in credits:
            output, slot, value = credits[g]
            room[output][slot] = value
        for pointers, index, value in changes.pop(g, []):
            pointers[index] = value

        made_offer = {offer[0] for offered in offers.values() for offer in offered}
        accepts = dict.fromkeys(offers, 1)
        for source, offered in offers.items():
            output, slot, candidates = min(offered, key=lambda offer: (offer[0] - out_ptr[source]) % size)
            number = min(candidates, key=lambda q: (q - queue_ptr[source]) % vls if slot < vls else 0)
            place = candidates[number]
            granted[place] = g - 1
            result.append((g - 1, output, source, place))
            last_read = g + load.packets[place][5] * (4 if output in load.narrow else 1)
            output_busy[output] = last_read
            free = [r for r, (first, last) in enumerate(reads[source]) if first < g - 1 and last <= g - 1]
            reads[source][free[0]] = (g, last_read)
            changes.setdefault(g + 1, []).append((out_ptr, source, (output + 1) % size))
            changes.setdefault(g + 2, []).append((in_ptr[output], slot, (source + 1) % size))
            if slot < vls:
                changes.setdefault(g + 1, []).append((queue_ptr, source, (number + 1) % vls))
                # The VL order at g follows from what is visible two cycles before.
                changes.setdefault(g + 4, []).append((vl_ptr, output, (slot + 1) % vls))

        heads: dict[tuple[int, int, int], dict[int, int]] = {}
        for queue in queues.values():
            waiting = [place for place in queue if place not in granted]
            before = [granted[place] for place in queue if place in granted]
            if not waiting:
                continue
            joined, source, output, slot, number, _, need = load.packets[waiting[0]]
            visible = joined + 1 if all(cycle < joined - 1 for cycle in before) else before[-1] + 5
            readers = sum(not first < g < last for first, last in reads[source])
            if g < visible or readers <= accepts.get(source, 0):
                continue
            left = room[output][slot]
            if left == SWALLOWED or waiting[0] in load.oversize:
                last = max(place for place in queue if load.packets[place][0] < g - 1 or place == waiting[0])
                if load.ended[last] > g:
                    continue
            elif left is not None and (left - need) % MODULUS > WINDOW:
                continue
            heads.setdefault((source, output, slot), {})[number] = waiting[0]
        offers = {}
        for output in range(size):
            if output in made_offer or output_busy[output] > g or (output in load.narrow and g % 4 != 0):
                continue
            slots = [vls] + [(vl_ptr[output] + turn) % vls for turn in range(vls)]
            for slot in slots:
                sources = [(in_ptr[output][slot] + turn) % size for turn in range(size)]
                source = next((i for i in sources if (i, output, slot) in heads), None)
                if source is not None:
                    offers.setdefault(source, []).append((output, slot, heads[source, output, slot]))
                    break
    return result


class RoomsByHand(Gate):
    """Rooms as they were set last."""

    def __init__(self, vls):
        super().__init__(vls)
        self.rooms = [*[0] * vls, None]

    def room(self, slot):
        return self.rooms[slot]


class LoggedOutput(Output):
    """An output that writes its grants down."""

    def __init__(self, kernel, matcher, index, load, log):
        super().__init__(index, load.vls, RoomsByHand(load.vls), FlowFlags())
        self.pitch = 4 if index in load.narrow else 1
        self.kernel, self.matcher, self.log = kernel, matcher, log

    def grant(self, packet, reader):
        now = self.kernel.now
        self.log.append((now, self.index, packet.input, packet.lrh))
        sending = DataTransmission(packet, now, packet.slot, self.pitch, reader)
        self.busy_until = sending.last_read
        self.matcher.reads(sending)

    def grant_flow_control(self):
        raise AssertionError("no VL of these loads has anything to announce")

    def last_read(self, sending):
        """The matching knows what becomes available."""

    def end_early(self, sending, k):
        raise AssertionError("no packet of these loads is cut")

    def heads_shown(self, count):
        """Waiting is not counted here."""

    def rest(self):
        """Waiting is not counted here."""

    def offer_refused(self, slot):
        """Waiting is not counted here."""

    def credit(self, change):
        slot, value = change
        self.gate.rooms[slot] = value
        self.matcher.wake(1 << self.index)


def join(matcher, cycle, packet):
    matcher.join(packet, cycle)


def grants_by_events(load: Load) -> list[tuple[int, int, int, int]]:
    kernel = Kernel()
    matcher = Matcher(kernel, load.inputs, load.vls)
    log: list[tuple[int, int, int, int]] = []
    slots = load.vls + 1
    for index in range(load.inputs):
        buffer = Buffer([4000] * slots)
        if load.fifo:
            source = FifoInput(kernel, index, buffer, slots)
        else:
            source = VoqInput(kernel, index, matcher.size, buffer, load.readers, slots)
        matcher.add(source, LoggedOutput(kernel, matcher, index, load, log))
    for cycle, output, slot, value in load.credits:
        kernel.at(cycle, UPDATE, matcher.outputs[output].credit, (slot, value))
    for place, (cycle, source, output, slot, queue, n, need) in enumerate(load.packets):
        packet = Packet()
        packet.input, packet.output, packet.slot, packet.slot_in = source, output, slot, queue
        packet.n, packet.need, packet.lrh = n, need, place
        packet.oversize = place in load.oversize
        packet.ended_from = NEVER
        kernel.at(load.ended[place] - 1, UPDATE, matcher.ended, packet)
        # Some joins are known ahead, others in their cycle.
        kernel.at(cycle - place % 3, UPDATE, partial(join, matcher, cycle), packet)
    list(kernel.run(load.cycles))
    return log


@pytest.mark.parametrize("fifo", [False, True])
@pytest.mark.parametrize("seed", first_of(range(20), 8))
def test_grants_are_those_of_a_pass_in_every_cycle(seed, fifo):
    load = random_load(seed, fifo)
    expected = grants_by_passes(load)
    assert len(expected) > 50
    assert sorted(grants_by_events(load)) == sorted(expected)
