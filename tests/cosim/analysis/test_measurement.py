"""What flows got and how full links were, measured on runs of the golden model."""

import pytest

from cosim.analysis.link_use import LinkUse
from cosim.analysis.measurement import Measurement, least_over_mean
from cosim.analysis.scoreboard import DeliveryCheck
from cosim.experiments.experiment import scenario_experiment
from cosim.experiments.perform import perform
from cosim.scenario.tables import Flow, Group
from cosim.scenario.uniform_load import uniform_load
from cosim.stimulus.flows import scenario_streams
from cosim.topology.topology import Port


def measured(scenario, tmp_path, warm_up: int = 0):
    """Measurement, use of the links to the hosts, and the check of a scenario on the model."""
    experiment = scenario_experiment(scenario)
    begin = experiment.start + warm_up
    measurement = Measurement(experiment.topology, len(scenario_streams(scenario)), begin, experiment.end)
    deliveries = DeliveryCheck(experiment.topology, [measurement])
    ports = [Port("S", number) for number in range(1, len(scenario.hosts) + 1)]
    use = LinkUse(experiment.topology, ports, begin, experiment.end)
    perform(experiment, "model", tmp_path, [deliveries, measurement, use])
    return measurement, use, deliveries


def one_flow(**values):
    """Two hosts, one flow from H1 to H2."""
    flow = Flow.model_validate({"from": "H1", "to": "H2", "size": 256, **values})
    return uniform_load(2, cycles=20_000).model_copy(update={"flows": (flow,)})


def test_a_packet_alone_waits_for_nothing_and_takes_its_time(tmp_path):
    measurement, _, _ = measured(one_flow(count=1), tmp_path)
    (served,) = measurement.served
    # Adapter, link and adapter, 73 rows each, and the pipelines between them.
    assert 3 * 73 < served.latencies.mean < 3 * 73 + 30
    assert (served.packets, served.payload_bytes, served.rows, served.waits.most) == (1, 256, 73, 1)
    assert served.times.total == served.waits.total + served.latencies.total


def test_a_burst_waits_in_its_host(tmp_path):
    measurement, _, _ = measured(one_flow(count=10), tmp_path)
    (served,) = measurement.served
    assert served.packets == measurement.offered == 10
    assert served.waits.most == 1 + 9 * 73


def test_a_regular_flow_takes_its_rate_of_the_link(tmp_path):
    measurement, use, _ = measured(one_flow(rate=0.5), tmp_path, warm_up=5_000)
    assert measurement.served[0].rows / 15_000 == pytest.approx(0.5, abs=0.01)
    assert use.data_rows / use.all_rows * 2 == pytest.approx(0.5, abs=0.01)
    assert use.of_capacity > use.of_all


def test_saturated_virtual_output_queues_fill_the_links_and_fifos_do_not(tmp_path):
    loads = {
        queueing: measured(uniform_load(8, cycles=60_000, size=256, queueing=queueing, seed=5), tmp_path, 20_000)
        for queueing in ("voq", "fifo")
    }
    assert loads["voq"][1].of_capacity > 0.95
    assert loads["fifo"][1].of_capacity == pytest.approx(0.625, abs=0.03)
    for measurement, use, deliveries in loads.values():
        assert (deliveries.lost, deliveries.fault_count) == (0, 0)
        # What is on the links in a while is what arrives in it, but for what is in flight.
        assert sum(served.rows for served in measurement.served) == pytest.approx(use.data_rows, rel=0.01)


def test_incast_serves_all_alike(tmp_path):
    incast = Flow.model_validate({"from": "*", "to": "H8", "size": 256, "rate": 1.0})
    scenario = uniform_load(8, cycles=100_000).model_copy(update={"flows": (incast,)})
    measurement, _, _ = measured(scenario, tmp_path, warm_up=20_000)
    assert least_over_mean(served.packets for served in measurement.served) > 0.95


def test_fairness_is_the_least_over_the_mean():
    assert least_over_mean([3, 3, 3]) == 1
    assert least_over_mean([0, 1, 2]) == 0
    assert least_over_mean([1, 3]) == 0.5
    assert least_over_mean([0, 0]) == 1


def test_a_packet_to_a_group_is_measured_once_for_each_that_gets_it(tmp_path):
    group = Group(mlid=0xC000, members=("H1", "H2", "H3"))
    flow = Flow.model_validate({"from": "*", "to": "all", "size": 256, "rate": 0.2})
    scenario = uniform_load(3, cycles=20_000).model_copy(update={"flows": (flow,), "groups": {"all": group}})
    measurement, use, deliveries = measured(scenario, tmp_path)
    assert deliveries.fault_count == deliveries.lost == 0
    assert 0 <= deliveries.delivered - sum(served.packets for served in measurement.served) < 6, "after the end"
    assert deliveries.delivered + deliveries.under_way == 2 * measurement.offered
    assert deliveries.under_way < 12
    assert use.data_rows / use.all_rows == pytest.approx(0.4, abs=0.01)
