"""A fabric served: the command that runs in it, lines for the laboratory, and what is told."""

from __future__ import annotations

import json
import os
import selectors
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import click

from cosim.engines.base import Taps
from cosim.topology.topology_file import TopologyFile
from cosim.trace.compare import Names
from doors.hands import Hands
from doors.lab import LINES
from doors.serving import ServeTask, make_door, make_lab, serve_fabric
from doors.shim import build_shim
from doors.watch import Watch
from ironband.common import work_directory, write_json
from ironband.page.fabric_map import fabric_head
from ironband.page.subject import FABRIC_FILE
from ironband.partitions_report import partition_settings_json
from ironband.progress import build_lines
from ironband.serve_directory import PROGRAM_DIRECTORIES, program_path
from ironband.serve_report import data_lines, data_results
from toolchain.atomic_files import write_atomically
from toolchain.process import in_foreground
from wire.parameters import SwitchParameters

__all__ = ["run_session"]

_ENVIRONMENT = "env"
_SEPARATORS = frozenset(" :")
_DIFFER = 1
_SIGNALLED = 128


def run_session(
    task: ServeTask,
    taps: Taps,
    topology: str,
    described: TopologyFile,
    machine: Sequence[str],
    directory: Path,
    command: Sequence[str],
    json_file: str | None,
    *,
    quiet: bool,
    tells_operations: bool,
) -> int:
    """Serve until the command has ended, or somebody ends it; the exit status. QUIET: standard output is taken.

    Raises:
        What the engines raise, and the library's compilation (doors.shim.build_shim).
    """
    with ExitStack() as stack:
        session = _Session(
            task,
            topology,
            described,
            machine,
            directory,
            command,
            stack,
            quiet=quiet,
            tells_operations=tells_operations,
        )
        cycles, difference = session.run(taps)
        session.tell_times(cycles)
        if json_file is not None:
            write_json(json_file, session.results(cycles))
    if difference:
        print(difference, file=sys.stderr if quiet else sys.stdout)
        return _DIFFER
    return session.status


def _preloadable(library: Path, directory: Path) -> Path:
    """A library under a name that the loader takes, to which spaces and colons end one; in DIRECTORY if need be."""
    if not _SEPARATORS & set(str(library)):
        return library
    link = directory / library.name
    if _SEPARATORS & set(str(link)):
        raise click.UsageError(f"{link}: the loader takes no library there: expected a name without spaces and colons")
    link.symlink_to(library)
    return link


