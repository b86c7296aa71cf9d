"""Packets with P_Keys and without, and tables of a switch's ports."""

import random
import struct
from collections.abc import Sequence

from tests.model.conftest import Star
from wire.headers import GRH, RWH
from wire.opcodes import Opcode
from wire.packet import build, build_raw
from wire.port_tables import P_KEY_TABLE
from wire.registers import PortRegister, p_key_address
from wire.stimulus import Post
from wire.trace import Kind
from wire.trace_layout import RxData, TxFcp

__all__ = [
    "BLOCKS",
    "TABLE",
    "announced",
    "arrival",
    "checking",
    "iba",
    "latencies",
    "post",
    "raw",
    "set_table",
    "verdicts",
]

TABLE = P_KEY_TABLE.count
"""Entries of a table."""
BLOCKS = 512
"""Of the switch's buffer."""


def _words(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(data) // 4}I", data)


def iba(slid: int, dlid: int, p_key: int, *, payload: int = 64, grh: bool = False, seed: int = 0) -> tuple[int, ...]:
    """An RC SEND Only in words: 6 with an empty payload, 16 with a GRH."""
    packet = build(
        lrh={"slid": slid, "dlid": dlid},
        grh={} if grh else None,
        bth={"opcode": Opcode.RC_SEND_ONLY, "p_key": p_key, "dest_qp": 5},
        payload=random.Random(seed).randbytes(payload),
    )
    return _words(packet.data)


def raw(slid: int, dlid: int, *, payload: int = 64, ipv6: bool = False) -> tuple[int, ...]:
    """A raw packet in words, of an EtherType or of IPv6: none of its bytes is a P_Key."""
    header = GRH.record() if ipv6 else RWH.record(ether_type=0x0800)
    return _words(build_raw(lrh={"slid": slid, "dlid": dlid}, header=header, payload=b"\xff" * payload).data)


def post(bench: Star, cycle: int, words: tuple[int, ...]) -> None:
    """A packet for its source, adapter SLID, to send on data VL 0."""
    bench.posts.append(Post.of_words(cycle, words[1] & 0xFFFF, 0, words))


def set_table(bench: Star, port: int, p_keys: Sequence[int]) -> None:
    """A switch port's table, as at reset before, has these P_Keys, and no others but 0."""
    for entry, p_key in enumerate(p_keys):
        if p_key or not entry:
            bench.write(0, p_key_address(port, entry), p_key)


def checking(star: type[Star], checks: Sequence[int], *tables: Sequence[int], **switch: object) -> Star:
    """A star whose switch's ports have these PARTITIONs, and tables of these P_Keys instead of the default one."""
    bench = star(len(checks), **switch)
    for port, check in enumerate(checks, 1):
        bench.write_port(0, port, PortRegister.PARTITION, check)
    for port, p_keys in enumerate(tables, 1):
        set_table(bench, port, p_keys)
    return bench


def verdicts(bench: Star, port: int = 1) -> list[int]:
    """Of what a port of the switch received."""
    return [RxData.verdict.read(record) for record in bench.of(Kind.RX_DATA, 0, port)]


def latencies(bench: Star, output: int = 2) -> list[int]:
    """Cycles from the first row in to the first row out of the packets that adapter 1 sent."""
    sent = [record.c + bench.flight for record in bench.of(Kind.TX_DATA, 1)]
    out = [record.c for record in bench.of(Kind.TX_DATA, 0, output)]
    return [cycle - into for into, cycle in zip(sent, out, strict=True)]


def arrival(n: int, at: int, flight: int = 1) -> int:
    """Cycle of row 0 at the switch, of a packet of n words that is posted in a cycle."""
    return at + 1 + n + 2 + 1 + 4 + flight


def announced(bench: Star, port: int = 1) -> int:
    """FCCL less what was received: the free blocks, when nothing is on its way."""
    received = sum(record.d for record in bench.of(Kind.RX_DATA, 0, port, since=0))
    return (TxFcp.fccl.read(bench.of(Kind.TX_FCP, 0, port)[-1]) - received) % 4096
