"""Packets in and out of one input's store: every row, in the cycle of docs/pipeline.md, section 8.1."""

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from rtl.crossing.causes import NOT_SWALLOWED, cause_of
from rtl.crossing.store import PacketStore
from rtl.crossing.time_limits import clock_of
from rtl.widths import NEED_BITS
from tests.rtl.simulation import Simulation
from wire.packet import blocks_of_words
from wire.trace import Discard

POOLS = (20, 6)
OUTPUTS = 3
CREDITED = 2
WIDE = 0b011
CYCLES = 4000

# Of a packet that is over before its last read, the cycles from that row's read on until its reader is available.
AFTER_SCRAP = 3
AFTER_EARLY_END = 3
X1_GRANT_PHASE = 0

AT_OUTPUT = (Discard.INACTIVE, Discard.STALLED, Discard.HOQ_LIFE, Discard.LIFE_TIME)
"""Reasons that an output may have. Of VL15 only the first."""

ALWAYS = (1 << NEED_BITS) - 1
"""Room that a head of any size may go by."""


class Life(NamedTuple):
    """What is visible in a cycle: whether packets have a life time, and its ticks."""

    limits: bool
    now: int


@dataclass
class Packet:
    n: int
    end: int  # index of its end row
    bad: bool
    slot: int
    output: int
    accepted: bool
    number: int
    cycle_of_end: int = 10**9  # in which its end row is stored
    stamp: int = 0
    joined: bool = False
    oversize: bool = False
    cause: int = NOT_SWALLOWED  # at its output, once it is granted

    @property
    def need(self) -> int:
        return blocks_of_words(self.n)

    def row(self, index: int) -> int:
        """As it is stored."""
        return self.number << 12 | index

    def crossing_row(self, index: int) -> int:
        """As it leaves: row 0 has the packet's blocks in place of SDP."""
        return self.row(index) if index else self.need << 24 | self.row(0) & 0xFFFFFF

    def reason(self, life: Life) -> Discard | None:
        """Why it is swallowed, if it is, by what LIFE_TIME's ticks are in x_0 + 1."""
        if self.slot == 0 and self.oversize:
            return Discard.NEIGHBOR_MTU
        if self.cause == cause_of(Discard.INACTIVE):
            return Discard.INACTIVE
        if self.slot == 0 and self.output < CREDITED and life.limits and (life.now - self.stamp) % 32 >= 4:
            return Discard.LIFE_TIME
        return None if self.cause == NOT_SWALLOWED else Discard(self.cause - 1)


@dataclass
class Reading:
    """One reader's packet, row by row."""

    packet: Packet
    first_read: int
    step: int
    row: int = 0
    over_at: int | None = None  # x_k of an early end or a scrap
    scrapped: bool = False  # or swallowed

    def reads(self, cycle: int) -> bool:
        since = cycle - self.first_read
        return self.over_at is None and since >= 0 and since % self.step == 0

    @property
    def last_read(self) -> int:
        """x_n, if the packet goes on for so long."""
        return self.first_read + self.step * self.packet.n

    @property
    def available_from(self) -> int:
        if self.over_at is None:
            return self.last_read
        return min(self.over_at + (AFTER_SCRAP if self.scrapped else AFTER_EARLY_END), self.last_read)

    @property
    def release(self) -> int:
        """y, the cycle in which the release is asked for."""
        return self.last_read + 1 if self.over_at is None else self.over_at + 2


