"""The tools: what is said of one that fails."""

import sys
from pathlib import Path

import pytest

from verilog import tools


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("ERROR: no such cell\nbye", "no such cell"),
        ("reading\nout of memory\n", "status 3: out of memory"),
        ("", "status 3: it said nothing"),
    ],
)
def test_a_tool_that_fails_is_told_with_what_it_said_last(
    said: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / tools.YOSYS
    tool.write_text(f"#!/bin/sh\nprintf '{said}'\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(tools.ToolFailed, match=f"^{tools.YOSYS} failed: {reason}$"):
        tools.run_all(tools.YOSYS, {"one": ()}, tmp_path)
