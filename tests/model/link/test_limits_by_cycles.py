"""Time limits, and waiting by VL, against a reading of docs/pipeline.md, sections 7.2 and 8.3, in every cycle."""

import random
from collections import Counter as Tally

import pytest

from model.crossing.buffer import Buffer
from model.crossing.matcher import Matcher
from model.crossing.output import SWALLOWED, FlowFlags, Gate, Output
from model.crossing.queues import FifoInput, VoqInput
from model.kernel import CONTROL, DECIDE, NEVER, UPDATE, Kernel
from model.link.life_time import LifeTime
from model.link.time_limits import NOT_DISCARDED, TimeLimits
from model.link.xmit_wait import Ticks, VlXmitWait
from model.packet import DataTransmission, Packet
from tests.model.link.limits_by_cycles import (
    HOQ_LIFE,
    LIFE_TIME,
    Grant,
    Load,
    grants_and_waits,
    grants_of,
    random_load,
)
from wire.trace import Discard


class RoomsByHand(Gate):
    """Rooms as they were set last; the agent's output has room for all."""

    def __init__(self, vls, limits):
        super().__init__(vls)
        self.limits = limits
        self.rooms = [0] * vls

    def room(self, slot):
        if self.limits is None:
            return None
        return SWALLOWED if self.limits.discarding >> slot & 1 else self.rooms[slot]


class LoggedOutput(Output):
    """An output that writes its grants down."""

    def __init__(self, matcher, index, load, life, log):
        self.limits = None if index == load.inputs - 1 else TimeLimits(matcher, index, load.vls, life)
        super().__init__(index, load.vls, RoomsByHand(load.vls, self.limits), FlowFlags())
        self.pitch = 4 if index in load.narrow else 1
        self.kernel, self.matcher, self.log = matcher.kernel, matcher, log
        self.ticks = Ticks(1, load.epoch)
        self.vl_wait = VlXmitWait(self.ticks, self.seen_from)
        self.vl_wait.active_from = load.epoch

    def grant(self, packet, reader):
        now, limits = self.kernel.now, self.limits
        self.vl_wait.offered(packet.slot, now, self.busy_until)
        discard = NOT_DISCARDED
        if limits is not None and limits.discarding >> packet.slot & 1:
            discard = limits.discard(packet.slot)
        if limits is not None and limits.is_finite:
            discard = limits.granted(packet, discard)
        if packet.oversize:
            discard = Discard.NEIGHBOR_MTU
        reason = None if discard == NOT_DISCARDED else Discard(discard)
        self.log.append(Grant(now, self.index, packet.input, packet.lrh, reason))
        sending = DataTransmission(packet, now, packet.slot, self.pitch, reader)
        if packet.bad or reason is not None:
            self.busy_until = now + 2
            self.kernel.at(now + 4, UPDATE, self.unsent, sending)
        else:
            self.busy_until = sending.last_read
            self.matcher.reads(sending)

    def unsent(self, sending):
        self.matcher.wake(self.matcher.done(sending))

    def grant_flow_control(self):
        raise AssertionError("no VL of these loads has anything to announce")

    def last_read(self, sending):
        """The matching knows what becomes available."""

    def end_early(self, sending, k):
        raise AssertionError("no packet of these loads is cut")

    def heads_shown(self, count):
        if self.limits is not None and self.limits.is_finite:
            self.limits.heads_shown()

    def rest(self):
        """Waiting is counted by VL alone."""

    def offer_refused(self, slot):
        now = self.kernel.now
        self.vl_wait.offered(slot, now, self.busy_until)
        self.busy_until = now + 1

    def ticks_waited(self, slot):
        self.vl_wait.look(self.kernel.now, self.busy_until, self.coming)
        return self.vl_wait.read(slot, self.kernel.now)

    def set_tick(self, length):
        self.vl_wait.look(self.kernel.now, self.busy_until, self.coming)
        self.vl_wait.settle(self.kernel.now)
        self.ticks.begin_anew(self.kernel.now, length)

    def set_room(self, change):
        slot, room = change
        self.gate.rooms[slot] = room
        self.matcher.wake(self.bit)


