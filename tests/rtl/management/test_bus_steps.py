"""The agent's accesses to the register bus (docs/management.md, section 4.3)."""

from typing import Any

import pytest

from tests.rtl.management.agent_bench import Bench
from wire.mad import MadMethod
from wire.parameters import SwitchParameters
from wire.port_info import PORT_INFO_MODIFIER
from wire.port_tables import SL_TO_VL_MODIFIER
from wire.registers import lft_address
from wire.sma import SMA_ATTRIBUTES, SmaAttribute
from wire.smp import SMP_DATA_BYTES, smp_request

SWITCH = SwitchParameters(ports=4, vls=2, mtu=256, buffer_blocks=16, lft_size=128, mft_size=64)
MODIFIERS = {
    SmaAttribute.PORT_INFO: PORT_INFO_MODIFIER.to_int(port=2),
    SmaAttribute.SL_TO_VL_MAPPING_TABLE: SL_TO_VL_MODIFIER.to_int(input_port=1, output_port=2),
}


@pytest.mark.parametrize("attribute", [SmaAttribute(code) for code in SMA_ATTRIBUTES])
@pytest.mark.parametrize("method", [MadMethod.GET, MadMethod.SET])
def test_whatever_is_asked_the_answers_way_is_read_at_step_2(method: MadMethod, attribute: SmaAttribute) -> None:
    slid, port = 7, 3
    bench = Bench(SWITCH)
    bench.registers[lft_address(slid)] = port

    async def script(bench: Any) -> None:
        modifier = MODIFIERS.get(attribute, 0)
        smp = smp_request(method, attribute, modifier, bytes([port]) * SMP_DATA_BYTES, transaction_id=1)
        work = await bench.smp(smp, slid=slid, dlid=9)
        assert work.reads[0] == (2, lft_address(slid))
        assert work.outputs == (port - 1,)

    bench.run(script)
