"""A second reading of RD: that of RC, with a message at a time and what an end-to-end context makes different."""

from __future__ import annotations

from dataclasses import dataclass

from tests.verbs.naive_rc import HALF, STATUS, WRAP, Message, NaiveRc, Sent, operation_of
from wire.packet import Packet, build

RD = 0x40
RESYNC = 0x15
INVALID_RD = 0x64
STATUSES = {**STATUS, INVALID_RD: "REM_INV_RD_REQ_ERR"}
Q_KEY = 0x11


@dataclass
class NaiveRd(NaiveRc):
    """One end of a pair of contexts, with one queue pair."""

    eec: int = 0
    peer_eec: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reply_to = self.peer_qp
        self.must_resync = False
        self.resync_psn = -1

    def packet(self, opcode: int, psn: int, payload: bytes = b"", ack_req: bool = False, **headers: dict) -> bytes:
        answers = 0x0D <= opcode <= 0x12
        if not answers:
            headers = {"deth": {"q_key": Q_KEY, "src_qp": self.qp}, **headers}
        return build(
            lrh={"slid": self.lid, "dlid": self.peer_lid},
            bth={
                "opcode": RD | opcode,
                "p_key": 0xFFFF,
                "dest_qp": self.reply_to if answers else self.peer_qp,
                "psn": psn % WRAP,
                "ack_req": ack_req,
                "mig_req": 1,
            },
            payload=payload,
            rdeth={"eec": self.peer_eec},
            **headers,
        ).data

    # The requester: one message at a time, and RESYNC after one that failed.

    @property
    def wake(self) -> int | None:
        if self.answers or self.wants_resync or (self.paused_until is None and self.sendable() is not None):
            return self.now
        return min((t for t in (self.deadline, self.paused_until) if t is not None), default=None)

    @property
    def wants_resync(self) -> bool:
        return self.must_resync and self.next <= self.resync_psn

    def sendable(self) -> Message | None:
        if self.must_resync or self.failed or self.done == len(self.messages):
            return None
        message = self.messages[self.done]
        return message if message.first <= self.next < message.end else None

    def poll(self, now: int) -> Sent | None:
        sent = super().poll(now)
        if sent is None and self.wants_resync:
            self.next = self.highest = self.resync_psn + 1
            if self.deadline is None:
                self.deadline = now + self.timeout
            return Sent(self.packet(RESYNC, self.resync_psn, ack_req=True))
        return sent

    def arrived(self, end: int) -> bool:
        if self.must_resync:
            if end > self.resync_psn:
                self.must_resync, self.deadline, self.oldest, self.next = False, None, end, end
                self.retries = self.retry_cnt
            return True
        return super().arrived(end)

    def refused(self, syndrome: int) -> None:
        if syndrome in STATUSES:
            self.fail(STATUSES[syndrome])
        else:
            super().refused(syndrome)

    def fail(self, status: str) -> None:
        """This message and those behind it end; the context tells its peer and goes on."""
        self.sends.append((self.messages[self.done].operation.number, status))
        self.sends += [(message.operation.number, "WR_FLUSH_ERR") for message in self.messages[self.done + 1 :]]
        self.done = len(self.messages)
        self.deadline = self.paused_until = None
        self.oldest = self.next = self.resync_psn = self.highest
        self.free = self.resync_psn + 1
        self.must_resync = True

    # The responder: it goes on after what it refused, and forgets what RESYNC ends.

    def asked(self, packet: Packet) -> None:
        self.reply_to = next(record for record in packet.headers if record.layout.name == "DETH").src_qp
        if operation_of(packet) != RESYNC:
            super().asked(packet)
            return
        distance = (packet.bth.psn - self.expected) % WRAP
        if distance < HALF:
            self.expected += distance + 1
            self.told = False
            self.answers.clear()
            self.drop()
        self.say(self.positive(), self.expected - 1)

    def drop(self) -> None:
        if self.filling is not None:
            self.receives.append((self.filling[0], "REM_ABORT_ERR", 0, 0))
        self.filling, self.middle_of = None, ""

    def refuse(self, syndrome: int) -> None:
        self.say(syndrome, self.expected)
        self.told = True
        self.drop()
