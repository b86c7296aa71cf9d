"""The CRCs of all rows that enter a link: what the model sums up in pieces is what a count of row by row gives."""

import random

import pytest

from model.fabric import Fabric, WireLog
from model.packet import idle
from tests.model.link.test_wire_tap import CYCLES, DOWN, damaged, traffic
from wire.codes import LinkWidth
from wire.registers import PortRegister
from wire.row_crc import NO_ROW, PERIOD, ROW, VALID, row_crc
from wire.stimulus import Control, Operation
from wire.trace import Kind, link_source
from wire.trace_layout import Rows


def summed_row_by_row(log: WireLog, until: int) -> list[int]:
    """Of each period; a cycle with a row that is not logged has idle data."""
    paces = dict(log.paces(until))
    rows = {cycle: (data, k) for cycle, data, k in log.rows(until)}
    found, pace = [], 0
    for period in range(until // PERIOD):
        cycles = b""
        for cycle in range(PERIOD * period, PERIOD * (period + 1)):
            pace = paces.get(cycle, pace)
            if pace and cycle % pace == 0:
                data, k = rows.get(cycle, idle(cycle))
                cycles += ROW.pack(VALID | k, data)
            else:
                cycles += NO_ROW
        found.append(row_crc(cycles))
    return found


@pytest.mark.parametrize("width", [LinkWidth.X1, LinkWidth.X4])
@pytest.mark.parametrize("seed", range(12))
def test_every_row_counts_whatever_becomes_of_packets(star, ready, seed, width):
    print(f"seed {seed}")
    bench = damaged(traffic(star(2), ready), ready, seed)
    for node in (0, 1):
        bench.write_port(node, 1, PortRegister.WIDTH, width, cycle=100 + node)
    bench.fabric = Fabric(bench.parameters, sorted(bench.controls, key=lambda control: control.cycle), bench.posts)
    # With a flight of 1 what gets across is what enters.
    log, _driven = bench.fabric.keep_logs(0, DOWN)
    bench.fabric.sum_rows(PERIOD)
    choose = random.Random(seed)
    cycle = 0
    while cycle < CYCLES:
        cycle = min(cycle + choose.randrange(1, 400), CYCLES)
        bench.run(cycle)
    records = [record for record in bench.records if record[1:3] == (link_source(0, DOWN), Kind.ROWS)]
    assert [record.cycle for record in records] == list(range(PERIOD - 1, CYCLES, PERIOD))
    assert [Rows.crc.read(record) for record in records] == summed_row_by_row(log, CYCLES)


def test_the_row_of_a_reset_s_first_cycle_enters_and_then_none(star):
    bench = star(2, bring_up=False)
    at = 2 * PERIOD + 9
    bench.controls.append(Control(at, Operation.RESET, 1))
    bench.fabric = Fabric(bench.parameters, bench.controls, ())
    bench.fabric.sum_rows(PERIOD)
    bench.run(4 * PERIOD)
    found = [Rows.crc.read(record) for record in bench.records if record[1:3] == (link_source(0, 1), Kind.ROWS)]
    entered = range(2 * PERIOD, at + 2)
    cycles = b"".join(ROW.pack(VALID, idle(cycle)[0]) for cycle in entered)
    assert found[2:] == [row_crc(cycles + NO_ROW * (PERIOD - len(entered))), row_crc(NO_ROW * PERIOD)]
