"""HOQ_LIFE and VL_STALL_COUNT: how long a head may wait at a port of a switch (docs/pipeline.md, section 7.2).

The contract counts in every cycle. Here it is known when a head's time has come, and for that there is one event ahead
for each slot with heads, which is too early if packets have been granted since, and then looks again.
"""

from typing import Final

from wire.time_limits import EXPIRED_TICKS, MAX_EXPONENT, NO_LIMIT, STALL_TICKS, TICK_CYCLES
from wire.trace import Discard

from ..crossing.matcher import Matcher
from ..kernel import NEVER, UPDATE
from ..packet import Packet
from .life_time import LifeTime, first_tick

__all__ = ["NOT_DISCARDED", "TimeLimits"]

NOT_DISCARDED: Final = -1
"""In place of a `Discard`."""

_SEEN_AFTER: Final = 2
"""Cycles from what is visible until a head goes by it."""
_GRANT_SEEN_AFTER: Final = 2
"""Cycles from a grant until it is visible that its packet goes."""
_LIFE_TIME_SEEN_AFTER: Final = 2
"""Cycles from a grant until LIFE_TIME and its ticks are looked at, for the packet."""
_INACTIVE: Final[int] = Discard.INACTIVE
_LIFE_TIME: Final[int] = Discard.LIFE_TIME
_HOQ_LIFE: Final[int] = Discard.HOQ_LIFE
_STALLED: Final[int] = Discard.STALLED


