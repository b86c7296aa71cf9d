"""What ibdmchk says of our routes and of OpenSM's is what we say of them, and what docs/routing.md has."""

import re
import shutil
from collections import Counter
from collections.abc import Mapping
from itertools import permutations
from statistics import pstdev

import pytest

from scripts.ibdmchk import IBDMCHK, Judged, RoutedFabric, every, judge, main, read_verdicts, routes, write_dumps
from sm.credit_loops import find_credit_loop
from sm.routing.figures import route_figures
from sm.subnet import End, Subnet
from tests.files import ROOT
from tests.sm.opensm_tables import OUR_ENGINES, read_fdbs
from tests.sm.subnets import walk

VERDICTS = read_verdicts()
WITH_LAYERS = Judged("ring_8", "lash", "ours")

needs_ibdmchk = pytest.mark.skipif(shutil.which(IBDMCHK) is None, reason="NOT TESTED: apt-get install ibutils")


def paths(routed: RoutedFabric) -> list[list[End]]:
    """The ports by which packets from each host leave switches on their way to each other host."""
    hosts = [(end, routed.lids[port.guid].first) for end, port in routed.subnet.reachable_end_ports if end.port]
    ways = []
    for (source, _slid), (_home, dlid) in permutations(hosts, 2):
        first = routed.subnet.peer(source)
        assert first is not None
        ways.append(walk(routed.subnet, routed.tables, first.guid, dlid) or [])
    return ways


def between_switches(subnet: Subnet) -> list[End]:
    return [
        End(switch.guid, port)
        for switch in subnet.switches
        for port, far in subnet.neighbours(switch.guid)
        if subnet.nodes[far.guid].is_switch
    ]


def test_everything_beside_opensm_was_judged():
    assert list(VERDICTS) == list(every())


@pytest.mark.parametrize("which", VERDICTS, ids=" ".join)
def test_ibdmchk_says_what_we_say(which):
    routed, verdict = routes(which), VERDICTS[which]
    ways = paths(routed)
    assert (verdict.paths, verdict.missing) == (len(ways), 0)
    assert verdict.hops == Counter(1 + len(way) for way in ways)
    figures = route_figures(routed.subnet, routed.lids, routed.tables)
    assert (figures.missing, figures.max_hops) == (0, max(verdict.hops))
    assert figures.mean_hops == sum(hops * count for hops, count in verdict.hops.items()) / verdict.paths
    dlids = Counter(end for end, _home in {(end, way[-1]) for way in ways for end in way[:-1]})
    taken = {end.guid for way in ways for end in way}
    assert verdict.dlids == Counter(dlids[end] for end in between_switches(routed.subnet) if end.guid in taken)
    loop = find_credit_loop(routed.subnet, routed.lids, routed.tables, service_level=routed.service_level)
    assert verdict.has_loop == (loop is not None)


def test_ours_are_as_short_as_opensms_and_have_no_credit_loop_where_they_have_none():
    for fabric, engine, _whose in VERDICTS:
        ours, theirs = (VERDICTS[Judged(fabric, engine, whose)] for whose in ("ours", "opensm"))
        assert ours.hops == theirs.hops
        assert ours.has_loop <= theirs.has_loop


def spread(histogram: Mapping[int, int]) -> str:
    """From the least to the most, and the deviation."""
    deviation = pstdev(Counter(histogram).elements())
    return f"{min(histogram)} to {max(histogram)} ({deviation:.2f})"


def test_the_table_of_the_docs_has_its_figures():
    rows = re.findall(r"^\| `(\w+)` \| (\S+) / (\S+) \| (.*) \|$", (ROOT / "docs" / "routing.md").read_text(), re.M)
    assert [(fabric, engine) for fabric, _ours, engine, _rest in rows] == [which[:2] for which in VERDICTS][::2]
    for fabric, ours, engine, rest in rows:
        assert ours == OUR_ENGINES[engine]
        _links, _routes, lids, loop, _vls = rest.replace("**", "").split(" | ")
        both = [VERDICTS[Judged(fabric, engine, whose)] for whose in ("ours", "opensm")]
        for text, said in (
            (lids, [spread(verdict.dlids) for verdict in both]),
            (loop, ["yes" if verdict.has_loop else "none" for verdict in both]),
        ):
            assert text == " / ".join(dict.fromkeys(said))


def test_what_is_written_is_what_opensm_dumps(tmp_path):
    routed = routes(WITH_LAYERS)
    write_dumps(routed, tmp_path)
    tables, _hops = read_fdbs(tmp_path / "opensm.fdbs")
    assert {guid: table[: len(routed.tables[guid])] for guid, table in tables.items()} == routed.tables
    port = r"\{ (?:CA|SW) .* NodeGUID:(\w{16}) .* PN:(\w\w) \}"
    lines = (tmp_path / "opensm-subnet.lst").read_text().splitlines()
    ends = [re.fullmatch(rf"{port} {port} PHY=4x LOG=ACT SPD=2.5", line) for line in lines]
    found = {tuple(End(int(match[at], 16), int(match[at + 1], 16)) for at in (1, 3)) for match in ends if match}
    assert len(found) == len(lines)
    assert found == {pair for link in routed.subnet.links for pair in ((link.a, link.b), (link.b, link.a))}
    sls = {line.split()[2] for line in (tmp_path / "path-sl").read_text().splitlines()}
    assert sls == {"0", "1"}


def test_without_ibdmchk_a_line_says_what_brings_it(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert main() == 2
    assert capsys.readouterr().err == "ibdmchk: not found, apt-get install ibutils brings it\n"


@pytest.mark.deep
@needs_ibdmchk
@pytest.mark.parametrize("which", VERDICTS, ids=" ".join)
def test_ibdmchk_says_what_was_recorded(which):
    assert judge(routes(which)) == VERDICTS[which]


@pytest.mark.deep
@needs_ibdmchk
def test_ibdmchk_finds_a_path_that_is_missing_and_a_loop_without_sls():
    routed = routes(WITH_LAYERS)
    assert judge(routed._replace(service_level=lambda slid, dlid: 0)).has_loop
    home = next(lids.first for guid, lids in routed.lids.items() if guid == 0x100001)
    far = next(guid for guid, table in routed.tables.items() if table[home] not in (0, 0xFF))
    routed.tables[far][home] = 0xFF
    verdict = judge(routed)
    assert (verdict.paths, verdict.missing > 0, verdict.has_loop) == (56, True, None)
