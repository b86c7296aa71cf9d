"""Which slots of an output wait (docs/pipeline.md, section 8.3)."""

from typing import Any

from rtl.crossing.output import Output
from rtl.widths import NEED_BITS
from tests.rtl.simulation import Simulation

ALL = 0b111


def waiting(cycles: list[dict[str, int]]) -> list[int]:
    """The slots of an output of two data VLs that wait, cycle by cycle, the output itself above them."""
    dut = Output(2, NEED_BITS, limited=0)
    found = []

    async def drive(ctx: Any) -> None:
        for cycle in cycles:
            for name in ("heads", "offered", "slot", "busy"):
                ctx.set(getattr(dut, name), cycle.get(name, 0))
            found.append(ctx.get(dut.port.waiting) << 3 | ctx.get(dut.port.slots_waiting))
            await ctx.tick()

    Simulation(dut).run(drive)
    return found


def test_a_slot_with_a_head_waits() -> None:
    assert waiting([{"heads": heads} for heads in range(8)]) == [bool(heads) << 3 | heads for heads in range(8)]


def test_what_is_sent_on_another_slot_is_waited_for() -> None:
    """An offer takes a cycle; once accepted, its packet keeps the output busy."""
    for slot in range(3):
        offer = {"heads": ALL, "offered": 1, "slot": 1 << slot}
        # On the wires of an output without an offer there may be any slot.
        busy = [{"heads": ALL, "busy": 1, "slot": other} for other in (1, 2, 4)]
        idle = {"heads": ALL, "slot": 1 << slot}
        others = ALL ^ 1 << slot
        assert waiting([idle, offer, *busy, idle]) == [0b1111, *[others] * 4, 0b1111]


def test_an_offer_that_is_not_accepted_keeps_nothing_busy() -> None:
    offer = {"heads": ALL, "offered": 1, "slot": 1}
    assert waiting([offer, {"heads": ALL}, offer, {"heads": ALL, "busy": 1}]) == [0b110, 0b1111, 0b110, 0b110]
