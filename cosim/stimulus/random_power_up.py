"""What happens at random while nodes have power and nobody has set them up yet."""

from __future__ import annotations

from random import Random
from typing import Final

from cosim.stimulus.bus_bring_up import write_port
from cosim.stimulus.row_errors import link_error
from cosim.topology.topology import Topology
from wire.codes import LinkWidth
from wire.registers import PortRegister
from wire.stimulus import Control, Operation, injection_target

__all__ = ["random_power_up"]

_EARLY_SHARE: Final = 0.5
"""Of the ports of 1X links, those that learn it before bring-up says so; likewise links with symbols amiss."""

_FIRST_CYCLES: Final = 16
"""In which the first flow control packets cross."""


def random_power_up(topology: Topology, random: Random, end: int) -> list[Control]:
    """Some WIDTHs that bring-up writes, written sooner, and symbols amiss, in the first cycles, all below END.

    Flow control packets cross then: some of their rows are on no wires when the width changes.
    """
    stray = link_error("stray_symbol").args()
    wanted = [
        *(
            write_port(topology, 0, port, PortRegister.WIDTH, LinkWidth.X1)
            for port in topology.linked_ports()
            if topology.pace(port) != 1 and random.random() < _EARLY_SHARE
        ),
        *(
            Control(0, Operation.INJECT, injection_target(link, way), stray)
            for link in range(len(topology.fabric.links))
            for way in (0, 1)
            if random.random() < _EARLY_SHARE
        ),
    ]
    cycles = range(min(_FIRST_CYCLES, end))
    count = min(len(wanted), len(cycles))
    given = zip(sorted(random.sample(cycles, count)), random.sample(wanted, count), strict=True)
    return [control._replace(cycle=cycle) for cycle, control in given]
