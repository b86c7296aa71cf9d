"""By which port a packet leaves (docs/management.md, section 3)."""

from typing import Any

from tests.rtl.management.agent_bench import Access, Bench, changed, request
from tests.rtl.management.agent_packets import ANSWERED, lid_routed, works
from tests.rtl.management.agent_packets import SWITCH as LARGE
from tests.rtl.management.sma_bench import GET, SWITCH
from wire.codes import LID_PERMISSIVE
from wire.mad import MadMethod
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


ROUTES = {
    # SLID: LFT entry, output
    7: (4, (3,)),
    127: (8, (7,)),
    8: (0, ()),
    9: (9, ()),
    10: (255, ()),
    128: (1, ()),
    0xBFFF: (1, ()),
    LID_PERMISSIVE: (1, ()),
}


def test_a_lid_routed_answer_goes_by_the_lft() -> None:
    async def script(bench: Bench) -> Any:
        for slid, (entry, _) in ROUTES.items():
            bench.registers[lft_address(slid)] = entry
            yield await bench.send(lid_routed(slid), arrival=2)

    for (slid, (_, outputs)), work in zip(ROUTES.items(), works(script), strict=True):
        assert work.steps == ANSWERED
        assert work.outputs == outputs
        assert work.accesses == ([Access(2, lft_address(slid), None)] if slid < LARGE.lft_size else [])
        if outputs:
            expected = changed(
                lid_routed(slid), {"slid": 1, "dlid": slid}, method=MadMethod.GET_RESP, data=work.smp.data
            )
            assert work.data == expected
