"""Errors in the rows of a link, by name: what each does to them, and random ones for `ironband check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import xor
from random import Random
from typing import Final

from cosim.scenario.tables import ErrorKind
from cosim.stimulus.random_settings import random_gap, random_times
from wire.codes import LNH, MIN_PKT_LEN_IBA, VL15
from wire.crc import lpcrc, vcrc
from wire.flow_control import CREDIT_MODULUS, FLOW_CONTROL, FlowControlOp
from wire.headers import LRH
from wire.packet import WORD_BYTES
from wire.stimulus import Control, Injection, Operation, Trigger
from wire.symbols import LANES, Row, frame_data_packet, frame_link_packet
from wire.symbols import Control as Symbol

__all__ = [
    "INVENTED",
    "INVENTED_PACKET",
    "ROW_ERRORS",
    "forged_flow_control",
    "in_idle_data",
    "link_error",
    "random_row_error",
    "random_row_errors",
    "starts_data",
]

INVENTED_PACKET: Final = "invented_packet"
"""As one that nobody sent is counted."""

_ROW_BITS = 36
_ALL = (1 << _ROW_BITS) - 1
_LANE_3 = 0x1_0000_00FF
"""Data and K bit of lane 3 (the K bits stand above the 32 data bits, lane 0 highest)."""

_ROWS_OF_LRH = 2
"""Rows 0 to 2; the last has its last byte, the lower half of SLID."""

_FCCL_BITS_IN_ROW_1 = 8
"""Its lower ones, on lane 0; the LPCRC follows."""

_SDP_ON_LANE_0 = 1 << 35 | Symbol.SDP << 24
_LANE_0 = 1 << 35 | 0xFF << 24
_EGP_TO_EBP = Symbol.EGP ^ Symbol.EBP
_EGP_ON_LANE_3 = 1 << 32 | Symbol.EGP
_COM_ON_LANE_1 = 1 << 34 | Symbol.COM << 16

_ERROR_GAP = (50, 6_000)
"""Cycles from one error to the next in one direction of a link."""

_FLOW_CONTROL_SHARE = 0.8
_TINY: Final = (4, 16)
"""Packets: what ports count of them waits for its turn."""

_STUCK_ROW: Final = "stuck_row"
_STUCK: Final = (
    *((start, other, None) for start in (Symbol.SDP, Symbol.SLP) for other in (None, Symbol.COM)),
    *((None, None, end) for end in (Symbol.EGP, Symbol.EBP)),
    (Symbol.SDP, None, Symbol.EGP),
    (None, Symbol.COM, None),
)
"""What is on lanes 0, 1 and 3 of a row over and over, if it is a control symbol."""

_STUCK_ROWS: Final = (8, 60)
_LATEST_STUCK: Final = 8
_BEGINS: Final = ((Symbol.SDP, None, None), (Symbol.SLP, None, None))
"""Of these, those with a physical error in every other row, ..."""

_BEGINS_ROWS: Final = (30, 60)
_BEGINS_SHARE: Final = 0.5
"""... which where they are many are this part, and last for so long."""

_STUCK_GAP: Final = (60, 600)
"""From one to the next where there is nothing else."""

_ENDLESS_SHARE: Final = 0.03
"""Of these, those of data alone, as if a packet had no end."""

_ENDLESS: Final = ((None, None, None),)
_ENDLESS_ROWS: Final = (500, 4_000)
_READS: Final = range(3, 120, 3)
"""While a link is stuck, when counters are read: what is counted waits for longer, and is not lost yet
(docs/pipeline.md, section 10)."""

_TINY_DLIDS: Final = (0, 1, 2, 3, 0xBFFF, 0xC000, 0xFFFF)
_MOST_TINY_LENGTH: Final = 20
_MARKED_BAD_SHARE: Final = 0.3
_TYPICAL_ROWS = (2, 8, 64, 256)


def link_error(kind: ErrorKind, row: int = 1, bit: int = 0) -> Injection:
    """The injection that makes one error of a kind happen to the next packet (or idle row) of a link.

    bit_flip: bit `bit` of row `row` of a data packet. lost_packet, lost_flow_control: every row reads as idle
    data. truncate: idle data from row `row` on. ebp: EGP becomes EBP. stray_symbol: COM on lane 1 of an idle row.
    """
    match kind:
        case "bit_flip":
            return Injection(Trigger.DATA, row, row, flip=1 << 31 - bit)
        case "lost_packet":
            return Injection(Trigger.DATA, keep=0)
        case "lost_flow_control":
            return Injection(Trigger.LINK, keep=0)
        case "truncate":
            return Injection(Trigger.DATA, row, keep=0)
        case "ebp":
            return Injection(Trigger.DATA, at_end=True, flip=_EGP_TO_EBP)
        case "stray_symbol":
            return Injection(Trigger.IDLE, keep=0, flip=_COM_ON_LANE_1)
        case _:
            raise ValueError(f"{kind!r}: not an error of rows")


def _flip(trigger: Trigger, random: Random, rows: int, *bits: int) -> Injection:
    """Flips one of a range of bits in one of the rows 0 to `rows`."""
    row = random.randint(0, rows)
    return Injection(trigger, row, row, flip=1 << random.randrange(*bits))


def _burst(random: Random, rows: int) -> Injection:
    row = random.randint(0, rows)
    return Injection(
        Trigger.DATA, row, row + random.randint(0, 3), keep=random.getrandbits(32), flip=random.getrandbits(32)
    )


def _truncated_by_idle(random: Random, rows: int) -> Injection:
    return Injection(Trigger.DATA, random.randint(1, rows), keep=0, flip=random.getrandbits(32))


def _truncated_by_end(random: Random, rows: int) -> Injection:
    row = random.randint(1, rows)
    return Injection(Trigger.DATA, row, row, keep=_ALL ^ _LANE_3, flip=_EGP_ON_LANE_3)


def _stuck(random: Random, rows: int) -> Injection:
    """A packet becomes one row over and over, with control symbols: an error in each, or in every other."""
    return _stuck_for(random, rows, _STUCK, _STUCK_ROWS)


def _stuck_for_long(random: Random, rows: int) -> Injection:
    """Likewise, at times without control symbols and for longer than any packet lasts."""
    if random.random() < _ENDLESS_SHARE:
        return _stuck_for(random, rows, _ENDLESS, _ENDLESS_ROWS)
    return _stuck(random, rows)


def _stuck_at_begin(random: Random, rows: int) -> Injection:
    """Likewise, mostly as if one packet after the other began: ports have more physical errors to count than else."""
    if random.random() < _BEGINS_SHARE:
        return _stuck_for(random, rows, _BEGINS, _BEGINS_ROWS)
    return _stuck_for_long(random, rows)


def _stuck_for(random: Random, rows: int, stuck: Sequence[tuple[int | None, ...]], lasts: tuple[int, int]) -> Injection:
    row = random.randint(0, min(rows, _LATEST_STUCK))
    first, second, last = random.choice(stuck)
    symbols = (first, second, None, last)
    lanes = [random.getrandbits(8) if symbol is None else symbol for symbol in symbols]
    k = sum(1 << LANES - 1 - lane for lane, symbol in enumerate(symbols) if symbol is not None)
    flip = k << 32 | int.from_bytes(lanes, "big")
    return Injection(Trigger.DATA, row, row + random.randint(*lasts), keep=0, flip=flip)


def forged_flow_control(random: Random) -> Injection:
    """Another FCCL with its right LPCRC: what a CRC of sums of bits makes of a change does not depend on the rest."""
    change = 1 + random.getrandbits(random.randint(1, _FCCL_BITS_IN_ROW_1)) % ((1 << _FCCL_BITS_IN_ROW_1) - 1)
    bodies = (bytes(FLOW_CONTROL.size_bytes), bytes((0, 0, 0, change)))
    crcs = (int.from_bytes(lpcrc(body), "big") for body in bodies)
    return Injection(Trigger.LINK, 1, 1, flip=change << 24 | reduce(xor, crcs) << 8)


def _invented_packet(random: Random) -> list[Injection]:
    """Idle rows become a packet with its right CRC: a data packet of no more than a word, or a link packet.

    The latter has any Op, VL, FCTBS and FCCL.
    """
    body = random.randbytes(WORD_BYTES)
    rows = frame_data_packet(body + vcrc(body))
    if random.random() < _FLOW_CONTROL_SHARE:
        body = FLOW_CONTROL.pack(
            op=random.choice((FlowControlOp.NORMAL, random.getrandbits(FLOW_CONTROL["op"].width))),
            fctbs=random.randrange(CREDIT_MODULUS),
            vl=random.choice((0, 1, random.randint(0, VL15))),
            fccl=random.randrange(CREDIT_MODULUS),
        )
        rows = frame_link_packet(body + lpcrc(body))
    return in_idle_data(rows)


def _tiny_packets(random: Random) -> list[Injection]:
    """Idle rows become data packets one behind the other, of two rows or three, which end before their PktLen says."""
    rows: list[Row] = []
    has_header = random.random() < 0.5
    dlid = random.choice(_TINY_DLIDS)
    for _ in range(random.randint(*_TINY)):
        body = random.randbytes(WORD_BYTES)
        if has_header:
            vl = random.choice((0, 1, VL15))
            usual = random.randint(MIN_PKT_LEN_IBA, _MOST_TINY_LENGTH)
            length = random.choice((usual, 1 << random.randrange(LRH["pkt_len"].width) | random.getrandbits(2)))
            body = LRH.pack(vl=vl, sl=random.getrandbits(4), lnh=LNH.IBA_LOCAL, dlid=dlid, pkt_len=length)
        rows += frame_data_packet(body + vcrc(body), good=random.random() >= _MARKED_BAD_SHARE)
    return in_idle_data(rows)


def in_idle_data(rows: Iterable[Row]) -> list[Injection]:
    """Rows in place of idle ones; each is armed when the one before it is over."""
    return [Injection(Trigger.IDLE, keep=0, flip=row.k << 32 | row.data) for row in rows]


def starts_data(injection: Injection) -> bool:
    """Whether an idle row becomes one with which a data packet begins."""
    return injection.trigger == Trigger.IDLE and injection.flip & _LANE_0 == _SDP_ON_LANE_0


def _random_symbol(random: Random, rows: int) -> Injection:
    lane = random.randrange(4)
    symbol = random.choice(list(Symbol))
    flip = 1 << 35 - lane | symbol << 8 * (3 - lane)
    return Injection(Trigger.IDLE, keep=0, flip=flip)


_OF_ONE: Final[dict[str, Callable[[Random, int], Injection]]] = {
    "bit_flip": lambda random, rows: _flip(Trigger.DATA, random, rows, 32),
    "lrh_flip": lambda random, rows: _flip(Trigger.DATA, random, _ROWS_OF_LRH, 32),
    "k_bit_flip": lambda random, rows: _flip(Trigger.DATA, random, rows, 32, _ROW_BITS),
    "burst": _burst,
    "damaged_flow_control": lambda random, rows: _flip(Trigger.LINK, random, 1, _ROW_BITS),
    "lost_flow_control": lambda random, rows: link_error("lost_flow_control"),
    "forged_flow_control": lambda random, rows: forged_flow_control(random),
    "lost_packet": lambda random, rows: link_error("lost_packet"),
    "truncated_by_idle": _truncated_by_idle,
    "truncated_by_end": _truncated_by_end,
    "ebp": lambda random, rows: link_error("ebp"),
    "stray_symbol": _random_symbol,
    _STUCK_ROW: _stuck,
}
"""Of one packet or idle row, by kind: drawn with a row in which to be at most."""

INVENTED: Final[dict[str, Callable[[Random], list[Injection]]]] = {
    INVENTED_PACKET: _invented_packet,
    "tiny_packets": _tiny_packets,
}
"""What idle rows become, by kind."""

ROW_ERRORS: Final = (*_OF_ONE, *INVENTED)
"""The kinds of random ones."""


def random_row_error(random: Random, count: Counter[str]) -> Injection:
    """One of any kind that is of one packet or idle row, counted by kind."""
    kind = random.choice(list(_OF_ONE))
    count[kind] += 1
    return _OF_ONE[kind](random, random.choice(_TYPICAL_ROWS))


def random_row_errors(
    random: Random,
    direction: int,
    pitch: int,
    start: int,
    end: int,
    count: Counter[str],
    read: Callable[[Random, int], Control] | None,
    *,
    stuck_alone: bool = False,
    at_begin: bool = False,
) -> Iterator[Control]:
    """Of all kinds, in one direction of a link whose rows are PITCH cycles apart, counted by kind; or of rows that
    are stuck, again and again, in half of the cases AT_BEGIN of a packet.

    READ gives a read of one of the counters there at a cycle, if nobody else reads many.
    """
    kinds = (_STUCK_ROW,) if stuck_alone else ROW_ERRORS
    gap, free = _STUCK_GAP if stuck_alone else random_gap(random, _ERROR_GAP), start
    for time in random_times(random, gap, start, end):
        cycle = max(time, free)
        kind = random.choice(kinds)
        count[kind] += 1
        if kind in _OF_ONE:
            of_stuck = _stuck_at_begin if at_begin else _stuck_for_long
            error = of_stuck if stuck_alone else _OF_ONE[kind]
            injections = [error(random, random.choice(_TYPICAL_ROWS))]
        else:
            # With the rows: each is armed when the one before it is over.
            cycle, injections = -(-cycle // pitch) * pitch, INVENTED[kind](random)
        for injection in injections:
            yield Control(cycle, Operation.INJECT, direction, injection.args())
            cycle += pitch
        free = cycle
        if kind == _STUCK_ROW and read is not None:
            yield from (read(random, cycle + later) for later in _READS)
            free = cycle + _READS.stop
