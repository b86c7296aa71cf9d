"""Data packets: build them from header fields, parse them from bytes, count their blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .codes import LNH, P_KEY_DEFAULT
from .crc import ICRC_BYTES, VCRC_BYTES, icrc, icrc_good, vcrc
from .headers import (
    AETH,
    ATOMIC_ACK_ETH,
    ATOMIC_ETH,
    BTH,
    DETH,
    GRH,
    IETH,
    IMM_DT,
    LRH,
    RDETH,
    RETH,
    RWH,
    XRCETH,
)
from .layout import Layout, Record
from .opcodes import Opcode, extended_headers

__all__ = [
    "BLOCK_BYTES",
    "WORD_BYTES",
    "Packet",
    "blocks",
    "blocks_of_words",
    "build",
    "build_raw",
    "build_ud_send",
    "parse",
    "rows_of_words",
]

WORD_BYTES: Final = 4
"""Unit of LRH.PktLen."""

BLOCK_BYTES: Final = 64
"""Unit of buffer space and credits, counted from the LRH through the VCRC."""

_EXTENDED: Final = {
    "rdeth": RDETH,
    "deth": DETH,
    "xrceth": XRCETH,
    "reth": RETH,
    "atomic_eth": ATOMIC_ETH,
    "aeth": AETH,
    "atomic_ack_eth": ATOMIC_ACK_ETH,
    "imm_dt": IMM_DT,
    "ieth": IETH,
}


def blocks(bytes_lrh_to_vcrc: int) -> int:
    """64-byte blocks that a packet of so many bytes takes (IBTA vol 1, 7.9.4)."""
    return (bytes_lrh_to_vcrc + BLOCK_BYTES - 1) // BLOCK_BYTES


def blocks_of_words(pkt_len: int) -> int:
    """64-byte blocks of a packet by its LRH.PktLen in 4-byte words."""
    return blocks(pkt_len * WORD_BYTES + VCRC_BYTES)


def rows_of_words(pkt_len: int) -> int:
    """Rows on a 4X link, delimiters included, of a packet by its LRH.PktLen in 4-byte words."""
    return pkt_len + 1


@dataclass(frozen=True, slots=True)
class Packet:
    """A data packet, read-only.

    Attributes:
        data: the bytes from LRH through ICRC (raw packets: through the last payload byte).
        headers: the decoded headers in wire order, the LRH first.
        payload: the bytes after the headers, without padding.
        vcrc: the two VCRC bytes as received or built, or None where the packet had none.
    """

    data: bytes
    headers: tuple[Record, ...]
    payload: bytes
    vcrc: bytes | None = None

    @property
    def lrh(self) -> Record:
        """The LRH, which every packet has."""
        return self.headers[0]

    @property
    def grh(self) -> Record | None:
        """The GRH, or the IPv6 header of a raw IPv6 packet; None where the packet has neither."""
        return self._find(GRH)

    @property
    def bth(self) -> Record | None:
        """The BTH; None in raw packets."""
        return self._find(BTH)

    def has(self, layout: Layout) -> bool:
        """True if the packet carries that header."""
        return self._find(layout) is not None

    def header(self, layout: Layout) -> Record:
        """That header's fields.

        Raises:
            ValueError: the packet does not carry it.
        """
        record = self._find(layout)
        if record is None:
            held = ", ".join(header.layout.name for header in self.headers)
            raise ValueError(f"the packet has no {layout.name}, it has {held}")
        return record

    def _find(self, layout: Layout) -> Record | None:
        return next((record for record in self.headers if record.layout == layout), None)

    @property
    def icrc_good(self) -> bool:
        """True if the ICRC is right, or the packet is raw and has none."""
        return not self.has(BTH) or icrc_good(self.data)

    @property
    def vcrc_good(self) -> bool:
        """True if the packet has a VCRC and it is right."""
        return self.vcrc == vcrc(self.data)

    @property
    def wire(self) -> bytes:
        """The bytes from LRH through VCRC, with the right VCRC where the packet had none."""
        return self.data + (vcrc(self.data) if self.vcrc is None else self.vcrc)

    @property
    def blocks(self) -> int:
        """64-byte blocks of buffer and credit that the packet takes."""
        return blocks(len(self.data) + VCRC_BYTES)


def parse(data: bytes) -> Packet:
    """Decode a packet given from LRH through ICRC, or through VCRC.

    The LNH and the opcode alone say which headers follow. CRCs, LVer, GRH.PayLen and NxtHdr and
    reserved bits are not judged: that is the receiver's business and has its own order.

    Raises:
        ValueError: a length that does not agree with LRH.PktLen, a header cut short, an opcode
            not defined, or padding longer than what follows the headers.
    """
    lrh = LRH.unpack(data)
    size = lrh.pkt_len * WORD_BYTES
    if len(data) not in (size, size + VCRC_BYTES):
        raise ValueError(
            f"LRH.pkt_len {lrh.pkt_len} makes {size} bytes, {size + VCRC_BYTES} with VCRC, got {len(data)}"
        )
    check = bytes(data[size:]) or None
    data = bytes(data[:size])
    headers = [lrh]
    at = LRH.size_bytes

    def take(layout: Layout, end: int) -> Record:
        nonlocal at
        if at + layout.size_bytes > end:
            raise ValueError(f"{layout.name} needs {layout.size_bytes} bytes, {end - at} are left")
        record = layout.unpack(data, at)
        at += layout.size_bytes
        headers.append(record)
        return record

    if lrh.lnh in (LNH.RAW, LNH.RAW_IPV6):
        take(RWH if lrh.lnh == LNH.RAW else GRH, size)
        return Packet(data, tuple(headers), data[at:], check)

    end = size - ICRC_BYTES
    if lrh.lnh == LNH.IBA_GLOBAL:
        take(GRH, end)
    bth = take(BTH, end)
    for layout in extended_headers(bth.opcode):
        take(layout, end)
    if bth.pad_cnt > end - at:
        raise ValueError(f"BTH.pad_cnt {bth.pad_cnt} exceeds the {end - at} bytes after the headers")
    return Packet(data, tuple(headers), data[at : end - bth.pad_cnt], check)


def build(
    *,
    lrh: Mapping[str, int],
    bth: Mapping[str, int],
    grh: Mapping[str, int] | None = None,
    payload: bytes = b"",
    **extended: Mapping[str, int],
) -> Packet:
    """Build an IBA transport packet, CRCs included.

    ``extended`` names the headers that the opcode calls for, each with its fields: ``rdeth``,
    ``deth``, ``xrceth``, ``reth``, ``atomic_eth``, ``aeth``, ``atomic_ack_eth``, ``imm_dt``,
    ``ieth``. A field that is not given is 0, GRH.IPVer and NxtHdr 6 and 0x1B. Computed, whatever
    the caller gives: LRH.LNH and PktLen, GRH.PayLen, BTH.PadCnt, padding, ICRC and VCRC.

    Raises:
        ValueError: no opcode or an undefined one, headers other than the opcode's, a field
            that is unknown or does not fit, or a packet longer than LRH.PktLen can say.
    """
    if "opcode" not in bth:
        raise ValueError("BTH.opcode is not given")
    opcode = bth["opcode"]
    chain = extended_headers(opcode)
    layouts = {}
    for name in extended:
        if name not in _EXTENDED:
            raise ValueError(f"extended header {name!r} is unknown, allowed {', '.join(_EXTENDED)}")
        layouts[_EXTENDED[name].name] = extended[name]
    wanted = [layout.name for layout in chain]
    if set(layouts) != set(wanted):
        takes, got = ", ".join(wanted) or "none", ", ".join(layouts) or "none"
        raise ValueError(f"{Opcode(opcode).name} takes headers {takes}, got {got}")

    pad_cnt = -len(payload) % WORD_BYTES
    transport = [BTH.record(bth).replace(pad_cnt=pad_cnt)]
    transport += [layout.record(layouts[layout.name]) for layout in chain]
    pay_len = sum(record.layout.size_bytes for record in transport) + len(payload) + pad_cnt + ICRC_BYTES
    network = [] if grh is None else [GRH.record(grh).replace(pay_len=pay_len)]
    size = LRH.size_bytes + len(network) * GRH.size_bytes + pay_len
    lnh = LNH.IBA_LOCAL if grh is None else LNH.IBA_GLOBAL
    headers = (_link_header(lrh, lnh, size), *network, *transport)
    data = b"".join([*[record.pack() for record in headers], payload, bytes(pad_cnt)])
    data += icrc(data)
    return Packet(data, headers, bytes(payload), vcrc(data))


def build_raw(*, lrh: Mapping[str, int], header: Record, payload: bytes = b"") -> Packet:
    """Build a raw packet, VCRC included: ``header`` is an RWH, or a GRH as IPv6 header.

    Computed, whatever the caller gives: LRH.LNH and PktLen.

    Raises:
        ValueError: another header, a payload that is not whole 4-byte words, a field that does
            not fit, or a packet longer than LRH.PktLen can say.
    """
    if header.layout not in (RWH, GRH):
        raise ValueError(f"raw packet with {header.layout.name}, allowed RWH, GRH")
    if len(payload) % WORD_BYTES:
        raise ValueError(f"raw payload of {len(payload)} bytes, allowed multiples of {WORD_BYTES}")
    lnh = LNH.RAW if header.layout == RWH else LNH.RAW_IPV6
    size = LRH.size_bytes + header.layout.size_bytes + len(payload)
    headers = (_link_header(lrh, lnh, size), header)
    data = headers[0].pack() + header.pack() + payload
    return Packet(data, headers, bytes(payload), vcrc(data))


def build_ud_send(
    *,
    slid: int,
    dlid: int,
    dest_qp: int,
    src_qp: int,
    q_key: int,
    payload: bytes,
    vl: int = 0,
    sl: int = 0,
    p_key: int = P_KEY_DEFAULT,
    psn: int = 0,
    grh: Mapping[str, int] | None = None,
) -> Packet:
    """Build a UD SEND Only packet, what MADs and IPoIB travel in, CRCs included.

    Raises:
        ValueError: a value that does not fit its field.
    """
    return build(
        lrh={"vl": vl, "sl": sl, "slid": slid, "dlid": dlid},
        grh=grh,
        bth={"opcode": Opcode.UD_SEND_ONLY, "p_key": p_key, "dest_qp": dest_qp, "psn": psn},
        deth={"q_key": q_key, "src_qp": src_qp},
        payload=payload,
    )


def _link_header(lrh: Mapping[str, int], lnh: LNH, size: int) -> Record:
    return LRH.record(lrh).replace(lnh=lnh, pkt_len=size // WORD_BYTES)
