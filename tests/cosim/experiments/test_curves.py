"""Throughput curves: what is measured is what theory says, and the picture shows both."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from cosim.analysis.scoreboard import DeliveryCheck
from cosim.experiments.curves import CurveError, Load, ideal_curve, measure_curve, time_alone
from cosim.pictures.curve_picture import curve_figure
from cosim.pictures.drawing import drawing_style, save_figure
from cosim.scenario.scenario_file import scenario_of
from cosim.topology.topology import Port
from cosim.topology.topology_file import find_topology

LOAD = Load(ports=4, size=256, cycles=40_000, warm_up=10_000)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Measured on the model and in theory, VOQ then FIFO, at a low, a middle and full load; a packet alone."""
    directory = tmp_path_factory.mktemp("curves")
    rates = (0.2, 0.6, 1.0)
    alone = time_alone("model", "voq", LOAD, directory)
    return [
        (measure_curve("model", "voq", LOAD, rates, directory), ideal_curve("output queues", LOAD, rates, alone)),
        (measure_curve("model", "fifo", LOAD, rates, directory), ideal_curve("input FIFO", LOAD, rates, alone)),
    ], alone


def test_at_low_load_all_is_delivered_in_hardly_more_time_than_a_packet_takes_alone(pairs):
    curves, alone = pairs
    for curve in (curve for pair in curves for curve in pair):
        assert curve.points[0].delivered == pytest.approx(0.2, abs=0.02)
        assert alone <= curve.points[0].mean_cycles < 1.1 * alone
        assert curve.points[0].keeps_up


def test_the_switch_is_no_better_than_theory_and_not_much_worse(pairs):
    for measured, theory in pairs[0]:
        for point, ideal in zip(measured.points, theory.points, strict=True):
            assert point.delivered == pytest.approx(ideal.delivered, abs=0.03)
    voq, ideal = pairs[0][0]
    assert ideal.points[1].mean_cycles <= voq.points[1].mean_cycles < 1.1 * ideal.points[1].mean_cycles


def test_fifos_do_not_keep_up_at_full_load(pairs):
    fifo, theory = pairs[0][1]
    assert not fifo.points[2].keeps_up
    assert not theory.points[2].keeps_up
    assert fifo.points[2].delivered < 0.75


@pytest.mark.parametrize("queueing", ["voq", "fifo"])
@pytest.mark.parametrize(("pattern", "ports"), [("transpose", 4), ("bit_complement", 4), ("permutation", 5)])
def test_a_permutation_has_no_contention_in_one_switch(tmp_path, queueing, pattern, ports):
    load = Load(ports=ports, cycles=8_000, warm_up=2_000, pattern=pattern)
    alone = time_alone("model", queueing, load, tmp_path)
    (point,) = measure_curve("model", queueing, load, [0.7], tmp_path).points
    assert point.delivered == pytest.approx(0.7, abs=0.05)
    # A packet may wait for a flow control packet of two rows to end, at each of its two links.
    assert alone <= point.mean_cycles <= alone + 4


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_a_hot_host_is_saturated_where_its_link_is_full(tmp_path, share):
    load = Load(ports=6, cycles=40_000, warm_up=10_000, pattern="hotspot", hot="H2", hot_share=share)
    port, full = load.busiest_link
    # Five others offer the load to it with this share; what H2 sends goes elsewhere.
    assert (port, full) == (Port("S", 2), pytest.approx(1 / (5 * share)))
    below, above = measure_curve("model", "voq", load, [0.85 * full, 1.3 * full], tmp_path).points
    assert below.keeps_up
    assert below.delivered == pytest.approx(0.85 * full, abs=0.04)
    assert not above.keeps_up
    assert above.mean_cycles > 3 * below.mean_cycles


def test_a_fabric_keeps_up_until_its_busiest_link_is_full(tmp_path):
    table = {"topology": "fat_tree.net", "cycles": 1}
    fabric = scenario_of(table, "fat_tree.net", "fat_tree", find_topology("fat_tree").parent)
    load = Load(cycles=30_000, warm_up=6_000, pattern="permutation", seed=2, fabric=fabric)
    port, full = load.busiest_link
    # Both hosts of a leaf send by the same of its two uplinks, as the routes are.
    assert (port.node[0], full) == ("L", pytest.approx(0.5))
    below, above = measure_curve("model", "voq", load, [0.4, 0.7], tmp_path).points
    assert below.keeps_up
    assert below.delivered == pytest.approx(0.4, abs=0.03)
    assert not above.keeps_up


def test_bursts_leave_the_load_and_make_packets_wait(tmp_path):
    alike = Load(ports=4, cycles=60_000, warm_up=10_000)
    alone = time_alone("model", "voq", alike, tmp_path)
    (single,), (bursts,) = (
        measure_curve("model", "voq", load, [0.5], tmp_path).points for load in (alike, replace(alike, burst=8))
    )
    assert bursts.delivered == pytest.approx(single.delivered, abs=0.06)
    assert bursts.mean_cycles - alone > 1.3 * (single.mean_cycles - alone)


def test_a_wrong_delivery_ends_a_measurement(monkeypatch, tmp_path):
    def deliver(check, delivery):
        check.fault_count += 1

    monkeypatch.setattr(DeliveryCheck, "deliver", deliver)
    with pytest.raises(CurveError, match=r"offered load 0\.2: 0 packets lost, [0-9]+ delivered wrong"):
        measure_curve("model", "voq", LOAD, [0.2], tmp_path)


def test_the_picture_names_what_it_shows(pairs, tmp_path):
    curves, alone = pairs
    with drawing_style():
        save_figure(
            curve_figure("Four ports", curves, alone, limit=0.7, rows=73), [tmp_path / "c.svg", tmp_path / "c.png"]
        )
    words = " ".join("".join(text.itertext()) for text in ElementTree.parse(tmp_path / "c.svg").iter())
    for shown in ("Four ports", "VOQ, golden model", "FIFO, golden model", "output queues, theory", "0.700", "M/D/1"):
        assert shown in words
