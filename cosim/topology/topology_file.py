"""Topology files: ibsim's `.net` and ibnetdiscover's output, which is the same language with more in its comments.

A record is a node's line and a line for each of its linked ports:

    Switch  8 "SW1"                                         # "name" base port 0 lid 3 lmc 0
    [2]     "H1"[1](100001)                                 # "name" lid 5 4xSDR
    Ca      1 "H1"                                          # "name"
    [1](100001)     "SW1"[2]                                # lid 5 lmc 0 "name" lid 3 4xSDR

Everything from `#` on may be missing, as in hand-written files. A link stands at both its ends, or at one
with the alias of the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cosim.topology.lines import Gap, Include, read_line
from cosim.topology.link_rates import rate_line
from cosim.topology.place import Place, TopologyError, Wrong
from cosim.topology.subnet_builder import SubnetBuilder
from sm.subnet import Subnet
from toolchain.packaged import find_file, packaged_files
from toolchain.watched_file import WatchedFile

__all__ = ["TopologyError", "TopologyFile", "find_topology", "packaged_topologies", "parse_topology", "read_topology"]

_PACKAGED: Final = Path(__file__).with_name("packaged")

_MOST_LEVELS: Final = 9
"""Files that may be open at once, as in ibsim."""

_MOST_INCLUDES: Final = 1_000
"""Files that include others several times soon are more than anybody waits for."""


@dataclass(frozen=True)
class TopologyFile:
    """A topology file's content."""

    file: str
    subnet: Subnet
    """The fabric. LIDs are those of the file, 0 where it gives none."""
    ids: dict[int, str]
    """By node GUID, what a node is called in the file: a name, or ibnetdiscover's `S-0000000000200000`."""
    places: dict[int, Place]
    """By node GUID, where it begins."""
    remarks: tuple[str, ...] = ()
    """Lines that nothing came of, or not what they say: file, line, what."""
    files: tuple[WatchedFile, ...] = field(default=(), compare=False)
    """What was read."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What somebody should know who runs the fabric: rates that are not built; the first of the remarks, and how
        many more there are."""
        more = len(self.remarks) - 1
        remark = f"{self.remarks[0]}{f', and {more:,} more such' if more else ''}" if self.remarks else ""
        return tuple(filter(None, (rate_line(self.subnet), remark)))


def packaged_topologies() -> dict[str, Path]:
    """Topology files that come with Ironband, by name."""
    return packaged_files(_PACKAGED, ".net")


def find_topology(name_or_path: str) -> Path:
    """The topology file at a path, or the packaged one of that name.

    Raises:
        TopologyError: there is neither.
    """
    return find_file("topology", name_or_path, packaged_topologies(), ".net", TopologyError)


def read_topology(path: str | Path) -> TopologyFile:
    """The topology in a file.

    Raises:
        TopologyError: it cannot be read, or it is not a topology.
    """
    reader = _Reader()
    try:
        text = reader.text(Path(path), str(path))
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}") from None
    reader.take(text, str(path), None, (os.path.realpath(path),))
    return reader.finish(str(path))


def parse_topology(text: str, file: str) -> TopologyFile:
    """The topology of a text; `file` is what errors call it.

    A GUID that is not given comes from the order of the nodes, as in ibsim.

    Raises:
        TopologyError: it is not a topology.
    """
    reader = _Reader()
    reader.take(text, file, None, ())
    return reader.finish(file)


class _Reader:
    """Reads files and those that they include."""

    def __init__(self) -> None:
        self._builder = SubnetBuilder()
        self._files: dict[str, WatchedFile] = {}
        self._includes = 0

    def text(self, path: Path, file: str) -> str:
        """A file's text; `file` is what errors call it.

        Raises:
            OSError: it cannot be read.
            TopologyError: it is no text.
        """
        known = os.path.realpath(path)
        if known not in self._files:
            self._files[known] = WatchedFile(path)
        data = self._files[known].data
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            place = Place(file, data.count(b"\n", 0, error.start) + 1)
            raise place.error(f"byte 0x{data[error.start]:02x} is not UTF-8, expected a topology file") from None

    def take(self, text: str, file: str, included_at: Place | None, opened: tuple[str, ...]) -> None:
        """The lines of a text; `opened` are the files that it is in, from the outermost."""
        for number, line in enumerate(text.split("\n"), 1):
            place = Place(file, number, included_at)
            try:
                said = read_line(line.strip())
                if said is not None:
                    self._builder.take(place, said)
                if isinstance(said, Include):
                    self._include(said.file, place, opened)
            except Wrong as wrong:
                raise place.error(wrong) from None

    def finish(self, file: str) -> TopologyFile:
        """What has been read."""
        builder = self._builder
        if not builder.subnet.nodes:
            raise TopologyError(f"{file}: no nodes, expected a topology of ibsim or ibnetdiscover")
        builder.link()
        return TopologyFile(
            file, builder.subnet, builder.names, builder.places, tuple(builder.remarks), tuple(self._files.values())
        )

    def _include(self, file: str, place: Place, opened: tuple[str, ...]) -> None:
        self._includes += 1
        if self._includes > _MOST_INCLUDES:
            raise Wrong(f'include "{file}": expected at most {_MOST_INCLUDES:,} in all')
        if len(opened) >= _MOST_LEVELS:
            raise Wrong(f'include "{file}": expected at most {_MOST_LEVELS} files within each other')
        path = next((path for path in _candidates(file, place) if path.exists()), Path(file))
        if os.path.realpath(path) in opened:
            raise Wrong(f'include "{file}": it is being read already, expected a file that does not include itself')
        try:
            text = self.text(path, str(path))
        except OSError as error:
            raise Wrong(f'include "{file}": {error.strerror}') from None
        self.take(text, str(path), place, (*opened, os.path.realpath(path)))
        self._builder.take(place, Gap())


def _candidates(file: str, place: Place) -> Iterator[Path]:
    """Where a file that is included may be: in the current directory, as for ibsim, or beside the one that does it."""
    yield Path(file)
    yield Path(place.file).parent / file
