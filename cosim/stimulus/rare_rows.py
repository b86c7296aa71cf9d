"""What comes in place of a link's idle data in few runs, and all the time there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from cosim.stimulus.bus_bring_up import write_port
from cosim.stimulus.invented_smps import INVENTED_SMP, invented_smp
from cosim.stimulus.random_mads import has_mads
from cosim.stimulus.random_settings import adapter_ports, random_times, switch_ports
from cosim.stimulus.row_errors import INVENTED_PACKET, in_idle_data
from cosim.topology.topology import Port, Topology
from wire.codes import LNH, VL15
from wire.crc import VCRC_WIDTH, lpcrc, vcrc
from wire.flow_control import CREDIT_MODULUS, FLOW_CONTROL
from wire.headers import LRH
from wire.mad_packet import smp_packet
from wire.registers import Counter as PortCounter
from wire.registers import PortRegister, port_address
from wire.stimulus import Control, Operation
from wire.symbols import Control as Symbol
from wire.symbols import Row, frame_data_packet, frame_link_packet

__all__ = [
    "has_endless_packets",
    "has_marked_link_packets",
    "has_met_errors",
    "has_rare_rows_at_adapters",
    "has_swept_credits",
    "random_rare_rows",
]

_SHARE: Final = 0.02
"""Of the runs, those with one of these."""

_AT_ADAPTERS_SHARE: Final = 0.1
"""Of these, those in which they go to adapters."""

_ENDLESS_GAP: Final = (1_500, 6_000)
_ENDLESS_WORDS: Final = (1 << 10, LRH["pkt_len"].max)
_QUIET: Final = 4_700
"""FCP_PERIOD of who would end it: as many words go by, and watchdogs mostly do not expire."""

_QUIET_ROWS: Final = 8
"""Until that holds, and what was due has gone."""

_MET_GAP: Final = (150, 400)
_MET: Final = 25
"""Errors behind an SMP, until the agent has judged it."""

_SWEPT_GAP: Final = (100, 600)
_SWEPT: Final = 100
_SWEPT_STEP: Final = 5
"""So few blocks that some packets may be sent, and others not, for one packet of these at least."""

_MARKED_SHARE: Final = 0.01
_MARKED_GAP: Final = (100, 1_000)
_HIDING_EBP: Final = 0x2240
"""What an LPCRC differs by of which, with EBP behind it, a CRC that goes on is as of a right one with EGP."""


def has_endless_packets(seed: int) -> bool:
    """Whether packets begin that say they are longer than any, and do not end."""
    return Random(f"{seed}/long packets without end").random() < _SHARE


def has_met_errors(seed: int) -> bool:
    """Whether links count errors in the cycles in which agents do."""
    return Random(f"{seed}/met receive errors").random() < _SHARE


def has_swept_credits(seed: int) -> bool:
    """Whether a VL's credits go down through all that they may be, above half of what they are counted to."""
    return Random(f"{seed}/descending FCCL").random() < _SHARE


def has_marked_link_packets(seed: int) -> bool:
    """Whether there are flow control packets that are right but for their end, which marks them bad."""
    return Random(f"{seed}/EBP of link packets").random() < _MARKED_SHARE


def has_rare_rows_at_adapters(seed: int) -> bool:
    """Whether such rows go to adapters, not to switches."""
    return Random(f"{seed}/rare rows at adapters").random() < _AT_ADAPTERS_SHARE


def random_rare_rows(
    topology: Topology, seed: int, start: int, end: int, count: Counter[str]
) -> list[Iterator[Control]]:
    """Of the kinds that a run has, each to one port of a switch after the other, or in few runs of an adapter.

    Where agents read many counters, nobody else does (docs/pipeline.md, section 10).
    """
    ports = (adapter_ports if has_rare_rows_at_adapters(seed) else switch_ports)(topology)
    return [
        _in_idle_data(topology, Random(f"{seed}/rows/{at}"), rare, ports, start, end, count, reads=not has_mads(seed))
        for at, rare in enumerate(_RARE)
        if rare.is_in(seed)
    ]


def _endless_packet(random: Random) -> list[Row | None]:
    """Its header; idle data goes on with it."""
    header = LRH.pack(
        vl=random.choice((0, 1, VL15)),
        lnh=LNH.IBA_LOCAL,
        dlid=random.getrandbits(16),
        pkt_len=random.randint(*_ENDLESS_WORDS),
        slid=random.getrandbits(16),
    )
    return [*frame_data_packet(header + vcrc(header))[:2]]


