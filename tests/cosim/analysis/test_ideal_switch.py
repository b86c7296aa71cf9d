"""Ideal switches: what queueing theory says of them is what they do."""

from random import Random

import pytest

from cosim.analysis.ideal_switch import Arrival, Departure, head_of_line_limit, input_queued, md1_wait, output_queued

ROWS = 10


def arrivals(ports: int, rate: float, count: int, seed: int = 1) -> list[Arrival]:
    random = Random(seed)
    ready = [0.0] * ports
    found = []
    for _ in range(count):
        for source in range(ports):
            destination = (source + random.randrange(1, ports)) % ports
            found.append(Arrival(int(ready[source]), source, destination, ROWS))
            ready[source] += ROWS + (random.expovariate(rate / ROWS / (1 - rate)) if rate < 1 else 0)
    return sorted(found)


def test_packets_to_one_output_leave_one_after_the_other():
    three = [Arrival(0, 0, 3, 10), Arrival(0, 1, 3, 20), Arrival(5, 2, 3, 10)]
    assert list(output_queued(three)) == [Departure(10, 0, 10), Departure(30, 10, 20), Departure(40, 25, 10)]


def test_a_fifo_holds_the_packets_behind_its_first():
    blocked = [Arrival(0, 0, 2, 10), Arrival(0, 1, 2, 10), Arrival(0, 1, 3, 10)]
    assert sorted(input_queued(blocked, 4)) == [Departure(10, 0, 10), Departure(20, 10, 10), Departure(30, 20, 10)]
    assert sorted(output_queued(blocked)) == [Departure(10, 0, 10), Departure(10, 0, 10), Departure(20, 10, 10)]


def test_every_packet_that_arrives_leaves():
    some = arrivals(5, 0.9, 400)
    assert len(list(input_queued(some, 5))) == len(list(output_queued(some))) == len(some)


def test_the_inputs_that_want_an_output_take_turns():
    wanted = [Arrival(0, source, 3, ROWS) for source in (0, 1, 2) for _ in range(4)]
    turns = list(input_queued(wanted, 4))
    assert [departure.cycle for departure in turns] == [ROWS * step for step in range(1, 13)]


def test_output_queues_wait_as_long_as_an_m_d_1_queue_at_most():
    """For few ports a little shorter: packets of one input never come at the same time."""
    waits = [departure.waited for departure in output_queued(arrivals(16, 0.8, 20_000))]
    assert sum(waits) / len(waits) / ROWS == pytest.approx(md1_wait(0.8), rel=0.12)


@pytest.mark.parametrize(("ports", "limit"), [(2, 1.0), (8, 0.625), (36, 0.593)])
def test_the_limit_of_input_fifos(ports, limit):
    assert head_of_line_limit(ports, slots=20_000) == pytest.approx(limit, abs=0.005)


def test_saturated_input_fifos_come_to_their_limit():
    saturated = arrivals(8, 1.0, 4_000)
    end = 4_000 * ROWS
    inside = [departure for departure in input_queued(saturated, 8) if end / 4 <= departure.cycle < end]
    assert len(inside) * ROWS / (8 * end * 3 / 4) == pytest.approx(head_of_line_limit(8), abs=0.015)
