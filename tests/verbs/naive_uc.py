"""A second reading of UC's responder, plainly, sharing nothing with `verbs`."""

from __future__ import annotations

from collections import deque

from wire.packet import parse


class NaiveUc:
    """Collects the packets of a message, and carries it out as they come; what has a gap is forgotten."""

    def __init__(self, memory: bytearray, base: int, r_key: int, psn: int, mtu: int) -> None:
        self.memory, self.base, self.r_key, self.expected, self.mtu = memory, base, r_key, psn, mtu
        self.posted: deque[tuple[int, int, int]] = deque()
        self.receives: list[tuple[int, str, int, int]] = []
        self.under_way = ""
        self.filled = 0
        self.target = (0, 0)

    def receive(self, data: bytes) -> None:
        packet = parse(data)
        step, kind = packet.bth.opcode - 0x20, "send"
        if step >= 6:
            step, kind = step - 6, "write"
        begins, ends = step in (0, 4, 5), step in (2, 3, 4, 5)
        follows = packet.bth.psn == self.expected and self.under_way == kind
        self.expected = (packet.bth.psn + 1) % (1 << 24)
        if begins:
            self.under_way, self.filled = kind, 0
        elif not follows:
            self.under_way = ""
            return
        size = len(packet.payload)
        if not self.fits(packet, kind, begins, ends, size) or (step in (3, 5) and not self.posted):
            self.under_way = ""
            return
        at = (self.posted[0][1] if kind == "send" else self.target[0]) + self.filled
        if size:
            self.memory[at : at + size] = packet.payload
        self.filled += size
        if ends:
            self.under_way = ""
            if kind == "send" or step in (3, 5):
                value = packet.headers[-1].imm_dt if step in (3, 5) else 0
                self.receives.append((self.posted.popleft()[0], "SUCCESS", self.filled, value))

    def fits(self, packet: object, kind: str, begins: bool, ends: bool, size: int) -> bool:
        if size > self.mtu or (not ends and size != self.mtu) or (not begins and not size):
            return False
        if kind == "send":
            return bool(self.posted) and self.filled + size <= self.posted[0][2]
        if begins:
            reth = next(record for record in packet.headers if record.layout.name == "RETH")
            self.target = reth.va - self.base, reth.dma_len
            allowed = 0 <= self.target[0] <= len(self.memory) - reth.dma_len and reth.r_key == self.r_key
            if reth.dma_len and not allowed:
                return False
        return self.filled + size == self.target[1] if ends else self.filled + size < self.target[1]
