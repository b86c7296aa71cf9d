"""The command as a process, a scenario that goes on, and errors in one line."""

import sys

from ironband import main

COMMAND = [sys.executable, "-c", "import sys; from ironband import main; sys.exit(main())"]

LOOPED = """
cycles = 50_000_000
[hosts.A]
[hosts.B]
[[links]]
ends = ["A", "B"]
[[flows]]
from = "A"
to = "B"
rate = 0.9
"""


def one_line_error(capsys, *arguments: str) -> str:
    """Run a command that must end with status 2 and one line on standard error."""
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.err.endswith("\n")
    (line,) = output.err.splitlines()
    assert line.startswith("ironband: ")
    return line.removeprefix("ironband: ")
