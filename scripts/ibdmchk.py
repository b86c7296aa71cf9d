"""Lets ibdmchk judge routes: those of our routing engines, and OpenSM's, of the fabrics in docs/routing.md.

.venv/bin/python -m scripts.ibdmchk > tests/sm/opensm/ibdmchk.txt

It gets what OpenSM dumps: links (opensm-subnet.lst), forwarding tables (opensm.fdbs), SL-to-VL tables
(opensm-sl2vl.dump), and the SL of each path. It is in Debian's package ibutils.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from cosim.topology.topology_file import read_topology
from ironband.up_options import ROUTING_ENGINES
from sm.lids import LidRange
from sm.subnet import End, Subnet
from tests.files import TOPOLOGIES
from tests.sm.opensm_tables import OPENSM, OUR_ENGINES, Recorded, read_engines
from wire.forwarding_tables import LFT_NO_ROUTE

__all__ = ["IBDMCHK", "Judged", "RoutedFabric", "Verdict", "every", "judge", "read_verdicts", "routes", "write_dumps"]

IBDMCHK: Final = "ibdmchk"
RECORDED: Final = OPENSM / "ibdmchk.txt"

_VLS: Final = 8
"""Of switches in ibsim."""
_SLS: Final = 16

_LOOPS: Final = {True: "yes", False: "no", None: "unknown"}

_HEAD: Final = """\
# What ibdmchk 1.5.7 says of routes: .venv/bin/python -m scripts.ibdmchk > tests/sm/opensm/ibdmchk.txt
# FABRIC ENGINE ours or opensm, ENGINE being OpenSM's; paths from host to host, and how many of them are missing; how
# many paths have so many links; to how many ports between switches so many LIDs of hosts are sent, but of switches
# that no path takes; whether there is a credit loop."""


class Judged(NamedTuple):
    """Whose routes of which fabric; `engine` is OpenSM's, or the one of ours that stands beside it."""

    fabric: str
    engine: str
    whose: str
    """ours or opensm."""


class RoutedFabric(NamedTuple):
    """A subnet with its LIDs, by PortGUID, and its forwarding tables, by switch GUID."""

    subnet: Subnet
    lids: Mapping[int, LidRange]
    tables: Mapping[int, bytearray]
    service_level: Callable[[int, int], int]
    """Of packets from one LID to another."""


@dataclass(frozen=True)
class Verdict:
    """What ibdmchk says."""

    paths: int
    """From each host to all others."""
    missing: int
    hops: Mapping[int, int]
    """How many paths have so many links."""
    dlids: Mapping[int, int]
    """To how many ports between switches so many LIDs of hosts are sent. Switches that no path takes do not count."""
    has_loop: bool | None
    """None where paths are missing: it does not look then."""

    def __str__(self) -> str:
        hops, dlids = (" ".join(f"{key}:{count}" for key, count in one.items()) for one in (self.hops, self.dlids))
        return f"paths {self.paths} missing {self.missing} hops {hops} dlids {dlids} loop {_LOOPS[self.has_loop]}"


def every() -> Iterator[Judged]:
    """All that docs/routing.md has beside each other."""
    for (fabric, engine), whose in product(_recorded(), ("ours", "opensm")):
        yield Judged(fabric, engine, whose)


def routes(which: Judged) -> RoutedFabric:
    """The LIDs are OpenSM's for both."""
    theirs = _recorded()[which.fabric, which.engine]
    subnet = read_topology(TOPOLOGIES / f"{which.fabric}.net").subnet
    if which.whose == "opensm":
        return RoutedFabric(subnet, theirs.lids, theirs.tables, theirs.service_level)
    ours = ROUTING_ENGINES[OUR_ENGINES[which.engine]](subnet, theirs.lids, previous=None)
    return RoutedFabric(subnet, theirs.lids, ours.tables, ours.service_level)


@cache
def _recorded() -> dict[tuple[str, str], Recorded]:
    return read_engines(OPENSM / "engines.txt")


def write_dumps(routed: RoutedFabric, folder: Path) -> list[str]:
    """Writes what OpenSM would dump; the options by which ibdmchk reads it."""
    options = []
    for option, name, text in (
        ("-s", "opensm-subnet.lst", _subnet(routed)),
        ("-f", "opensm.fdbs", _forwarding_tables(routed)),
        ("-m", "opensm.mcfdbs", []),
        ("-d", "opensm-sl2vl.dump", _sl_to_vl(routed)),
        ("-c", "path-sl", _path_sls(routed)),
    ):
        (folder / name).write_text("".join(f"{line}\n" for line in text))
        options += [option, name]
    return options


