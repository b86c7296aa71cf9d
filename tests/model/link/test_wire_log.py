"""What is on a link's wires, as somebody outside gets it from time to time."""

import random

import pytest

from model.fabric import Fabric, WireLog
from wire.codes import LinkWidth, PortPhysicalState
from wire.crc import fingerprint
from wire.framing import Framer
from wire.registers import PortRegister
from wire.stimulus import Injection, Trigger
from wire.symbols import Control, Row, deframe, idle_row
from wire.trace import Kind, Record, port_source

CYCLES = 4000
SWITCH_PORT, HOST = port_source(0, 1), port_source(1, 1)


def traffic(bench, ready):
    for number in range(12):
        bench.post(ready, 1 + number % 2, 2 - number % 2, payload=16 * number, seed=number)
    return bench


def logs(bench) -> tuple[WireLog, WireLog]:
    """What enters link 0 towards the host, and what the host drives."""
    controls = sorted(bench.controls, key=lambda control: control.cycle)
    bench.fabric = Fabric(bench.parameters, controls, bench.posts)
    return bench.fabric.keep_logs(0, 0)


def wires(log: WireLog, until: int) -> dict[int, Row]:
    """The rows of all cycles in which there is one."""
    paces = dict(log.paces(until))
    rows = {cycle: Row(data, k) for cycle, data, k in log.rows(until)}
    found = {}
    pace = 0
    for cycle in range(until):
        pace = paces.get(cycle, pace)
        if pace and cycle % pace == 0:
            found[cycle] = rows.pop(cycle, idle_row(cycle))
    assert not rows, "a row in a cycle that has none"
    return found


def sent(wires: dict[int, Row]) -> list[tuple[int, int]]:
    """First cycle and fingerprint of each data packet."""
    cycles = list(wires)
    return [
        (cycles[frame.first_row], fingerprint(bytes([frame.start]) + frame.body + bytes([Control.EGP])))
        for frame in deframe(wires.values())
        if frame.start == Control.SDP
    ]


def recorded(records: list[Record], source: int) -> list[tuple[int, int]]:
    return [(record.c, record.d) for record in records if (record.source, record.kind) == (source, Kind.TX_DATA)]


@pytest.mark.parametrize("width", [LinkWidth.X1, LinkWidth.X4])
def test_every_packet_is_on_the_wires_as_it_was_sent(star, ready, width):
    bench = traffic(star(2), ready)
    for node in (0, 1):
        bench.write_port(node, 1, PortRegister.WIDTH, width, cycle=100 + node)
    entering, driven = logs(bench)
    bench.run(CYCLES)
    for log, source in ((entering, SWITCH_PORT), (driven, HOST)):
        rows = wires(log, CYCLES)
        assert sent(rows) == recorded(bench.records, source)
        assert len(sent(rows)) == 6
        flow_control = sum(frame.start == Control.SLP for frame in deframe(rows.values()))
        assert flow_control == sum(record[1:3] == (source, Kind.TX_FCP) for record in bench.records) > 2


@pytest.mark.parametrize("width_at", range(9))
def test_of_packets_under_which_the_width_becomes_1x_no_row_is_where_1x_has_none(star, width_at):
    """Flow control packets are on the wires from the first cycles on."""
    bench = star(2, bring_up=False)
    bench.controls.clear()
    bench.write_port(0, 1, PortRegister.WIDTH, LinkWidth.X1, cycle=width_at)
    bench.write_port(1, 1, PortRegister.WIDTH, LinkWidth.X1, cycle=width_at + 1)
    log, _driven = logs(bench)
    tap = bench.fabric.tap(0, 0)
    bench.run(200)
    framer = Framer()
    framed = [found for cycle, row in wires(log, 200).items() if (found := framer.take(cycle, *row)) is not None]
    assert tap.packets(200) == framed