@dataclass
class Reference:
    """What the store must do in each cycle, given what was stored and taken up."""

    readers: list[Reading | None]
    lives: list[Life]
    room: list[int] = field(default_factory=lambda: list(POOLS))
    rows: dict[int, list[tuple[int, int, int, bool, bool, bool]]] = field(default_factory=lambda: defaultdict(list))
    releases: dict[int, tuple[int, Packet]] = field(default_factory=dict)  # by reader: asked for in cycle y
    scraps: int = 0
    swallowed: set[Discard] = field(default_factory=set)
    early_ends: set[tuple[int, int]] = field(default_factory=set)  # (step, rows that did not come)

    def free(self, cycle: int) -> list[int]:
        """Readers that are idle, take up a packet in this cycle, or issue their last read."""
        return [
            number
            for number, reading in enumerate(self.readers)
            if reading is None or cycle == reading.first_read or cycle >= reading.available_from
        ]

    def held(self, cycle: int) -> set[int]:
        """Outputs that are not available from the cycle after x_0 on."""
        readings = (reading for reading in self.readers if reading is not None)
        return {reading.packet.output for reading in readings if reading.first_read < cycle < reading.available_from}

    def step(self, cycle: int) -> None:
        """What happens in a cycle in which packets have been taken up."""
        for number in sorted(self.releases):
            asked, packet = self.releases[number]
            if asked <= cycle:
                self.room[packet.slot] += packet.need
                del self.releases[number]
                break
        for number, reading in enumerate(self.readers):
            if reading is None:
                continue
            packet = reading.packet
            if reading.reads(cycle):
                row = reading.row
                scrap = row == 0 and packet.bad and packet.cycle_of_end < cycle
                swallowed = row == 0 and not scrap and packet.cycle_of_end < cycle
                reason = packet.reason(self.lives[cycle + 1]) if swallowed else None
                last = row == packet.end or reason is not None
                bad = last and packet.bad and not scrap
                data = packet.crossing_row(row)
                if reason is not None:
                    data = data & ~(7 << 16) | reason << 16
                    self.swallowed.add(reason)
                self.rows[cycle + 1].append((number, packet.output, data, last, bad, scrap))
                reading.row += 1
                if scrap or (last and row < packet.n):
                    reading.over_at = cycle
                    reading.scrapped = scrap or reason is not None
                    self.scraps += scrap
                    if not reading.scrapped:
                        self.early_ends.add((reading.step, packet.n - row))
            if cycle == reading.release - 1:
                self.releases[number] = (reading.release, packet)
            if cycle >= reading.available_from:
                self.readers[number] = None


def lives_of(rng: random.Random) -> list[Life]:
    """Ticks that come fast at times and not at all at others."""
    found = [Life(True, 0)]
    while len(found) <= CYCLES:
        limits, chance = rng.random() < 0.8, rng.choice((0, 0.01, 0.1))
        for _ in range(rng.randrange(300)):
            found.append(Life(limits, (found[-1].now + (limits and rng.random() < chance)) % 32))
    return found


Queues = dict[tuple[int, int], list[Packet]]
"""Packets that have joined, by slot and, with `voq`, output."""


class Outputs:
    """The outputs' side: what they offer, which packet is taken, and what comes to them of it."""

    def __init__(
        self, dut: PacketStore, reference: Reference, queues: Queues, grant_chance: float, rng: random.Random
    ) -> None:
        self._dut = dut
        self._reference = reference
        self._queues = queues
        self._grant_chance = grant_chance
        self._rng = rng
        self._offers: dict[int, int] = {}  # of the cycle before: the slot of each output that made one
        self._out_ptr = 0
        self._ready: list[int] = []  # readers that were free then, and took up nothing
        self._reads = [0] * dut.readers  # mask of the output for which each reader had a row due in the cycle before
        self._taken: Packet | None = None  # in this cycle
        self._taken_before: Packet | None = None  # its row 0 crosses

    def accept(self, ctx: Any, cycle: int) -> None:
        """One of the offers is accepted: x_0. Causes of outputs that made none are anything."""
        crossing, rng = self._dut.crossing, self._rng
        offers = self._offers
        self._taken_before, self._taken = self._taken, None
        ctx.set(crossing.offers, sum(1 << output for output in offers))
        assert ctx.get(crossing.accepted).bit_count() == bool(offers)
        if offers:
            self._taken = self._take(ctx, cycle)
        for output, cause in enumerate(crossing.causes):
            is_taken = self._taken is not None and self._taken.output == output
            ctx.set(cause, self._taken.cause if is_taken else rng.randrange(1 << len(cause)))

    def _take(self, ctx: Any, cycle: int) -> Packet:
        rng = self._rng
        output = min(self._offers, key=lambda output: (output - self._out_ptr) % OUTPUTS)
        self._out_ptr = (output + 1) % OUTPUTS
        assert ctx.get(self._dut.crossing.accepted) == 1 << output
        packet = self._queues[self._offers[output], output if self._dut.queueing == "voq" else 0].pop(0)
        assert packet.output == output, "a head of another output was requested"
        # What is swallowed at its output has ended.
        if output < CREDITED and packet.cycle_of_end < cycle - 1 and rng.random() < 0.5:
            packet.cause = cause_of(rng.choice(AT_OUTPUT if packet.slot == 0 else AT_OUTPUT[:1]))
        assert self._reference.readers[self._ready[0]] is None
        self._reference.readers[self._ready[0]] = Reading(packet, cycle, 1 if WIDE >> output & 1 else 4)
        return packet

    def compare_rows(self, ctx: Any, cycle: int) -> None:
        """What the readers give is what they must."""
        crossing, before = self._dut.crossing, self._taken_before
        seen = []
        for reader, to in enumerate(self._reads):
            row = crossing.rows[reader]
            if to and (ctx.get(row.valid) or ctx.get(row.bad)):
                # What has outlived its life time is told beside the row, which says what else there is.
                outlived = before is not None and to == 1 << before.output and bool(ctx.get(crossing.outlived))
                crossed = ctx.get(row.data)
                if outlived:
                    crossed = crossed & ~(7 << 16) | Discard.LIFE_TIME << 16
                last = bool(ctx.get(row.last)) or outlived
                scrap = not ctx.get(row.valid)
                bad = last and bool(ctx.get(row.bad))
                seen.append((reader, to.bit_length() - 1, crossed, last, bad, scrap))
        self._reads = [ctx.get(to) for to in crossing.to_output]
        expected = self._reference.rows.pop(cycle, [])
        assert [(*row[:2], row[5]) for row in seen] == [(*row[:2], row[5]) for row in expected], f"cycle {cycle}"
        assert [row for row in seen if not row[5]] == [row for row in expected if not row[5]], f"cycle {cycle}"

    def offer(self, ctx: Any, cycle: int) -> None:
        """Offers, if the input and the output are available. Slots of outputs that make none are anything."""
        crossing, reference, offers = self._dut.crossing, self._reference, self._offers
        held = reference.held(cycle)
        assert {output for output in range(OUTPUTS) if ctx.get(crossing.holds) >> output & 1} == held
        free = reference.free(cycle)
        is_available = len(free) > bool(offers)
        are_free = ctx.get(crossing.several_free if offers else crossing.some_free)
        assert bool(are_free) == is_available, f"cycle {cycle}"
        choices = {
            output: slot
            for output in range(OUTPUTS)
            for slot in range(2)
            if ctx.get(crossing.heads.requests[slot]) >> output & 1
            and output not in held
            and output not in offers
            and (WIDE >> output & 1 or cycle % 4 == X1_GRANT_PHASE)
        }
        self._ready = [number for number in free if self._taken is None or number != self._ready[0]]
        self._offers = {}
        if choices and is_available and self._rng.random() < self._grant_chance:
            offering = self._rng.sample(sorted(choices), self._rng.randint(1, len(choices)))
            self._offers = {output: choices[output] for output in offering}
        for output in range(OUTPUTS):
            slot = self._offers.get(output, self._rng.randrange(2))
            ctx.set(crossing.heads.slots_offered[output], 1 << slot)


