"""A subcommand imports what it needs when it needs it: help and errors do without all that simulates and draws."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NEVER = ("amaranth", "cocotb", "cocotb_test", "distributed", "matplotlib", "numpy")
"""Not before something is simulated or drawn."""

NOT_FOR_USE = (*NEVER, "pydantic", "rich")
"""Not before a file is read, or something printed."""

SCRIPT = """
import contextlib, io, json, sys
from ironband import main
found = []
for arguments in json.loads(sys.argv[1]):
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        status = main(arguments)
    found.append([status, text.getvalue(), list(sys.modules)])
print(json.dumps(found))
"""

SCENARIO = """
cycles = 50
[hosts.A]
[hosts.B]
[[links]]
ends = ["A", "B"]
[[flows]]
from = "A"
to = "C"
rate = 0.5
"""

USES = {
    "": ("--version", "--help", "", "fly"),
    "run": (
        *("run --help", "run", "run jam --fast", "run jam --sim spice", "run jam --json no/where.json", "run star"),
        *("run jam --waves x.vcd", "run jam --sim model --waves x.fst", "run jam --waves-cycles 1:2"),
    ),
    "up": (
        *("up --help", "up", "up star --sim model", "up none.net", "up bad.net", "up star --sm H9", "up jam"),
        *("up lost.toml", "up star --capture x.foo"),
        *("up star --rtl SW2", "up star --fail H1", "up star --guid2lid /dev/full", "up star --discover no/where"),
    ),
    "check": (
        *("check --help", "check --ports 65", "check --load nan", "check --vls 3", "check --seed -1"),
        *("check --waves-cycles 2:1", "check --waves-cycles 1:2", "check --waves x.fst --waves-cycles 20000:20001"),
    ),
    "campaign": (
        "campaign --help",
        "campaign",
        "campaign x",
        "campaign bad.net --workers 0",
        "campaign bad.net --scheduler y",
    ),
    "bench": ("bench --help", "bench --only x", "bench --growth --quick", "bench --quick --only build36_s"),
    "show": (
        "show --help",
        "show",
        "show x --view pie",
        "show x --opcode fly",
        "show x --lid -1",
        "show x --json no/where",
    ),
    "curves": ("curves --help", "curves --loads 2", "curves --loads a", "curves --out bad.net"),
    "reach": ("reach --help", "reach --lengths 0", "reach --buffers 33", "reach --width 2X", "reach --out bad.net"),
    "synth": ("synth --help", "synth --ports 1", "synth --mtu 4096 --buffer-blocks 1", "synth -o bad.net"),
    "export": ("export --help", "export", "export --ports 1 -o x", "export -o bad.net", "export -o ."),
}
"""What is known from the words and the topology alone."""

INPUTS = {
    "run": (
        *("run jom", "run broken.toml", "run lost.toml", "run jam --out bad.net"),
        *(f"run jam --waves {'x' * 250}.fst", "run jam --capture x.foo", "run jam --capture no/where.pcap"),
    ),
    "check": ("check --cycles 100", "check --sim icarus --waves a.vcd", "check --capture x.foo"),
    "campaign": ("campaign broken.toml", "campaign lost.toml"),
    "play": ("play jam.pcapng --sim icarus --waves a.vcd",),
}
"""What is known when a scenario has been read or made."""


def imported(lines: tuple[str, ...], heavy: tuple[str, ...]) -> None:
    """Each line ends as help or an error of one line, and without these modules."""
    Path("bad.net").write_text('Switch 2 "S"\n[1] "H"[1]\n')
    Path("broken.toml").write_text("cycles = = 3\n")
    Path("lost.toml").write_text(SCENARIO)
    uses = json.dumps([line.split() for line in lines])
    ended = subprocess.run([sys.executable, "-c", SCRIPT, uses], capture_output=True, text=True, check=True)
    for line, (status, said, modules) in zip(lines, json.loads(ended.stdout), strict=True):
        helped = not line or line.endswith(("--help", "--version"))
        assert status == (0 if helped else 2), (line, said)
        assert helped or (said.startswith("ironband: ") and said.count("\n") == 1), (line, said)
        assert set(heavy) & set(modules) == set(), line


@pytest.mark.parametrize("command", USES)
def test_help_and_bad_use_import_nothing_that_simulates_draws_or_validates(command):
    imported(USES[command], NOT_FOR_USE)


@pytest.mark.parametrize("command", INPUTS)
def test_bad_input_imports_nothing_that_simulates_or_draws(command):
    imported(INPUTS[command], NEVER)
