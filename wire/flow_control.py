"""Flow control packets and the modulo-4096 arithmetic of credits (IBTA vol 1, 7.9.4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from .codes import VL15
from .crc import LPCRC_BYTES, lpcrc, lpcrc_good
from .layout import Field, Layout
from .symbols import LINK_PACKET_BYTES

__all__ = [
    "CREDIT_MODULUS",
    "CREDIT_WINDOW",
    "FLOW_CONTROL",
    "FlowControlError",
    "FlowControlFault",
    "FlowControlOp",
    "FlowControlPacket",
    "credit_limit",
    "credit_ok",
]

FLOW_CONTROL: Final = Layout(
    "FlowControl",
    4,
    [Field("op", 0, 4), Field("fctbs", 4, 12), Field("vl", 16, 4), Field("fccl", 20, 12)],
)
"""The four bytes before the LPCRC."""

CREDIT_MODULUS: Final = 1 << FLOW_CONTROL["fctbs"].width
"""FCTBS, FCCL, ABR and all sums of them count 64-byte blocks modulo this."""

CREDIT_WINDOW: Final = CREDIT_MODULUS // 2
"""The most blocks a receiver may announce, so that a comparison modulo 4096 has one meaning."""


class FlowControlOp(IntEnum):
    """The defined link packets; every other Op is discarded."""

    NORMAL = 0
    INIT = 1


class FlowControlFault(Enum):
    """Why a link packet is discarded, in the order in which faults are reported."""

    LPCRC = "LPCRC"
    OP = "Op"
    LENGTH = "length"
    VL = "VL"


class FlowControlError(ValueError):
    """A link packet that is no valid flow control packet; ``fault`` is the one to report."""

    def __init__(self, fault: FlowControlFault, message: str) -> None:
        """Keep the fault beside the message."""
        super().__init__(message)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class FlowControlPacket:
    """One VL's flow control packet.

    Attributes:
        op: NORMAL, or INIT while the sender's port is in Initialize.
        fctbs: blocks sent on the VL since the link initialised, modulo 4096.
        vl: a data VL, 0..14.
        fccl: credit limit granted to the receiver of this packet, modulo 4096.

    Raises:
        ValueError: a value out of range, naming it.
    """

    op: FlowControlOp
    fctbs: int
    vl: int
    fccl: int

    def __post_init__(self) -> None:
        """Check op and ranges."""
        if self.op not in (FlowControlOp.NORMAL, FlowControlOp.INIT):
            raise ValueError(f"flow control op: value {self.op}, allowed 0 (normal), 1 (init)")
        if not 0 <= self.vl < VL15:
            raise ValueError(f"flow control vl: value {self.vl}, allowed 0..14")
        FLOW_CONTROL["fctbs"].check(self.fctbs, FLOW_CONTROL.name)
        FLOW_CONTROL["fccl"].check(self.fccl, FLOW_CONTROL.name)

    def encode(self) -> bytes:
        """The six bytes between SLP and EGP."""
        body = FLOW_CONTROL.pack(op=self.op, fctbs=self.fctbs, vl=self.vl, fccl=self.fccl)
        return body + lpcrc(body)

    @classmethod
    def decode(cls, data: bytes, data_vls: int = VL15) -> FlowControlPacket:
        """The flow control packet in the bytes between SLP and EGP.

        ``data_vls`` is the number of operational data VLs; a port in Initialize leaves it at
        15, since there an unsupported VL is no error.

        Raises:
            FlowControlError: the first fault in the order LPCRC, Op, length, VL.
        """
        if not lpcrc_good(data):
            raise FlowControlError(FlowControlFault.LPCRC, f"LPCRC is wrong in link packet {data.hex()}")
        op = FLOW_CONTROL["op"].read(data)
        if op not in (FlowControlOp.NORMAL, FlowControlOp.INIT):
            raise FlowControlError(FlowControlFault.OP, f"link packet Op {op}, allowed 0, 1")
        if len(data) != LINK_PACKET_BYTES:
            raise FlowControlError(
                FlowControlFault.LENGTH, f"link packet of {len(data)} bytes, allowed {LINK_PACKET_BYTES}"
            )
        fields = FLOW_CONTROL.unpack(data[:-LPCRC_BYTES])
        last_vl = min(data_vls, VL15) - 1
        if fields.vl > last_vl:
            raise FlowControlError(FlowControlFault.VL, f"flow control vl: value {fields.vl}, allowed 0..{last_vl}")
        return cls(FlowControlOp(op), fields.fctbs, fields.vl, fields.fccl)


def credit_ok(fccl: int, fctbs: int, need: int) -> bool:
    """True if a packet of ``need`` blocks may start: ``fctbs`` blocks sent, limit ``fccl`` received."""
    return (fccl - fctbs - need) % CREDIT_MODULUS <= CREDIT_WINDOW


def credit_limit(abr: int, free: int) -> int:
    """The FCCL to send: ``abr`` blocks received so far and ``free`` blocks of room."""
    return (abr + min(free, CREDIT_WINDOW)) % CREDIT_MODULUS
