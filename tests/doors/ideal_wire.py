"""Hosts whose adapters hand each other their packets at once, served to programs: the door without a fabric.

python -m tests.doors.ideal_wire DIRECTORY [HOSTS]     serves until it is interrupted
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import threading
import time
from pathlib import Path

from doors.clients import Clients
from doors.mads.host_port import HostPort
from doors.mads.mad_layer import MadLayer, Moment
from doors.mads.packets import mad_in, packet_of
from doors.rdma_cm.address_plan import AddressPlan
from doors.rdma_cm.cm_hosts import CmHosts
from doors.shim import build_shim
from doors.sysfs import HostFiles
from doors.uverbs.adapter import UverbsAdapter
from verbs.adapter import CYCLE_NS, Adapter
from verbs.port import Port
from wire.codes import LID_MULTICAST_MIN, P_KEY_DEFAULT, LinkSpeed, LinkWidth, PortPhysicalState, PortState
from wire.headers import LRH
from wire.node_info import NODE_INFO, VENDOR_ID, NodeType
from wire.port_info import PORT_INFO
from wire.port_tables import GUID_INFO, P_KEY_TABLE
from wire.sma import SmaAttribute

PREFIX = 0xFE80_0000_0000_0000
STEP_CYCLES = 100
MOST_STEPS = 64
GUIDS = 8


def _guid(host: int) -> int:
    return 0x0010_0000 + 2 * host


def described_hosts(hosts: int) -> dict[str, UverbsAdapter]:
    """Hosts H1, H2 and so on, each with an adapter of one Active port, whose LIDs are their numbers."""
    layer = MadLayer()
    made = {}
    for index in range(1, hosts + 1):
        port = HostPort(layer, f"H{index}", index, 1)
        describe(port, index)
        gids = [PREFIX << 64 | _guid(index) + 1, *[0] * (GUIDS - 1)]
        transport = Adapter([Port(index, gids, p_keys=list(port.p_keys), mtu=2048)])
        made[port.host] = UverbsAdapter(transport, [port])
    return made


class IdealWire:
    """Hosts H1, H2 and so on, each with an adapter of one port; serves them in a thread of its own."""

    def __init__(self, directory: Path, hosts: int = 2) -> None:
        self.directory = directory
        self.told: list[str] = []
        self.now = 0
        self.packets = 0
        self.selector = selectors.DefaultSelector()
        self.adapters = described_hosts(hosts)
        self.hosts = {name: list(host.ports) for name, host in self.adapters.items()}
        plan = AddressPlan(self.hosts)
        for name, ports in self.hosts.items():
            HostFiles(directory / "hosts" / name, ports, plan).update()
        (directory / "hosts" / "default").symlink_to("H1")
        self.moment = Moment(0, 0)
        self.communication = CmHosts(self.hosts, plan, lambda: self.moment)
        self.clients = Clients(
            directory / "socket",
            self.selector,
            self.hosts,
            self.told.append,
            lambda port, has: None,
            self.adapters.__getitem__,
            self.communication,
        )
        self.lose_mad = lambda mad: False
        self._ports = {port.info.lid: port for ports in self.hosts.values() for port in ports}
        self._by_lid = {one.adapter.ports[0].lid: one.adapter for one in self.adapters.values()}
        self._woken, self._wake = os.pipe()
        self.selector.register(self._woken, selectors.EVENT_READ, self._end)
        self._ended = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> IdealWire:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        os.write(self._wake, b"x")
        self._thread.join()
        self.clients.close()
        self.selector.close()
        os.close(self._woken)
        os.close(self._wake)
        if self.failure is not None:
            raise self.failure

    def _end(self, _events: int) -> None:
        self._ended = True

    def environment(self, host: str = "H1") -> dict[str, str]:
        """What a program needs."""
        return {
            **os.environ,
            "LD_PRELOAD": str(build_shim()),
            "IRONBAND_DIR": str(self.directory),
            "IRONBAND_HOST": host,
        }

    def start(self, *command: str, host: str = "H1", **options) -> subprocess.Popen[str]:
        """A program at a host."""
        return subprocess.Popen(
            command,
            env=self.environment(host),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **options,
        )

    def run(self, *command: str, host: str = "H1", seconds: float = 60, **options) -> str:
        """What a program prints that ends well."""
        with self.start(*command, host=host, **options) as program:
            printed, _none = program.communicate(timeout=seconds)
        assert program.returncode == 0, printed
        return printed

    def _run(self) -> None:
        try:
            while not self._ended:
                self._step()
        except BaseException as error:
            self.failure = error

    def _step(self) -> None:
        wakes = [one for one in (host.adapter.wake for host in self.adapters.values()) if one is not None]
        if self.communication.deadline is not None:
            wakes.append(self.communication.deadline // CYCLE_NS + 1)
        seconds = max(0.0, (min(wakes) - self.now) * CYCLE_NS / 1e9) if wakes else None
        before = time.monotonic_ns()
        for key, events in self.selector.select(seconds):
            key.data(events)
        self.now += (time.monotonic_ns() - before) // CYCLE_NS
        self._tell_time()
        for _more in range(MOST_STEPS):
            if not self._carry():
                break

    def _tell_time(self) -> None:
        self.moment = self.clients.now = Moment(self.now * CYCLE_NS, self.now)

    def _carry_mads(self) -> bool:
        """Carry what communication managers have to say."""
        self.communication.poll()
        carried = False
        for port in self._ports.values():
            outbox, port.mads.outbox = port.mads.outbox, []
            for outgoing in outbox:
                carried = True
                made = packet_of(port, outgoing.address, outgoing.mad, 1)
                reached = self._ports.get(outgoing.address.lid)
                if made is None or reached is None or self.lose_mad(outgoing.mad):
                    self.communication.lost(port, outgoing.address, outgoing.mad)
                else:
                    found = mad_in(reached, made[1])
                    assert found is not None
                    reached.mads.received(*found, self.moment)
        return carried

    def _carry(self) -> bool:
        """Carry a packet of each adapter that has one, and all MADs."""
        self.now += STEP_CYCLES
        self._tell_time()
        has_mads = self._carry_mads()
        sent = [outgoing for host in self.adapters.values() if (outgoing := host.adapter.poll(self.now)) is not None]
        for outgoing in sent:
            self.packets += 1
            dlid = LRH["dlid"].read(outgoing.data)
            if dlid >= LID_MULTICAST_MIN:
                reached = [host.adapter for host in self.adapters.values()]
            else:
                reached = [self._by_lid[dlid]] if dlid in self._by_lid else []
            for adapter in reached:
                adapter.receive(outgoing.data, self.now)
        return bool(sent) or has_mads


def describe(port: HostPort, index: int) -> None:
    guid = _guid(index)
    port.known[SmaAttribute.NODE_INFO] = NODE_INFO.pack(
        node_type=NodeType.CA,
        num_ports=1,
        system_image_guid=guid,
        node_guid=guid,
        port_guid=guid + 1,
        partition_cap=32,
        device_id=0x1B,
        local_port_num=1,
        vendor_id=VENDOR_ID,
    )
    port.known[SmaAttribute.NODE_DESCRIPTION] = port.host.encode().ljust(64, b"\0")
    port.known[SmaAttribute.PORT_INFO] = PORT_INFO.pack(
        gid_prefix=PREFIX,
        lid=index,
        master_sm_lid=1,
        local_port_num=1,
        link_width_active=LinkWidth.X4,
        link_speed_active=LinkSpeed.SDR,
        port_state=PortState.ACTIVE,
        port_physical_state=PortPhysicalState.LINK_UP,
        neighbor_mtu=4,
        mtu_cap=5,
        vl_cap=1,
        guid_cap=GUIDS,
        subnet_timeout=18,
    )
    port.known[SmaAttribute.GUID_INFO] = GUID_INFO.pack([guid + 1, *[0] * (GUIDS - 1)])
    port.known[SmaAttribute.P_KEY_TABLE] = P_KEY_TABLE.pack([P_KEY_DEFAULT, *[0] * 31])


def main() -> None:
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True)
    with IdealWire(directory, int(sys.argv[2]) if len(sys.argv) > 2 else 2) as wire:
        print(f"LD_PRELOAD={build_shim()} IRONBAND_DIR={directory} IRONBAND_HOST=H1", flush=True)
        told = 0
        try:
            while wire.failure is None:
                time.sleep(0.2)
                for line in wire.told[told:]:
                    print(line, flush=True)
                told = len(wire.told)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
