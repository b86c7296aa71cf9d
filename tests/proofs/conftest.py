"""`make prove` tells what was proven, and what refuted it where the RTL was broken."""

import pytest

from tests.verilog.netlists import known_netlists, netlist, once

__all__ = ["known_netlists", "netlist", "once"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.option.markexpr == "prove":
        passed = terminalreporter.getreports("passed")
        for line in sorted(str(line) for report in passed for _, line in report.user_properties):
            terminalreporter.write_line(line)
