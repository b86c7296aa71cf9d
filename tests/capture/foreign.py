"""Files of captures as other programs write them, from the formats' public descriptions."""

import struct

__all__ = ["block", "enhanced", "erf", "interface", "obsolete", "pcap", "section", "simple"]

ERF, INFINIBAND, ETHERNET = 197, 247, 1


def erf(kind: int, data: bytes, *, seconds=0.0, flags=4, extensions=(), rlen=None, wlen=None) -> bytes:
    """A record; the time in seconds, exact in binary fractions."""
    stamp = int(seconds * (1 << 32))
    rlen = 16 + 8 * len(extensions) + len(data) if rlen is None else rlen
    head = struct.pack("<Q", stamp) + struct.pack(
        ">BBHHH", kind | (0x80 if extensions else 0), flags, rlen, 0, len(data) if wlen is None else wlen
    )
    links = b"".join(
        bytes([one | (0x80 if number < len(extensions) - 1 else 0)]) + bytes(7) for number, one in enumerate(extensions)
    )
    return head + links + data


def pcap(link_type: int, records, *, order="<", nanoseconds=False, version=2) -> bytes:
    """Of (seconds, fraction, original length or None, data)."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = struct.pack(f"{order}IHHiIII", magic, version, 4, 0, 0, 65535, link_type)
    for seconds, fraction, original, data in records:
        length = len(data) if original is None else original
        out += struct.pack(f"{order}IIII", seconds, fraction, len(data), length) + data
    return out


def block(kind: int, body: bytes, order="<") -> bytes:
    body += bytes(-len(body) % 4)
    total = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + total + body + total


def options(given, order="<") -> bytes:
    out = b""
    for code, value in given:
        out += struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)
    return out + bytes(4) if given else b""


def section(order="<", version=1) -> bytes:
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, version, 0, -1), order)


def interface(link_type: int, given=(), order="<", snap=0) -> bytes:
    return block(1, struct.pack(f"{order}HHI", link_type, 0, snap) + options(given, order), order)


def enhanced(number: int, stamp: int, data: bytes, given=(), order="<", original=None) -> bytes:
    head = struct.pack(
        f"{order}IIIII", number, stamp >> 32, stamp & 0xFFFFFFFF, len(data), len(data) if original is None else original
    )
    return block(6, head + data + bytes(-len(data) % 4) + options(given, order), order)


def obsolete(number: int, stamp: int, data: bytes, order="<") -> bytes:
    head = struct.pack(f"{order}HHIIII", number, 7, stamp >> 32, stamp & 0xFFFFFFFF, len(data), len(data))
    return block(2, head + data, order)


def simple(data: bytes, order="<") -> bytes:
    return block(3, struct.pack(f"{order}I", len(data)) + data, order)
