"""A second reading of XRC: that of RC, with a queue pair for each direction, and requests that name where they go."""

from __future__ import annotations

from dataclasses import dataclass

from tests.verbs.naive_rc import WRAP, NaiveRc
from wire.packet import build

XRC = 0xA0


@dataclass
class NaiveXrc(NaiveRc):
    """One end: `qp` sends; the next number receives, for the shared receive queue with the number after that."""

    def packet(self, opcode: int, psn: int, payload: bytes = b"", ack_req: bool = False, **headers: dict) -> bytes:
        answers = 0x0D <= opcode <= 0x12
        if not answers:
            headers = {"xrceth": {"xrc_srq": self.peer_qp + 2}, **headers}
        return build(
            lrh={"slid": self.lid, "dlid": self.peer_lid},
            bth={
                "opcode": XRC | opcode,
                "p_key": 0xFFFF,
                "dest_qp": self.peer_qp if answers else self.peer_qp + 1,
                "psn": psn % WRAP,
                "ack_req": ack_req,
                "mig_req": 1,
            },
            payload=payload,
            **headers,
        ).data