class EventDriven:
    """The model's part of a switch with a load."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.kernel = kernel = Kernel()
        self.life = LifeTime(load.epoch)
        self.matcher = Matcher(kernel, load.inputs, load.vls, load.epoch)
        self.log: list[Grant] = []
        slots = load.vls + 1
        for index in range(load.inputs):
            buffer = Buffer([4000] * slots)
            if load.fifo:
                source = FifoInput(kernel, index, buffer, slots)
            else:
                source = VoqInput(kernel, index, load.inputs, buffer, load.readers, slots)
            self.matcher.add(source, LoggedOutput(self.matcher, index, load, self.life, self.log))
        for cycle, output, slot, room in load.rooms:
            kernel.at(cycle, UPDATE, self.matcher.outputs[output].set_room, (slot, room))
        for write in load.writes:
            kernel.at(write.visible - 2, CONTROL, self.given, write)
        for place, offered in enumerate(load.packets):
            packet = Packet()
            packet.input, packet.output, packet.slot = offered.input, offered.output, offered.slot
            packet.slot_in, packet.n, packet.need, packet.lrh = offered.queue, offered.n, offered.need, place
            packet.oversize, packet.ended_from = offered.oversize, NEVER
            kernel.at(offered.joins, UPDATE, self.join, packet)
            kernel.at(offered.ended - 1, UPDATE, self.ended, packet)

    def limits(self):
        return [output.limits for output in self.matcher.outputs[:-1]]

    def given(self, write):
        if write.register == LIFE_TIME and self.life.write(write.visible, write.value, self.kernel.now):
            for limits in self.limits():
                limits.life_time_given()
        self.kernel.at(write.visible, UPDATE, self.write, write)

    def write(self, write):
        if write.register == LIFE_TIME:
            for limits in self.limits() if self.life.changes(self.kernel.now) else ():
                limits.begin_anew()
        elif write.register == HOQ_LIFE:
            self.limits()[write.output].set_hoq_life(write.value)
        else:
            self.limits()[write.output].set_stall_count(write.value)

    def join(self, packet):
        self.matcher.join(packet, self.kernel.now)

    def ended(self, packet):
        offered = self.load.packets[packet.lrh]
        packet.bad = offered.bad
        if self.life.is_counted:
            packet.stamp = self.life.stamp(self.kernel.now)
        self.matcher.ended(packet)

    def grants(self):
        list(self.kernel.run(self.load.cycles))
        return self.log


def test_a_head_expires_as_the_last_packet_of_its_queue_ends():
    """With this seed in the same cycle: it may be swallowed from the next one on."""
    load = random_load(4292511554, True)
    assert sorted(EventDriven(load).grants(), key=lambda grant: grant[:4]) == sorted(
        grants_of(load), key=lambda grant: grant[:4]
    )


def test_ticks_are_counted_as_they_come():
    load = random_load(1, False)
    for exponent, start, end in ((0, 0, 3000), (1, load.epoch + 1, 3000), (0, load.epoch + 256, 700), (20, 0, 3000)):
        assert load.ticks(exponent, start, end) == sum(load.is_tick(exponent, cycle) for cycle in range(start, end))


@pytest.mark.parametrize("fifo", [False, True])
def test_grants_and_reasons_are_those_of_a_reading_of_every_cycle(fifo):
    first = random.randrange(1 << 32)
    print(f"seeds from {first}")
    reasons = Tally()
    for seed in range(first, first + 6):
        load = random_load(seed, fifo)
        expected = grants_of(load)
        assert sorted(EventDriven(load).grants(), key=lambda grant: grant[:4]) == sorted(
            expected, key=lambda grant: grant[:4]
        ), f"seed {seed}"
        reasons.update(grant.discard for grant in expected)
    assert len(reasons) > 3, "sent, too long, and others"


@pytest.mark.parametrize("fifo", [False, True])
def test_each_vl_waits_while_it_has_a_head_and_neither_offers_nor_sends(fifo):
    """Ticks of several lengths; the counters are read again and again."""
    first = random.randrange(1 << 32)
    print(f"seeds from {first}")
    counted = 0
    for seed in range(first, first + 3):
        rng = random.Random(seed)
        load = random_load(seed, fifo)
        _, waits = grants_and_waits(load)
        model = EventDriven(load)
        found: list[int] = []
        expected: list[int] = []
        changes = {load.epoch: 1} | {
            cycle: rng.choice([1, 2, 7, 32, 256]) for cycle in sorted(rng.sample(range(load.epoch + 1, load.cycles), 9))
        }
        for cycle, length in changes.items():
            for output in model.matcher.outputs[:-1]:
                model.kernel.at(cycle, UPDATE, output.set_tick, length)
        for cycle in sorted(rng.sample(range(load.epoch + 1, load.cycles), 300)):
            output, slot = rng.choice(model.matcher.outputs[:-1]), rng.randrange(load.vls)
            model.kernel.at(cycle, DECIDE, lambda of, to=found: to.append(of[0].ticks_waited(of[1])), (output, slot))
            expected.append(min(ticks(waits.get((output.index, slot), set()), changes, cycle), 0xFFFF))
        model.grants()
        assert found == expected, f"seed {seed}"
        counted += sum(expected)
    assert counted > 1000


def ticks(waited, changes, until):
    """Those that end before a cycle and that were waited through, lengths changing in some cycles."""
    ends = [*list(changes)[1:], until]
    return sum(
        waited.issuperset(range(start, start + length))
        for (since, length), end in zip(changes.items(), ends, strict=True)
        for start in range(since, min(end, until) - length + 1, length)
    )
