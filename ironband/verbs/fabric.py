"""The fabric that programs' contexts are at: brought up in the same process, on any engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

from cosim.engines.base import ENGINES, MODEL
from cosim.experiments.fabric_bring_up import BringUpMethod
from cosim.experiments.link_capture import link_capture
from cosim.experiments.stepped_run import RunOver, SteppedTask
from cosim.experiments.verbs_run import VerbsRun, VerbsTask
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology_file import find_topology, read_topology
from ironband.up_options import lft_size
from ironband.verbs.network import Host, Network
from ironband.verbs.pyverbs_error import PyverbsError, PyverbsUserError
from toolchain.errors import UserError
from toolchain.temporary_directory import temporary_directory
from wire.codes import DATA_VL_COUNTS
from wire.parameters import AdapterParameters, SwitchParameters, adapter_port, node_text

__all__ = ["Fabric"]

_METHODS: Final[tuple[BringUpMethod, ...]] = get_args(BringUpMethod)
_LONGEST_TIMEOUT: Final = (1 << 24) - 1


class Fabric(Network):
    """A fabric. Time stands still but in those calls that say otherwise.

    Attributes:
        topology: its name or file.
        engine: what simulates it.
    """

    def __init__(
        self,
        topology: str | Path,
        *,
        engine: str = MODEL,
        bring_up: BringUpMethod = "sm",
        rtl: Iterable[str] | None = None,
        compared: bool = False,
        vls: int = 1,
        mtu: int = 2048,
        seed: int = 0,
        link_down_timeout: int | None = None,
        skip_timeouts: bool | None = None,
        capture: str | Path | None = None,
        capture_at: Sequence[str] = (),
    ) -> None:
        """Simulates it until it is brought up.

        Args:
            topology: a file of ibsim or ibnetdiscover, or the name of one that comes with Ironband.
            engine: one of model, verilator, icarus, amaranth.
            bring_up: `sm`, by our own Subnet Manager, or `bus`, by register writes, which is faster.
            rtl: the nodes that the engine simulates, by name, all without it; the others are the golden model.
            compared: the golden model runs beside RTL, and the first difference is an error.
            vls: data VLs of every port.
            mtu: of every port, in bytes.
            seed: draws errors.
            link_down_timeout: cycles that ports wait for a link to come back; 2,500,000 at reset.
            skip_timeouts: where nothing in the fabric can answer any more, a time-out that is waited for comes at once,
                and no cycle is simulated until then. By default that is so where RTL is simulated, not in the model.
            capture: a file for Wireshark of what passes the links, there once the fabric is closed.
            capture_at: the ports at whose links, all unless given.

        Raises:
            PyverbsUserError: no such topology, engine, method or node, or numbers that no port has.
            PyverbsError: the fabric does not come up.
        """
        if engine not in ENGINES:
            raise PyverbsUserError(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
        if bring_up not in _METHODS:
            raise PyverbsUserError(f"bring_up {bring_up!r}: expected one of {', '.join(_METHODS)}")
        if vls not in DATA_VL_COUNTS:
            raise PyverbsUserError(f"vls {vls}: expected one of {', '.join(map(str, DATA_VL_COUNTS))}")
        if capture_at and capture is None:
            raise PyverbsUserError(f"capture_at {', '.join(capture_at)}: expected capture, the file, too")
        self.topology = str(topology)
        self.engine = engine
        self._is_over = self._has_told = False
        with ExitStack() as stack, self._told():
            directory = stack.enter_context(temporary_directory())
            described = read_topology(find_topology(self.topology))
            switch = SwitchParameters(vls=vls, mtu=mtu, lft_size=lft_size(described.subnet, {}, 0))
            made = fabric_of(described, switch, AdapterParameters(vls=vls, mtu=mtu))
            file = None if capture is None else str(capture)
            stepped = SteppedTask(
                made.fabric,
                directory,
                engine=engine,
                rtl=None if rtl is None else _nodes(made.fabric.nodes, rtl),
                compared=compared and engine != MODEL,
                taps=stack.enter_context(link_capture(made.fabric, made.widths, file, capture_at)),
            )
            skips = engine != MODEL if skip_timeouts is None else skip_timeouts
            task = VerbsTask(stepped, made.widths, bring_up, seed, skips=skips)
            if link_down_timeout is not None:
                task = replace(task, link_down_timeout=_checked_timeout(link_down_timeout))
            self._run = VerbsRun(task)
            self._stack = stack.pop_all()
        guids = {adapter_port(name)[0]: made.fabric.identity(name).node_guid for name in made.fabric.nodes}
        sm_lids = self._run.sm_lids
        super().__init__(
            [Host(name, adapter, guids[name], sm_lids.get(name, 0)) for name, adapter in self._run.adapters.items()]
        )

    def close(self) -> None:
        """Ends the simulation, and all contexts at it; nothing if that has happened.

        Raises:
            PyverbsError: RTL and golden model differ.
        """
        if self._is_over:
            return
        self._is_over = True
        super().close()
        with self._stack, self._told():
            self._run.close()
        if self._run.difference and not self._has_told:
            raise PyverbsError(self._run.difference)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the run as those of this API."""
        try:
            yield
        except RunOver as over:
            self._has_told = True
            raise PyverbsError(str(over)) from None
        except (UserError, ValueError) as error:
            text = str(error)
            raise PyverbsUserError(text if self.topology in text else f"fabric {self.topology}: {text}") from error

    def __repr__(self) -> str:
        return f"<fabric {self.topology} on {self.engine} at cycle {self.now:,}: hosts {', '.join(self.hosts)}>"

    # Time.

    @property
    def now(self) -> int:
        """The cycle that the fabric stands at. A cycle is 4 ns at SDR."""
        return self._run.now

    @property
    def skipped(self) -> int:
        """Cycles that time-outs took and that were not simulated; they are not in `now`."""
        return self._run.skipped

    @property
    def is_idle(self) -> bool:
        """True if nothing is under way: no queue pair has work or waits for an answer, no packet can be anywhere."""
        return self._run.is_idle

    def step(self, most: int) -> None:
        """Lets a little time pass, not more than so many cycles, 1 and above."""
        if most < 1:
            raise PyverbsUserError(f"step of {most} cycles: allowed 1 and above")
        with self._told():
            self._run.step(most)

    # Links.

    def cut(self, port: str) -> None:
        """Cuts the link at a port, such as `SW1[2]` or `H1`; up to 1,000 cycles pass until that is done."""
        with self._told():
            self._run.links.cut(port)

    def restore(self, port: str) -> None:
        """Joins it again, likewise. Ports wait for their link for a while; then the Subnet Manager hears of it."""
        with self._told():
            self._run.links.restore(port)

    def inject(self, port: str, kind: str, *, row: int = 1, bit: int = 0) -> None:
        """Makes one error happen to the next packet that a port sends after up to 1,000 cycles, which pass.

        KIND is bit_flip (of ROW, four bytes each, and BIT), lost_packet, lost_flow_control, truncate (from ROW on), ebp
        or stray_symbol.
        """
        with self._told():
            self._run.links.inject(port, kind, row=row, bit=bit)

    def errors(self, port: str, kind: str, every: int) -> None:
        """Makes errors of a kind happen to what a port sends, one in EVERY cycles on the average; 0: no more."""
        with self._told():
            self._run.links.errors(port, kind, every)

    def counters(self, port: str) -> dict[str, int]:
        """The performance counters of a port by name; 4,000 cycles pass until they are read."""
        with self._told():
            return self._run.links.counters(port)


def _checked_timeout(cycles: int) -> int:
    if not 1 <= cycles <= _LONGEST_TIMEOUT:
        raise PyverbsUserError(f"link_down_timeout {cycles}: allowed 1..{_LONGEST_TIMEOUT}")
    return cycles


def _nodes(nodes: Collection[str], wanted: Iterable[str]) -> list[str]:
    """The nodes of these names; of an adapter with several ports, all.

    Raises:
        PyverbsUserError: there is none.
    """
    chosen = []
    for text in wanted:
        found = [name for name in nodes if text in (name, adapter_port(name)[0])]
        if not found:
            raise PyverbsUserError(f"rtl {text}: no such node; there are {', '.join(map(node_text, nodes))}")
        chosen += found
    return chosen
