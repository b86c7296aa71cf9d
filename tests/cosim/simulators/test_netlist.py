"""What depends on what in exported Verilog."""

import re
from pathlib import Path

from cosim.simulators.netlist import Netlist
from tests.cosim.engines.stages import Pipeline
from verilog.emit import to_verilog


def pipeline():
    return Netlist(to_verilog(Pipeline(), "pipeline"))


def test_outputs_of_registers_depend_on_no_input():
    through = pipeline().through("pipeline_stage")
    assert through["total"] == frozenset()
    assert through["wide"] == frozenset()


def test_output_of_logic_depends_on_the_inputs_it_reads():
    assert pipeline().through("pipeline_stage")["mixed"] == {"d"}


def test_dependences_go_through_levels():
    text = to_verilog(Pipeline(), "pipeline")
    assert Netlist(text).through("pipeline")["q"] == frozenset()
    opened = re.sub(r"^  always @\(posedge clk\)\n    q <= (\S+ );", r"  assign q = \1;", text, flags=re.M)
    assert opened != text
    assert "d" in Netlist(opened.replace("reg [63:0] q", "wire [63:0] q")).through("pipeline")["q"]


def test_clocks_are_found_below():
    assert pipeline().clocks("pipeline") == {"clk"}


def test_modules_come_with_ports_and_instances():
    netlist = pipeline()
    stage = netlist.modules["pipeline_stage"]
    assert {(port.name, port.width) for port in stage.ports if port.is_input} == {
        ("d", 8),
        ("back", 8),
        ("reg", 40),
        ("clk", 1),
        ("rst", 1),
    }
    assert [instance.name for instance in netlist.modules["pipeline"].instances] == [f"stage_{n}" for n in range(4)]
    assert netlist.tops() == ["pipeline"]


def test_verilog_written_by_hand_is_not_understood():
    assert not Netlist(Path(__file__).with_name("counter_top.v").read_text()).is_understood


def test_a_form_that_yosys_does_not_write_is_not_understood():
    text = to_verilog(Pipeline(), "pipeline")
    assert Netlist(text).is_understood
    assert not Netlist(text.replace("endmodule", "  always_comb q = d;\nendmodule", 1)).is_understood
