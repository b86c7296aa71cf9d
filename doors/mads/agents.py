"""MAD agents of a port: who gets which datagram."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Final, Protocol

from doors.mads.user_mad import Address, Registration
from wire.codes import QP_GSI, QP_SMI
from wire.mad import RESPONSE_BIT, MadMethod, MgmtClass
from wire.rmpp import RMPP_VERSION, is_vendor_with_oui

__all__ = ["SMI_CLASSES", "Agent", "AgentTable", "Owner", "RegistrationError", "is_response", "method_of"]

_CLASS_AT: Final = 1
_VERSION_AT: Final = 2
_METHOD_AT: Final = 3
_OUI: Final = slice(37, 40)
_MAX_VERSION: Final = 8
_METHODS: Final = 0x80
SMI_CLASSES: Final = (MgmtClass.SUBN_LID_ROUTED, MgmtClass.SUBN_DIRECTED_ROUTE)
"""Classes whose MADs are between QP0s."""


class RegistrationError(Exception):
    """An agent that there cannot be.

    Attributes:
        errno: the system's number for why not.
    """

    def __init__(self, number: int) -> None:
        super().__init__(errno.errorcode[number])
        self.errno = number


class Owner(Protocol):
    """Whose agents these are."""

    def arrived(self, agent: Agent, address: Address, mad: bytes) -> None:
        """Takes a MAD for an agent, or a message of several segments."""
        ...

    def unanswered(self, agent: Agent, address: Address, mad: bytes) -> None:
        """Hears that what an agent sent will have no answer."""
        ...


@dataclass(eq=False, slots=True)
class Agent:
    """Sends MADs, and gets the answers and the requests that it has registered for.

    Attributes:
        owner: whose it is.
        registration: what it wants.
        high_tid: upper half of the TransactionIDs of its requests, by which answers find it.
    """

    owner: Owner
    registration: Registration
    high_tid: int

    @property
    def has_rmpp(self) -> bool:
        """Whether segments are made and put together for it."""
        return self.registration.rmpp_version != 0 and not self.registration.flags


def method_of(mad: bytes) -> int:
    """MADHeader.Method."""
    return mad[_METHOD_AT]


def is_response(mad: bytes) -> bool:
    """Whether a MAD answers one: with the response bit, and TrapRepress."""
    return bool(mad[_METHOD_AT] & RESPONSE_BIT) or mad[_METHOD_AT] == MadMethod.TRAP_REPRESS


@dataclass(slots=True)
class AgentTable:
    """The agents of a port."""

    agents: list[Agent] = field(default_factory=list)

    def add(self, agent: Agent) -> None:
        """Add an agent.

        Raises:
            RegistrationError: there can be none of this kind, or another one gets some of these requests.
        """
        wanted = agent.registration
        if wanted.qpn not in (QP_SMI, QP_GSI) or wanted.rmpp_version not in (0, RMPP_VERSION):
            raise RegistrationError(errno.EINVAL)
        if wanted.mgmt_class:
            is_smi = wanted.mgmt_class in SMI_CLASSES
            has_oui = is_vendor_with_oui(wanted.mgmt_class)
            if wanted.class_version >= _MAX_VERSION or is_smi != (wanted.qpn == QP_SMI) or (has_oui and not wanted.oui):
                raise RegistrationError(errno.EINVAL)
            for other in self.agents:
                if _same_requests(other.registration, wanted):
                    raise RegistrationError(errno.EINVAL)
        self.agents.append(agent)

    def remove(self, agent: Agent) -> None:
        """Remove an agent."""
        self.agents.remove(agent)

    def of_request(self, mad: bytes) -> Agent | None:
        """The agent that gets a request."""
        method = 1 << (mad[_METHOD_AT] & _METHODS - 1)
        oui = int.from_bytes(mad[_OUI], "big") if is_vendor_with_oui(mad[_CLASS_AT]) else 0
        for agent in self.agents:
            wanted = agent.registration
            if (
                wanted.methods & method
                and (wanted.mgmt_class, wanted.class_version) == (mad[_CLASS_AT], mad[_VERSION_AT])
                and (not oui or wanted.oui == oui)
            ):
                return agent
        return None

    def of_response(self, transaction_id: int) -> Agent | None:
        """The agent that a response is for."""
        return next((agent for agent in self.agents if agent.high_tid == transaction_id >> 32), None)


def _same_requests(one: Registration, other: Registration) -> bool:
    return (
        (one.mgmt_class, one.class_version, one.oui) == (other.mgmt_class, other.class_version, other.oui)
    ) and bool(one.methods & other.methods)
