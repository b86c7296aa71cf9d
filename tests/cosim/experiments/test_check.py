"""The check: it holds where nothing is wrong, and says what is where something is."""

import pytest

from cosim.experiments import check as check_module
from cosim.experiments.check import CheckOptions, check, check_experiment, check_scenario
from cosim.trace.compare import Comparison, Difference
from wire.stimulus import Delivery, Operation
from wire.trace import Kind, Record, Verdict, port_source

SMALL = CheckOptions(ports=3, vls=2, mtu=256, cycles=12_000, sim="model")


def test_the_same_options_give_the_same_stimulus():
    one, other = check_experiment(SMALL).spec(), check_experiment(SMALL).spec()
    assert one.parameters == other.parameters
    assert list(one.controls) == list(other.controls)
    assert list(one.posts) == list(other.posts)


def test_another_seed_gives_another_fabric_and_other_traffic():
    scenarios = [check_scenario(CheckOptions(seed=seed, ports=4)) for seed in range(5)]
    assert len({str(scenario.fabric) for scenario in scenarios}) == 5


@pytest.mark.parametrize("widths", ["4X", "1X", "mixed"])
def test_links_have_the_widths_asked_for(widths):
    seen = {link.width for link in check_scenario(CheckOptions(ports=8, widths=widths)).links}
    assert seen == ({"1X", "4X"} if widths == "mixed" else {widths})


def test_counters_are_read_in_the_last_cycles():
    experiment = check_experiment(SMALL)
    last = list(experiment.controls())[-1]
    assert last.operation == Operation.BUS_READ
    assert last.cycle + 4 < experiment.cycles == SMALL.cycles


def test_too_short_a_run_is_refused_with_the_least_length():
    with pytest.raises(ValueError, match=r"cycles 500: expected more than \d{4}"):
        check_experiment(CheckOptions(cycles=500))


def test_the_replay_line_has_every_option():
    assert CheckOptions(seed=9, errors=False).command == (
        "ironband check --ports 4 --vls 2 --mtu 256 --queueing voq --cycles 20000 --seed 9 --widths mixed "
        "--load 0.7 --sim verilator --no-errors"
    )


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
    seen = set()
    for seed in range(1, 9):
        result = check(CheckOptions(ports=4, vls=4, mtu=512, cycles=100_000, seed=seed, sim="model"), tmp_path)
        assert result.held, result.faults
        seen |= set(result.verdicts)
    refusals = {verdict.name for verdict in Verdict} - {"GOOD", "OVERRUN"} | {"SCRAP", "TX_DISCARD"}
    assert refusals - seen == set()


def with_run(monkeypatch, records=(), deliveries=(), comparison=None):
    """A run that gives these records and deliveries, in place of an engine's."""

    def perform(experiment, engine, work_dir, *, observe, on_delivery, waves=None):
        for record in records:
            observe(record)
        for delivery in deliveries:
            on_delivery(delivery)
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
    assert result.report.endswith(f"replay: {options.command}")


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
