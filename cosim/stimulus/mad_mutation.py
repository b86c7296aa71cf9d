"""MADs made wrong: a few bits of a right one, a field with a value at its end, another length, other headers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from wire.codes import LNH, QP_GSI, QP_SMI
from wire.crc import ICRC_BYTES, icrc
from wire.headers import BTH, DETH, GRH, LRH
from wire.layout import Field
from wire.mad import MAD_BYTES, MAD_HEADER, RESPONSE_BIT, MadMethod
from wire.packet import WORD_BYTES
from wire.smp import MAX_HOPS, SMP_DIRECTED_ROUTE

__all__ = ["mad_of", "mutated"]

_HEADER_SHARE: Final = 0.6
"""Of flipped bits, those in the MAD's header."""

_MOST_FLIPS: Final = 3
_MOST_WORDS: Final = 8
"""By which a packet becomes longer or shorter."""

_HOPS: Final = ("hop_pointer", "hop_count")
_SMP_FIELDS: Final = ("m_key", "dr_slid", "dr_dlid", "d", *_HOPS, *_HOPS, *_HOPS)
_OF_REQUEST: Final = ("attribute_id", "attribute_modifier", "method", "class_version")
_FIELDS: Final = (
    *MAD_HEADER.fields,
    *(MAD_HEADER[name] for name in _OF_REQUEST),
    *(SMP_DIRECTED_ROUTE[name] for name in _SMP_FIELDS),
)
_METHODS: Final = (*MadMethod, MadMethod.SET | RESPONSE_BIT, 0, 0x7F, 0xFF)


def mutated(random: Random, data: bytes) -> bytes:
    """A packet of a MAD, LRH to ICRC, with one thing wrong, and mostly a right ICRC and PktLen all the same."""
    return random.choice(_MUTATIONS)(random, data)


def mad_of(data: bytes) -> bytes:
    """What a packet, LRH to ICRC, has where the 256 bytes of a MAD are: there may be fewer."""
    begin = _mad_begin(data)
    return data[begin : begin + MAD_BYTES]


def _mad_begin(data: bytes) -> int:
    return _transport(data) + BTH.size_bytes + DETH.size_bytes


def _transport(data: bytes) -> int:
    """Where the BTH begins."""
    return LRH.size_bytes + (GRH.size_bytes if LRH["lnh"].read(data) == LNH.IBA_GLOBAL else 0)


def _with_icrc(data: bytes) -> bytes:
    """The packet with the ICRC that it should have; a raw one has none."""
    if LRH["lnh"].read(data) not in (LNH.IBA_LOCAL, LNH.IBA_GLOBAL):
        return data
    return data[:-ICRC_BYTES] + icrc(data[:-ICRC_BYTES])


def _flips(random: Random, data: bytes) -> bytes:
    begin, last = _mad_begin(data), len(data) - ICRC_BYTES
    number = int.from_bytes(data, "big")
    for _ in range(random.randint(1, _MOST_FLIPS)):
        end = begin + MAD_HEADER.size_bytes if random.random() < _HEADER_SHARE else last
        number ^= 1 << 8 * len(data) - 1 - random.randrange(8 * begin, 8 * end)
    return _with_icrc(number.to_bytes(len(data), "big"))


def _mad_field(random: Random, data: bytes) -> bytes:
    """A field of the MAD at one of its ends, next to what it was, or anything."""
    field, begin = random.choice(_FIELDS), _mad_begin(data)
    was = field.read(data, begin)
    values = [0, 1, field.max, was + 1, was - 1, random.getrandbits(field.width)]
    if field.name == "method":
        values = [*_METHODS]
    elif field.name in _HOPS:
        count = SMP_DIRECTED_ROUTE["hop_count"].read(data, begin)
        values += [2, count, count + 1, MAX_HOPS, MAX_HOPS + 1]
    return _with_icrc(field.write(data, random.choice(values) & field.max, begin))


def _length(random: Random, data: bytes) -> bytes:
    """Words cut off or added before the ICRC."""
    words = random.randint(1, _MOST_WORDS)
    body = data[:-ICRC_BYTES]
    body = body[: -words * WORD_BYTES] if random.random() < 0.5 else body + random.randbytes(words * WORD_BYTES)
    pkt_len = len(body) // WORD_BYTES + ICRC_BYTES // WORD_BYTES
    return _with_icrc(LRH["pkt_len"].write(body + bytes(ICRC_BYTES), pkt_len))


def _pkt_len(random: Random, data: bytes) -> bytes:
    """A PktLen that is not the packet's."""
    length = len(data) // WORD_BYTES
    wrong = random.choice((0, 5, length - 1, length + 1, length + _MOST_WORDS))
    return _with_icrc(LRH["pkt_len"].write(data, wrong))


def _headers(random: Random, data: bytes) -> bytes:
    """A field of the headers before the MAD."""
    at = _transport(data)
    fields: list[tuple[Field, int, list[int]]] = [
        (LRH["sl"], 0, []),
        (LRH["slid"], 0, [LRH["dlid"].read(data)]),
        (LRH["dlid"], 0, []),
        (LRH["lnh"], 0, []),
        (BTH["dest_qp"], at, [QP_SMI, QP_GSI, 2, 1 << 16 | QP_GSI]),
        (BTH["dest_qp"], at, [QP_SMI, QP_GSI]),
        (BTH["opcode"], at, []),
        (BTH["p_key"], at, []),
        (BTH["pad_cnt"], at, []),
        (BTH["t_ver"], at, []),
        (DETH["q_key"], at + BTH.size_bytes, []),
        (DETH["src_qp"], at + BTH.size_bytes, []),
    ]
    if at > LRH.size_bytes:
        fields += [(GRH[name], LRH.size_bytes, []) for name in ("ip_ver", "nxt_hdr", "pay_len", "hop_lmt")]
    field, begin, values = random.choice(fields)
    was = field.read(data, begin)
    values += [0, field.max, was ^ 1 << random.randrange(field.width)]
    return _with_icrc(field.write(data, random.choice(values), begin))


def _wrong_icrc(random: Random, data: bytes) -> bytes:
    place = len(data) - random.randint(1, ICRC_BYTES)
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


_MUTATIONS: Final[tuple[Callable[[Random, bytes], bytes], ...]] = (
    _flips,
    _flips,
    _flips,
    _mad_field,
    _mad_field,
    _mad_field,
    _mad_field,
    _headers,
    _headers,
    _length,
    _pkt_len,
    _wrong_icrc,
)