class TimeLimits:
    """Those of the data slots of one output.

    Attributes:
        hoq_life: HOQ_LIFE, as visible.
        stall_count: VL_STALL_COUNT, as visible.
        is_finite: there is a limit, so that heads and grants matter.
        discarding: mask of the slots that were expired or stalled two cycles before.
    """

    def __init__(self, matcher: Matcher, index: int, vls: int, life: LifeTime) -> None:
        """`index` is that of the output in the crossing; `life` is its node's."""
        self.hoq_life = NO_LIMIT
        self.stall_count = 0
        self.is_finite = False
        self.discarding = 0
        self._matcher = matcher
        self._kernel = matcher.kernel
        self._epoch = matcher.epoch
        self._agent = matcher.size - 1
        self._index = index
        self._data_vls = vls
        self._life = life
        self._exponent = NO_LIMIT  # k, as heads go by it
        self._expired = self._stalled = 0  # masks of slots, likewise
        self._looks_at = [NEVER] * vls  # the cycle of each slot's event ahead
        # Before these cycles no head's time begins: after the last grant, stall, and write of a register.
        self._after_grant = [0] * vls
        self._after_stall = [0] * vls
        self._written = 0
        self._discards = [0] * vls  # n: how many one after the other, for HOQ_LIFE

    # Registers.

    def set_hoq_life(self, exponent: int) -> None:
        """HOQ_LIFE was written, visible in the current cycle."""
        if exponent != self.hoq_life:
            self.hoq_life = exponent
            self.begin_anew()

    def set_stall_count(self, count: int) -> None:
        """VL_STALL_COUNT was written, visible in the current cycle."""
        if count != self.stall_count:
            self.stall_count = count
            self.begin_anew()

    def life_time_given(self) -> None:
        """Another LIFE_TIME was given: packets granted from now on may find it."""
        self.is_finite = True

    def begin_anew(self) -> None:
        """One of the registers is another from the current cycle on; heads go by that later."""
        now = self._kernel.now
        self.is_finite = True
        self._discards = [0] * self._data_vls
        self._kernel.at(now + _SEEN_AFTER, UPDATE, self._see_written, (now, self._stalled))

    def _see_written(self, write: tuple[int, int]) -> None:
        """A write that was visible in a cycle, and the slots that were stalled until then."""
        self._written, ended = write
        now, life = self._kernel.now, self._life
        self._exponent = min(self.hoq_life, life.exponent(now))
        ahead = life.exponent(now + _LIFE_TIME_SEEN_AFTER)
        self.is_finite = min(self._exponent, ahead) <= MAX_EXPONENT
        self._expired = 0
        self._stalled &= ~ended
        self._show()
        for slot in range(self._data_vls):
            if ended >> slot & 1:
                self._after_stall[slot] = 0
            self._looks_at[slot] = NEVER
            self._look(slot)
        self._wake()

    # Heads.

    def heads_shown(self) -> None:
        """There are more heads than before, as the matching knows."""
        for slot in range(self._data_vls):
            if self._looks_at[slot] == NEVER and not self._expired >> slot & 1:
                self._look(slot)

    def _look(self, slot: int) -> None:
        """Let a slot be expired if its heads go by that from the current cycle on; otherwise look when they may."""
        if self._exponent > MAX_EXPONENT:
            return
        since = self._matcher.waits_since(self._index, slot)
        since = max(since, self._after_grant[slot], self._after_stall[slot], self._written)
        if since != NEVER:
            due = self._due(since)
            if due > self._kernel.now:
                self._look_at(slot, due)
            else:
                self._expired |= 1 << slot
                self._show()

    def _due(self, since: int) -> int:
        """From which cycle on heads go by it that they are expired, their time having begun in a cycle."""
        last_tick = first_tick(since, self._exponent, self._epoch) + (EXPIRED_TICKS - 1) * self._period(self._exponent)
        return last_tick + 1 + _SEEN_AFTER

    @staticmethod
    def _period(exponent: int) -> int:
        return TICK_CYCLES << exponent

    def _look_at(self, slot: int, cycle: int) -> None:
        self._looks_at[slot] = cycle
        self._kernel.at(cycle, UPDATE, self._time_has_come, slot)

    def _time_has_come(self, slot: int) -> None:
        if self._looks_at[slot] == self._kernel.now:  # otherwise a register was written since
            self._looks_at[slot] = NEVER
            self._look(slot)
            if self._expired >> slot & 1:
                self._wake()

    def _show(self) -> None:
        self.discarding = self._expired | self._stalled

    def _wake(self) -> None:
        self._matcher.wake_for_swallowing(1 << self._index)

    # Grants.

    def discard(self, slot: int) -> int:
        """Why a head of a slot that is expired or stalled is swallowed, granted in the current cycle."""
        if self._stalled >> slot & 1:
            return _STALLED
        return _HOQ_LIFE if self.hoq_life <= self._life.exponent(self._kernel.now) else _LIFE_TIME

    def granted(self, packet: Packet, discard: int) -> int:
        """A packet is granted in the current cycle, to be swallowed for DISCARD or for its length.

        Returns:
            DISCARD, or that it is over its life time.
        """
        slot = packet.slot
        seen = self._kernel.now + _GRANT_SEEN_AFTER
        self._after_grant[slot] = seen
        if discard == _HOQ_LIFE:
            self._discards[slot] += 1
            if self._discards[slot] == self.stall_count and self.hoq_life <= MAX_EXPONENT:
                self._stall(slot)
        else:
            self._discards[slot] = 0
        if self._expired >> slot & 1:
            self._expired ^= 1 << slot
            self._look_at(slot, self._due(seen))
            self._show()
        if discard != _INACTIVE and self._is_over_life_time(packet):
            return _LIFE_TIME
        return discard

    def _is_over_life_time(self, packet: Packet) -> bool:
        """Whether that shows when the first row of a packet granted in the current cycle is read."""
        now = self._kernel.now
        if packet.ended_from > now + 1 or packet.input == self._agent:
            return False
        return self._life.is_over(packet.stamp, now + _LIFE_TIME_SEEN_AFTER)

    # Stalls.

    def _stall(self, slot: int) -> None:
        """A slot is stalled as soon as a grant in the current cycle is seen: it has discarded so many packets."""
        self._discards[slot] = 0
        self._stalled |= 1 << slot
        self._show()
        stalled = self._kernel.now + _GRANT_SEEN_AFTER
        exponent = self.hoq_life
        over = first_tick(stalled, exponent, self._epoch) + (STALL_TICKS - 1) * self._period(exponent) + 1
        self._kernel.at(over + _SEEN_AFTER, UPDATE, self._stall_over, slot)
        self._after_stall[slot] = over

    def _stall_over(self, slot: int) -> None:
        """Heads go by it from the current cycle on, unless a write ended the stall before."""
        if self._after_stall[slot] == self._kernel.now - _SEEN_AFTER:
            self._stalled &= ~(1 << slot)
            self._show()
            self._wake()
