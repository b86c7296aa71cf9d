"""A design through placement and routing, and what is known of one that has not wires enough."""

import json
import sys

import pytest

from verilog.emit import merged_rtlil
from verilog.synth.netlist import NETLIST, TOP, make_netlist
from verilog.synth.pins import ThreePins
from verilog.synth.place import Target, place, placement
from verilog.tools import NEXTPNR

from .examples import Delayed

PLACED = """\
Info: Device utilisation:
Info: \t              DP16KD:     137/    208    65%
Info: \t        TRELLIS_COMB:   51440/  83640    61%

Info: Max frequency for clock '$glbnet$clk$TRELLIS_IO_IN': 59.54 MHz (FAIL at 80.00 MHz)
"""

PLACING = """\
if "--write" in sys.argv:
    with open(sys.argv[sys.argv.index("--write") + 1], "w") as file:
        file.write('{"modules": {"top": {"cells": {}}}}')
    sys.exit()
"""
"""Without routing it is called first to place, then with what has been moved."""


@pytest.fixture
def nextpnr(tmp_path, monkeypatch):
    """Gives a text of Python to run in nextpnr's place, with an empty netlist; and says where."""
    (tmp_path / NETLIST).write_text(json.dumps({"modules": {TOP: {"cells": {}}}}))

    def run(text, *, route=True):
        tool = tmp_path / NEXTPNR
        tool.write_text(f"#!{sys.executable}\nimport itertools, sys, time\n{PLACING}{text}")
        tool.chmod(0o755)
        with monkeypatch.context() as changed:
            changed.setattr(sys, "executable", str(tmp_path / "python"))
            place(tmp_path / NETLIST, Target(), tmp_path / "out", lambda line: None, route=route)
        return placement(tmp_path / "out")

    (tmp_path / "out").mkdir()
    return run


def rounds(conflicts):
    """A router that leaves so many wires in conflict, round by round, the last again and again."""
    return f"""
print({PLACED!r})
for number, conflicts in enumerate(itertools.chain({conflicts}, itertools.repeat({conflicts[-1]})), start=1):
    print(f"Info:     iter={{number}} wires=888044 overused={{conflicts}} overuse=82764 archfail=NA", flush=True)
    time.sleep(0.01)
"""


def test_a_router_that_gets_nowhere_is_ended(nextpnr):
    done = nextpnr(rounds([69_512, 42_281, 4_119, 4_262]))
    assert not done.is_routed
    assert (done.conflicts, done.fmax_mhz) == (4_119, 59.54)
    assert done.used == {"DP16KD": 137, "TRELLIS_COMB": 51_440}


def test_a_router_that_gets_on_slowly_may_go_on(nextpnr):
    """Fourteen rounds that are no better than one before, and again."""
    slowly = [round_ for better in (900, 800, 700) for round_ in [better, *[950] * 14]]
    assert nextpnr(rounds([*slowly, 600])).conflicts == 600


def test_without_routing_the_clock_is_an_estimate(nextpnr):
    done = nextpnr(f"print({PLACED!r})", route=False)
    assert not done.is_routed
    assert (done.conflicts, done.fmax_mhz) == (None, 59.54)


@pytest.mark.deep
def test_nextpnr_finds_nothing_wrong_with_where_cells_were_moved(tmp_path):
    make_netlist(merged_rtlil(ThreePins(Delayed()), TOP), tmp_path, lambda line: None)
    place(tmp_path / NETLIST, Target(freq_mhz=900), tmp_path, lambda line: None, route=False)
    log = (tmp_path / f"{NEXTPNR}.log").read_text()
    assert "validity check failed" not in log
    assert not placement(tmp_path).is_routed


@pytest.mark.deep
def test_a_small_design_goes_all_the_way(tmp_path):
    rtlil = merged_rtlil(ThreePins(Delayed()), TOP)
    steps = []
    make_netlist(rtlil, tmp_path, steps.append)
    place(tmp_path / NETLIST, Target(freq_mhz=100), tmp_path, steps.append)
    done = placement(tmp_path)
    assert 0 < done.used["TRELLIS_FF"] <= 9
    assert done.fmax_mhz > 100
    assert done.is_routed
    assert done.conflicts == 0
    assert done.path.stages[-1].signal in ("pins_in", "pins_out", "given", "serial_out")
    assert any(step.startswith("Info: Routing") for step in steps)
