"""Pictures of measurements: captures with many flows have some, too."""

from cosim.pictures.laboratory_pictures import IntervalPanel, congestion_figure, interval_figure
from laboratory.congestion import Congestion
from tests.laboratory.captures import LINKS, follow, rdma_write, write


def test_of_many_flows_those_with_the_most_intervals_are_drawn():
    panels = [IntervalPanel(f"flow {number}", [number % 50] * 14, None) for number in range(100)]
    titles = [axes.get_title(loc="left") for axes in interval_figure(panels).axes]
    assert titles == [f"flow {number}" for number in (*range(44, 50), *range(94, 100))]


def test_of_many_flows_the_rates_of_those_with_the_most_packets_are_drawn(tmp_path):
    packets = [rdma_write(0, 3_000 * number, slid=1 + min(number % 40, number // 40 + 20)) for number in range(800)]
    marks = follow(write(tmp_path / "c.pcapng", packets), lambda capture: Congestion())
    assert len(marks.flows) > 12
    (axes,) = congestion_figure(marks, [link.name for link in LINKS]).axes
    drawn = axes.get_legend_handles_labels()[1]
    packets_of = {f"A[1] -> S[1], LID {key.slid} to {key.dlid}": flow.packets for key, flow in marks.flows.items()}
    assert len(drawn) == 12
    assert min(packets_of.pop(label) for label in drawn) >= max(packets_of.values())
