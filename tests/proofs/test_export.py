"""The exported Verilog of a switch does in all cycles what the simulated one does, whatever comes in.

That is not proven of an export with a changed text.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.proofs.same_circuit import EXPORTED, SIMULATED, compared
from tests.verilog.netlists import Once
from tests.verilog.switches import SMALLEST
from verilog.emit import rtlil_to_verilog
from verilog.export.interface import interface
from verilog.export.package import switch_package
from verilog.export.switch_name import TOP
from wire.parameters import SwitchParameters

pytestmark = pytest.mark.prove

PORTS = interface(SMALLEST, slots=())


@pytest.fixture
def exported(once: Once, known_netlists: None) -> str:
    text = once("exported switch", SMALLEST, lambda: switch_package(SMALLEST).files[f"{TOP}.v"])
    return re.sub(rf"^module {TOP} \(", f"module {EXPORTED} (", text, flags=re.M)


@pytest.fixture
def simulated(netlist: Callable[[SwitchParameters], str]) -> str:
    return rtlil_to_verilog(netlist(SMALLEST).replace(f"\\{TOP}", f"\\{SIMULATED}"))


def test_an_exported_switch_is_the_simulated_one(
    exported: str, simulated: str, tmp_path: Path, record_property: Callable[[str, str], None]
) -> None:
    found = compared(exported, simulated, PORTS, tmp_path)
    assert found.differences == ()
    assert found.alone == ()
    assert found.outputs == sum(port.width for port in PORTS if port.direction == "output")
    assert found.registers > 10_000
    assert found.memories > 40
    record_property("proof", f"{found.seconds:6.1f} s   induction, k = 1  an exported switch is the simulated one")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param(
            "index_of_upper <= answer_3[12:6] - 7'h1;",
            "index_of_upper <= answer_3[12:6] + 7'h1;",
            "index_of_upper",
            id="a sum in place of a difference",
        ),
        pytest.param(
            "output reg [4:0] first = 5'h00,",
            "output reg [4:0] first = 5'h10,",
            "its value at first",
            id="a register's value at first",
        ),
        pytest.param(
            "      tails[join_queue] <= join_packet[5:0];",
            "      if (!rst) tails[join_queue] <= join_packet[5:0];",
            "tails: what is written",
            id="when a memory is written",
        ),
        pytest.param("    tails[1] = 6'h0;", "    tails[1] = 6'h1;", "tails: its words at first", id="a word at first"),
    ],
)
def test_a_changed_export_is_not(old: str, new: str, told: str, exported: str, simulated: str, tmp_path: Path) -> None:
    assert exported.count(old) == 1
    found = compared(exported.replace(old, new), simulated, PORTS, tmp_path)
    assert any(told in difference for difference in found.differences), found.differences
