"""Packets that stay in a switch for too long (docs/pipeline.md, section 7.2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.rtl.switch.bench import SWITCH, TO_WIRES, Fabric
from wire.packet import build_ud_send
from wire.parameters import AdapterParameters, SwitchParameters
from wire.registers import Counter, Detail, NodeRegister, PortRegister, node_address, port_address
from wire.time_limits import NO_LIMIT, TICK_CYCLES
from wire.trace import Discard, Kind

# Nothing here is for the agents.
pytestmark = pytest.mark.usefixtures("stand_in")

BLOCKS = 16
SIZE = 256
IN_BUFFER = 3
"""Packets that a host's receive buffer has room for; the next waits in the switch for credits."""

LIMIT = 4 * TICK_CYCLES
OUT = 2

TO_RECORD = 1 + 2 + 1 + TO_WIRES
"""Cycles from the last tick that a head sees to its record: it is expired, g and x_0 follow."""


class Discarded(NamedTuple):
    cycle: int
    reason: Discard


def words(psn: int) -> tuple[int, ...]:
    """A packet from adapter 0 to adapter 1."""
    packet = build_ud_send(slid=1, dlid=2, dest_qp=1, src_qp=2, q_key=3, payload=bytes(SIZE), psn=psn)
    return tuple(int.from_bytes(packet.data[place : place + 4]) for place in range(0, len(packet.data), 4))


def jam(
    packets: int, *, hoq_life: int = NO_LIMIT, life_time: int = NO_LIMIT, stall_count: int = 0, **switch: Any
) -> Any:
    """A fabric whose host 1 takes nothing, the cycle from which data flows, and so many packets on their way to it."""
    parameters = SwitchParameters(ports=2, vls=1, mtu=256, buffer_blocks=2 * BLOCKS, lft_size=16, **switch)
    fabric = Fabric(parameters, AdapterParameters(1, 256, BLOCKS, 3 * BLOCKS), 2)
    registers = {
        (SWITCH, OUT): {PortRegister.HOQ_LIFE: hoq_life, PortRegister.VL_STALL_COUNT: stall_count},
        (SWITCH, 0): {NodeRegister.LIFE_TIME: life_time},
    }
    ready = fabric.bring_up(5, registers)
    fabric.stall(5, 1, 0b01)
    for psn in range(packets):
        fabric.post(ready, 0, 0, words(psn))
    return fabric, ready


def discards(fabric: Fabric) -> list[Discarded]:
    found = fabric.of(Kind.TX_DISCARD)
    assert all((event.node, event.port) == (SWITCH, OUT) for event in found)
    reasons = [event.words[2] for event in found]
    return [Discarded(event.cycle, Discard(reason)) for event, reason in zip(found, reasons, strict=True)]


def ticks_before(discarded: Discarded) -> bool:
    """It was discarded as soon as it had seen enough ticks."""
    return (discarded.cycle - TO_RECORD) % TICK_CYCLES == 0


@pytest.mark.parametrize(("queueing", "readers"), [("voq", 2), pytest.param("fifo", 1, marks=pytest.mark.deep)])
def test_a_head_without_credits_is_discarded_within_the_limit(queueing: str, readers: int) -> None:
    fabric, ready = jam(IN_BUFFER + 2, hoq_life=0, queueing=queueing, readers=readers)
    end = ready + 3 * LIMIT
    for place, register in enumerate((Counter.XMIT_DISCARDS, Detail.HOQ_LIFE_DISCARDS, Detail.LIFE_TIME_DISCARDS)):
        fabric.read(end + place, SWITCH, port_address(OUT, register))
    fabric.run(end + 10)
    first, second = discards(fabric)
    assert (first.reason, second.reason) == (Discard.HOQ_LIFE, Discard.HOQ_LIFE)
    assert ticks_before(first)
    assert first.cycle < ready + 600 + LIMIT
    assert second.cycle == first.cycle + LIMIT, "it has been the head since"
    assert [value for _, value in fabric.answers[SWITCH]] == [2, 2, 0]


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [20, pytest.param(NO_LIMIT, marks=pytest.mark.deep)])
def test_exponents_above_19_are_no_limit(exponent: int) -> None:
    fabric, ready = jam(IN_BUFFER + 1, hoq_life=exponent, life_time=exponent)
    fabric.stall(ready + 2 * LIMIT, 1, 0)
    fabric.run(ready + 2 * LIMIT + 700)
    assert discards(fabric) == []
    assert len(fabric.delivered[1]) == IN_BUFFER + 1


