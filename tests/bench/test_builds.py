"""What has to be built for a figure."""

from functools import partial

import pytest

from bench.builds import builds
from bench.figures import FIGURES
from bench.settings import Settings
from bench.wide import WIDE_FIGURES
from cosim.engines import compiled_model
from cosim.simulators import verilation


@pytest.mark.parametrize(
    ("figure", "kinds"),
    [
        ("latency_cycles", {"voq"}),
        ("throughput_fifo_2048", {"fifo"}),
        ("lost_packets", {"voq", "fifo"}),
        ("model_cycles_per_s", {"model"}),
        ("compare_ratio", {"voq", "model"}),
        ("smp_turnaround_cycles", {"voq"}),
        ("bringup_smps", {"voq", "model"}),
        ("amaranth_cycles_per_s", set()),
        ("routes_648_s", set()),
        *((figure, set()) for figure in WIDE_FIGURES),
    ],
)
def test_only_what_is_needed_is_built(figure: str, kinds: set[str]) -> None:
    calls = builds(Settings(), [figure])
    fabrics = [call.args[1] for call in calls if isinstance(call, partial)]
    queueing = {node.queueing for fabric in fabrics for node in fabric.nodes.values() if hasattr(node, "queueing")}
    assert queueing | ({"model"} if compiled_model.build in calls else set()) == kinds
    assert (verilation.library in calls) == bool(fabrics)


def test_no_figure_is_measured_on_what_has_not_been_built() -> None:
    unbuilt = [figure for figure in FIGURES if not builds(Settings(), [figure])]
    assert unbuilt == ["amaranth_cycles_per_s", *WIDE_FIGURES, "routes_648_s", "build_tree_s", "capture_packets_per_s"]
