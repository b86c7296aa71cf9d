"""What comes in place of idle data in few runs: packets without an end, errors that meet, credits that go down, flow
control packets marked bad."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import count, pairwise

import pytest

from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.injection import one_a_cycle
from cosim.stimulus.random_settings import switch_ports
from cosim.stimulus.rare_rows import (
    has_endless_packets,
    has_marked_link_packets,
    has_met_errors,
    has_rare_rows_at_adapters,
    has_swept_credits,
    random_rare_rows,
)
from wire.crc import lpcrc
from wire.flow_control import CREDIT_MODULUS, FLOW_CONTROL
from wire.headers import LRH
from wire.mad_packet import smp_of
from wire.packet import parse
from wire.smp import SMP_DIRECTED_ROUTE
from wire.stimulus import Injection, Operation
from wire.symbols import Control, Row, deframe

TOPOLOGY = check_experiment(CheckOptions(cycles=20_000)).topology
ROWS_OF_SMP = 73
GATES = (has_endless_packets, has_met_errors, has_swept_credits, has_marked_link_packets)


def rows(has_it: Callable[[int], bool], *, at_adapters: bool = False) -> list[tuple[int, list[Row]]]:
    """(direction, rows) of each that a run has; of errors some rows stay as they are."""
    seed = next(
        seed
        for seed in count(1)
        if has_it(seed) and sum(has(seed) for has in GATES) == 1 and has_rare_rows_at_adapters(seed) == at_adapters
    )
    counted: Counter[str] = Counter()
    (controls,) = random_rare_rows(TOPOLOGY, seed, 0, 200_000, counted)
    found: list[tuple[int, list[Row]]] = []
    apart = 3 if has_it == has_met_errors else 1
    free = -1
    for one in one_a_cycle(controls):
        if one.operation == Operation.INJECT:
            if one.cycle > free or one.target != found[-1][0]:
                found.append((one.target, []))
            flip = Injection.of(one.args).flip
            found[-1][1].append(Row(flip & 0xFFFF_FFFF, flip >> 32))
            free = one.cycle + apart * TOPOLOGY.pace(TOPOLOGY.linked_ports()[one.target])
    assert len(found) == counted.total() > 20
    return found


def test_packets_without_an_end_say_that_they_are_longer_than_a_thousand_words():
    lengths = []
    for _, (first, second) in rows(has_endless_packets):
        assert (first.k, first.data >> 24, second.k) == (0b1000, Control.SDP, 0)
        header = (first.data & 0xFF_FFFF).to_bytes(3, "big") + second.data.to_bytes(4, "big") + bytes(1)
        lengths.append(LRH["pkt_len"].read(header))
    assert min(lengths) >= 1_024
    assert max(lengths) > 2_000


def test_what_an_agent_judges_is_wrong_in_its_icrc_alone_and_errors_follow():
    for _, given in rows(has_met_errors):
        (framed,) = deframe(given[:ROWS_OF_SMP])
        packet = parse(framed.body)
        smp = SMP_DIRECTED_ROUTE.unpack(smp_of(packet))
        assert (smp.d, smp.hop_pointer, smp.hop_count) == (0, 0, 0)
        assert framed.good
        assert (packet.vcrc_good, packet.icrc_good) == (True, False)
        assert {(row.k, row.data >> 24) for row in given[ROWS_OF_SMP:]} == {(0b1000, Control.SLP)}


def test_a_vls_fccl_goes_down_in_small_steps():
    windows = set()
    for _, given in rows(has_swept_credits):
        packets = [FLOW_CONTROL.unpack(framed.body[: FLOW_CONTROL.size_bytes]) for framed in deframe(given)]
        vls_steps = {
            (earlier.vl == later.vl, (earlier.fccl - later.fccl) % CREDIT_MODULUS)
            for earlier, later in pairwise(packets)
        }
        assert vls_steps == {(True, 5)}
        windows |= {packet.fccl >> 8 for packet in packets}
    assert windows == set(range(CREDIT_MODULUS >> 8))


def test_flow_control_packets_are_right_but_for_an_end_that_marks_them_bad_or_a_crc_that_hides_it():
    kinds = set()
    for _, given in rows(has_marked_link_packets):
        begin, end = given
        assert (begin.k, begin.data >> 24, end.k, end.data & 0xFF) == (0b1000, Control.SLP, 0b0001, Control.EBP)
        (framed,) = deframe([begin, Row(end.data ^ Control.EBP ^ Control.EGP, end.k)])
        body = framed.body[: FLOW_CONTROL.size_bytes]
        bad, good = (bytes((symbol,)) for symbol in (Control.EBP, Control.EGP))
        kinds.add((framed.body == body + lpcrc(body), lpcrc(framed.body + bad) == lpcrc(body + lpcrc(body) + good)))
        assert FLOW_CONTROL.unpack(body).vl in (0, 1)
    assert kinds == {(True, False), (False, True)}


@pytest.mark.parametrize("at_adapters", [False, True])
@pytest.mark.parametrize("has_it", GATES)
def test_only_switches_get_them_or_in_fewer_runs_only_adapters(has_it, at_adapters):
    to_switches = {TOPOLOGY.linked_ports().index(port) ^ 1 for port in switch_ports(TOPOLOGY)}
    assert {direction in to_switches for direction, _ in rows(has_it, at_adapters=at_adapters)} == {not at_adapters}
    assert 0.005 < sum(map(has_it, range(5_000))) / 5_000 < 0.03
