"""The exported switch: it does what the RTL does, lints clean, and its documents are right."""

import re

import pytest
import pywellen

from rtl.switch.switch import restoration_cycles
from tests.verilog.switches import SMALL, SMALLEST
from verilog.emit import rtlil_to_verilog
from verilog.export.interface import interface
from verilog.export.package import switch_package
from verilog.export.project import WAIVED
from verilog.export.switch_name import PARTNER, TEST_BENCH, TOP
from wire.parameters import SwitchParameters

from .conftest import run_again

ONE_BIT_OF_THE_VCRC_WRONG = """
  wire [31:0] right;
  reg in_data = 0;
  always @(posedge clk) if (tx_1_k == 4'b1000) in_data <= tx_1_data[31:24] == 8'hfb;
  assign tx_1_data = right ^ {16'd0, in_data && tx_1_k == 4'b0001, 15'd0};
"""


def changed(files, name, old, new):
    """An export with one text in one file replaced, which is in there once."""
    assert files[name].count(old) == 1
    return {**files, name: files[name].replace(old, new)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param(SMALLEST, id="2 ports, fifo"),
        # More of the same.
        pytest.param(
            SwitchParameters(ports=4, vls=4, mtu=512, buffer_blocks=20), id="4 ports, 4 VLs", marks=pytest.mark.deep
        ),
        pytest.param(
            SwitchParameters(ports=8, vls=1, mtu=256, buffer_blocks=8, readers=1), id="8 ports", marks=pytest.mark.deep
        ),
    ],
)
def test_packets_cross_between_all_ports_of_an_exported_switch(parameters, benched):
    run = benched(parameters)
    assert run.compiler == ""
    assert run.status == 0
    assert re.fullmatch(rf"PASS: (\d+) of \1 packets crossed {parameters.ports} ports, .*", run.verdict)
    crossings = re.findall(r"^pass cycle \d+, \d+ ns: packet \d+, port (\d+) to port (\d+),", run.text, re.M)
    ports = {str(port) for port in range(1, parameters.ports + 1)}
    asked = re.findall(r"^pass cycle \d+, \d+ ns: port (\d+) asked, a switch of (\d+) ports, GUID \w+$", run.text, re.M)
    assert asked == [("1", str(parameters.ports)), (str(parameters.ports),) * 2] * 2
    assert {source for source, _ in crossings} == {destination for _, destination in crossings} == ports


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [pytest.param(SMALLEST, id="2 ports, fifo"), pytest.param(SMALL, id="3 ports", marks=pytest.mark.deep)],
)
def test_a_switch_that_was_reset_in_traffic_does_in_each_cycle_what_it_did_from_power_up(parameters, benched):
    _, *lives = benched(parameters).text.split("what the switch is\n")
    first, second = (
        re.findall(r"^pass cycle (\d+), \d+ ns: (.*)$", life.partition("a burst")[0], re.M) for life in lives
    )
    assert [what for _, what in first] == [what for _, what in second]
    (offset,) = {int(later) - int(sooner) for (sooner, _), (later, _) in zip(first, second, strict=True)}
    assert offset > restoration_cycles(parameters)


@pytest.mark.slow
@pytest.mark.deep
def test_a_forwarding_table_smaller_than_the_switch_reaches_only_its_ports(exported, bench):
    run = bench(exported(SwitchParameters(ports=3, mtu=256, buffer_blocks=8, lft_size=3)))
    assert run.verdict.startswith("PASS")
    assert set(re.findall(r" to port (\d+),", run.text)) == {"1", "2"}


@pytest.mark.slow
def test_the_bench_sees_a_wrong_vcrc(smallest, bench):
    broken = changed(smallest, f"{TOP}.v", ".tx__data(tx_1_data)", ".tx__data(right)")
    head, parenthesis, body = broken[f"{TOP}.v"].partition("\n);\n")
    run = bench({**broken, f"{TOP}.v": f"{head}{parenthesis}{ONE_BIT_OF_THE_VCRC_WRONG}{body}"})
    assert run.status == 1
    assert "FAIL cycle" in run.text
    assert "port 1: VCRC" in run.text
    assert run.verdict.startswith("FAIL: ")


