"""VL arbitration: loads that never end share a link as FACTS, section 0 predicts from weights and sizes of packets."""

from collections import Counter
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import pytest

from cosim.experiments.experiment import scenario_experiment
from cosim.experiments.perform import perform
from cosim.scenario.scenario_file import scenario_of
from cosim.topology.topology import Port
from tests.cosim.recorder import Recorder
from wire.packet import WORD_BYTES, blocks, blocks_of_words
from wire.trace import Kind
from wire.trace_layout import TxData

CYCLES = 300_000
"""On a 4X link."""

_HEADERS = 32
"""Bytes of LRH, BTH, DETH and ICRC."""

_VCRC = 2

Size = int | tuple[int, int]
"""Payload bytes of a flow's packets: all the same, or a uniform choice."""


class Vl(NamedTuple):
    """An entry of a list, and what waits for its turns."""

    weight: int
    size: Size


def needs(size: Size) -> dict[int, Fraction]:
    """How likely a packet takes so many blocks."""
    least, most = (size, size) if isinstance(size, int) else size
    padded = (payload + -payload % WORD_BYTES for payload in range(least, most + 1))
    counts = Counter(blocks(_HEADERS + payload + _VCRC) for payload in padded)
    return {need: Fraction(count, most + 1 - least) for need, count in counts.items()}


def blocks_a_turn(vl: Vl) -> float:
    """How much a VL sends in a turn, on the mean: packets while something remains of its weight, the last overdraws."""
    likely = needs(vl.size)

    @cache
    def packets(left: int) -> float:
        return 1 + sum(float(share) * packets(left - need) for need, share in likely.items()) if left > 0 else 0.0

    return packets(vl.weight) * float(sum(need * share for need, share in likely.items()))


def fabric(vls: list[Vl], where: Port, listed: str) -> dict:
    """As many flows as VLs, each with an SL of its own. They meet at the switch's port 1, or at host H1's port.

    The host's link is 1X then, since it gives its packets away in turns, as fast as a 4X link takes them.
    """
    hosts = [f"H{number}" for number in range(1, len(vls) + 2)]
    others = hosts[1:]
    entries = ",".join(f"{number}:{vl.weight}" for number, vl in enumerate(vls))
    ways = [("H1", host) if where.node == "H1" else (host, "H1") for host in others]
    return {
        "cycles": CYCLES * 4 if where.node == "H1" else CYCLES,
        "vl_arbitration": {listed: entries, "high_limit": 255},
        "switches": {"S": {"ports": len(hosts), "vls": 4}},
        "hosts": {host: {"vls": 4} for host in hosts},
        "links": [
            {"ends": [host, f"S[{port}]"], "width": "1X" if host == where.node else "4X"}
            for port, host in enumerate(hosts, 1)
        ],
        "flows": [
            {"from": source, "to": target, "sl": number, "size": vl.size, "rate": 1}
            for number, (vl, (source, target)) in enumerate(zip(vls, ways, strict=True))
        ],
    }


def shares(engine: str, table: dict, port: Port, tmp_path) -> list[float]:
    """Of each VL in the blocks that a port has sent since all of them send."""
    scenario = scenario_of(table, "shares.toml", "shares", tmp_path)
    experiment, recorder = scenario_experiment(scenario), Recorder()
    comparison = perform(experiment, engine, tmp_path, [recorder])
    assert comparison is None or comparison.difference is None
    source = experiment.topology.source(port)
    sent: Counter[int] = Counter()
    for record in recorder.records:
        if record.kind == Kind.TX_DATA and record.source == source:
            sent[TxData.slot.read(record)] += blocks_of_words(TxData.pkt_len.read(record))
    return [sent[slot] / sent.total() for slot in sorted(sent)]


LOADS = {
    "weights are multiples of the packet": [Vl(33, 2048), Vl(99, 2048)],
    "the last packet overdraws": [Vl(40, 1024), Vl(50, 1024), Vl(10, 1024)],
    "small and large packets": [Vl(64, 64), Vl(64, 2048)],
    "packets of all sizes": [Vl(20, (16, 512)), Vl(60, (16, 512))],
    "less than a packet": [Vl(1, (16, 256)), Vl(2, 1024), Vl(7, (16, 256))],
    "the heaviest beside the lightest": [Vl(255, (64, 600)), Vl(20, 256)],
}


@pytest.mark.parametrize("engine", ["model", pytest.param("verilator", marks=pytest.mark.deep)])
@pytest.mark.parametrize("where", [Port("S", 1), Port("H1", 1)], ids=str)
@pytest.mark.parametrize(("load", "listed"), [*((load, "low") for load in LOADS), ("small and large packets", "high")])
def test_vls_share_the_link_of_a_switch_or_of_an_adapter_within_2_percent_of_what_weights_say(
    tmp_path, load, listed, where, engine
):
    vls = LOADS[load]
    turn = [blocks_a_turn(vl) for vl in vls]
    found = shares(engine, fabric(vls, where, listed), where, tmp_path)
    assert found == pytest.approx([one / sum(turn) for one in turn], rel=0.02)
