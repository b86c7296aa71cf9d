"""A capture read as packets."""

from pathlib import Path

from capture.chunk import PacketFlag
from capture.reader import capture_reader
from capture.wire_packet import WirePacket
from wire.trace import Delimiter

__all__ = ["read_packets", "read_with_directions"]


def read_packets(path: Path | str) -> list[WirePacket]:
    return read_with_directions(path)[0]


def read_with_directions(path: Path | str) -> tuple[list[WirePacket], list[str]]:
    """The packets; what was received with errors is in its bytes too."""
    found = []
    with capture_reader(str(path)) as capture:
        for chunk in capture.chunks():
            for index in range(len(chunk)):
                flags = PacketFlag(int(chunk.flags[index]))
                ending = Delimiter.EBP if flags & PacketFlag.MARKED else Delimiter.EGP
                if flags & PacketFlag.CUT:
                    ending = Delimiter.CUT
                direction, time_ns = int(chunk.direction[index]), int(chunk.time_ns[index])
                is_link = bool(flags & PacketFlag.LINK)
                found.append(WirePacket(direction, time_ns, is_link, chunk.bytes_of(index), ending))
        return found, capture.directions
