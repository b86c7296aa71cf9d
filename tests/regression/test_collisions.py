"""Memories that are read and written in one cycle at one address: what they return then is nobody's business."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cosim.engines import session
from cosim.engines.base import MODEL, Run, RunOptions
from cosim.engines.simulation import run
from cosim.experiments.check_experiment import CheckOptions, check_experiment
from cosim.stimulus.bus_bring_up import bus_bring_up, write
from cosim.stimulus.packet import ud_packet
from cosim.stimulus.run_spec import RunSpec
from cosim.topology.topology import Topology
from cosim.trace.compare import Names, compare
from tests.regression.fabrics import STAR
from tests.regression.rubbish import with_rubbish
from verilog.design import fabric_design
from wire.codes import P_KEY_DEFAULT, LinkWidth
from wire.port_tables import P_KEY_TABLE
from wire.registers import PartitionCheck, PortRegister, p_key_address, port_address
from wire.row_crc import PERIOD
from wire.stimulus import Control, Post
from wire.trace import Kind, Record, Verdict
from wire.trace_layout import RxData, TxData

HOSTS = {"h0": 1, "h1": 2, "h2": 3}
_READ_TO_WIRE = 3
TOPOLOGY = Topology(
    STAR, HOSTS, {"sw0": {lid: lid for lid in HOSTS.values()}}, (LinkWidth.X4,) * len(HOSTS), (0, 1) * 8
)


def short_packets(seed: int, start: int, cycles: int) -> Iterator[Post]:
    """Of two hosts to the third: the second's packet ends around the cycle in which the first's has left."""
    choose = random.Random(seed)
    sequence = 0
    for cycle in range(start, cycles, 30):
        size = choose.choice((20, 40, 60))
        later = choose.randrange(size // 4, size // 4 + 10)
        for source, bytes_, delay in ((0, size, 0), (1, choose.choice((0, 4)), later)):
            sequence += 1
            vl = choose.randrange(2)
            data = ud_packet(choose, slid=1 + source, dlid=3, sl=vl, vl=vl, flow=source, sequence=sequence, size=bytes_)
            yield Post(cycle + delay, 1 + source, vl, data)


def rewritten_p_keys(seed: int, start: int, cycles: int) -> Iterator[Control]:
    """All ports check. Of every port's table all but the first entry is written again and again, of keys that have
    chunks in common with the P_Keys of the packets."""
    choose = random.Random(seed)
    for port in HOSTS.values():
        address = port_address(port, PortRegister.PARTITION)
        yield write(start + port, 0, address, PartitionCheck.INBOUND | PartitionCheck.OUTBOUND)
    for cycle in range(start + 10, cycles, 10):
        port, entry = choose.choice(list(HOSTS.values())), choose.randrange(1, P_KEY_TABLE.count)
        key = choose.choice((0, P_KEY_DEFAULT, P_KEY_DEFAULT ^ 1 << choose.randrange(P_KEY_TABLE.entry.width)))
        yield write(cycle, 0, p_key_address(port, entry), key)


def compared(spec: RunSpec, seed: int, directory: Path) -> list[Record]:
    """The records of hardware whose memories return rubbish, which are the model's."""
    design, promising = with_rubbish(fabric_design(STAR))
    assert promising > 10
    seen: list[Record] = []
    with (
        Run(partial(session.simulate, "icarus", design), spec, RunOptions(directory / "icarus")) as rubbish,
        run("model", spec, directory / "model") as expected,
    ):
        difference = compare(expected, map(noted(seen), rubbish)).difference
    assert difference is None, difference.report(Names(STAR), f"seed {seed}")
    return seen


@pytest.mark.slow
def test_what_a_memory_returns_of_a_word_that_is_being_written_is_nobodys_business(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    up = bus_bring_up(TOPOLOGY, {})
    cycles = up.start + 1_500
    seen = compared(
        RunSpec(STAR, list(up.controls), list(short_packets(seed, up.start, cycles - 300)), cycles), seed, tmp_path
    )
    kinds = [record.kind for record in seen]
    # A packet's first row is read in the cycle in which its verdict is written.
    ended = {record.cycle for record in seen if record.kind == Kind.RX_DATA}
    read = {TxData.first_cycle.read(record) - _READ_TO_WIRE for record in seen if record.kind == Kind.TX_DATA}
    assert len(ended & read) > 2
    assert kinds.count(Kind.DELIVER) > 50
    assert kinds.count(Kind.SCRAP) == 0


@pytest.mark.slow
def test_p_keys_are_found_while_those_beside_them_are_written(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    up = bus_bring_up(TOPOLOGY, {})
    cycles = up.start + 2_500
    controls = [*up.controls, *rewritten_p_keys(seed, up.start, cycles)]
    seen = compared(
        RunSpec(STAR, controls, list(short_packets(seed, up.start + 40, cycles - 300)), cycles), seed, tmp_path
    )
    judged = [Verdict(RxData.verdict.read(record)) for record in seen if record.kind == Kind.RX_DATA]
    assert judged.count(Verdict.GOOD) == len(judged) > 150


@pytest.mark.deep
def test_nor_is_it_with_errors_and_all_that_check_sends(tmp_path: Path) -> None:
    """The same hardware in ten checks, on Verilator."""
    fabric_seed = random.randrange(1 << 32)
    print(f"fabric seed {fabric_seed}")
    options = CheckOptions(3, 2, cycles=30_000, sim=MODEL, fabric_seed=fabric_seed)
    fabric = check_experiment(options).topology.fabric
    design, promising = with_rubbish(fabric_design(fabric, rows=True))
    assert promising > 10
    simulate = partial(session.simulate, "verilator", design)
    for seed in range(1, 11):
        experiment = check_experiment(replace(options, seed=seed))
        with (
            Run(simulate, experiment.spec(), RunOptions(tmp_path / "verilator", rows=PERIOD)) as rubbish,
            run(MODEL, experiment.spec(), tmp_path / "model", rows=PERIOD) as expected,
        ):
            difference = compare(expected, rubbish).difference
        assert difference is None, difference.report(Names(fabric), f"seed {seed}")


def noted(seen: list[Record]) -> Callable[[Record], Record]:
    """Appends what it passes on."""

    def note(record: Record) -> Record:
        seen.append(record)
        return record

    return note
