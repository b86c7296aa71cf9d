"""The bytes of a packet, with their CRCs computed at most once."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from wire.codes import LNH
from wire.crc import ICRC_INIT, ICRC_RESIDUE, fingerprint, invert_vcrc, vcrc, vcrc_with_vl
from wire.headers import BTH, GRH, LRH
from wire.layout import Layout
from wire.symbols import Control

__all__ = ["Content"]

_IBA_LOCAL: Final = LNH.IBA_LOCAL
_FECN: Final = 0x80
_SDP: Final = bytes([Control.SDP])
_EGP: Final = bytes([Control.EGP])
_EBP: Final = bytes([Control.EBP])


def _ones(layout: Layout, *names: str) -> bytes:
    data = bytes(layout.size_bytes)
    for name in names:
        data = layout[name].write(data, layout[name].max)
    return data


# What counts as ones in the ICRC (IBTA vol 1, 7.8), by place in the packet.
_BTH_MASK = _ones(BTH, "fecn", "becn", "resv6a")
_LOCAL_MASK: Final = _ones(LRH, "vl") + _BTH_MASK
_GLOBAL_MASK: Final = b"\xff" * LRH.size_bytes + _ones(GRH, "t_class", "flow_label", "hop_lmt") + _BTH_MASK


class Content:
    """Bytes LRH..ICRC, or as far as they came: 4k bytes for a packet with end row k.

    The VL is left out (its four bits are 0): it changes at every hop, and but for FECN nothing else does.

    Attributes:
        data: the bytes, shared by all the nodes that the packet crosses.
    """

    __slots__ = ("_fingerprint", "_fingerprint_of", "_icrc_good", "_vcrc", "data")

    def __init__(self, data: bytes) -> None:
        self.data = bytes([data[0] & 0x0F]) + data[1:] if data[0] > 0x0F else data
        self._vcrc = b""
        self._fingerprint = 0
        self._fingerprint_of = -1
        self._icrc_good: bool | None = None

    def with_vl(self, vl: int) -> bytes:
        """The bytes as they are on a link, on that VL."""
        return bytes([vl << 4 | self.data[0]]) + self.data[1:] if vl else self.data

    def with_fecn(self, byte: int) -> Content:
        """With FECN, bit 7 of a byte; this one, if it has that."""
        data = self.data
        if data[byte] & _FECN:
            return self
        return Content(data[:byte] + bytes([data[byte] | _FECN]) + data[byte + 1 :])

    def vcrc(self, vl: int) -> bytes:
        """The two VCRC bytes on that VL, in wire order."""
        if not self._vcrc:
            self._vcrc = vcrc(self.data)
        return vcrc_with_vl(self._vcrc, 0, vl, len(self.data)) if vl else self._vcrc

    def fingerprint(self, vl: int, bad: bool) -> int:
        """Fingerprint of all symbol bytes SDP..EGP, or SDP..EBP with the VCRC inverted if bad."""
        which = vl << 1 | bad
        if self._fingerprint_of != which:
            check = self.vcrc(vl)
            tail = invert_vcrc(check) + _EBP if bad else check + _EGP
            self._fingerprint = fingerprint(_SDP + self.with_vl(vl) + tail)
            self._fingerprint_of = which
        return self._fingerprint

    def icrc_good(self) -> bool:
        """True if the last four bytes are the ICRC of a packet with IBA transport (section 3.2).

        The masks apply at their places in the packet, however short it is.
        """
        if self._icrc_good is None:
            data = self.data
            mask = _LOCAL_MASK if data[1] & 3 == _IBA_LOCAL else _GLOBAL_MASK
            head = data[: len(mask)]
            size = len(head)
            ones = int.from_bytes(mask[:size], "big")
            masked = (int.from_bytes(head, "big") | ones).to_bytes(size, "big")
            register = crc32(data[size:], crc32(masked))
            self._icrc_good = register == ICRC_RESIDUE ^ ICRC_INIT
        return self._icrc_good
