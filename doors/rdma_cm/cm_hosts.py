"""Communication management at all hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from doors.mads.host_port import HostPort
from doors.mads.mad_layer import Moment
from doors.mads.user_mad import Address
from doors.rdma_cm.address_plan import AddressPlan
from doors.rdma_cm.cm_host import CmHost
from doors.rdma_cm.cm_machine import CmMachine

__all__ = ["CmHosts"]


class CmHosts:
    """All hosts."""

    def __init__(self, ports: Mapping[str, Sequence[HostPort]], plan: AddressPlan, clock: Callable[[], Moment]) -> None:
        """CLOCK says what time it is for programs."""
        self._plan = plan
        self._machines: dict[tuple[str, ...], CmMachine] = {}
        self._hosts = {name: CmHost(host, plan, clock) for name, host in ports.items()}

    def machine(self, names: Sequence[str]) -> CmMachine:
        """The machine that has the adapters of these hosts."""
        key = tuple(names)
        if key not in self._machines:
            self._machines[key] = CmMachine([self._hosts[name] for name in key], self._plan)
        return self._machines[key]

    def poll(self) -> None:
        """Lets time pass, and gives ports what they are to send."""
        for host in self._hosts.values():
            host.poll()

    def changed(self, port: HostPort) -> None:
        """Something of a port has changed."""
        self._hosts[port.host].groups[port].changed()

    def lost(self, port: HostPort, address: Address, mad: bytes) -> None:
        """A MAD from a port to an address has not arrived and never will: nobody waits for time to say so."""
        reached = self._plan.port_with_lid(address.lid)
        self._hosts[port.host].hurry(mad, is_sender=True)
        if reached is not None:
            self._hosts[reached.host].hurry(mad, is_sender=False)

    @property
    def deadline(self) -> int | None:
        """When something is due, in the time of programs."""
        due = (host.deadline for host in self._hosts.values())
        return min((when for when in due if when is not None), default=None)