def judge(routed: RoutedFabric) -> Verdict:
    """Asks ibdmchk.

    Raises:
        ValueError: its answer is none; the text is what it said last.
    """
    with TemporaryDirectory() as folder:
        command = [IBDMCHK, *write_dumps(routed, Path(folder))]
        # Its exit status says nothing: where it finds a credit loop it may end in a segmentation fault.
        said = subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout
    return _verdict(said)


def read_verdicts(path: Path = RECORDED) -> dict[Judged, Verdict]:
    """What was recorded."""
    found = {}
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"(\w+) (\w+) (\w+) paths (\d+) missing (\d+) hops (.*) dlids (.*) loop (yes|no)", line)
        if match:
            hops, dlids = (
                {int(key): int(count) for key, count in (pair.split(":") for pair in text.split())}
                for text in match.group(6, 7)
            )
            verdict = Verdict(int(match[4]), int(match[5]), hops, dlids, match[8] == "yes")
            found[Judged(*match.group(1, 2, 3))] = verdict
    return found


def _subnet(routed: RoutedFabric) -> Iterator[str]:
    """Each link from both ends."""
    subnet = routed.subnet

    def port(end: End) -> str:
        node = subnet.nodes[end.guid]
        own = node.end_ports[0 if node.is_switch else end.port]
        return (
            f"{{ {'SW' if node.is_switch else 'CA'} Ports:{node.ports:02x} SystemGUID:{node.guid:016x} "
            f"NodeGUID:{node.guid:016x} PortGUID:{own.guid:016x} VenID:{node.vendor_id:06X} DevID:{node.device_id:04X} "
            f"Rev:00000000 {{{node.description}}} LID:{routed.lids[own.guid].first:04X} PN:{end.port:02X} }}"
        )

    for link in subnet.links:
        for one, other in ((link.a, link.b), (link.b, link.a)):
            yield f"{port(one)} {port(other)} PHY=4x LOG=ACT SPD=2.5"


def _forwarding_tables(routed: RoutedFabric) -> Iterator[str]:
    for guid, table in routed.tables.items():
        yield f"dump_ucast_routes: Switch 0x{guid:016x}"
        yield "LID    : Port : Hops : Optimal"
        for lid, port in enumerate(table):
            if lid and port != LFT_NO_ROUTE:
                yield f"0x{lid:04X} : {port:03}  : 00   : yes"


def _sl_to_vl(routed: RoutedFabric) -> Iterator[str]:
    """A VL for each SL: nothing here needs more than there are."""
    vls = " ".join(str(sl % _VLS) for sl in range(_SLS))
    for node in routed.subnet.nodes.values():
        for number, port in node.end_ports.items():
            kind = "Switch" if node.is_switch else "Channel Adapter"
            yield f'{kind} 0x{port.guid:016x}, base LID {routed.lids[port.guid].first}, "{node.description}"'
            ports = range(node.ports + 1)
            pairs = ((i, o) for i, o in product(ports, ports[1:]) if i != o) if node.is_switch else ((0, 0),)
            yield from (f"{into} {out} : {vls}" for into, out in pairs if number in (0, port and number))


def _path_sls(routed: RoutedFabric) -> Iterator[str]:
    hosts = [(end, routed.lids[port.guid]) for end, port in routed.subnet.reachable_end_ports if end.port]
    for (source, slids), (home, dlids) in product(hosts, hosts):
        if source != home:
            yield f"0x{source.guid:016x} {dlids.first} {routed.service_level(slids.first, dlids.first)}"


def _verdict(said: str) -> Verdict:
    scanned = re.search(r"^-(?:I- Scanned|E- Found (?P<missing>\d+) missing paths out of):(?P<all>\d+) ", said, re.M)
    loop = re.search(r"^-(E- credit|I- no credit|E- Some Point to Point Traversals Failed)", said, re.M)
    if loop is None or scanned is None:
        raise ValueError(f"{IBDMCHK} says no verdict but {said[-200:]!r}")
    return Verdict(
        int(scanned["all"]),
        int(scanned["missing"] or 0),
        _histogram(said.partition("LFT ROUTE HOP HISTOGRAM")[2], "HOPS NUM-CA-CA-PAIRS"),
        _histogram(said, "NUM-DLIDS NUM-SWITCH-PORTS"),
        {"E- credit": True, "I- no credit": False}.get(loop[1]),
    )


def _histogram(said: str, head: str) -> dict[int, int]:
    lines = said.partition(f"{head}\n")[2].partition("---")[0]
    return {int(key): int(count) for key, count in re.findall(r"(\d+)\s+(\d+)", lines)}


def main() -> int:
    """Prints all verdicts; the exit status."""
    if shutil.which(IBDMCHK) is None:
        print(f"{IBDMCHK}: not found, apt-get install ibutils brings it", file=sys.stderr)
        return 2
    print(_HEAD)
    for which in every():
        try:
            print(*which, judge(routes(which)), flush=True)
        except ValueError as error:
            print(f"{' '.join(which)}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