def test_the_smaller_limit_counts_and_is_the_reason() -> None:
    fabric, ready = jam(IN_BUFFER + 1, hoq_life=1, life_time=0)
    fabric.run(ready + 2 * LIMIT)
    (only,) = discards(fabric)
    assert only.reason == Discard.LIFE_TIME
    assert ticks_before(only)


def test_a_packet_that_was_not_the_head_for_long_may_be_over_its_life_time() -> None:
    fabric, ready = jam(IN_BUFFER + 2, life_time=0)
    comes = ready + 2 * LIMIT - 300  # credits, before the second has been the head for a limit
    fabric.stall(comes, 1, 0)
    fabric.run(ready + 2 * LIMIT)
    first, second = discards(fabric)
    assert (first.reason, second.reason) == (Discard.LIFE_TIME, Discard.LIFE_TIME)
    assert first.cycle < comes < second.cycle < first.cycle + LIMIT
    assert len(fabric.delivered[1]) == IN_BUFFER


def test_a_vl_stalls_after_so_many_discards_and_a_change_ends_that() -> None:
    fabric, ready = jam(IN_BUFFER + 5, hoq_life=0, stall_count=2)
    writes = ready + 3 * LIMIT
    fabric.post(writes + 100, 0, 0, words(9))
    fabric.write(writes, SWITCH, port_address(OUT, PortRegister.VL_STALL_COUNT), 3)
    fabric.run(writes + 100 + 2 * LIMIT)
    found = discards(fabric)
    first, second = Discard.HOQ_LIFE, Discard.HOQ_LIFE
    assert [one.reason for one in found] == [first, second, *[Discard.STALLED] * 3, Discard.HOQ_LIFE]
    assert found[2].cycle == found[1].cycle + 5, "at once"
    assert ticks_before(found[5])
    assert found[5].cycle > writes + LIMIT * 3 // 4


@pytest.mark.slow
@pytest.mark.deep
def test_a_stall_lasts_eight_times_the_limit() -> None:
    fabric, ready = jam(IN_BUFFER + 1, hoq_life=0, stall_count=1)
    for psn in range(10):
        fabric.post(ready + LIMIT * (psn + 1), 0, 0, words(psn + 9))
    fabric.run(ready + 11 * LIMIT)
    first, *others = discards(fabric)
    assert first.reason == Discard.HOQ_LIFE
    end = first.cycle - TO_RECORD + 8 * LIMIT
    stalled = [one for one in others if one.reason == Discard.STALLED]
    assert end - LIMIT < stalled[-1].cycle < end + TO_RECORD
    assert others == [*stalled, *(one for one in others if one.cycle > end + LIMIT // 2)], "as long as it lasts"


@pytest.mark.slow
@pytest.mark.parametrize(
    "others", [(NO_LIMIT, NO_LIMIT), pytest.param((NO_LIMIT, NO_LIMIT - 1), marks=pytest.mark.deep)]
)
def test_limits_that_are_changed_count_anew(others: tuple[int, int]) -> None:
    fabric, ready = jam(IN_BUFFER + 1, hoq_life=0)
    for number, cycle in enumerate(range(ready, ready + 3 * LIMIT, LIMIT // 2)):
        fabric.write(cycle, SWITCH, node_address(NodeRegister.LIFE_TIME), others[number % 2])
    fabric.run(ready + 3 * LIMIT)
    assert bool(discards(fabric)) == (others[0] == others[1]), "what a Set writes again and again changes nothing"