def _met_errors(random: Random) -> list[Row | None]:
    """An SMP whose ICRC alone is wrong, for whoever gets it, and link packets without an end, each an error."""
    data = smp_packet(invented_smp(random).replace(hop_pointer=0, hop_count=0, d=0)).data
    data = data[:-1] + bytes((data[-1] ^ random.randint(1, 0xFF),))
    begins = Row(Symbol.SLP << 24 | random.getrandbits(24), 0b1000)
    return [*frame_data_packet(data + vcrc(data)), *[None] * random.randrange(3), *[begins, None, None] * _MET]


def _swept_credits(random: Random) -> list[Row | None]:
    """Flow control packets of a VL, whose FCCL goes down."""
    fctbs, vl, first = random.randrange(CREDIT_MODULUS), random.randint(0, 1), random.randrange(CREDIT_MODULUS)
    rows: list[Row | None] = []
    for fccl in range(first, first - _SWEPT * _SWEPT_STEP, -_SWEPT_STEP):
        body = FLOW_CONTROL.pack(fctbs=fctbs, vl=vl, fccl=fccl % CREDIT_MODULUS)
        rows += frame_link_packet(body + lpcrc(body))
    return rows


def _marked_link_packet(random: Random) -> list[Row | None]:
    """A flow control packet that ends as a packet does that is marked bad; its LPCRC is right, or would be with EGP."""
    fields = {name: random.randrange(CREDIT_MODULUS) for name in ("fctbs", "fccl")}
    body = FLOW_CONTROL.pack(vl=random.randint(0, 1), **fields)
    of_body = int.from_bytes(lpcrc(body), "big") ^ random.choice((0, _HIDING_EBP))
    *first, end = frame_link_packet(body + of_body.to_bytes(VCRC_WIDTH // 8, "big"))
    return [*first, Row(end.data ^ Symbol.EGP ^ Symbol.EBP, end.k)]


class _Rare(NamedTuple):
    """What a run may have, as it is counted, how often, its rows, and whether no flow control packets should follow.

    In place of a row that stays as it is errors are read: what is counted in that cycle is added at once.
    """

    is_in: Callable[[int], bool]
    kind: str
    gap: tuple[int, int]
    rows: Callable[[Random], list[Row | None]]
    quiet: bool = False


_RARE: Final = (
    _Rare(has_endless_packets, INVENTED_PACKET, _ENDLESS_GAP, _endless_packet, quiet=True),
    _Rare(has_met_errors, INVENTED_SMP, _MET_GAP, _met_errors),
    _Rare(has_swept_credits, INVENTED_PACKET, _SWEPT_GAP, _swept_credits),
    _Rare(has_marked_link_packets, INVENTED_PACKET, _MARKED_GAP, _marked_link_packet),
)


def _in_idle_data(
    topology: Topology,
    random: Random,
    rare: _Rare,
    ports: Sequence[Port],
    start: int,
    end: int,
    count: Counter[str],
    *,
    reads: bool,
) -> Iterator[Control]:
    linked, free = topology.linked_ports(), start
    for time in random_times(random, rare.gap, start, end) if ports else ():
        if time <= free:
            continue
        port = random.choice(ports)
        direction = linked.index(port) ^ 1
        pitch = topology.pace(linked[direction])
        cycle = -(-time // pitch) * pitch
        count[rare.kind] += 1
        if rare.quiet:
            yield write_port(topology, cycle, linked[direction], PortRegister.FCP_PERIOD, _QUIET)
            cycle += _QUIET_ROWS * pitch
        read = topology.index[port.node], (port_address(port.number, PortCounter.RCV_ERRORS), 0, 0, 0)
        together = cycle
        for row in rare.rows(random):
            if row is not None:
                yield from (Control(together, Operation.INJECT, direction, one.args()) for one in in_idle_data([row]))
            elif reads:
                yield Control(cycle, Operation.BUS_READ, *read)
            cycle += pitch
            # Where each cycle has a row, those of one cycle are moved to the next ones, and nothing comes between.
            together = together if row is not None and pitch == 1 else cycle
        free = cycle
