"""SMPs that nobody sent: whole packets in place of idle data."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from cosim.stimulus.invented_smps import INVENTED_SMP, random_invented_smps
from wire.crc import VCRC_BYTES
from wire.mad import MadMethod
from wire.mad_packet import smp_of
from wire.packet import parse
from wire.smp import SMP_DIRECTED_ROUTE
from wire.stimulus import Control, Injection, Operation, Trigger
from wire.symbols import Row, deframe

ROWS = 73
"""Of a packet with a MAD of 256 bytes."""


def invented(pitch: int) -> list[list[Control]]:
    """The operations of each."""
    counted: Counter[str] = Counter()
    controls = list(random_invented_smps(Random(1), 3, pitch, 100, 2_000_000, counted))
    assert len(controls) == ROWS * counted[INVENTED_SMP] > 20 * ROWS
    return [controls[place : place + ROWS] for place in range(0, len(controls), ROWS)]


@pytest.mark.parametrize("pitch", [1, 4])
def test_its_rows_come_one_after_the_other_in_place_of_idle_ones(pitch):
    for controls in invented(pitch):
        assert {(one.operation, one.target) for one in controls} == {(Operation.INJECT, 3)}
        assert controls[0].cycle % pitch == 0
        assert {later.cycle - earlier.cycle for earlier, later in pairwise(controls)} == {pitch}
        assert {Injection.of(one.args).trigger for one in controls} == {Trigger.IDLE}


def test_it_is_a_directed_route_smp_with_its_crcs_that_sets_nothing():
    hops, methods = set(), set()
    for controls in invented(1):
        flips = [Injection.of(one.args).flip for one in controls]
        (framed,) = deframe([Row(flip & 0xFFFF_FFFF, flip >> 32) for flip in flips])
        assert framed.good
        smp = SMP_DIRECTED_ROUTE.unpack(smp_of(parse(framed.body[:-VCRC_BYTES])))
        hops.add((smp.d, smp.hop_pointer, smp.hop_count))
        methods.add(smp.method)
    assert hops > {(0, 0, 0), (1, 0, 0)}
    assert MadMethod.GET in methods
    assert MadMethod.SET not in methods
