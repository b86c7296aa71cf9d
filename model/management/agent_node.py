"""What an agent asks of its node: crossing, register bus, port (docs/management.md, sections 1, 2 and 8)."""

from abc import ABC, abstractmethod
from collections.abc import Callable

__all__ = ["AgentNode", "BusRead"]


class BusRead:
    """A read that was given on the register bus.

    Attributes:
        value: what was read, there four cycles after the read was given.
    """

    def __init__(self) -> None:
        self.value = 0

    def take(self, value: int) -> None:
        """The answer is here."""
        self.value = value


class AgentNode(ABC):
    """A node as its agent sees it. The agent calls in phase `DECIDE`, for the current cycle."""

    @abstractmethod
    def offer(self, data: bytes, output: int, slot: int) -> None:
        """A packet is offered from the current cycle on; the agent's `sent` is called at its end.

        On the slot of a data VL it is offered in the current cycle alone: if it is not taken, that is its end.

        `data` is LRH..ICRC in whole words. `output` is an index as in the crossing: in a switch the port less one,
        in an adapter 0 for the link and 1 for the host. The node records SEND.
        """

    @abstractmethod
    def freed(self) -> None:
        """The agent is free from the current cycle on, before that cycle's matching. It is free at reset."""

    @abstractmethod
    def icrc_wrong(self, arrival: int, cycles: int) -> None:
        """A packet that came by this port (0: an adapter's host) has a wrong ICRC, which shows so many cycles later."""

    @abstractmethod
    def taken_by_trap(self) -> None:
        """The agent is no longer free: not in the current cycle's matching, nor until `freed`."""

    @abstractmethod
    def bus_write(self, address: int, value: int) -> None:
        """A write on the register bus."""

    @abstractmethod
    def bus_read(self, address: int, take: Callable[[int], None]) -> None:
        """A read on the register bus: `take` gets what is visible two cycles later, two to four cycles later."""

    @abstractmethod
    def is_active(self) -> bool:
        """True if the state of an adapter's port, visible in the current cycle, is Active. A switch's is not asked."""

    def give_read(self, address: int) -> BusRead:
        """Give a read on the register bus in the current cycle."""
        read = BusRead()
        self.bus_read(address, read.take)
        return read
