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


@pytest.mark.parametrize(
    ("queueing", "readers", "seed"), [("voq", 2, 0), pytest.param("voq", 1, 1, marks=pytest.mark.deep), ("fifo", 1, 3)]
)
@pytest.mark.parametrize(("pace", "aging"), [("eager", True), ("rare", False), ("late", False), ("late", True)])
def test_rows_leave_as_they_came_and_blocks_return(
    queueing: Any, readers: int, seed: int, pace: str, aging: bool
) -> None:
    print(f"seed {seed}")
    grant_chance, bad_chance = {"eager": (0.8, 0.2), "rare": (0.02, 0.6), "late": (0.05, 0.1)}[pace]
    rng = random.Random(seed)
    dut = PacketStore(POOLS, OUTPUTS, CREDITED, queueing, readers, aging=aging)
    lives = lives_of(rng) if aging else [Life(False, 0)] * (CYCLES + 1)
    reference = Reference([None] * readers, lives)
    queues: dict[tuple[int, int], list[Packet]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    to_write: list[tuple[Packet, int]] = []  # rows of the packet being received
    packet: Packet | None = None
    ends: list[Packet] = []

    async def bench(ctx: Any) -> None:
        nonlocal packet, to_write
        fill, crossing, heads = dut.fill, dut.crossing, dut.crossing.heads
        number = 0
        joining: Packet | None = None
        accepting: Packet | None = None
        idle = 0
        narrow = False
        offers: dict[int, int] = {}  # of the cycle before: the slot of each output that made one
        out_ptr = 0
        ready: list[int] = []  # readers that were free then, and took up nothing
        reads = [0] * readers  # mask of the output for which each reader had a row due in the cycle before
        taken_to: int | None = None  # the output for which a packet was taken in the cycle before: its row 0 crosses
        ctx.set(crossing.wide, WIDE)
        for output in range(CREDITED):
            ctx.set(heads.facts[output].room[0].limit, ALWAYS)
        for cycle in range(CYCLES):
            ctx.set(crossing.phase, cycle % 4)
            if aging:
                ctx.set(dut.clock, clock_of(lives[cycle].now, limits=lives[cycle].limits))
            for signal in (fill.accept, fill.cancel, dut.join, fill.write.valid):
                ctx.set(signal, 0)
            assert [ctx.get(fill.free[slot]) for slot in range(2)] == reference.room, f"cycle {cycle}"

            # One of the offers is accepted: x_0. Causes and slots of outputs that made none are anything.
            accepted: Packet | None = None
            ctx.set(crossing.offers, sum(1 << output for output in offers))
            assert ctx.get(crossing.accepted).bit_count() == bool(offers)
            if offers:
                output = min(offers, key=lambda output: (output - out_ptr) % OUTPUTS)
                out_ptr = (output + 1) % OUTPUTS
                assert ctx.get(crossing.accepted) == 1 << output
                queue = queues[offers[output], output if queueing == "voq" else 0]
                assert queue[0].output == output, "a head of another output was requested"
                accepted = queue.pop(0)
                # What is swallowed at its output has ended.
                if output < CREDITED and accepted.cycle_of_end < cycle - 1 and rng.random() < 0.5:
                    accepted.cause = cause_of(rng.choice(AT_OUTPUT if accepted.slot == 0 else AT_OUTPUT[:1]))
                assert reference.readers[ready[0]] is None
                reference.readers[ready[0]] = Reading(accepted, cycle, 1 if WIDE >> output & 1 else 4)
            for output in range(OUTPUTS):
                ctx.set(heads.slots_offered[output], 1 << offers.get(output, rng.randrange(2)))
            for output, cause in enumerate(crossing.causes):
                is_taken = accepted is not None and accepted.output == output
                ctx.set(cause, accepted.cause if is_taken else rng.randrange(1 << len(cause)))

            # What the readers give.
            seen = []
            for reader, to in enumerate(reads):
                row = crossing.rows[reader]
                if to and (ctx.get(row.valid) or ctx.get(row.bad)):
                    # What has outlived its life time is told beside the row, which says what else there is.
                    outlived = taken_to is not None and to == 1 << taken_to and bool(ctx.get(crossing.outlived))
                    crossed = ctx.get(row.data)
                    if outlived:
                        crossed = crossed & ~(7 << 16) | Discard.LIFE_TIME << 16
                    last = bool(ctx.get(row.last)) or outlived
                    scrap = not ctx.get(row.valid)
                    bad = last and bool(ctx.get(row.bad))
                    seen.append((reader, to.bit_length() - 1, crossed, last, bad, scrap))
            reads = [ctx.get(to) for to in crossing.to_output]
            taken_to = None if accepted is None else accepted.output
            expected = reference.rows.pop(cycle, [])
            assert [(*row[:2], row[5]) for row in seen] == [(*row[:2], row[5]) for row in expected], f"cycle {cycle}"
            assert [row for row in seen if not row[5]] == [row for row in expected if not row[5]], f"cycle {cycle}"

            # Offers, if the input and the output are available.
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
                if ctx.get(heads.requests[slot]) >> output & 1
                and output not in held
                and output not in offers
                and (WIDE >> output & 1 or cycle % 4 == X1_GRANT_PHASE)
            }
            ready = [number for number in free if accepted is None or number != ready[0]]
            offers = {}
            if choices and is_available and rng.random() < grant_chance:
                offering = rng.sample(sorted(choices), rng.randint(1, len(choices)))
                offers = {output: choices[output] for output in offering}

            # A packet comes in, row by row.
            room_now = list(reference.room)
            reference.step(cycle)
            if accepting is not None:
                ctx.set(fill.accept, 1)
                ctx.set(fill.accept_slot, accepting.slot)
                ctx.set(fill.accept_need, accepting.need)
                reference.room[accepting.slot] -= accepting.need
                accepting = None
            if joining is not None:
                ctx.set(dut.join, 1)
                ctx.set(dut.packet.pool, joining.slot)
                ctx.set(dut.packet.words, joining.n)
                ctx.set(dut.packet.need, joining.need)
                ctx.set(dut.packet.oversize, joining.oversize)
                ctx.set(dut.packet.output, joining.output)
                ctx.set(dut.packet.slot, joining.slot)
                joining.joined = True
                queues[joining.slot, joining.output if queueing == "voq" else 0].append(joining)
                joining = None
            if packet is None and idle == 0:
                n = rng.choice((5, 6, 14, 15, 16, 17, 31, 32, rng.randrange(5, 80)))
                slot = int(rng.random() < 0.2)
                end = n if rng.random() < 0.5 else rng.choice((n - 3, n - 2, n - 1, rng.randrange(1, n)))
                bad = end < n or rng.random() < bad_chance
                packet = Packet(n, end, bad, slot, rng.randrange(OUTPUTS), False, number)
                packet.oversize = packet.output < CREDITED and rng.random() < 0.2
                number += 1
                to_write = [(packet, row) for row in range(end + 1)]
                narrow = rng.random() < 0.2
                arrival = cycle
            elif packet is None:
                idle -= 1
            if packet is not None:
                since = cycle - arrival
                header_at = 3 if narrow else 0  # h+1, row 0 being written two cycles after it came
                if since == header_at and packet.end > 1 and packet.need <= room_now[packet.slot]:
                    packet.accepted = rng.random() < 0.9
                    if packet.accepted:
                        accepting = packet
                        if not narrow:
                            joining = packet
                if not narrow or since % 4 == 0:
                    _, row = to_write.pop(0)
                    last = row == packet.end
                    write = fill.write
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
                    if last:
                        # Of narrow packets all that is good joins when it is whole, the rest is cancelled.
                        packet.cycle_of_end, packet.stamp = cycle, lives[cycle].now
                        if packet.accepted and narrow and packet.bad:
                            counts["cancelled"] += 1
                            ctx.set(fill.cancel, 1)
                            reference.room[packet.slot] += packet.need
                        elif packet.accepted and narrow:
                            joining = packet
                        ends.append(packet)
                        packet = None
                        idle = rng.choice((0, 0, 0, 1, 5, 40, 80))
            await ctx.tick()

    Simulation(dut).run(bench)
    taken = [packet for packet in ends if packet.accepted]
    assert len(taken) > 40
    assert counts["cancelled"] > 0
    assert pace != "rare" or reference.scraps > 10
    assert pace != "late" or len(reference.swallowed) > 2
    assert pace != "late" or not aging or Discard.LIFE_TIME in reference.swallowed
    if pace == "eager":
        assert reference.early_ends >= {(1, 1), (1, 2), (1, 3)}
        assert any(step == 4 for step, _ in reference.early_ends)
