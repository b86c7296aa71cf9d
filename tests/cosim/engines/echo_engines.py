"""Engines on the stand-in fabric, and random stimulus for them."""

import random
from collections.abc import Iterator
from functools import partial

import pytest

from cosim.engines import amaranth, session
from cosim.engines.base import Engine
from cosim.stimulus.run_spec import RunSpec
from tests.cosim.drivers.echo import PARAMETERS, Echo
from verilog.design import Design, export
from wire.stimulus import Control, Operation, Post

CYCLES = 6000

HARDWARE = [
    "amaranth",
    pytest.param("verilator", marks=pytest.mark.slow),
    pytest.param("icarus", marks=pytest.mark.slow),
]
SIMULATORS = [pytest.param(name, marks=pytest.mark.slow) for name in ("verilator", "icarus")]


def design() -> Design:
    return export(Echo, PARAMETERS, ["tests/cosim/drivers/echo.py", "rtl/fabric/ports.py"])


def on(name: str) -> Engine:
    if name == "amaranth":
        return partial(amaranth.simulate, Echo)
    return partial(session.simulate, name, design())


def random_spec(seed: int, cycles: int = CYCLES) -> RunSpec:
    choose = random.Random(seed)

    def controls() -> Iterator[Control]:
        for cycle in sorted(choose.sample(range(cycles), cycles // 20)):
            operation = choose.choice([Operation.BUS_WRITE, Operation.BUS_READ])
            yield Control(cycle, operation, choose.randrange(2), tuple(choose.getrandbits(32) for _arg in range(4)))

    def posts() -> Iterator[Post]:
        cycle = 0
        while cycle < cycles:
            node = choose.randrange(2)
            words = tuple(choose.getrandbits(32) for _word in range(choose.choice([5, 6, 15, 16, 17, 159])))
            yield Post.of_words(cycle, node, choose.randrange(2 + node), words)
            cycle += choose.choice([0, 0, 1, 20, 150])

    return RunSpec(PARAMETERS, list(controls()), list(posts()), cycles)
