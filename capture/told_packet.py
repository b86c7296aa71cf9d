"""What is told of a packet: its kind and its numbers, as an analyser's screen has them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from capture.chunk import Chunk, PacketFlag
from capture.crc_check import Crc, Crcs
from capture.fields import Fields
from capture.timeline import UNKNOWN, Gaps
from wire.codes import LNH
from wire.flow_control import FlowControlOp
from wire.opcodes import Opcode

__all__ = ["ToldPacket", "told_packets"]

_RAW: Final = {LNH.RAW: "raw", LNH.RAW_IPV6: "raw IPv6"}
_FLAWS: Final = {
    PacketFlag.MARKED: "EBP",
    PacketFlag.CUT: "cut",
    PacketFlag.SHORT: "not captured whole",
}


class ToldPacket(NamedTuple):
    """A packet; of numbers that it has not, None."""

    time_ns: int
    idle_ns: int | None
    direction: int
    kind: str
    """The opcode of a packet with a BTH, the Op of a flow control packet."""
    length: int
    vl: int | None
    slid: int | None
    dlid: int | None
    dest_qp: int | None
    psn: int | None
    fctbs: int | None
    fccl: int | None
    flaws: str
    """What is wrong with its CRCs and its end; empty if nothing is."""


def told_packets(chunk: Chunk, fields: Fields, crcs: Crcs, gaps: Gaps) -> Iterator[ToldPacket]:
    """The packets of a chunk."""
    has_lrh, has_bth, has_flow_control = fields.has_lrh, fields.has_bth, fields.has_flow_control
    rows = zip(
        *(
            column.tolist()
            for column in (
                chunk.time_ns,
                gaps.idle_ns,
                chunk.direction,
                chunk.flags,
                chunk.length,
                has_lrh,
                has_bth,
                has_flow_control,
                *(fields.lrh(name) for name in ("vl", "lnh", "slid", "dlid")),
                *(fields.bth(name) for name in ("opcode", "dest_qp", "psn")),
                *(fields.flow_control(name) for name in ("op", "vl", "fctbs", "fccl")),
                crcs.link,
                crcs.icrc,
            )
        ),
        strict=True,
    )
    for row in rows:
        time_ns, idle, direction, flags, length, is_data, is_transport, is_credit = row[:8]
        vl, lnh, slid, dlid, opcode, dest_qp, psn, op, link_vl, fctbs, fccl, link_crc, icrc = row[8:]
        kind = "link packet" if flags & PacketFlag.LINK else "data packet"
        if is_credit:
            kind = _op(op)
        elif is_data:
            kind = _opcode(opcode) if is_transport else _RAW.get(lnh, kind)
        yield ToldPacket(
            time_ns,
            None if idle == UNKNOWN else idle,
            direction,
            kind,
            length,
            vl if is_data else link_vl if is_credit else None,
            slid if is_data else None,
            dlid if is_data else None,
            dest_qp if is_transport else None,
            psn if is_transport else None,
            fctbs if is_credit else None,
            fccl if is_credit else None,
            _flaws(flags, link_crc, icrc),
        )


@cache
def _op(op: int) -> str:
    try:
        return f"{FlowControlOp(op).name.lower()} flow control"
    except ValueError:
        return f"link packet, Op {op}"


@cache
def _opcode(opcode: int) -> str:
    try:
        return Opcode(opcode).name
    except ValueError:
        return f"opcode {opcode:#04x}"


@cache
def _flaws(flags: int, link_crc: int, icrc: int) -> str:
    """In words."""
    name = "LPCRC" if flags & PacketFlag.LINK else "VCRC"
    said = [text for flag, text in _FLAWS.items() if flags & flag]
    for crc, value in ((name, link_crc), ("ICRC", icrc)):
        if value in (Crc.WRONG, Crc.INVERTED):
            said.append(f"{crc} {Crc(value).name.lower()}")
    if flags & PacketFlag.BAD and not said:
        said.append("received with errors")
    return ", ".join(said)