class Arrivals:
    """The port's side: packets that come in row by row, from a narrow link in every fourth cycle."""

    def __init__(
        self, dut: PacketStore, reference: Reference, queues: Queues, bad_chance: float, rng: random.Random
    ) -> None:
        self._dut = dut
        self._reference = reference
        self._queues = queues
        self._bad_chance = bad_chance
        self._rng = rng
        self._packet: Packet | None = None  # that comes in
        self._begun = 0
        self._row = 0
        self._narrow = False
        self._number = 0
        self._idle = 0
        self._accepting: Packet | None = None
        self._joining: Packet | None = None
        self.ended: list[Packet] = []
        self.cancelled = 0

    def step(self, ctx: Any, cycle: int, room: list[int]) -> None:
        """What joins, is accepted and is stored in a cycle in which there is so much room."""
        self._account(ctx)
        self._join(ctx)
        if self._packet is None and self._idle == 0:
            self._begin(cycle)
        elif self._packet is None:
            self._idle -= 1
        packet = self._packet
        if packet is None:
            return
        since = cycle - self._begun
        header_at = 3 if self._narrow else 0  # h+1, row 0 being written two cycles after it came
        if since == header_at and packet.end > 1 and packet.need <= room[packet.slot]:
            packet.accepted = self._rng.random() < 0.9
            if packet.accepted:
                self._accepting = packet
                if not self._narrow:
                    self._joining = packet
        if not self._narrow or since % 4 == 0:
            self._write(ctx, packet, cycle)

    def _account(self, ctx: Any) -> None:
        packet, self._accepting = self._accepting, None
        if packet is not None:
            fill = self._dut.fill
            ctx.set(fill.accept, 1)
            ctx.set(fill.accept_slot, packet.slot)
            ctx.set(fill.accept_need, packet.need)
            self._reference.room[packet.slot] -= packet.need

    def _join(self, ctx: Any) -> None:
        packet, self._joining = self._joining, None
        if packet is not None:
            dut = self._dut
            ctx.set(dut.join, 1)
            ctx.set(dut.packet.pool, packet.slot)
            ctx.set(dut.packet.words, packet.n)
            ctx.set(dut.packet.need, packet.need)
            ctx.set(dut.packet.oversize, packet.oversize)
            ctx.set(dut.packet.output, packet.output)
            ctx.set(dut.packet.slot, packet.slot)
            packet.joined = True
            self._queues[packet.slot, packet.output if dut.queueing == "voq" else 0].append(packet)

    def _begin(self, cycle: int) -> None:
        rng = self._rng
        n = rng.choice((5, 6, 14, 15, 16, 17, 31, 32, rng.randrange(5, 80)))
        slot = int(rng.random() < 0.2)
        end = n if rng.random() < 0.5 else rng.choice((n - 3, n - 2, n - 1, rng.randrange(1, n)))
        bad = end < n or rng.random() < self._bad_chance
        self._packet = packet = Packet(n, end, bad, slot, rng.randrange(OUTPUTS), False, self._number)
        packet.oversize = packet.output < CREDITED and rng.random() < 0.2
        self._number += 1
        self._row = 0
        self._narrow = rng.random() < 0.2
        self._begun = cycle

    def _write(self, ctx: Any, packet: Packet, cycle: int) -> None:
        row, last, write = self._row, self._row == packet.end, self._dut.fill.write
        self._row += 1
        ctx.set(write.valid, 1)
        ctx.set(write.data, packet.row(row))
        ctx.set(write.index, row)
        ctx.set(write.first, row == 0)
        ctx.set(write.last, last)
        ctx.set(write.bad, packet.bad)
        ctx.set(write.accepted, packet.accepted and row > 1)
        ctx.set(write.slot, packet.slot)
        ctx.set(write.n, packet.n)
        ctx.set(write.need, packet.need)
        if not last:
            return
        # Of narrow packets all that is good joins when it is whole, the rest is cancelled.
        packet.cycle_of_end, packet.stamp = cycle, self._reference.lives[cycle].now
        if packet.accepted and self._narrow and packet.bad:
            self.cancelled += 1
            ctx.set(self._dut.fill.cancel, 1)
            self._reference.room[packet.slot] += packet.need
        elif packet.accepted and self._narrow:
            self._joining = packet
        self.ended.append(packet)
        self._packet = None
        self._idle = self._rng.choice((0, 0, 0, 1, 5, 40, 80))


