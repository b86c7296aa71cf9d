"""By which port a packet leaves (docs/management.md, section 3)."""

from tests.rtl.management.agent_bench import Bench, request
from tests.rtl.management.sma_bench import GET, SWITCH
from wire.registers import lft_address
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO


def test_linear_fdb_top_bounds_the_routes_of_the_agents_own_packets() -> None:
    async def script(bench: Bench) -> None:
        for lid in (50, 51):
            bench.registers[lft_address(lid)] = 2
        for top, outputs in ((99, (1,)), (51, (1,)), (50, ()), (49, ()), (98, (1,))):
            await bench.set(SmaAttribute.SWITCH_INFO, SWITCH_INFO.pack(linear_fdb_top=top))
            work = await bench.smp(request(GET, SmaAttribute.NODE_INFO, dr_dlid=1, hop_pointer=2), slid=51, dlid=1)
            assert work.outputs == outputs, top
            assert work.reads == [(2, lft_address(51))]

    Bench(SWITCH).run(script)
