"""ROWS records: RTL and model agree in all rows, and what nobody else sees is in them."""

from dataclasses import replace
from pathlib import Path

import pytest

from cosim.engines.simulation import WholeFabricsOnly, run
from cosim.stimulus.run_spec import RunSpec
from cosim.trace.compare import compare
from tests.cosim.engines.test_taps import PAIR, spec
from wire.row_crc import PERIOD
from wire.stimulus import Control, Injection, Operation, Trigger
from wire.trace import Kind, Record, link_source, port_of_source

ENGINES = [
    "amaranth",
    pytest.param("icarus", marks=pytest.mark.slow),
    pytest.param("verilator", marks=pytest.mark.slow),
]

LPCRC = 0x00FF_FF00
"""In row 1 of a link packet."""


def records_of(engine: str, specification: RunSpec, folder: Path, *, rows: int = PERIOD) -> list[Record]:
    with run(engine, specification, folder / engine, rows=rows) as records:
        return list(records)


def with_controls(specification: RunSpec, *more: Control) -> RunSpec:
    controls = sorted([*specification.controls, *more], key=lambda control: control.cycle)
    return replace(specification, controls=controls)


def without_rows(record: Record) -> Record:
    return record._replace(a=0, b=0, c=0) if record.kind == Kind.ROWS else record


@pytest.mark.parametrize("period", [1, PERIOD])
@pytest.mark.parametrize("engine", ENGINES)
def test_rtl_and_model_have_the_same_rows(engine: str, period: int, tmp_path: Path) -> None:
    expected = records_of("model", spec(), tmp_path, rows=period)
    comparison = compare(expected, records_of(engine, spec(), tmp_path, rows=period))
    assert comparison.difference is None
    places = [(record.cycle, record.source) for record in expected if record.kind == Kind.ROWS]
    ends = range(period - 1, spec().cycles, period)
    assert places == [(cycle, link_source(0, direction)) for cycle in ends for direction in (0, 1)]


def test_there_are_none_unless_they_are_asked_for(tmp_path: Path) -> None:
    records = records_of("model", spec(), tmp_path)
    assert records_of("model", spec(), tmp_path, rows=0) == [one for one in records if one.kind != Kind.ROWS]


def test_what_no_receiver_sees_is_a_difference_in_its_period(tmp_path: Path) -> None:
    """A bit of idle data, a K bit in it, and the LPCRC of a flow control packet on a link that goes down under it."""
    plain = spec()
    plain = replace(plain, controls=[control for control in plain.controls if control.operation == Operation.BUS_WRITE])
    lost = next(
        record
        for record in records_of("model", plain, tmp_path)
        if record.kind == Kind.TX_FCP and record.cycle >= 2 * PERIOD
    )
    plain = with_controls(plain, Control(lost.cycle, Operation.LINK_DOWN, 0, (0, 0, 0, 0)))
    unseen = (
        (20, Injection(Trigger.IDLE, flip=1 << 9)),
        (PERIOD + 20, Injection(Trigger.IDLE, flip=1 << 33)),
        (lost.cycle - 4, Injection(Trigger.LINK, first=1, last=1, flip=LPCRC)),
    )
    direction, _port = port_of_source(lost.source)
    damaged = with_controls(plain, *(Control(at, Operation.INJECT, direction, one.args()) for at, one in unseen))
    expected = records_of("model", plain, tmp_path)
    seen = [record for record in records_of("amaranth", damaged, tmp_path) if record.kind != Kind.INJECT]
    assert list(map(without_rows, expected)) == list(map(without_rows, seen))
    differ = [(one.cycle // PERIOD, one.source) for one, other in zip(expected, seen, strict=True) if one != other]
    assert differ == [(at // PERIOD, link_source(0, direction)) for at in (0, PERIOD, lost.cycle)]


def test_a_part_of_a_fabric_has_none(tmp_path: Path) -> None:
    with pytest.raises(WholeFabricsOnly, match="there all rows are compared anyhow"):
        run("icarus", spec(), tmp_path, rtl=[next(iter(PAIR.nodes))], rows=PERIOD)
