"""A plain reading of what becomes of a packet in a switch that checks partitions (docs/pipeline.md, section 3)."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from tests.model.link.partitions import TABLE
from wire.codes import P_KEY_DEFAULT
from wire.registers import PartitionCheck
from wire.stimulus import Injection
from wire.trace import Verdict

__all__ = ["LNH_LOCAL", "OnLink", "Passage", "Registers", "Write", "passage", "sent"]

LNH_LOCAL, LNH_GLOBAL = 2, 3


class Write(NamedTuple):
    """Visible from a cycle on."""

    visible: int
    value: int


class Registers:
    """What the switches' ports check, and what their tables hold, in each cycle; entry -1 is PARTITION."""

    def __init__(self, switches: Iterable[int], ports: Iterable[int]) -> None:
        self._writes: dict[tuple[int, int, int], list[Write]] = defaultdict(lambda: [Write(0, 0)])
        self._turns: dict[int, list[int]] = {node: [-10] for node in switches}
        for node, port in product(switches, ports):
            self._writes[node, port, 0] = [Write(0, P_KEY_DEFAULT)]

    def set_checks(self, node: int, port: int, write: Write) -> None:
        """PARTITION is written."""
        self._writes[node, port, -1].append(write)

    def set_entry(self, node: int, port: int, entry: int, given: int, p_key: int) -> None:
        """The write of an entry is given, after all that were given before."""
        turns = self._turns[node]
        assert sum(turn > given for turn in turns) < 32, "some would be lost"
        turn = given + 2
        while turn < turns[-1] + 10:
            turn += 1
        turns.append(turn)
        writes = self._writes[node, port, entry]
        if writes[-1].value != p_key:
            writes += [Write(turn + 4, 0), Write(turn + 11, p_key)]

    def _at(self, node: int, port: int, entry: int, cycle: int) -> int:
        writes = self._writes[node, port, entry]
        return writes[bisect_right(writes, cycle, key=lambda write: write.visible) - 1].value

    def checks(self, node: int, port: int, cycle: int) -> PartitionCheck:
        return PartitionCheck(self._at(node, port, -1, cycle))

    def has(self, node: int, port: int, p_key: int, row_k: int, *, departs: bool) -> bool:
        """The table, looked into after row K has come in a cycle."""
        for entry in range(TABLE):
            held = self._at(node, port, entry, row_k + (2 if departs else 1))
            if held & 0x7FFF == p_key & 0x7FFF != 0 and (not departs or (held | p_key) & 0x8000):
                return True
        return False


@dataclass(frozen=True)
class OnLink:
    """A packet on a link, as its receiver sees it: `words` are those of rows 1 on, `k` its end or the cut."""

    n: int
    lnh: int
    words: tuple[int, ...]
    k: int
    row_0: int
    pitch: int
    verdict: Verdict = Verdict.GOOD

    def at(self, row: int) -> int:
        """Cycle in which a row comes."""
        return self.row_0 + row * self.pitch

    def damaged(self, injection: Injection) -> "OnLink":
        """Its rows from 2 on may be changed by one bit: a data bit, or that of a K."""
        row, flip = injection.first, injection.flip
        if row > self.k:
            return self
        if flip >> 32:
            return replace(self, k=row, verdict=Verdict.PHYSICAL)
        words = list(self.words)
        if row < len(words):
            words[row] ^= flip
        return replace(self, words=tuple(words), verdict=self.verdict or Verdict.PHYSICAL)


class Passage(NamedTuple):
    """What becomes of a packet in a switch: its verdict, and the cycle in which it joins, None if it does not."""

    verdict: Verdict
    joins: int | None


def passage(
    registers: Registers, node: int, into: int, out: int, packet: OnLink, out_pitch: int, whole: bool
) -> Passage:
    """Sections 3.2, 3.5 and 3.6, of a packet with a route and room."""
    n, h = packet.n, packet.at(1)
    key_row = {LNH_LOCAL: 3, LNH_GLOBAL: 13}.get(packet.lnh)
    arrival, departure = registers.checks(node, into, h + 1), registers.checks(node, out, h + 1)
    if key_row is None:
        on_arrival = bool(arrival & PartitionCheck.RAW_INBOUND)
        on_departure = bool(departure & PartitionCheck.RAW_OUTBOUND)
    else:
        on_arrival = bool(arrival & PartitionCheck.INBOUND)
        on_departure = bool(departure & PartitionCheck.OUTBOUND)
    is_checked = on_arrival or on_departure

    rejection = Verdict.GOOD
    if is_checked:
        rejected = [on_arrival, on_departure]
        if key_row is not None and n >= key_row + 3 and packet.k > key_row:
            p_key = (packet.words[key_row - 1] & 0xFF) << 8 | packet.words[key_row] >> 24
            rejected = [
                checks and not registers.has(node, port, p_key, packet.at(key_row), departs=departs)
                for checks, port, departs in ((on_arrival, into, False), (on_departure, out, True))
            ]
        if any(rejected):
            rejection = Verdict.RCV_CONSTRAINT if rejected[0] else Verdict.XMIT_CONSTRAINT

    verdict = packet.verdict or (Verdict.LENGTH if packet.k != n else rejection)
    if whole:
        return Passage(verdict, packet.at(packet.k) + 2 if verdict == Verdict.GOOD else None)
    d = n - n // 4 if packet.pitch == 4 and out_pitch == 1 else 0
    if is_checked:
        if rejection or key_row is None:
            return Passage(verdict, None)
        d = max(d, key_row + 3)
    if not d:
        return Passage(verdict, h + 2)
    came = packet.k > d or (packet.k == d == n and verdict == Verdict.GOOD)
    return Passage(verdict, packet.at(d) + 2 if came else None)


def sent(packet: OnLink, passed: Passage, out_pitch: int, flight: int) -> OnLink | None:
    """What is on the next link, alone there; None if it was seen to be bad before it was read."""
    assert passed.joins is not None
    granted = -(-(passed.joins + 1) // out_pitch) * out_pitch
    read = granted + 1
    if passed.verdict and packet.at(packet.k) + 3 <= read:
        return None
    verdict = Verdict.REMOTE if passed.verdict else Verdict.GOOD
    return replace(packet, row_0=read + 3 + flight, pitch=out_pitch, verdict=verdict)
