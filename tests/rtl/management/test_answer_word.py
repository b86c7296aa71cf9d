"""What an answer shows of what changes (docs/management.md, section 4.3)."""

import pytest

from tests.agent_steps import cycles_to
from tests.rtl.management.agent_bench import Bench, Work, request
from tests.rtl.management.sma_bench import GET, SET, SWITCH
from wire.mad import MadMethod
from wire.sma import SmaAttribute
from wire.switch_info import SWITCH_INFO


def test_port_state_change_is_set_by_a_state_and_cleared_by_writing_1() -> None:
    clear = SWITCH_INFO.pack(linear_fdb_top=99, port_state_change=1)
    keep = SWITCH_INFO.pack(linear_fdb_top=99)

    def flag(work: Work) -> int:
        return SWITCH_INFO.unpack(work.attribute).port_state_change

    async def change(bench: Bench) -> None:
        bench.drive(state_reported=1)
        await bench.cycle()
        bench.drive(state_reported=0)

    async def script(bench: Bench) -> None:
        assert flag(await bench.get(SmaAttribute.SWITCH_INFO)) == 0
        await change(bench)
        assert flag(await bench.get(SmaAttribute.SWITCH_INFO)) == 1
        assert flag(await bench.set(SmaAttribute.SWITCH_INFO, keep)) == 1
        assert flag(await bench.set(SmaAttribute.SWITCH_INFO, clear)) == 0
        assert flag(await bench.get(SmaAttribute.SWITCH_INFO)) == 0

    Bench(SWITCH).run(script)


@pytest.mark.parametrize(
    ("method", "step", "seen"),
    [
        # Visible in the cycle after: step 160 reads it, step 33 clears it.
        (GET, 153, 1),
        (GET, 159, 1),
        (GET, 160, 0),
        (SET, 32, 0),
        (SET, 33, 1),
        (SET, 39, 1),
    ],
)
def test_in_which_cycles_port_state_change_is_read_and_cleared(method: MadMethod, step: int, seen: int) -> None:
    data = SWITCH_INFO.pack(linear_fdb_top=99, port_state_change=1)
    bench = Bench(SWITCH)

    async def script(bench: Bench) -> None:
        # Step 0 of a packet sent at once comes 80 cycles after its grant.
        cycle = 80 + cycles_to(step, method, SmaAttribute.SWITCH_INFO)
        bench.at[cycle] = lambda: bench.drive(state_reported=1)
        bench.at[cycle + 1] = lambda: bench.drive(state_reported=0)
        work = await bench.smp(request(method, SmaAttribute.SWITCH_INFO, 0, data))
        assert work.start == 80
        assert SWITCH_INFO.unpack(work.attribute).port_state_change == seen
        later = await bench.get(SmaAttribute.SWITCH_INFO)
        assert SWITCH_INFO.unpack(later.attribute).port_state_change == (seen if method is SET else 1)

    bench.run(script)
