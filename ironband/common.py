"""What the subcommands share: options, JSON results, and errors in one line."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from cosim.engines.base import ENGINES, Waves, check_waves
from cosim.scenario.limits import MAX_CYCLES
from sm.errors import ManagerError
from toolchain.atomic_files import output_directory, output_file, write_atomically, writing
from toolchain.errors import UserError
from toolchain.temporary_directory import PREFIX, temporary_directory
from wire.codes import DATA_VL_COUNTS, MTU, mtu_bytes

if TYPE_CHECKING:
    from wire.parameters import SwitchParameters

__all__ = [
    "DIRECTORY",
    "FILE",
    "FORWARDINGS",
    "MTUS",
    "PORTS",
    "QUEUEINGS",
    "SEED",
    "STDOUT",
    "VLS",
    "NumberRange",
    "alone",
    "check_waves_begin",
    "check_waves_file",
    "input_errors",
    "json_option",
    "sim_option",
    "switch_parameters",
    "waves_asked",
    "waves_options",
    "work_directory",
    "write_json",
]

STDOUT = "-"


class NumberRange(click.FloatRange):
    """Numbers of a range; click's own lets in what is no number, as that is neither too small nor too large."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """A number in the range."""
        number = super().convert(value, parameter, context)
        if math.isnan(number):
            self.fail(f"{number} is not in the range {self._describe_range()}.", parameter, context)
        return number


SEED: Final = click.IntRange(0, (1 << 64) - 1)
PORTS: Final = click.IntRange(2, 64)
VLS: Final = click.Choice(DATA_VL_COUNTS)
MTUS: Final = click.Choice(tuple(map(mtu_bytes, MTU)))
QUEUEINGS: Final = click.Choice(("voq", "fifo"))
FORWARDINGS: Final = click.Choice(("cut-through", "store-and-forward"))
FILE: Final = click.Path(path_type=Path, dir_okay=False)
DIRECTORY: Final = click.Path(path_type=Path, file_okay=False)


def _writable(context: click.Context, parameter: click.Parameter, target: str | None) -> str | None:
    """A run may take hours: whether its results can be written is checked first."""
    if target is not None and target != STDOUT:
        with input_errors():
            output_file(Path(target))
    return alone(context, parameter, target)


def alone(context: click.Context, parameter: click.Parameter, target: str | None) -> str | None:
    """Standard output takes one file."""
    if target == STDOUT and STDOUT in (context.params.get("json_file"), context.params.get("capture_file")):
        raise click.UsageError("--capture - --json -: expected one of them to be a file")
    return target


sim_option: Final = click.option(
    "--sim",
    type=click.Choice(ENGINES),
    default=ENGINES[0],
    help="What simulates: a Verilog simulator, Amaranth's own, or the golden model alone.",
)


class _Cycles(click.ParamType[range]):
    """Cycles from one to another, both of them included."""

    name = "cycles"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> range:
        """All of them."""
        first, _, last = str(value).partition(":")
        # int() takes its time for many digits, and takes others than these, too.
        written = all(text.isascii() and text.isdecimal() and len(text) < 20 for text in (first, last))
        cycles = range(int(first), int(last) + 1) if written else range(0)
        if not cycles or cycles.stop > MAX_CYCLES:
            expected = f"expected FROM:TO, cycles from 0 to {MAX_CYCLES - 1:,} in this order"
            self.fail(f"{value!r}: {expected}", parameter, context)
        return cycles


def waves_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options for waves, for `waves_asked`."""
    waves_cycles = click.option(
        "--waves-cycles",
        type=_Cycles(),
        metavar="FROM:TO",
        help="Of these cycles alone, the last one included.",
    )
    waves = click.option(
        "--waves",
        type=FILE,
        metavar="FILE",
        help="Record waves to FILE: .fst on verilator and icarus, .vcd on amaranth.",
    )
    return waves(waves_cycles(command))


json_option: Final = click.option(
    "--json",
    "json_file",
    metavar="FILE|-",
    callback=_writable,
    help="Write the results as JSON to FILE, or in place of the text to standard output.",
)


def switch_parameters(**given: Any) -> SwitchParameters:
    """A switch as its options say; without `--readers` it has as many as its queueing can have.

    Raises:
        click.UsageError: there is no such switch.
    """
    from wire.parameters import SwitchParameters

    if given["readers"] is None:
        given["readers"] = 1 if given["queueing"] == "fifo" else SwitchParameters().readers
    try:
        return SwitchParameters(**given)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def check_waves_file(engine: str, waves: Path | None) -> None:
    """A build and a run may take long: whether an engine can record waves into a file is checked first.

    Raises:
        WavesUnsupported: it records none, or not into such a file.
        OutputError: the file cannot be written.
    """
    check_waves(engine, waves)
    if waves is not None:
        output_directory(waves.parent)
        output_file(waves)


def waves_asked(engine: str, file: Path | None, cycles: range | None) -> Waves | None:
    """What the options for waves say; whether the file can be written is not looked at.

    Raises:
        click.UsageError: cycles without a file.
        WavesUnsupported: the engine records no waves, or not into such a file.
    """
    if file is None and cycles is not None:
        raise click.UsageError(f"--waves-cycles {_text(cycles)}: expected --waves, too")
    check_waves(engine, file)
    return None if file is None else Waves(file, cycles)


def check_waves_begin(waves: Waves | None, run_cycles: int) -> None:
    """Whether a run is so long that it comes to the first cycle that waves are to have.

    Raises:
        click.UsageError: it is not.
    """
    if waves is not None and waves.cycles is not None and waves.cycles.start >= run_cycles:
        raise click.UsageError(
            f"--waves-cycles {_text(waves.cycles)}: expected FROM below {run_cycles:,}, the cycles of the run"
        )


def _text(cycles: range) -> str:
    return f"{cycles.start}:{cycles.stop - 1}"


@contextmanager
def input_errors() -> Iterator[None]:
    """Turn errors of the input and of the machine into one line and status 2."""
    try:
        yield
    except (UserError, ManagerError) as error:
        raise click.ClickException(str(error).partition("\n")[0]) from error


@contextmanager
def work_directory() -> Iterator[Path]:
    """A temporary directory for the runs of the engines. The log of one that failed outlives it.

    Raises:
        SimulationFailed: from the block, in one line that says where the log is.
    """
    from cosim.simulators.cocotb_results import LOG, SimulationFailed

    with ExitStack() as held:
        with writing(f"directory {tempfile.gettempdir()}"):
            path = held.enter_context(temporary_directory())
        try:
            yield path
        except SimulationFailed as failure:
            said = str(failure).partition("\n")[0]
            logs = sorted(path.rglob(LOG))
            raise SimulationFailed(f"{said}; its log is {_kept(logs[0])}" if logs else said) from failure


def _kept(log: Path) -> Path:
    """A copy of a log, in the directory for temporary files."""
    handle, name = tempfile.mkstemp(prefix=PREFIX, suffix=".log")
    os.close(handle)
    return Path(shutil.copyfile(log, name))


def write_json(target: str, results: dict[str, Any]) -> None:
    """Write results to a file, or to standard output for `-`."""
    text = json.dumps(results, indent=2, ensure_ascii=False) + "\n"
    if target == STDOUT:
        sys.stdout.write(text)
        return
    write_atomically(Path(target), text)
