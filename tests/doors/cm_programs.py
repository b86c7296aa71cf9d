"""Programs with rdma_cm devices at hosts whose communication managers hand each other their MADs, in one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from doors.mads.host_port import HostPort
from doors.mads.mad_layer import MadLayer, Moment
from doors.mads.packets import mad_in, packet_of
from doors.rdma_cm import layouts
from doors.rdma_cm.address_plan import AddressPlan
from doors.rdma_cm.cm_hosts import CmHosts
from doors.rdma_cm.device import OpenIds, RdmaCmDevice
from doors.rdma_cm.layouts import CmCommand, CmEventCode
from doors.rdma_cm.socket_address import Endpoint
from tests.doors.ideal_wire import describe, described_hosts
from wire.ip_cm import PortSpace

__all__ = ["TCP_PORT", "CmFabric", "Event", "Program", "address"]

TCP_PORT = 7471
RESPONSE = 0x1000


def address(host: int, port: int = 0) -> bytes:
    """A struct sockaddr_in of a host by its number."""
    return Endpoint(IPv4Address(f"127.87.0.{host}"), port).pack()


class CmFabric:
    """Hosts H1, H2, ..., of one port each, of the LIDs 1, 2, ...; H1 may have a second one, of the LID 99.

    Attributes:
        lose: whether a MAD is lost; of it communication managers hear, if they have who `knows_losses`.
    """

    def __init__(self, hosts: int = 2, *, knows_losses: bool = False, two_ports: bool = False) -> None:
        self.ports = {name: list(host.ports) for name, host in described_hosts(hosts).items()}
        if two_ports:
            second = HostPort(MadLayer(), "H1", 99, 2)
            describe(second, 99)
            self.ports["H1"].append(second)
        self.now = Moment(0, 0)
        self.hosts = CmHosts(self.ports, AddressPlan(self.ports), lambda: self.now)
        self.ids = OpenIds()
        self.lose: Callable[[bytes], bool] = lambda mad: False
        self.losses = 0
        self.knows_losses = knows_losses

    def carry(self) -> None:
        """Carries MADs until there are none."""
        by_lid = {port.info.lid: port for ports in self.ports.values() for port in ports}
        while True:
            self.hosts.poll()
            posts = [(port, one) for port in by_lid.values() for one in port.mads.outbox]
            if not posts:
                return
            for port in by_lid.values():
                port.mads.outbox = []
            for port, one in posts:
                made, reached = packet_of(port, one.address, one.mad, 1), by_lid[one.address.lid]
                found = mad_in(reached, made[1]) if made is not None else None
                if found is None or self.lose(one.mad):
                    self.losses += 1
                    if self.knows_losses:
                        self.hosts.lost(port, one.address, one.mad)
                else:
                    reached.mads.received(*found, self.now)

    def wait(self) -> None:
        """Lets time pass until nothing is waited for any more."""
        self.carry()
        while (due := self.hosts.deadline) is not None:
            self.now = Moment(max(due, self.now.time), 0)
            self.carry()


@dataclass(frozen=True)
class Event:
    """What a program gets."""

    code: CmEventCode
    id: int
    user: int
    status: int
    parameters: bytes

    @property
    def connection(self) -> Any:
        """Its parameters, of a connection."""
        return layouts.CONN_PARAM.unpack(self.parameters)

    @property
    def datagrams(self) -> Any:
        """Its parameters, of a datagram service."""
        return layouts.UD_PARAM.unpack(self.parameters)

    @property
    def private_data(self) -> bytes:
        """Without the zero bytes at its end."""
        return self.connection.private_data.rstrip(b"\0")


class Program:
    """One, with a device open, whose rdma_cm_ids it calls by 100 times what it created before."""

    def __init__(self, fabric: CmFabric, *hosts: int) -> None:
        self.fabric = fabric
        self.device = RdmaCmDevice(fabric.hosts.machine([f"H{number}" for number in hosts]), fabric.ids, lambda: None)
        self.users = 0

    def command(self, code: int, body: bytes, room: int = 0, process: int = 1) -> bytes:
        """What is put at the address of the answer."""
        head = layouts.CMD_HDR.pack(command=code, in_bytes=len(body), out_bytes=room)
        answer = self.device.write(head + body, process, no_wait=True)
        assert answer is not None
        self.fabric.carry()
        return b"".join(put.data for put in answer)

    def create(self, space: PortSpace = PortSpace.TCP, kind: int = 2) -> int:
        self.users += 100
        body = layouts.CREATE_ID.pack(uid=self.users, response=RESPONSE, ps=space, qp_type=kind)
        return layouts.CREATE_ID_RESP.unpack(self.command(CmCommand.CREATE_ID, body, 4)).id

    def destroy(self, number: int) -> int:
        """How many events of it there were."""
        back = self.command(CmCommand.DESTROY_ID, layouts.DESTROY_ID.pack(id=number), 4)
        return layouts.EVENTS_RESP.unpack(back).events_reported

    def bind(self, number: int, where: bytes) -> None:
        self.command(CmCommand.BIND_IP, layouts.BIND_IP.pack(addr=where, id=number))

    def listen(self, number: int, backlog: int = 0) -> None:
        self.command(CmCommand.LISTEN, layouts.LISTEN.pack(id=number, backlog=backlog))

    def resolve(self, number: int, where: bytes) -> None:
        """Address and route."""
        self.command(CmCommand.RESOLVE_IP, layouts.RESOLVE_IP.pack(dst_addr=where, id=number))
        self.command(CmCommand.RESOLVE_ROUTE, layouts.RESOLVE_ROUTE.pack(id=number))
        assert [self.event().code for _ in range(2)] == [CmEventCode.ADDR_RESOLVED, CmEventCode.ROUTE_RESOLVED]

    def connect(self, number: int, private_data: bytes = b"", **parameters: int) -> None:
        packed = connection_parameters(private_data, **parameters)
        self.command(CmCommand.CONNECT, layouts.CONNECT.pack(conn_param=packed, id=number))

    def accept(self, number: int, private_data: bytes = b"", **parameters: int) -> None:
        self.users += 100
        packed = connection_parameters(private_data, **parameters)
        self.command(CmCommand.ACCEPT, layouts.ACCEPT.pack(uid=self.users, conn_param=packed, id=number))

    def confirm(self, number: int) -> None:
        self.command(CmCommand.ACCEPT, layouts.ACCEPT.pack(id=number))

    def event(self) -> Event:
        back = self.command(CmCommand.GET_EVENT, layouts.GET_EVENT.pack(response=RESPONSE), layouts.EVENT_RESP.size)
        found = layouts.EVENT_RESP.unpack(back)
        return Event(CmEventCode(found.event), found.id, found.uid, found.status, found.param)

    def events(self) -> list[CmEventCode]:
        """All that there are."""
        found = []
        while self.device.has_news:
            found.append(self.event().code)
        return found


def connection_parameters(private_data: bytes, **parameters: int) -> bytes:
    values = {"qp_num": 0x11, "responder_resources": 1, "initiator_depth": 1, "retry_count": 7, "rnr_retry_count": 7}
    return layouts.CONN_PARAM.pack(
        private_data=private_data, private_data_len=len(private_data), valid=1, **{**values, **parameters}
    )