@pytest.mark.slow
def test_the_bench_sees_a_wrong_answer_to_an_smp(smallest, bench):
    wrong = changed(smallest, f"{TEST_BENCH}.v", ".port_guid(port_guid)", ".port_guid(~port_guid)")
    run = bench(wrong)
    assert run.status == 1
    assert re.search(r"^FAIL cycle \d+, port 1: NodeInfo is 010102", run.text, re.M)
    assert run.verdict.startswith("FAIL: ")


@pytest.mark.slow
def test_the_bench_sees_a_wrong_forwarding_table(small, bench):
    wrong = changed(small, f"{TEST_BENCH}.v", "    // Armed, once", "    write(LFT | 24'd1, 2);\n    // Armed, once")
    wrong = changed(wrong, f"{TEST_BENCH}.v", "localparam PATIENCE = 1000", "localparam PATIENCE = 100")
    run = bench(wrong)
    assert run.status == 1
    assert "is for port 1" in run.text
    assert run.verdict.startswith("FAIL: ")


@pytest.mark.slow
def test_the_bench_sees_credits_ignored(smallest, bench):
    """A host that announces too little room finds the switch waiting forever; it must not be fooled by that."""
    stingy = changed(smallest, f"{TEST_BENCH}.v", ".BUFFER_BLOCKS(2 * MAX_BLOCKS)", ".BUFFER_BLOCKS(1)")
    stingy = changed(stingy, f"{TEST_BENCH}.v", "localparam PATIENCE = 1000", "localparam PATIENCE = 100")
    run = bench(stingy)
    assert run.status == 1
    assert re.search(r"packet 0 from port 1 to port 2 did not come", run.text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "lives"),
    [
        # That the second is as the first, another test shows.
        pytest.param(SMALL, 1, id="3 ports"),
        pytest.param(SMALL, 2, id="3 ports, both lives", marks=pytest.mark.deep),
        pytest.param(SMALLEST, 2, id="fifo", marks=pytest.mark.deep),
    ],
)
def test_an_exported_switch_does_in_each_cycle_what_the_simulated_one_does(
    parameters, lives, netlist, exported, bench, tmp_path
):
    """Both side by side under the test bench: the same rows and answers in every cycle."""
    again = "if (failures == 0"
    files = changed(exported(parameters), f"{TEST_BENCH}.v", f"{again}) begin", f"{again} && {lives} > 1) begin")
    ports = interface(parameters, slots=())
    outputs = [port for port in ports if port.direction == "output"]
    skew = {"tx_1_data": " ^ skewed"}
    reference = [(port.before, f"of_reference_{port.name}" if port in outputs else port.name) for port in ports]
    lines = [
        "`timescale 1ns / 1ps",
        f"module {TOP} (",
        ",\n".join(f"  {port.direction} [{port.width - 1}:0] {port.name}" for port in ports),
        ");",
        *(f"  wire [{port.width - 1}:0] of_reference_{port.name};" for port in outputs),
        '  reg skewed = 0;\n  initial skewed = $test$plusargs("skewed");',
        f"  exported exported ({', '.join(f'.{port.name}({port.name})' for port in ports)});",
        f"  reference reference ({', '.join(f'.{name}({net})' for name, net in reference)});",
        "  always @(negedge clk) if (!rst) begin",
        *(
            f"    if ({port.name} !== (of_reference_{port.name}{skew.get(port.name, '')})) begin\n"
            f'      $display("DIFFERS {port.name} at %0t", $time);\n'
            "      $finish;\n"
            "    end"
            for port in outputs
        ),
        "  end",
        "endmodule",
    ]
    exported_switch = re.sub(rf"^module {TOP} \(", "module exported (", files[f"{TOP}.v"], flags=re.M)
    timescale = "`timescale 1ns / 1ps\n"
    simulated = timescale + rtlil_to_verilog(netlist(parameters).replace(f"\\{TOP}", "\\reference"))
    both = "\n".join([*lines, exported_switch, simulated])
    run = bench({**files, f"{TOP}.v": both})
    assert "DIFFERS" not in run.text
    assert run.verdict.startswith("PASS")
    # The comparison can fail.
    assert "DIFFERS tx_1_data" in run_again(tmp_path, "+skewed").text


