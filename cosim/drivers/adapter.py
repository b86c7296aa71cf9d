"""A channel adapter from its host's side: packets in, packets out."""

from __future__ import annotations

from collections import deque

from cocotb.triggers import Event

from cosim.drivers.mailbox import Mailbox, within
from wire.codes import VL15
from wire.packet import WORD_BYTES, Packet
from wire.stimulus import Delivery, Post

__all__ = ["AdapterDriver"]


class AdapterDriver:
    """Sends and receives packets at one adapter.

    Attributes:
        name: the adapter's name in the fabric.
        vls: its data VLs.
    """

    def __init__(self, mailbox: Mailbox, name: str, node: int, vls: int) -> None:
        self.name = name
        self.vls = vls
        self._mailbox = mailbox
        self._node = node
        self._received: deque[Delivery] = deque()
        self._arrived = Event()

    async def send(self, packet: Packet | bytes, vl: int = 0, cycle: int = 0) -> None:
        """Queue a packet at the host, behind those already queued on its VL; returns at once.

        Args:
            packet: LRH..ICRC.
            vl: the stream to take, a data VL or 15; the packet's own LRH.VL is not looked at.
            cycle: not before this cycle.

        Raises:
            ValueError: the adapter has no such VL, or the packet is no whole number of words.
        """
        slot = self.vls if vl == VL15 else vl
        if vl != VL15 and not 0 <= vl < self.vls:
            raise ValueError(f"VL {vl} of {self.name}: expected 0..{self.vls - 1} or {VL15}")
        data = packet.data if isinstance(packet, Packet) else packet
        if len(data) % WORD_BYTES:
            raise ValueError(f"packet of {len(data)} bytes: expected a multiple of {WORD_BYTES}")
        self._mailbox.packet(Post(cycle, self._node, slot, data))

    async def recv(self, timeout_cycles: int | None = None) -> bytes:
        """Wait for the next packet delivered to the host; its bytes LRH..ICRC.

        Raises:
            TimeoutError: none came in so many cycles.
        """
        return (await self.recv_delivery(timeout_cycles)).data

    async def recv_delivery(self, timeout_cycles: int | None = None) -> Delivery:
        """As recv, with the cycle of the last word and the slot it came on.

        Raises:
            TimeoutError: none came in so many cycles.
        """
        return await within(timeout_cycles, self._next(), f"packet at {self.name}")

    def count(self) -> int:
        """Packets that were delivered and not yet received here."""
        return len(self._received)

    def deliver(self, delivery: Delivery) -> None:
        """Take a delivery of this adapter from the fabric."""
        self._received.append(delivery)
        self._arrived.set()

    async def _next(self) -> Delivery:
        while not self._received:
            self._arrived.clear()
            await self._arrived.wait()
        return self._received.popleft()
