"""A second reading of RC: a requester and a responder written from the standard's rules, plainly, sharing nothing
with `verbs`.

Sequence numbers are kept whole and cut to 24 bits on the wire. The responder makes every answer at once, an ACK for
each packet that asks for one; the requester keeps every message that it was ever given, and heeds no credits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from wire.packet import Packet, build, parse

WRAP = 1 << 24
HALF = 1 << 23
NO_CREDITS = 0x1F
CREDITS = 0, 1, 2, 3, 4, 6, 8, 12, 16
"""Of the first codes."""
RNR = 0x20
NAK_SEQUENCE, NAK_INVALID, NAK_ACCESS, NAK_OPERATION = 0x60, 0x61, 0x62, 0x63
RNR_CODE = 1
RNR_CYCLES = 2500
"""Of timer code 1, 10 us."""

STATUS = {NAK_INVALID: "REM_INV_REQ_ERR", NAK_ACCESS: "REM_ACCESS_ERR", NAK_OPERATION: "REM_OP_ERR"}


class Sent(NamedTuple):
    data: bytes


@dataclass(frozen=True)
class Operation:
    """What is asked for: `kind` is send, send_imm, write, write_imm, read, swap or add."""

    number: int
    kind: str
    local: int
    length: int
    remote: int = 0
    r_key: int = 0
    imm: int = 0
    swap: int = 0
    compare_add: int = 0
    fence: bool = False


@dataclass
class Message:
    operation: Operation
    first: int
    count: int
    answered: int = 0
    is_done: bool = False

    @property
    def end(self) -> int:
        return self.first + self.count

    @property
    def is_answered_with_data(self) -> bool:
        return self.operation.kind in ("read", "swap", "add")


def operation_of(packet: Packet) -> int:
    """Without the service: bits 4:0."""
    return packet.bth.opcode & 0x1F


@dataclass
class NaiveRc:
    """One end of a connection."""

    lid: int
    peer_lid: int
    qp: int
    peer_qp: int
    memory: bytearray
    base: int
    r_key: int
    psn: int = 0
    mtu: int = 256
    reads: int = 4
    timeout: int = 1 << 18
    retry_cnt: int = 7
    counts: bool = False
    """Whether its ACKs tell credits."""
    sends: list[tuple[int, str]] = field(default_factory=list)
    """Completions: number and status."""
    receives: list[tuple[int, str, int, int]] = field(default_factory=list)
    """Completions: number, status, bytes, immediate data."""

    def __post_init__(self) -> None:
        self.messages: list[Message] = []
        self.oldest = self.next = self.highest = self.free = self.psn
        self.done = 0
        self.retries = self.retry_cnt
        self.deadline: int | None = None
        self.paused_until: int | None = None
        self.failed = False
        self.gap_seen = False

        self.expected = self.psn
        self.msn = 0
        self.told = False
        self.posted: deque[tuple[int, int, int]] = deque()
        self.filling: tuple[int, int, int] | None = None
        self.filled = 0
        self.target = (0, 0, 0)
        self.middle_of = ""
        self.atomics: dict[int, int] = {}
        self.answers: deque[bytes] = deque()
        self.now = 0

    # The consumer.

    def post(self, operation: Operation) -> None:
        atomic = operation.kind in ("swap", "add")
        count = 1 if atomic or not operation.length else (operation.length + self.mtu - 1) // self.mtu
        self.messages.append(Message(operation, self.free, count))
        self.free += count

    def post_receive(self, number: int, offset: int, length: int) -> None:
        self.posted.append((number, offset, length))

    # The wire.

    def packet(self, opcode: int, psn: int, payload: bytes = b"", ack_req: bool = False, **headers: dict) -> bytes:
        return build(
            lrh={"slid": self.lid, "dlid": self.peer_lid},
            bth={
                "opcode": opcode,
                "p_key": 0xFFFF,
                "dest_qp": self.peer_qp,
                "psn": psn % WRAP,
                "ack_req": ack_req,
                "mig_req": 1,
            },
            payload=payload,
            **headers,
        ).data

    @property
    def wake(self) -> int | None:
        if self.answers or (not self.failed and self.paused_until is None and self.sendable() is not None):
            return self.now
        return min((t for t in (self.deadline, self.paused_until) if t is not None), default=None)

    def poll(self, now: int) -> Sent | None:
        self.now = now
        if self.paused_until is not None and self.paused_until <= now:
            self.paused_until = None
        if self.deadline is not None and self.deadline <= now:
            self.gap_seen = False
            self.again()
        if self.answers:
            return Sent(self.answers.popleft())
        message = None if self.failed or self.paused_until is not None else self.sendable()
        return None if message is None else Sent(self.request(message))

    def receive(self, data: bytes, now: int) -> None:
        self.now = now
        packet = parse(data)
        if self.failed:
            return
        if 0x0D <= operation_of(packet) <= 0x12:
            self.answered(packet)
        else:
            self.asked(packet)

    # The requester.

    def sendable(self) -> Message | None:
        """The message that has the next PSN, if it may be sent now."""
        for index in range(self.done, len(self.messages)):
            message = self.messages[index]
            if message.first <= self.next < message.end:
                begun = self.highest > message.first
                open_reads = [m for m in self.messages[self.done : index] if m.is_answered_with_data and not m.is_done]
                if not begun and message.is_answered_with_data and len(open_reads) >= self.reads:
                    return None
                if not begun and message.operation.fence and open_reads:
                    return None
                return message
        return None

    def request(self, message: Message) -> bytes:
        what, at = message.operation, (self.next - message.first) * self.mtu
        psn, first, last = self.next, self.next == message.first, self.next == message.end - 1
        self.next += 1
        if what.kind == "read":
            self.next = message.end
            body = {"reth": {"va": what.remote + at, "r_key": what.r_key, "dma_len": what.length - at}}
            opcode, payload = 0x0C, b""
        elif what.kind in ("swap", "add"):
            swaps = what.kind == "swap"
            values = {"swap_dt": what.swap, "cmp_dt": what.compare_add} if swaps else {"swap_dt": what.compare_add}
            body = {"atomic_eth": {"va": what.remote, "r_key": what.r_key, **values}}
            opcode, payload = 0x13 if swaps else 0x14, b""
        else:
            body, imm = {}, what.kind.endswith("_imm")
            payload = bytes(self.memory[what.local + at : what.local + min(at + self.mtu, what.length)])
            opcode = {(True, False): 0, (False, False): 1, (False, True): 2, (True, True): 4}[first, last]
            opcode += (imm and last) + (6 if what.kind.startswith("write") else 0)
            if first and what.kind.startswith("write"):
                body["reth"] = {"va": what.remote, "r_key": what.r_key, "dma_len": what.length}
            if imm and last:
                body["imm_dt"] = {"imm_dt": what.imm}
        self.highest = max(self.highest, self.next)
        if self.deadline is None:
            self.deadline = self.now + self.timeout
        return self.packet(opcode, psn, payload, ack_req=last or psn % 3 == 0, **body)

    def answered(self, packet: Packet) -> None:
        psn = self.oldest + (packet.bth.psn - self.oldest) % WRAP
        if psn >= self.highest:
            return
        opcode = operation_of(packet)
        aeth = next((record for record in packet.headers if record.layout.name == "AETH"), None)
        positive = aeth is None or aeth.syndrome < RNR
        if not self.arrived(psn + 1 if opcode == 0x11 and positive else psn):
            if not self.gap_seen:
                self.again()
            self.gap_seen = True
        elif opcode != 0x11:
            self.take(packet, psn)
        elif not positive:
            self.refused(aeth.syndrome)

    def arrived(self, end: int) -> bool:
        """All PSNs before `end` have been carried out there. False if data that belongs to them is missing here."""
        complete = True
        for message in self.messages[self.done :]:
            if message.is_answered_with_data and message.first + message.answered < min(end, message.end):
                end, complete = message.first + message.answered, False
                break
            if message.end > end:
                break
        if end > self.oldest:
            self.oldest, self.retries, self.paused_until, self.gap_seen = end, self.retry_cnt, None, False
            self.next = max(self.next, end)
            self.deadline = self.now + self.timeout if end < self.highest else None
        while self.done < len(self.messages) and self.messages[self.done].end <= self.oldest:
            message = self.messages[self.done]
            if message.is_answered_with_data and message.answered < message.count:
                break
            message.is_done = True
            self.sends.append((message.operation.number, "SUCCESS"))
            self.done += 1
        return complete

    def take(self, packet: Packet, psn: int) -> None:
        message = self.messages[self.done]
        assert message.is_answered_with_data, (packet, message)
        assert psn == message.first + message.answered
        at = message.operation.local + message.answered * self.mtu
        if message.operation.kind == "read":
            data = packet.payload
        else:
            data = packet.headers[-1].orig_rem_dt.to_bytes(8, "little")
        self.memory[at : at + len(data)] = data
        message.answered += 1
        self.arrived(psn + 1)

    def refused(self, syndrome: int) -> None:
        if syndrome == NAK_SEQUENCE:
            self.again()
        elif syndrome & 0xE0 == RNR:
            assert syndrome & 0x1F == RNR_CODE
            self.paused_until, self.next, self.deadline = self.now + RNR_CYCLES, self.oldest, None
        else:
            self.fail(STATUS[syndrome])

    def again(self) -> None:
        if not self.retries:
            self.fail("RETRY_EXC_ERR")
            return
        self.retries -= 1
        self.next = self.oldest
        self.deadline = self.now + self.timeout

    def fail(self, status: str) -> None:
        self.sends.append((self.messages[self.done].operation.number, status))
        self.stop(self.done + 1)

    def stop(self, first: int) -> None:
        """The error state."""
        self.failed, self.deadline, self.paused_until = True, None, None
        self.sends += [(message.operation.number, "WR_FLUSH_ERR") for message in self.messages[first:]]
        if self.filling is not None:
            self.posted.appendleft(self.filling)
        self.receives += [(number, "WR_FLUSH_ERR", 0, 0) for number, _offset, _length in self.posted]
        self.posted.clear()

    # The responder.

    def asked(self, packet: Packet) -> None:
        distance = (packet.bth.psn - self.expected) % WRAP
        if distance >= HALF:
            self.asked_again(packet, self.expected - (WRAP - distance))
        elif distance:
            if not self.told:
                self.told = True
                self.say(NAK_SEQUENCE, self.expected)
        else:
            self.told = False
            self.asked_now(packet)

    def say(self, syndrome: int, psn: int) -> None:
        self.answers.append(self.packet(0x11, psn, aeth={"syndrome": syndrome, "msn": self.msn % WRAP}))

    def refuse(self, syndrome: int) -> None:
        self.say(syndrome, self.expected)
        self.stop(self.done)

    def may(self, reth_or_atomic: object, length: int) -> bool:
        va, r_key = reth_or_atomic.va, reth_or_atomic.r_key
        return not length or (r_key == self.r_key and self.base <= va and va + length <= self.base + len(self.memory))

    def asked_now(self, packet: Packet) -> None:
        opcode = operation_of(packet)
        if opcode == 0x0C:
            reth = packet.headers[-1]
            if self.middle_of:
                self.refuse(NAK_INVALID)
            elif not self.may(reth, reth.dma_len):
                self.refuse(NAK_ACCESS)
            else:
                self.msn += 1
                first = self.expected
                self.expected += max(1, (reth.dma_len + self.mtu - 1) // self.mtu)
                self.respond(first, reth)
            return
        if opcode in (0x13, 0x14):
            eth = packet.headers[-1]
            if self.middle_of or eth.va % 8:
                self.refuse(NAK_INVALID)
            elif not self.may(eth, 8):
                self.refuse(NAK_ACCESS)
            else:
                self.msn += 1
                at = eth.va - self.base
                old = int.from_bytes(self.memory[at : at + 8], "little")
                new = (old + eth.swap_dt) % (1 << 64) if opcode == 0x14 else eth.swap_dt if old == eth.cmp_dt else old
                self.memory[at : at + 8] = new.to_bytes(8, "little")
                self.atomics[self.expected] = old
                self.expected += 1
                self.tell_atomic(self.expected - 1)
            return
        self.asked_to_store(packet, opcode)

    def asked_to_store(self, packet: Packet, opcode: int) -> None:
        sends = opcode <= 5
        step = opcode if sends else opcode - 6
        begins, ends, imm = step in (0, 4, 5), step in (2, 3, 4, 5), step in (3, 5)
        what = "send" if sends else "write"
        size = len(packet.payload)
        sizes_fit = size == self.mtu if not ends else (begins or size > 0) and size <= self.mtu
        if bool(self.middle_of) == begins or (self.middle_of or what) != what or not sizes_fit:
            self.refuse(NAK_INVALID)
            return
        if (sends and begins) or (not sends and imm):
            if not self.posted:
                self.told = True
                self.say(RNR | RNR_CODE, self.expected)
                return
            self.filling = self.posted.popleft()
        if begins:
            self.filled = 0
        if sends:
            number, offset, room = self.filling
            if self.filled + size > room:
                self.receives.append((number, "LOC_LEN_ERR", 0, 0))
                self.filling = None
                self.refuse(NAK_INVALID)
                return
            at = offset + self.filled
        else:
            if begins:
                reth = next(record for record in packet.headers if record.layout.name == "RETH")
                self.target = reth.va - self.base, reth.dma_len, 0
                if not self.may(reth, reth.dma_len):
                    self.refuse(NAK_ACCESS)
                    return
            if (self.filled + size == self.target[1]) != ends or self.filled + size > self.target[1]:
                self.refuse(NAK_INVALID)
                return
            at = self.target[0] + self.filled
        if size:
            self.memory[at : at + size] = packet.payload
        self.filled += size
        self.middle_of = "" if ends else what
        if ends:
            self.msn += 1
            if self.filling is not None:
                value = packet.headers[-1].imm_dt if imm else 0
                self.receives.append((self.filling[0], "SUCCESS", self.filled, value))
                self.filling = None
        self.expected += 1
        if packet.bth.ack_req:
            self.say(self.positive(), self.expected - 1)

    def positive(self) -> int:
        """The syndrome of an ACK: how many receive requests there are for messages that are not complete."""
        count = len(self.posted) + (self.filling is not None)
        return max(code for code, many in enumerate(CREDITS) if many <= count) if self.counts else NO_CREDITS

    def respond(self, first: int, reth: object) -> None:
        count = max(1, (reth.dma_len + self.mtu - 1) // self.mtu)
        for index in range(count):
            at = reth.va - self.base + index * self.mtu
            data = bytes(self.memory[at : at + min(self.mtu, reth.dma_len - index * self.mtu)]) if reth.dma_len else b""
            begins, ends = index == 0, index == count - 1
            opcode = 0x10 if begins and ends else 0x0D if begins else 0x0F if ends else 0x0E
            aeth = {"aeth": {"syndrome": self.positive(), "msn": self.msn % WRAP}} if begins or ends else {}
            self.answers.append(self.packet(opcode, first + index, data, **aeth))

    def tell_atomic(self, psn: int) -> None:
        aeth = {"syndrome": self.positive(), "msn": self.msn % WRAP}
        self.answers.append(self.packet(0x12, psn, aeth=aeth, atomic_ack_eth={"orig_rem_dt": self.atomics[psn]}))

    def asked_again(self, packet: Packet, psn: int) -> None:
        opcode = operation_of(packet)
        if opcode == 0x0C:
            self.respond(psn, packet.headers[-1])
        elif opcode in (0x13, 0x14):
            if psn in self.atomics:
                self.tell_atomic(psn)
        else:
            self.say(self.positive(), self.expected - 1)
