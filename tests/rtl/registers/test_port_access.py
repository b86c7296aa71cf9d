"""What ports see of an access to their node. That it is decoded well their registers and counters tell."""

from typing import Any

import pytest

from rtl.registers.port_access import PortDecoder
from tests.rtl.simulation import Simulation
from wire.registers import PortRegister


@pytest.mark.parametrize(
    ("page", "offset", "selected"),
    [(3, 9, 3), (3, 0x109, None), (3, 0x8009, None), (2, 9, 2), (0, 9, None), (4, 9, None), (0x43, 9, None)],
)
def test_a_port_is_told_of_accesses_to_its_page_and_to_what_there_may_be_in_it(
    page: int, offset: int, selected: int | None
) -> None:
    dut = PortDecoder(3, vls=2, mtu=256)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.given, {"page": page, "offset": offset, "write": 1, "wdata": 7})
        assert [ctx.get(reg.select) for reg in dut.reg] == [port == selected for port in (1, 2, 3)]
        for reg in dut.reg:
            written = [register for register in PortRegister if ctx.get(reg.writes[register.name])]
            assert (written, ctx.get(reg.wdata)) == ([PortRegister.LOCAL_PHY_ERRORS], 7)

    Simulation(dut).run(bench)
