"""Packets with P_Keys and without, and tables of a switch's ports."""

import random
import struct
from collections.abc import Sequence

from tests.model.conftest import Star
from wire.headers import GRH, RWH
from wire.opcodes import Opcode
from wire.packet import build, build_raw
from wire.port_tables import P_KEY_TABLE
from wire.registers import p_key_address
from wire.stimulus import Post

__all__ = ["TABLE", "iba", "post", "raw", "set_table"]

TABLE = P_KEY_TABLE.count
"""Entries of a table."""


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
    """A switch port's table has these P_Keys, and no others but 0."""
    for entry, p_key in enumerate(p_keys):
        bench.write(0, p_key_address(port, entry), p_key)
