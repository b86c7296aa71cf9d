"""Ironband in Python: fabrics that scripts, notebooks and tests bring up, send through and look at (docs/library.md).

`import ironband` has these names; they are imported when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from cosim.engines.base import ENGINES, MODEL, UnknownEngine, Waves
from cosim.topology.subnet_fabric import fabric_of
from cosim.topology.topology import no_such_node, port_named
from cosim.topology.topology_file import TopologyFile, find_topology, packaged_topologies, read_topology
from ironband.cocotb_tests import TestResult, run_cocotb, simulator_named
from ironband.common import check_waves_file
from ironband.export import check_directory
from ironband.inputs import topology_asked
from ironband.up_options import lft_size
from toolchain.errors import UserError
from verilog.export.switch_name import TOP, check_name
from wire.codes import LinkWidth
from wire.packet import Packet, parse
from wire.parameters import (
    AdapterParameters,
    FabricParameters,
    LinkParameters,
    SwitchParameters,
    adapter_port,
    node_text,
)
from wire.trace import Kind

if TYPE_CHECKING:
    from cosim.analysis.event_log import Monitor
    from cosim.experiments.packet_run import PacketRun
    from wire.stimulus import Delivery

__all__ = [
    "Arrival",
    "Differs",
    "Fabric",
    "FabricRun",
    "Kind",
    "NothingCame",
    "SwitchParameters",
    "UserError",
    "export_switch",
    "find_topology",
    "packaged_topologies",
    "read_topology",
    "run_cocotb",
]

_PATIENCE: Final = 100_000
_STEP: Final = 1_000


class Differs(UserError):
    """RTL and golden model are not the same; the text says at which cycle, where, and what led there, in lines."""


class NothingCame(UserError):
    """A host has not got a packet."""


@dataclass(frozen=True)
class Arrival:
    """A packet that a host has got.

    Attributes:
        cycle: of its last word.
        host: who got it.
        source: the host that sent it, by its LID; None if no host has that.
        vl: the VL that it came on.
        packet: its headers and payload; its bytes LRH..ICRC are `packet.data`.
    """

    cycle: int
    host: str
    source: str | None
    vl: int
    packet: Packet

    @property
    def payload(self) -> bytes:
        """What the source sent, without padding."""
        return self.packet.payload


class Fabric:
    """Switches, hosts and cables, as they are built. Nothing is simulated yet.

    Attributes:
        name: what it was made from.
        parameters: its nodes and links.
        widths: of each link.
        hosts: names of its hosts, of one with several ports each, such as `H1[2]`.
        switches: names of its switches.
    """

    def __init__(
        self, topology: str | Path | TopologyFile | SwitchParameters, *, vls: int | None = None, mtu: int | None = None
    ) -> None:
        """Of a topology, or of one switch alone, SW1, with a host at each port, H1 at port 1.

        Args:
            topology: a file of ibsim or ibnetdiscover, the name of a topology that comes with Ironband, one that was
                read, or a switch's parameters.
            vls: data VLs of every port, 1 unless given; a switch alone has its own.
            mtu: of every port, in bytes, 2,048 unless given; a switch alone has its own.

        Raises:
            UserError: there is no such topology, or Ironband cannot build it.
            ValueError: numbers that no port has.
        """
        if isinstance(topology, SwitchParameters):
            if vls is not None or mtu is not None:
                raise ValueError(f"vls {vls}, mtu {mtu}: a switch alone has its own, expected neither")
            self.name = f"switch of {topology.ports} ports"
            self.parameters = _with_hosts(topology)
            self.widths: tuple[LinkWidth, ...] = (LinkWidth.X4,) * topology.ports
        else:
            described = topology if isinstance(topology, TopologyFile) else read_topology(topology_asked(str(topology)))
            self.name = described.file if isinstance(topology, TopologyFile) else str(topology)
            size = lft_size(described.subnet, {}, 0)
            host = AdapterParameters(vls=1 if vls is None else vls, mtu=2048 if mtu is None else mtu)
            made = fabric_of(described, SwitchParameters(vls=host.vls, mtu=host.mtu, lft_size=size), host)
            self.parameters, self.widths = made.fabric, made.widths
        nodes = self.parameters.nodes.items()
        self.hosts = tuple(node_text(name) for name, node in nodes if isinstance(node, AdapterParameters))
        self.switches = tuple(name for name, node in nodes if isinstance(node, SwitchParameters))

    def __repr__(self) -> str:
        return f"<fabric {self.name}: switches {', '.join(self.switches)}; hosts {', '.join(self.hosts)}>"

    def run(
        self,
        engine: str = MODEL,
        *,
        compared: bool = False,
        rtl: Collection[str] | None = None,
        seed: int = 0,
        waves: str | Path | None = None,
        waves_cycles: range | None = None,
        capture: str | Path | None = None,
        capture_at: Sequence[str] = (),
    ) -> FabricRun:
        """A run of the fabric, for a `with` block, whose end ends it. It stands at reset until it is brought up.

        Args:
            engine: one of model, verilator, icarus, amaranth.
            compared: the golden model runs beside RTL; the first difference raises `Differs`, at the end of the `with`
                block at the latest.
            rtl: the nodes that the engine simulates, by name, all without it; the others are the golden model.
            seed: draws errors.
            waves: a file for waves: .fst with verilator and icarus, .vcd with amaranth.
            waves_cycles: those that it has, without gaps; all without it. There is no file if the run ends before.
            capture: a file for Wireshark of what passes the links, there once the run has ended.
            capture_at: the ports at whose links, all unless given.

        Raises:
            UserError: no such engine, node or port; the engine has no such waves; a file cannot be written.
        """
        if engine not in ENGINES:
            raise UnknownEngine(f"engine {engine!r}: expected one of {', '.join(ENGINES)}")
        if capture_at and capture is None:
            raise UserError(f"capture_at {', '.join(capture_at)}: expected capture, the file, too")
        nodes = None if rtl is None else [node for text in rtl for node in self._nodes(text)]
        if waves_cycles is not None and (waves is None or not waves_cycles or waves_cycles.step != 1):
            raise UserError(f"waves_cycles {waves_cycles}: expected waves, the file, and cycles without gaps")
        wave_file = None if waves is None else Path(waves)
        check_waves_file(engine, wave_file)
        recorded = None if wave_file is None else Waves(wave_file, waves_cycles)
        file = None if capture is None else str(capture)
        return FabricRun(self, engine, compared and engine != MODEL, nodes, seed, recorded, file, tuple(capture_at))

    def run_cocotb(
        self,
        file: str | Path,
        simulator: str = "icarus",
        *,
        open_at: Sequence[str] = (),
        only: str | None = None,
        waves: str | Path | None = None,
        seed: int | None = None,
    ) -> list[TestResult]:
        """Runs the cocotb tests of a file on the fabric in RTL, each in a simulation of its own.

        Args:
            file: of Python, with the tests, which drive the fabric with `ironband.drivers.FabricDriver`.
            simulator: icarus or verilator.
            open_at: hosts that are left out: a test drives the rows of the ports in whose cables they were.
            only: this test alone.
            waves: a file for its waves, .fst; with `only` if there are several.
            seed: of cocotb's random numbers.

        Returns:
            The tests, all of which passed; each has a `name` and the time in the simulation that it took,
            `simulated_ns`.

        Raises:
            UserError: no such simulator, file, test or host; the waves cannot be written; a test failed.
        """
        from cosim.experiments.fabric_tests import run_fabric_tests
        from ironband.common import work_directory

        chosen = simulator_named(simulator)
        wave_file = None if waves is None else Path(waves)
        check_waves_file(simulator, wave_file)
        with work_directory() as directory:
            return list(
                run_fabric_tests(
                    self.parameters,
                    self.widths,
                    Path(file),
                    chosen,
                    directory,
                    open_at=open_at,
                    only=only,
                    seed=seed,
                    waves=wave_file,
                )
            )

    def _nodes(self, text: str) -> list[str]:
        """The nodes that people call so; of an adapter with several ports, all."""
        found = [name for name in self.parameters.nodes if text in (name, adapter_port(name)[0])]
        if not found:
            raise UserError(f"rtl {no_such_node(self.parameters, text)}")
        return found


class FabricRun:
    """A fabric that is simulated. Time stands still but in those calls that say otherwise. Made by `Fabric.run`.

    Ports are called as people call them: `SW1[2]`, or `H1` for a host's.

    Attributes:
        fabric: what is run.
        engine: what simulates it.
    """

    def __init__(
        self,
        fabric: Fabric,
        engine: str,
        compared: bool,
        rtl: Sequence[str] | None,
        seed: int,
        waves: Waves | None,
        capture: str | None,
        capture_at: Sequence[str],
    ) -> None:
        self.fabric = fabric
        self.engine = engine
        self._compared = compared
        self._rtl = rtl
        self._seed = seed
        self._waves = waves
        self._capture = capture, capture_at
        self._run: PacketRun | None = None
        self._stack = ExitStack()
        self._has_told = self._is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # What went wrong in the block is told, not what came of it.
        self._has_told = self._has_told or exc_type is not None
        self.close()

    def close(self) -> None:
        """Ends the run; nothing if that has happened.

        Raises:
            Differs: RTL and golden model are not the same, and nobody was told so far.
        """
        if self._is_over:
            return
        self._is_over = True
        with self._stack:
            if self._run is not None:
                self._run.close()
        if self._run is not None and self._run.difference and not self._has_told:
            raise Differs(self._run.difference)

    def __repr__(self) -> str:
        return f"<run of {self.fabric.name} on {self.engine} at cycle {self.cycle:,}>"

    # Time.

    @property
    def cycle(self) -> int:
        """The cycle that the run stands at. A cycle is 4 ns at SDR."""
        return 0 if self._run is None else self._run.now

    def wait(self, cycles: int) -> None:
        """Lets so many cycles pass.

        Raises:
            Differs: RTL and golden model are not the same.
        """
        if cycles < 0:
            raise ValueError(f"wait of {cycles} cycles: allowed 0 and above")
        run, end = self._up, self.cycle + cycles
        with self._told():
            while run.now < end:
                run.step(end - run.now)

    def bring_up(self, *, bus: bool = False) -> None:
        """Brings the fabric up, from reset until every link is Active: by our own Subnet Manager's SMPs, or over the
        register bus of tests, which is faster.

        Raises:
            UserError: it is up, it does not come up, or the engine cannot simulate it.
            Differs: RTL and golden model are not the same.
        """
        from cosim.experiments.link_capture import link_capture
        from cosim.experiments.packet_run import PacketRun, PacketTask
        from cosim.experiments.stepped_run import SteppedTask
        from ironband.common import work_directory

        if self._run is not None or self._is_over:
            raise UserError(f"{self.fabric.name}: bring_up once in a run: expected another run")
        fabric, widths = self.fabric.parameters, self.fabric.widths
        with self._told():
            stepped = SteppedTask(
                fabric,
                self._stack.enter_context(work_directory()),
                engine=self.engine,
                rtl=self._rtl,
                compared=self._compared,
                taps=self._stack.enter_context(link_capture(fabric, widths, *self._capture)),
                waves=self._waves,
            )
            self._run = PacketRun(PacketTask(stepped, widths, "bus" if bus else "sm", self._seed))

    @property
    def _up(self) -> PacketRun:
        if self._run is None or self._is_over:
            what = "the run is over" if self._is_over else "the fabric is not up: expected bring_up() before"
            raise UserError(f"{self.fabric.name}: {what}")
        return self._run

    @contextmanager
    def _told(self) -> Iterator[None]:
        """A difference as what it is."""
        from cosim.experiments.stepped_run import RunOver

        try:
            yield
        except RunOver as over:
            self._has_told = True
            raise Differs(str(over)) from None

    # Packets.

    def send(self, host: str, *, to: str, payload: bytes, sl: int = 0) -> Packet:
        """Has a host send a UD packet to another, behind those that wait there already; what it sends.

        Raises:
            UserError: no such host or SL, or more than the MTU.
        """
        return parse(self._up.send(host, to, payload, sl))

    def send_packet(self, host: str, packet: bytes | Packet, *, vl: int = 0) -> None:
        """Has a host send a packet as it is, LRH..ICRC, whatever it says; likewise.

        Raises:
            UserError: no such host or VL, or a length that no packet has.
        """
        self._up.send_packet(host, packet.data if isinstance(packet, Packet) else packet, vl)

    def receive(self, host: str, cycles: int = _PATIENCE) -> Arrival:
        """The next packet that a host has got; as long as there is none, time passes, so many cycles at the most.

        Raises:
            NothingCame: there was none.
            UserError: no such host.
            Differs: RTL and golden model are not the same.
        """
        run = self._up
        arrived, end = run.arrived(host), run.now + cycles
        with self._told():
            while not arrived:
                if run.now >= end:
                    raise NothingCame(f"{host}: no packet within {cycles:,} cycles, at cycle {run.now:,}")
                run.step(min(_STEP, end - run.now))
        return self._arrival(host, arrived.popleft())

    def waiting(self, host: str) -> int:
        """How many packets a host has got that were not received here."""
        return len(self._up.arrived(host))

    def lid(self, host: str) -> int:
        """The LID that a host was given."""
        return self._up.lid(host)

    def _arrival(self, host: str, delivery: Delivery) -> Arrival:
        packet = parse(delivery.data)
        return Arrival(delivery.cycle, host, self._up.host_of_lid(packet.lrh.slid), delivery.slot, packet)

    # Looking.

    def counters(self, port: str) -> dict[str, int]:
        """The performance counters of a port by name; 4,000 cycles pass until they are read."""
        with self._told():
            return self._up.links.counters(port)

    def monitor(self, kinds: Collection[Kind] | None = None, ports: Collection[str] | None = None) -> Monitor:
        """What happens from now on, of these kinds (all) at these ports (all): in `seen`, oldest first.

        Some engines tell what happened in a step when they have run another: what is not there yet is after
        `wait(2_000)`.

        Raises:
            UserError: no such port.
        """
        from cosim.analysis.event_log import Monitor

        places = None
        if ports is not None:
            try:
                places = frozenset(str(port_named(self.fabric.parameters, text)) for text in ports)
            except ValueError as error:
                raise UserError(str(error)) from None
        monitor = Monitor(None if kinds is None else frozenset(kinds), places, self.cycle)
        self._up.events.add(monitor)
        return monitor

    @property
    def events_compared(self) -> int:
        """Events that were the same in RTL and golden model, once the run is over."""
        return 0 if self._run is None else self._run.records_compared

    # Links.

    def cut(self, port: str) -> None:
        """Cuts the link at a port; up to 1,000 cycles pass until that is done."""
        with self._told():
            self._up.links.cut(port)

    def restore(self, port: str) -> None:
        """Joins it again, likewise."""
        with self._told():
            self._up.links.restore(port)

    def inject(self, port: str, kind: str, *, row: int = 1, bit: int = 0) -> None:
        """Makes one error happen to the next packet that a port sends after up to 1,000 cycles, which pass.

        KIND is bit_flip (of ROW, four bytes each, and BIT), lost_packet, lost_flow_control, truncate (from ROW on), ebp
        or stray_symbol.
        """
        with self._told():
            self._up.links.inject(port, kind, row=row, bit=bit)


def export_switch(
    parameters: SwitchParameters, directory: str | Path, *, name: str = TOP, trace: bool = False, force: bool = False
) -> list[Path]:
    """Writes the Verilog of a switch called NAME and what is needed to use it, as `ironband export` does; the files.

    Raises:
        UserError: no such name; the directory cannot be written to, or it has other files than exports of other names
            and there is no FORCE.
    """
    path = Path(directory)
    check_name(name)
    check_directory(path, name, force)

    from verilog.export.package import switch_package, write_files

    files = switch_package(parameters, trace, name=name).files
    write_files(path, files)
    return [path / file for file in files]


def _with_hosts(switch: SwitchParameters) -> FabricParameters:
    """A switch with a host at each port."""
    host = AdapterParameters(vls=switch.vls, mtu=switch.mtu)
    hosts = [f"H{port}" for port in range(1, switch.ports + 1)]
    links = tuple(LinkParameters("SW1", port, name, 1) for port, name in enumerate(hosts, 1))
    return FabricParameters({"SW1": switch, **dict.fromkeys(hosts, host)}, links)
