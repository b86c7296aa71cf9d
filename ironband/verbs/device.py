"""Devices: the adapters of hosts, opened and queried."""

from __future__ import annotations

import errno
from collections import deque
from dataclasses import dataclass
from typing import Final

from ironband.verbs import device_attributes
from ironband.verbs.addresses import GID, gid_text
from ironband.verbs.base import PyverbsCM, PyverbsObject
from ironband.verbs.device_attributes import DeviceAttr, DeviceAttrEx, PortAttr
from ironband.verbs.enums import ibv_event_type, ibv_gid_type, ibv_gid_type_sysfs, ibv_node_type, ibv_transport_type
from ironband.verbs.network import Host, Network, newest_network
from ironband.verbs.pyverbs_error import PyverbsRDMAError
from verbs.completions import AsyncEvent as AdapterEvent
from verbs.port import Port

__all__ = ["AsyncEvent", "Context", "Device", "DeviceAttr", "DeviceAttrEx", "GIDEntry", "PortAttr", "get_device_list"]

_HALF: Final = 64
_HALF_MASK: Final = (1 << _HALF) - 1


class Device(PyverbsObject):
    """A device that there is, as yet unopened."""

    def __init__(self, host: Host, index: int) -> None:
        super().__init__()
        self.name = host.name.encode()
        self.node_type = ibv_node_type.IBV_NODE_CA
        self.transport_type = ibv_transport_type.IBV_TRANSPORT_IB
        self.guid = host.node_guid
        self.index = index

    def __str__(self) -> str:
        return (
            f"Device {self.name.decode()}, node type CA, transport type IB, guid {self.guid:#018x}, index {self.index}"
        )


@dataclass
class GIDEntry:
    """An entry of a port's GID table."""

    gid_subnet_prefix: int = 0
    gid_interface_id: int = 0
    gid_index: int = 0
    port_num: int = 0
    gid_type: int = 0
    ndev_ifindex: int = 0

    def gid_str(self) -> str:
        """The GID."""
        return gid_text(self.gid_subnet_prefix << _HALF | self.gid_interface_id)


@dataclass
class AsyncEvent:
    """Something that happened outside completion queues."""

    event_type: int = 0

    def ack(self) -> None:
        """Nothing waits for it."""

    def __str__(self) -> str:
        return f"{'Event Type':<24}: {ibv_event_type(self.event_type).name:<20}\n"


class Context(PyverbsCM):
    """An open device: a host's adapter.

    Attributes:
        network: the fabric that it is at.
        host: whose adapter it is.
        name: the host's.
        num_comp_vectors: 1.
    """

    def __init__(self, network: Network | None = None, host: str | None = None, *, name: str | None = None) -> None:
        """The adapter of HOST at a fabric; as in pyverbs with NAME alone, at the one that was opened last.

        Raises:
            PyverbsUserError: no such fabric or host.
        """
        super().__init__()
        self.network = newest_network() if network is None else network
        wanted = host if name is None else name
        self.host = self.network.host(next(iter(self.network.hosts)) if wanted is None else wanted)
        self.name = self.host.name
        self.num_comp_vectors = 1
        self._events: deque[AdapterEvent] = deque()
        self._sources: list[object] = []
        self.adapter = self.host.adapter
        self.host.listeners.append(self)
        self.made()

    def _end(self) -> None:
        self.host.listeners.remove(self)

    # Events.

    def listen_to(self, source: object) -> None:
        """From now on, events of this source are the context's."""
        self._sources.append(source)

    def forget(self, source: object) -> None:
        """No more."""
        self._sources.remove(source)

    def heard(self, event: AdapterEvent) -> None:
        """Takes an event of the adapter."""
        if event.source in self._sources:
            self._events.append(event)

    def get_async_event(self, cycles: int | None = None) -> AsyncEvent:
        """The next event; time goes on until there is one.

        Raises:
            NothingComesError: within CYCLES, or before nothing was under way any more, there was none.
        """
        self.network.wait(lambda: bool(self._events), cycles, f"asynchronous event at {self.name}")
        return AsyncEvent(ibv_event_type(self._events.popleft().type))

    # Queries.

    def port(self, port_num: int) -> Port:
        """A port as the adapter has it.

        Raises:
            PyverbsRDMAError: there is none of this number.
        """
        ports = self.adapter.ports
        if not 1 <= port_num <= len(ports):
            what = f"Failed to query port {port_num} of {self.name}: allowed 1..{len(ports)}"
            raise PyverbsRDMAError(what, errno.EINVAL)
        return ports[port_num - 1]

    def query_device(self) -> DeviceAttr:
        """What the adapter can do."""
        return device_attributes.device_attr(self.host)

    def query_device_ex(self, ex_input: object = None) -> DeviceAttrEx:
        """Likewise, and more."""
        return DeviceAttrEx(self.query_device())

    def query_port(self, port_num: int) -> PortAttr:
        """A port as the Subnet Manager has set it."""
        return device_attributes.port_attr(self.host, self.port(port_num))

    def query_gid(self, port_num: int, index: int) -> GID:
        """An entry of a port's GID table."""
        gids = self.port(port_num).gids
        self._check_index("GID", index, len(gids))
        return GID(gid_text(gids[index]))

    def query_gid_type(self, port_num: int, index: int) -> int:
        """InfiniBand's."""
        self.query_gid(port_num, index)
        return ibv_gid_type_sysfs.IBV_GID_TYPE_SYSFS_IB_ROCE_V1

    def query_gid_ex(self, port_num: int, gid_index: int, flags: int = 0) -> GIDEntry:
        """An entry of a port's GID table, taken apart."""
        number = self.query_gid(port_num, gid_index).number
        return GIDEntry(number >> _HALF, number & _HALF_MASK, gid_index, port_num, ibv_gid_type.IBV_GID_TYPE_IB)

    def query_gid_table(self, max_entries: int, flags: int = 0) -> list[GIDEntry]:
        """The entries of all ports, up to MAX_ENTRIES; of more, an error whose code is negative, as pyverbs has it."""
        places = [(at, index) for at, port in enumerate(self.adapter.ports, 1) for index in range(len(port.gids))]
        if len(places) > max_entries:
            what = f"Failed to query gid tables: max_entries {max_entries}, {self.name} has {len(places)}"
            raise PyverbsRDMAError(what, -errno.EINVAL)
        return [self.query_gid_ex(*place) for place in places]

    def query_pkey(self, port_num: int, index: int) -> int:
        """An entry of a port's P_Key table, as the number on the wire."""
        p_keys = self.port(port_num).p_keys
        self._check_index("P_Key", index, len(p_keys))
        return p_keys[index]

    def get_pkey_index(self, port_num: int, pkey: int) -> int:
        """Where a P_Key is in a port's table."""
        p_keys = self.port(port_num).p_keys
        if pkey not in p_keys:
            raise PyverbsRDMAError(f"P_Key {pkey:#06x}: port {port_num} of {self.name} does not have it", errno.EINVAL)
        return p_keys.index(pkey)

    def _check_index(self, what: str, index: int, count: int) -> None:
        if not 0 <= index < count:
            allowed = f"0..{count - 1}" if count else "none"
            raise PyverbsRDMAError(f"{what} index {index} at {self.name}: allowed {allowed}", errno.EINVAL)


def get_device_list() -> list[Device]:
    """The adapters of the fabric that was opened last."""
    return [Device(host, index) for index, host in enumerate(newest_network().hosts.values())]