class _Session:
    """What goes on beside the simulation.

    Attributes:
        status: the command's exit status.
    """

    def __init__(
        self,
        task: ServeTask,
        topology: str,
        described: TopologyFile,
        machine: Sequence[str],
        directory: Path,
        command: Sequence[str],
        stack: ExitStack,
        *,
        quiet: bool,
        tells_operations: bool,
    ) -> None:
        """QUIET: nothing but results on standard output. TELLS_OPERATIONS: each kind of request in the end, too."""
        self.status = 0
        self._begun = time.monotonic()
        self._tells_operations = tells_operations
        self._task = task
        self._topology = topology
        self._described = described
        self._host = ",".join(machine)
        self._directory = directory
        self._command = command
        self._stack = stack
        self._output = sys.stderr if command or quiet else sys.stdout
        scratch = directory / "scratch"
        scratch.mkdir()
        self._library = _preloadable(build_shim(), directory)
        self._environment = {
            "IRONBAND_DIR": str(directory),
            "IRONBAND_HOST": self._host,
            "OSM_CACHE_DIR": str(scratch),
            "OSM_TMP_DIR": str(scratch),
        }
        self._door = make_door(task, directory, machine, self._begin, self._tell)
        self._door.clients.connected = self._look_at_files
        self._lab = make_lab(task, self._door)
        self._watch = Watch()
        self._hands = Hands(directory, self._door.selector, self._lab, self._watch)

    def run(self, taps: Taps) -> tuple[int, str]:
        """Simulate; the cycles, and how RTL and golden model differ if they do.

        Programs see their devices end before they are ended themselves, so that none waits for an answer.
        """
        with closing(self._door), closing(self._hands), work_directory() as work_dir, build_lines("serve"):
            comparison, cycles = serve_fabric(self._task, self._door, self._lab, work_dir, taps, self._watch)
        if comparison is None or comparison.difference is None:
            return cycles, ""
        # As near as one gets to it again: programs send when they like.
        replay = shlex.join(["ironband", *sys.argv[1:]])
        return cycles, comparison.difference.report(Names(self._task.fabric), replay, seen_by=self._task.engine)

    def results(self, cycles: int) -> dict[str, object]:
        """For programs."""
        door = self._door
        return {
            "topology": self._topology,
            "cycles": cycles,
            "mads_sent": dict(door.management.sent),
            "time_outs": door.management.time_outs,
            **partition_settings_json(self._task.settings),
            **data_results(door.transports, list(self._task.fabric.nodes), time.monotonic() - self._begun),
            "exit_status": self.status,
        }

    def tell_times(self, cycles: int) -> None:
        """What queue pairs did, for people."""
        for line in data_lines(
            self._door.transports, cycles, time.monotonic() - self._begun, operations=self._tells_operations
        ):
            self._say(line)

    def _begin(self) -> None:
        """The fabric can be used."""
        self._begun = time.monotonic()
        head = fabric_head(self._task.fabric, self._task.widths) | {"title": self._topology}
        write_atomically(self._directory / FABRIC_FILE, json.dumps(head))
        for note in self._described.notes:
            self._say(note)
        if self._command:
            preloaded = os.environ.get("LD_PRELOAD")
            ours = {"LD_PRELOAD": f"{self._library}{f':{preloaded}' if preloaded else ''}", "PATH": program_path()}
            environment = os.environ | self._environment | ours
            process = self._stack.enter_context(in_foreground(self._command, env=environment))
            descriptor = os.pidfd_open(process.pid)
            self._stack.callback(os.close, descriptor)
            watched = self._door.selector
            watched.register(descriptor, selectors.EVENT_READ, lambda events: self._ended(process, descriptor))
            return
        # Another terminal has its own programs, and what it preloads.
        exports = f"export LD_PRELOAD={shlex.quote(str(self._library))}${{LD_PRELOAD:+:$LD_PRELOAD}}\n"
        exports += f'export PATH="$PATH:{PROGRAM_DIRECTORIES}"\n'
        exports += "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self._environment.items())
        write_atomically(self._directory / _ENVIRONMENT, exports)
        switches = sum(isinstance(node, SwitchParameters) for node in self._task.fabric.nodes.values())
        counted = f"{switches} switch{'es' * (switches != 1)}, {len(self._door.ports)} hosts"
        self._say(f"{self._topology}: {counted}, {len(self._task.fabric.links)} links; served")
        self._say("In another terminal:")
        self._say(f"  . {shlex.quote(str(self._directory / _ENVIRONMENT))}")
        self._say("  opensm -o -d 2 -f opensm.log && ibnetdiscover && iblinkinfo")
        self._say(f"Programs run at {self._host}; IRONBAND_HOST=NAME puts one at another host.")
        self._say(f"Here, or after `ironband tell`: {LINES}")
        if sys.stdin is not None:
            # In a shell's background a read would stop us.
            signal.signal(signal.SIGTTIN, signal.SIG_IGN)
            self._hands.read_input(sys.stdin.fileno(), self._say)

    def _look_at_files(self) -> None:
        """Whoever comes may have read a topology that is not served."""
        for file in self._described.files:
            if change := file.change():
                self._tell(f"{file.path} {change}; what is served is what it was at the start")

    def _say(self, line: str) -> None:
        print(line, file=self._output, flush=True)

    def _tell(self, line: str) -> None:
        self._say(f"cycle {self._door.now.cycle:,}: {line}")

    def _ended(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self._door.selector.unregister(descriptor)
        status = process.wait()
        self.status = status if status >= 0 else _SIGNALLED - status
        self._door.end()
