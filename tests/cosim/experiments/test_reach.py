"""Throughput over cable length: what is measured is what credits allow in theory."""

import random
from xml.etree import ElementTree

import pytest

from cosim.experiments.reach import Reach, measure_reach
from cosim.pictures.drawing import drawing_style, save_figure
from cosim.pictures.reach_picture import reach_figure
from wire.flow_control import CREDIT_WINDOW
from wire.parameters import MAX_BLOCKS

EXACT = 0.002
"""Now and then a flow control packet has one of the rows."""

A_PACKET = 0.03
"""Of the fifty that the shortest run measures, for one may end a row too late."""


@pytest.mark.parametrize("width", ["4X", "1X"])
def test_throughput_is_what_theory_says(width, tmp_path):
    seed = random.getrandbits(32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    reach = Reach(width, chosen.choice((0, 64, 256, 1000, 2048)))
    lengths = [round(10 ** chosen.uniform(0, 3.5), 1) for _ in range(2)]
    for point in measure_reach(reach, lengths, [36, chosen.randint(37, 300)], "model", tmp_path):
        assert point.measured == pytest.approx(point.theory, abs=A_PACKET), (reach, point)
        assert not point.faults


def test_the_buffer_that_a_length_needs_is_enough_and_one_packet_less_is_not(tmp_path):
    reach = Reach()
    loop = reach.loop(2_000)
    less, enough = measure_reach(reach, [2_000], [loop.needs - loop.blocks, loop.needs], "model", tmp_path)
    assert less.measured < 1 - 10 * EXACT
    assert enough.measured == pytest.approx(1, abs=EXACT)
    # More than the way there and back, and less than three packets more.
    round_trip = 2 * loop.flight / loop.packet_cycles
    assert round_trip < loop.needs / loop.blocks < round_trip + 3


def test_a_narrower_link_needs_less_for_the_same_cable():
    narrow, wide = (Reach(width).loop(10_000).needs for width in ("1X", "4X"))
    assert 3 * narrow < wide < 4 * narrow


def test_beyond_the_credit_window_no_buffer_is_enough(tmp_path):
    reach = Reach()
    assert reach.loop(12_900).needs == pytest.approx(CREDIT_WINDOW, rel=0.02)
    assert reach.loop(13_000).needs is None
    window, most = measure_reach(reach, [20_000], [CREDIT_WINDOW, MAX_BLOCKS], "model", tmp_path)
    assert most.measured == pytest.approx(most.theory, abs=EXACT)
    assert window.measured < most.measured < 0.65
    assert reach.loop(1).longest() == reach.loop(1).longest(MAX_BLOCKS - 1000)


@pytest.mark.deep
def test_rtl_and_model_agree_on_a_cable_of_2_km(tmp_path):
    (point,) = measure_reach(Reach(), [2_000], [128], "verilator", tmp_path)
    assert not point.faults
    assert point.measured == pytest.approx(point.theory, abs=EXACT)


def test_the_picture_has_a_curve_for_each_buffer_and_the_limit_of_the_window(tmp_path):
    reach = Reach()
    points = measure_reach(reach, [10, 1_000], [64, 2048], "model", tmp_path)
    with drawing_style():
        save_figure(reach_figure(reach, points), [tmp_path / "reach.svg"])
    texts = {text.text for text in ElementTree.parse(tmp_path / "reach.svg").iter("{http://www.w3.org/2000/svg}text")}
    assert {"4 KiB", "128 KiB", "12.9 km", "51.7 km", "4X", "1X"} <= texts