@pytest.mark.parametrize(
    ("queueing", "readers", "seed"), [("voq", 2, 4), pytest.param("voq", 1, 1, marks=pytest.mark.deep), ("fifo", 1, 3)]
)
@pytest.mark.parametrize(("pace", "aging"), [("eager", True), ("rare", False), ("late", False), ("late", True)])
def test_rows_leave_as_they_came_and_blocks_return(
    queueing: Any, readers: int, seed: int, pace: str, aging: bool
) -> None:
    print(f"seed {seed}")
    grant_chance, bad_chance = {"eager": (0.8, 0.2), "rare": (0.02, 0.6), "late": (0.05, 0.1)}[pace]
    rng = random.Random(seed)
    dut = PacketStore(POOLS, OUTPUTS, CREDITED, 4096, queueing, readers, aging=aging)
    lives = lives_of(rng) if aging else [Life(False, 0)] * (CYCLES + 1)
    reference = Reference([None] * readers, lives)
    queues: Queues = defaultdict(list)
    outputs = Outputs(dut, reference, queues, grant_chance, rng)
    arrivals = Arrivals(dut, reference, queues, bad_chance, rng)

    async def bench(ctx: Any) -> None:
        fill, crossing = dut.fill, dut.crossing
        ctx.set(crossing.wide, WIDE)
        for output in range(CREDITED):
            ctx.set(crossing.heads.facts[output].room[0].limit, ALWAYS)
        for cycle in range(CYCLES):
            ctx.set(crossing.phase, cycle % 4)
            if aging:
                ctx.set(dut.clock, clock_of(lives[cycle].now, limits=lives[cycle].limits))
            for signal in (fill.accept, fill.cancel, dut.join, fill.write.valid):
                ctx.set(signal, 0)
            room = list(reference.room)
            assert [ctx.get(fill.free[slot]) for slot in range(2)] == room, f"cycle {cycle}"
            outputs.accept(ctx, cycle)
            outputs.compare_rows(ctx, cycle)
            outputs.offer(ctx, cycle)
            reference.step(cycle)
            arrivals.step(ctx, cycle, room)
            await ctx.tick()

    Simulation(dut).run(bench)
    assert sum(packet.accepted for packet in arrivals.ended) > 40
    assert arrivals.cancelled > 0
    assert pace != "rare" or reference.scraps > 10
    assert pace != "late" or len(reference.swallowed) > 2
    assert pace != "late" or not aging or Discard.LIFE_TIME in reference.swallowed
    if pace == "eager":
        assert reference.early_ends >= {(1, 1), (1, 2), (1, 3)}
        assert any(step == 4 for step, _ in reference.early_ends)
