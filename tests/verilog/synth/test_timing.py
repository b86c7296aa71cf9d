"""The critical path and the clock, read from nextpnr's report."""

import pytest

from verilog.synth.timing import critical_path, fmax_mhz

from .examples import REPORT


def test_critical_path_is_told_from_register_to_register():
    path = critical_path(REPORT)
    assert path.stages[0].signal == "port_0.cl"
    assert path.stages[-1].signal == "input_1.store.queues.queues.fetching"
    assert path.stages[-1].arrival_ns == pytest.approx(path.total_ns)
    assert path.logic_ns + path.routing_ns == pytest.approx(sum(s.logic_ns + s.routing_ns for s in path.stages))


def test_critical_path_decides_the_clock():
    assert fmax_mhz(REPORT) == pytest.approx(1000 / critical_path(REPORT).total_ns, rel=1e-3)


def test_pins_do_not_count_as_ends_of_the_critical_path():
    ends = [(path["from"], path["to"]) for path in REPORT["critical_paths"]]
    assert any("<async>" in end for end in ends)
    only_inside = REPORT | {"critical_paths": [p for p in REPORT["critical_paths"] if p["from"] == p["to"]]}
    assert critical_path(only_inside) == critical_path(REPORT)
