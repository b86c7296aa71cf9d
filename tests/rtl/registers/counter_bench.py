"""Counters of a port in a simulation of their own: what is counted and accessed cycle by cycle, and what is read."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from rtl.registers.counter_places import COUNTED_LATE, LENGTHS, VL_XMIT_WAITS
from rtl.registers.counters import PortCounters
from rtl.registers.port_access import PortDecoder
from tests.rtl.registers.decoded import behind_decoder, give
from tests.rtl.simulation import Simulation
from wire.registers import VL_XMIT_WAIT, Counter, Detail, PacketCounter, PortRegister

__all__ = ["ERRORS", "OTHERS", "Access", "Counted", "Cycle", "answers", "counter_name", "read", "run", "write"]

Access = tuple[int, int | None]
"""A register's offset and the value written, None of a read."""
Counted = Mapping[int, int]
"""By how much counters move, by their registers; FLOW_CTL_UPDATE_ERRORS by a mask of VLs."""
Cycle = tuple[Access | None, Counted]


ERRORS = PortRegister.FLOW_CTL_UPDATE_ERRORS
OTHERS = 63
"""Ports of the switch beside this one."""


@cache
def counter_name(register: int) -> str:
    """What it is called on the wires."""
    if 0 <= register - VL_XMIT_WAIT < len(VL_XMIT_WAITS):
        return VL_XMIT_WAITS[register - VL_XMIT_WAIT]
    return next(kind(register).name for kind in (Counter, PacketCounter, Detail) if register in {*kind})


@cache
def _simulated(vls: int) -> tuple[Any, PortDecoder, Simulation]:
    counters = PortCounters(vls, OTHERS)
    design, decoder = behind_decoder(counters, vls)
    return counters, decoder, Simulation(design)


def run(vls: int, cycles: Sequence[Cycle]) -> list[int]:
    """What is read in each cycle, and in two more. The counters have what is counted late a cycle later."""
    counters, decoder, simulation = _simulated(vls)
    varying = {name for name, _ in counters.amounts.shape()}
    found = []

    async def drive(ctx: Any) -> None:
        late: dict[str, int] = {}
        driven: list[Cycle] = [*cycles, (None, {}), (None, {})]
        give(ctx, decoder, _wires(driven[0][0]))
        await ctx.tick()
        for (_, counted), (following, _) in zip(driven, [*driven[1:], (None, {})], strict=True):
            of_counters = {register: amount for register, amount in counted.items() if register != ERRORS}
            by_name = {counter_name(register): amount for register, amount in of_counters.items()}
            now = {name: amount for name, amount in by_name.items() if name not in COUNTED_LATE}
            by_name, late = now | late, {name: amount for name, amount in by_name.items() if name not in now}
            ctx.set(counters.expired, counted.get(ERRORS, 0))
            give(ctx, decoder, _wires(following))
            ctx.set(counters.counts, dict.fromkeys(by_name, 1))
            # Where no packet counts its length is anything.
            lengths = {length.name: len(found) * 37 % 1024 for length in LENGTHS}
            amounts = lengths | {name: amount for name, amount in by_name.items() if name in varying}
            ctx.set(counters.amounts, amounts)
            found.append(ctx.get(counters.value))
            await ctx.tick()

    simulation.run(drive)
    return found


def _wires(access: Access | None) -> dict[str, int]:
    if access is None:
        return {}
    offset, value = access
    return {"offset": offset, "read": value is None, "write": value is not None, "wdata": value or 0}


def answers(vls: int, cycles: Sequence[Cycle]) -> list[int]:
    """What the reads among these cycles give."""
    found = run(vls, cycles)
    return [found[at + 2] for at, (access, _) in enumerate(cycles) if access is not None and access[1] is None]


def read(offset: int) -> Cycle:
    """A cycle that reads a register."""
    return (offset, None), {}


def write(offset: int, value: int) -> Cycle:
    """A cycle that writes one."""
    return (offset, value), {}
