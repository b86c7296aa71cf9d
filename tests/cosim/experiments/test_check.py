"""The check: it holds where nothing is wrong, and otherwise says what is."""

import pytest

from cosim.analysis.observer import Audience
from cosim.experiments import check as check_module
from cosim.experiments.check import check
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.trace.compare import Comparison, Difference
from wire.row_crc import PERIOD
from wire.stimulus import Delivery
from wire.trace import Kind, Record, Verdict, link_source, port_source


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("queueing", ["voq", "fifo"])
def test_without_errors_every_packet_arrives_that_there_was_time_for(tmp_path, seed, queueing):
    options = CheckOptions(
        ports=4, vls=2, mtu=512, queueing=queueing, cycles=20_000, seed=seed, errors=False, sim="model"
    )
    result = check(options, tmp_path)
    assert result.held, result.faults
    assert result.packets_delivered > 100
    assert result.packets_lost == result.verdicts.get("VL15_DROPPED", 0) == 0 or "VL15_DROPPED" in result.verdicts
    assert result.errors_given == {}


@pytest.mark.parametrize("seed", range(1, 4))
def test_errors_cost_packets_but_nothing_wrong_is_delivered(tmp_path, seed):
    result = check(CheckOptions(ports=4, vls=4, cycles=40_000, seed=seed, sim="model"), tmp_path)
    assert result.held, result.faults
    assert sum(result.errors_given.values()) > 10
    assert result.injections_acted > 5
    assert result.packets_delivered > 100
    assert result.losses_explained >= result.packets_lost


def test_random_traffic_meets_every_reason_to_refuse_a_packet(tmp_path):
    """What the stimulus never does the comparison never sees. OVERRUN needs a sender that ignores its credits."""
    unseen = {verdict.name for verdict in Verdict} - {"GOOD", "OVERRUN"} | {"SCRAP", "TX_DISCARD"}
    for seed in range(1, 17):
        result = check(CheckOptions(ports=4, vls=4, mtu=512, cycles=100_000, seed=seed, sim="model"), tmp_path)
        assert result.held, result.faults
        unseen -= set(result.verdicts)
        if not unseen:
            return
    assert not unseen


def with_run(monkeypatch, records=(), deliveries=(), comparison=None):
    """A run that gives these records and deliveries, in place of an engine's."""

    def perform(experiment, engine, work_dir, observers, *, waves=None, taps=None, rows=0):
        audience = Audience(observers, experiment.packets())
        assert list(audience.follow(records)) == list(records)
        for delivery in deliveries:
            audience.on_delivery(delivery)
        audience.finish()
        return comparison

    monkeypatch.setattr(check_module, "perform", perform)


def test_a_difference_is_reported_with_the_line_that_replays_it(monkeypatch, tmp_path):
    record = Record(5_000, port_source(0, 2), Kind.TX_FCP, 0, 7)
    difference = Difference(5_000, record.source, record.kind, record, None, (), ())
    with_run(monkeypatch, comparison=Comparison(100, 4_999, difference))
    options = CheckOptions(sim="verilator")
    result = check(options, tmp_path)
    assert not result.held
    assert result.cycles_compared == 5_000
    assert "cycle 5000, S[2]" in result.report
    replay, waves = result.report.splitlines()[-2:]
    assert replay == f"replay: {options.command}"
    assert waves == f"waves: {options.command} --waves difference.fst --waves-cycles 4800:5020"


def test_of_a_period_with_another_row_the_row_is_reported(monkeypatch, tmp_path):
    """A second run has each row."""
    source = link_source(0, 1)

    def difference(cycle):
        record = Record(cycle, source, Kind.ROWS, 1)
        return Comparison(9, cycle - 1, Difference(cycle, source, record.kind, record, record._replace(a=2), (), ()))

    periods = []

    def perform(experiment, engine, work_dir, observers, *, waves=None, taps=None, rows=0):
        periods.append(rows)
        return difference(5_119 if rows > 1 else 5_000)

    monkeypatch.setattr(check_module, "perform", perform)
    result = check(CheckOptions(), tmp_path)
    assert periods == [PERIOD, 1]
    assert result.cycles_compared == result.difference.cycle == 5_000
    assert "cycle 5000, " in result.report
    assert " -> " in result.report


def test_a_packet_refused_without_any_error_is_a_fault(monkeypatch, tmp_path):
    refused = Record(5_000, port_source(0, 2), Kind.RX_DATA, Verdict.OVERRUN)
    with_run(monkeypatch, [refused], comparison=Comparison(1, 5_000, None))
    assert check(CheckOptions(errors=False), tmp_path).faults == ("packets refused without any error: {'OVERRUN': 1}",)
    assert check(CheckOptions(errors=True), tmp_path).held


def test_a_loss_that_no_error_explains_is_a_fault(monkeypatch, tmp_path):
    options = CheckOptions(cycles=20_000)
    by_flow = {}
    for packet in check_experiment(options).packets():
        if packet.destination is not None:
            by_flow.setdefault(packet.flow, []).append(packet)
    first, second = next(packets for packets in by_flow.values() if len(packets) > 1)[:2]
    nodes = check_experiment(options).topology.index
    late = Delivery(
        cycle=second.cycle + 9,
        node=nodes[second.destination],
        slot=2 if second.final_vl == 15 else second.final_vl,
        data=second.data,
    )
    with_run(monkeypatch, deliveries=[late], comparison=Comparison(1, 9, None))
    assert first.sequence < second.sequence
    assert check(options, tmp_path).faults == ("1 packets lost, only 0 of them to an error",)