def test_asking_in_pieces_gives_the_same(star, ready):
    choose = random.Random(1)
    whole, pieces = (traffic(star(2, flight=3), ready) for _ in range(2))
    (all_rows, _), (log, _) = logs(whole), logs(pieces)
    whole.run(CYCLES)
    found = []
    cycle = 0
    while cycle < CYCLES:
        cycle = min(cycle + choose.randrange(1, 40), CYCLES)
        pieces.run(cycle)
        found += log.rows(cycle)
    assert found == all_rows.rows(CYCLES)
    assert len(found) > 200


def test_errors_are_in_what_enters_and_not_in_what_is_driven(star, ready):
    bench = traffic(star(2), ready)
    for direction in (0, 1):
        bench.inject(ready - 10 + direction, 0, direction, Injection(Trigger.DATA, first=3, last=3, flip=1 << 9))
    bench.inject(250, 0, 0, Injection(Trigger.IDLE, flip=1))
    entering, driven = logs(bench)
    bench.run(CYCLES)
    good, bad = recorded(bench.records, HOST), recorded(bench.records, SWITCH_PORT)
    assert sent(wires(driven, CYCLES)) == good
    rows = wires(entering, CYCLES)
    assert [cycle for cycle, _ in sent(rows)] == [cycle for cycle, _ in bad]
    assert [here == there for here, there in zip(sent(rows), bad, strict=True)] == [False] + [True] * (len(bad) - 1)
    (idle,) = [record.cycle for record in bench.of(Kind.INJECT, since=0) if record.a == Trigger.IDLE]
    assert rows[idle].data ^ idle_row(idle).data == 1


def test_nothing_enters_a_link_that_is_down(star, ready):
    bench = traffic(star(2), ready)
    bench.link(ready + 100, 0, False)
    bench.link(ready + 150, 0, True)
    entering, driven = logs(bench)
    bench.run(CYCLES)
    down = set(range(ready + 101, ready + 151))
    assert set(range(CYCLES)) - set(wires(entering, CYCLES)) == down
    assert set(wires(driven, CYCLES)) == set(range(CYCLES))


def test_what_is_on_a_link_that_goes_down_does_not_get_across(star, ready):
    bench = star(2, flight=20)
    bench.link(ready + 100, 0, False)
    bench.link(ready + 104, 0, True)
    bench.inject(ready + 89, 0, 0, Injection(Trigger.IDLE, flip=1))
    entering, driven = logs(bench)
    bench.run(CYCLES)
    (lost,) = [record.cycle for record in bench.of(Kind.INJECT, since=0)]
    missing = set(range(CYCLES)) - set(wires(entering, CYCLES))
    assert lost in missing
    assert missing == set(range(ready + 101 - 19, ready + 105))
    assert set(wires(driven, CYCLES)) == set(range(CYCLES))


@pytest.mark.parametrize("state", [PortPhysicalState.SLEEP, PortPhysicalState.DISABLED])
def test_the_widths_that_the_sender_offers_are_told(star, state):
    bench = star(2)
    for cycle, value in ((50, state), (70, PortPhysicalState.POLLING)):
        bench.write_port(0, 1, PortRegister.PHYSICAL_STATE, value, cycle=cycle)
    # While it sleeps it offers nothing, whatever it is enabled to.
    for cycle, widths in ((55, LinkWidth.X1), (100, LinkWidth.X4), (110, LinkWidth.X4), (120, 0), (130, 255)):
        bench.write_port(0, 1, PortRegister.LINK_WIDTH_ENABLED, widths, cycle=cycle)
    entering, driven = logs(bench)
    bench.run(200)
    assert entering.offers(60) == [(0, 3), (52, 0)]
    assert entering.offers(200) == [(72, LinkWidth.X1), (102, LinkWidth.X4), (132, 3)]
    assert driven.offers(200) == [(0, 3)]


def test_a_width_is_a_pace(star):
    bench = star(2)
    bench.write_port(0, 1, PortRegister.WIDTH, LinkWidth.X1, cycle=51)
    entering, driven = logs(bench)
    bench.run(200)
    assert entering.paces(200) == [(0, 1), (53, 4)]
    assert driven.paces(200) == [(0, 1)]