@pytest.mark.slow
def test_verilator_warns_of_nothing_but_what_is_waived(small, lint):
    assert "%" not in lint(small, f"{TOP}.vlt")
    assert set(re.findall(r"^%Warning-(\w+)", lint(small), re.M)) == set(WAIVED)


@pytest.mark.slow
def test_names_in_waves_are_plain(smallest, bench, tmp_path):
    assert bench(smallest, "-fst", "+quiet", "+waves=w.fst").status == 0
    names = [variable.full_name for variable in pywellen.Waveform(str(tmp_path / "w.fst")).all_vars()]
    of_switch = [name.removeprefix(f"{TEST_BENCH}.dut.") for name in names if ".dut." in name]
    for port in re.findall(r"^\| `(\w+)` \| (?:in|out)put", smallest[f"{TOP}_ports.md"], re.M):
        assert port in of_switch
    assert [name for name in of_switch if not re.fullmatch(r"[\w.]+", name)] == []
    numbered = [name for name in of_switch if re.fullmatch(r"_\d+", name.rpartition(".")[2])]
    assert len(numbered) < 0.2 * len(of_switch)


def test_the_port_list_is_that_of_the_verilog(small):
    head = small[f"{TOP}.v"].partition(f"module {TOP} (\n")[2].partition("\n);")[0]
    real = [
        (name, direction, int(high or 0) + 1)
        for direction, high, name in re.findall(r"^  (input|output) (?:wire|reg) (?:\[(\d+):0\] )?(\w+)", head, re.M)
    ]
    listed = re.findall(r"^\| `(\w+)` \| (input|output) \| (\d+) \|", small[f"{TOP}_ports.md"], re.M)
    assert real == [(name, direction, int(width)) for name, direction, width in listed]
    assert len(real) == 10 + 3 * 6 + 6


@pytest.mark.slow
@pytest.mark.usefixtures("known_netlists")
def test_a_trace_is_there_only_if_asked_for(small):
    assert "trace" not in small[f"{TOP}.v"].partition("\nmodule")[2]
    traced = switch_package(SMALL, trace=True).files
    assert re.search(r"^  output wire \[159:0\] trace_17,?$", traced[f"{TOP}.v"], re.M)
    slots = [f"| {slot} | 0 | {kind} |" for slot, kind in enumerate(("SCRAP", "SEND", "DELIVER", "BUS_READ"))]
    assert "\n".join(slots) in traced[f"{TOP}_ports.md"]
    assert len(traced[f"{TOP}.v"]) > len(small[f"{TOP}.v"])


def test_every_file_of_the_core_is_there(small):
    core = small[f"{TOP}.core"]
    assert core.startswith("CAPI=2:\n")
    assert set(re.findall(r"^      - (\S+)$", core, re.M)) == {
        f"{name}" for name in (f"{TOP}.v", f"{TOP}.vlt", f"{TEST_BENCH}.v", f"{PARTNER}.v")
    }


def test_the_verilog_says_what_it_is(small):
    head = small[f"{TOP}.v"].partition("`timescale")[0]
    assert "ironband export --ports 3 --vls 2 --mtu 256 --buffer-blocks 12" in head
    assert "SPDX-License-Identifier: Apache-2.0" in head
    assert all(line.startswith("//") for line in head.splitlines() if line)
