"""A small design through mapping, placement and routing."""

import pytest

from verilog.emit import merged_rtlil
from verilog.synth.netlist import NETLIST, TOP, make_netlist
from verilog.synth.pins import ThreePins
from verilog.synth.place import Target, place, placement

from .examples import Delayed


@pytest.mark.deep
def test_a_small_design_goes_all_the_way(tmp_path):
    rtlil = merged_rtlil(ThreePins(Delayed()), TOP)
    steps = []
    make_netlist(rtlil, tmp_path, steps.append)
    place(tmp_path / NETLIST, Target(freq_mhz=100), tmp_path, steps.append)
    done = placement(tmp_path)
    assert 0 < done.used["TRELLIS_FF"] <= 9
    assert done.fmax_mhz > 100
    assert done.path.stages[-1].signal in ("pins_in", "pins_out", "given", "serial_out")
    assert any(step.startswith("Info: Routing") for step in steps)
